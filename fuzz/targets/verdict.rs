//! Any status, headers and body: a verdict that is sound, and no wait that nobody asked for.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use redrive::verdict::{
    Failure, MAX_MESSAGE_BYTES,
    class::transient,
    http::{HttpEvidence, classify},
    inband,
};

const HEADERS: [&str; 8] = [
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "date",
    "content-type",
    "x-amzn-errortype",
    "x-ratelimit-reset-requests",
    "x-ms-error-code",
];

/// Two bytes of status; then lines that begin with the letter of a header (`a` is the first of
/// [`HEADERS`]); after an empty line the body.
pub fn run(data: &[u8]) {
    let Some((status, rest)) = data.split_at_checked(2) else {
        return;
    };
    let status = 100 + u16::from_le_bytes([status[0], status[1]]) % 500;
    let (head, body) = match rest.windows(2).position(|two| two == b"\n\n") {
        Some(at) => (&rest[..at], &rest[at + 2..]),
        None => (rest, [].as_slice()),
    };
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n') {
        let Some((letter, value)) = line.split_first() else {
            continue;
        };
        let name = HEADERS.get(usize::from(letter.wrapping_sub(b'a')));
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    for body_complete in [true, false] {
        let failure = classify(&HttpEvidence {
            status,
            headers: &headers,
            body,
            body_complete,
            now_wall: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)),
        });
        check(&failure, rest);
        if headers.get("x-should-retry").is_some_and(|v| v == "false") && status >= 400 {
            assert!(!failure.retryable, "told not to retry");
        }
    }
    check(&inband::classify(body), body);
}

fn check(failure: &Failure, evidence: &[u8]) {
    assert!(!failure.not_sent);
    assert!(!failure.retryable || transient(failure.class));
    assert!(!failure.message.is_empty() && failure.message.len() <= MAX_MESSAGE_BYTES);
    assert!(!failure.message.contains(char::is_control));
    if let Some(wait) = failure.wait {
        assert!(wait > Duration::ZERO, "a wait of nothing");
        let asked = evidence.iter().any(u8::is_ascii_digit);
        assert!(asked, "promise 9: a wait that nobody asked for");
    }
}
