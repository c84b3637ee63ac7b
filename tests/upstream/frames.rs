//! An HTTP/2 server of raw frames: it sends what no library would, and counts what arrives.

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Log, Peer};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const NO_ERROR: u32 = 0;
pub const INTERNAL_ERROR: u32 = 2;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The server's end of one HTTP/2 connection.
pub struct Frames<S = TcpStream> {
    pub stream: S,
    pub log: Log,
}

impl Frames {
    /// After the prefaces of both sides; ours carries `settings` (identifier, value).
    pub async fn accept(peer: Peer, settings: &[(u16, u32)]) -> Self {
        Self::over(peer.stream, peer.log, settings).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    pub async fn over(mut stream: S, log: Log, settings: &[(u16, u32)]) -> Self {
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(preface, PREFACE);
        let mut frames = Self { stream, log };
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
            .collect();
        frames.send(SETTINGS, 0, 0, &payload).await;
        frames
    }

    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// The next frame; `None` once the other side has closed. HEADERS count as requests.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame {
            kind: head[3],
            flags: head[4],
            stream,
            payload,
        };
        if frame.kind == HEADERS {
            self.log.requested(format!("stream {stream}"));
        }
        Some(frame)
    }

    /// The next frame that is not connection upkeep, which is answered.
    pub async fn next_of_a_stream(&mut self) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            match (frame.kind, frame.flags & ACK) {
                (SETTINGS, 0) => self.send(SETTINGS, ACK, 0, &[]).await,
                (PING, 0) => self.send(PING, ACK, 0, &frame.payload).await,
                _ if frame.stream != 0 => return Some(frame),
                _ => {}
            }
        }
    }

    /// Waits for one whole request; its stream.
    pub async fn request(&mut self) -> Option<u32> {
        loop {
            let frame = self.next_of_a_stream().await?;
            if matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0 {
                return Some(frame.stream);
            }
        }
    }

    /// `:status: 200`, by its index in HPACK's static table.
    pub async fn ok(&mut self, stream: u32) {
        self.send(HEADERS, END_HEADERS, stream, &[0x88]).await;
    }

    pub async fn data(&mut self, stream: u32, data: &str) {
        self.send(DATA, 0, stream, data.as_bytes()).await;
    }

    pub async fn end(&mut self, stream: u32) {
        self.send(DATA, END_STREAM, stream, &[]).await;
    }

    pub async fn answer(&mut self, stream: u32, body: &str) {
        self.ok(stream).await;
        self.data(stream, body).await;
        self.end(stream).await;
    }

    pub async fn reset(&mut self, stream: u32, code: u32) {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes()).await;
    }

    pub async fn go_away(&mut self, last_stream: u32, code: u32) {
        let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(GOAWAY, 0, 0, &payload).await;
    }

    /// Waits until the other side has closed.
    pub async fn gone(&mut self) {
        while self.next_of_a_stream().await.is_some() {}
    }
}

/// A header field that is in no table (RFC 7541, section 6.2.2), values up to 2^14.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    [&[0], &string(name)[..], &string(value)[..]].concat()
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
