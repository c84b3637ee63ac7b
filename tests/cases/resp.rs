//! Just enough of RESP, 2 and 3, to tell where a command or an answer ends.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The next command or answer, as it came.
pub async fn next(from: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    let mut missing = 1;
    while missing > 0 {
        missing -= 1;
        let start = raw.len();
        if from.read_until(b'\n', &mut raw).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (kind, count) = head(&raw[start..])?;
        match kind {
            b'$' | b'=' | b'!' if count >= 0 => {
                let mut text = vec![0; count as usize + 2];
                from.read_exact(&mut text).await?;
                raw.extend(text);
            }
            b'*' | b'~' | b'>' => missing += count.max(0),
            b'%' => missing += 2 * count.max(0),
            b'|' => missing += 2 * count.max(0) + 1,
            _ => {}
        }
    }
    Ok(raw)
}

/// Whether `command` runs a script.
pub fn runs_a_script(command: &[u8]) -> bool {
    let name = command.split(|byte| *byte == b'\n').nth(2);
    let name = name.unwrap_or_default().trim_ascii_end();
    name.eq_ignore_ascii_case(b"EVAL") || name.eq_ignore_ascii_case(b"EVALSHA")
}

/// The kind of a line, and its number if it is one of a length.
fn head(line: &[u8]) -> Result<(u8, i64)> {
    let broken = || Error::from(ErrorKind::InvalidData);
    let (kind, rest) = line.split_first().ok_or_else(broken)?;
    if !b"$=!*~>%|".contains(kind) {
        return Ok((*kind, 0));
    }
    let number = str::from_utf8(rest).ok().map(str::trim_ascii);
    let number = number.and_then(|number| number.parse().ok());
    Ok((*kind, number.ok_or_else(broken)?))
}

#[tokio::test]
async fn commands_and_answers_end_where_they_should() {
    for whole in [
        "+OK\r\n",
        "$3\r\na\r\n\r\n",
        "$-1\r\n",
        "*2\r\n:1\r\n*1\r\n$2\r\n*9\r\n",
        "%1\r\n+a\r\n~2\r\n_\r\n#t\r\n",
        "*-1\r\n",
    ] {
        let twice = [whole, whole].concat();
        let mut from = twice.as_bytes();
        assert_eq!(next(&mut from).await.unwrap(), whole.as_bytes());
        assert_eq!(from, whole.as_bytes());
    }
    assert!(runs_a_script(b"*2\r\n$7\r\nevalsha\r\n$1\r\na\r\n"));
    assert!(!runs_a_script(b"*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n"));
}
