//! What a provider is told to do with one request, and how that is written as JSON.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde::Deserialize;

mod raw;

/// The longest pause of a script, and the longest script altogether. Fixed.
pub(super) const MAX_TIME: Duration = Duration::from_secs(3600);

/// The most bytes of one `fill`. Fixed.
pub(super) const MAX_FILL: u64 = 1 << 30;

/// The most bytes of one repeated chunk. Fixed.
pub(super) const MAX_REPEATED: u64 = 16 << 20;

/// One answer: a head, what happens to the body, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "raw::Script")]
pub struct Script {
    /// The status.
    pub status: u16,
    /// The headers. In a value, `{{http_date:now+2s}}` is the date two seconds after it is served.
    pub headers: BTreeMap<String, String>,
    /// What happens to the body. Without a [`Op::Close`] it ends cleanly.
    pub body: Vec<Op>,
    /// Instead of all this, what happens to the connection.
    pub connect: Option<ConnectFault>,
    /// Instead of status, headers and body: these frames, on an HTTP/2 connection.
    pub frames: Option<Vec<FrameOp>>,
    /// After a clean end, the idle connection is closed.
    pub fin_when_idle: bool,
}

/// One thing that happens in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// These bytes, in one write (and one chunk of HTTP/1.1).
    Write(Bytes),
    /// Nothing, for this long.
    Pause(Duration),
    /// The same write again and again, each this long after the one before.
    Repeat {
        /// One write.
        bytes: Bytes,
        /// From one to the next; zero: as fast as the client reads.
        every: Duration,
        /// How often.
        times: u64,
    },
    /// One long write.
    Fill(Fill),
    /// The end.
    Close(Close),
}

/// Bytes that need not be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// What stands before.
    pub before: Bytes,
    /// What is repeated.
    pub byte: Bytes,
    /// How often.
    pub count: u64,
    /// What stands after.
    pub after: Bytes,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// With the last chunk, or END_STREAM.
    Clean,
    /// The connection is closed (FIN) without it.
    Fin,
    /// Closed inside a chunk.
    TruncatedChunked,
    /// Closed after a whole chunk, without the last one.
    TruncatedChunkedAtBoundary,
    /// The connection is reset (RST).
    Reset,
    /// Not at all: it stays open, silent.
    Never,
}

/// What happens to a connection instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectFault {
    /// Nobody listens.
    Refused,
    /// The name does not resolve. No server can do that; it is read, and nothing happens.
    DnsTemporaryFailure,
    /// The certificate is signed by nobody: it is what every TLS client of the simulator meets.
    TlsUntrustedCertificate,
    /// The request is read, then the connection is reset.
    AcceptThenResetBeforeHeaders,
    /// The request is read, and nothing follows.
    AcceptReadRequestNeverReply,
    /// The connection of the answer before this one is closed while it is idle.
    FinWhileIdleInPool,
    /// The request is read, then the connection is closed.
    OnReuseCloseAfterReadingRequest,
    /// The connection is reset while the request's body is coming.
    OnReuseResetWhileReadingBody,
}

/// One frame of HTTP/2, or what happens between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameOp {
    /// HEADERS.
    Headers(u16, BTreeMap<String, String>),
    /// DATA.
    Data(Bytes),
    /// Nothing, for this long.
    Pause(Duration),
    /// GOAWAY with this code; `processed`: it names this request as one that was looked at.
    GoAway {
        /// The error code of the frame.
        code: u32,
        /// Whether the last stream id is this request's, not one below.
        processed: bool,
    },
    /// RST_STREAM with this code.
    RstStream(u32),
    /// END_STREAM.
    EndStream,
    /// The connection is closed (FIN).
    Close,
}

impl Script {
    /// An answer without a body, to be given one.
    pub fn new(status: u16, content_type: &str) -> Self {
        let content_type = ("content-type".to_owned(), content_type.to_owned());
        Self {
            status,
            headers: BTreeMap::from([content_type]),
            body: Vec::new(),
            connect: None,
            frames: None,
            fin_when_idle: false,
        }
    }

    /// An event stream that has begun.
    pub fn event_stream() -> Self {
        Self::new(200, "text/event-stream")
    }

    /// With one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }

    /// With one more thing that happens.
    #[must_use]
    pub fn then(mut self, op: Op) -> Self {
        self.body.push(op);
        self
    }
}

impl Fill {
    /// All of it in one piece.
    fn render(&self) -> Bytes {
        let mut all = self.before.to_vec();
        for _ in 0..self.count {
            all.extend_from_slice(&self.byte);
        }
        all.extend_from_slice(&self.after);
        Bytes::from(all)
    }

    /// How long it is, in bytes.
    pub(super) fn len(&self) -> u64 {
        let ends = self.before.len() + self.after.len();
        (self.byte.len() as u64)
            .saturating_mul(self.count)
            .saturating_add(ends as u64)
    }
}
