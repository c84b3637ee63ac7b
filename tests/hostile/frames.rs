//! HTTP/2 as an attacker writes it (RFC 9113, and RFC 7541 for headers): by hand, since libraries
//! forbid what attackers do. All of it bytes; sending and reading is its users'.

use tokio::io::{AsyncRead, AsyncReadExt};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const PROTOCOL_ERROR: u32 = 1;
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const ENHANCE_YOUR_CALM: u32 = 11;

pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// The largest window; one byte more is an overflow.
pub const MAX_WINDOW: u32 = (1 << 31) - 1;

/// The largest payload where the peer has not allowed more.
pub const MAX_PAYLOAD: usize = 16 << 10;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// HEADERS that open a `Generate` on `stream`; its body is to come.
pub fn call(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &request())
}

/// The header block of a `Generate`.
pub fn request() -> Vec<u8> {
    [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":authority", "sidecar.test"),
        literal(":path", "/redrive.v1.GenerationService/Generate"),
        literal("content-type", "application/grpc"),
        literal("te", "trailers"),
    ]
    .concat()
}

/// `:status` by its index in HPACK's static table.
pub const STATUS_200: &[u8] = &[0x88];

/// A header field that is in no table and comes into none (RFC 7541, section 6.2.2).
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    [&[0], &string(name)[..], &string(value)[..]].concat()
}

/// A header field that is put into the dynamic table (section 6.2.1).
pub fn entry(name: &str, value: &str) -> Vec<u8> {
    [&[0x40], &string(name)[..], &string(value)[..]].concat()
}

/// The newest entry of the dynamic table, in one byte (section 6.1).
pub const NEWEST_ENTRY: u8 = 0x80 | 62;

/// A little block that says much: the largest entry the table takes, named `times` times.
pub fn bomb(times: usize) -> Vec<u8> {
    [entry("bomb", &"x".repeat(4000)), vec![NEWEST_ENTRY; times]].concat()
}

fn string(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match text.len() {
        short @ ..127 => out.push(short as u8),
        long => {
            let mut rest = long - 127;
            out.push(127);
            while rest >= 128 {
                out.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            out.push(rest as u8);
        }
    }
    out.extend(text.as_bytes());
    out
}

/// HEADERS of `block`, and as many CONTINUATIONs as it takes.
pub fn spread(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = block.chunks(MAX_PAYLOAD).collect();
    let last = pieces.len() - 1;
    let frames = pieces.into_iter().enumerate().map(|(index, piece)| {
        let end = if index == last { END_HEADERS } else { 0 };
        match index {
            0 => frame(HEADERS, flags | end, stream, piece),
            _ => frame(CONTINUATION, end, stream, piece),
        }
    });
    frames.collect::<Vec<_>>().concat()
}

#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a RST_STREAM or GOAWAY.
    pub fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// The next frame; `None` once the other side has closed.
pub async fn next(stream: &mut (impl AsyncRead + Unpin)) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.ok()?;
    Some(Frame {
        kind: head[3],
        flags: head[4],
        stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        payload,
    })
}
