//! A request, read.

use bytes::{Bytes, BytesMut};
use memchr::memmem;

use super::{MAX_BODY, skip, take};
use crate::simulator::{peer::Peer, play::Gone};

/// The longest head, in bytes. Fixed.
const MAX_HEAD: usize = 64 << 10;

/// The longest line before a chunk, in bytes. Fixed.
const MAX_CHUNK_LINE: usize = 256;

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    /// The length of the body; `None`: it is chunked.
    pub(super) length: Option<usize>,
    old: bool,
}

/// Why there is no head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    /// The client left.
    Gone,
    /// It is no request.
    Wrong(&'static str),
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn expects_continue(&self) -> bool {
        self.header("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    }

    /// Whether the client takes one answer only.
    pub(super) fn wants_close(&self) -> bool {
        self.old
            || self
                .header("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next())
        else {
            return Err(HeadError::Wrong("this is no HTTP request"));
        };
        if !version.starts_with("HTTP/1.") {
            return Err(HeadError::Wrong("this is no HTTP/1.1 request"));
        }
        let headers = lines.filter_map(|line| line.split_once(':'));
        let mut head = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
            length: None,
            old: version == "HTTP/1.0",
        };
        let chunked = head.header("transfer-encoding").is_some();
        head.length = match head.header("content-length") {
            _ if chunked => None,
            None => Some(0),
            Some(length) => match length.parse() {
                Ok(length) if length <= MAX_BODY => Some(length),
                _ => return Err(HeadError::Wrong("the body is too large")),
            },
        };
        Ok(head)
    }
}

/// Reads a head.
pub(super) async fn read(peer: &mut Peer) -> Result<Head, HeadError> {
    const END: &[u8] = b"\r\n\r\n";
    loop {
        if let Some(end) = memmem::find(&peer.inbox, END) {
            let head = take(peer, end);
            skip(peer, END.len());
            return Head::parse(&head);
        }
        if peer.inbox.len() > MAX_HEAD {
            return Err(HeadError::Wrong("the head is too long"));
        }
        peer.more().await.map_err(|Gone| HeadError::Gone)?;
    }
}

/// Reads the body that belongs to `head`. One that cannot be read is as good as a client that left.
pub(super) async fn read_body(peer: &mut Peer, head: &Head) -> Result<Bytes, Gone> {
    if let Some(length) = head.length {
        while peer.inbox.len() < length {
            peer.more().await?;
        }
        return Ok(take(peer, length));
    }
    let mut body = BytesMut::new();
    loop {
        let length = chunk_length(peer).await?;
        if body.len() + length > MAX_BODY {
            return Err(Gone);
        }
        while peer.inbox.len() < length + 2 {
            peer.more().await?;
        }
        body.extend_from_slice(&take(peer, length));
        skip(peer, 2);
        if length == 0 {
            return Ok(body.freeze());
        }
    }
}

async fn chunk_length(peer: &mut Peer) -> Result<usize, Gone> {
    loop {
        if let Some(end) = memmem::find(&peer.inbox, b"\r\n") {
            let line = take(peer, end);
            skip(peer, 2);
            let line = std::str::from_utf8(&line).map_err(|_| Gone)?;
            let length = line.split(';').next().unwrap_or_default().trim();
            let length = usize::from_str_radix(length, 16).map_err(|_| Gone)?;
            return (length <= MAX_BODY).then_some(length).ok_or(Gone);
        }
        if peer.inbox.len() > MAX_CHUNK_LINE {
            return Err(Gone);
        }
        peer.more().await?;
    }
}
