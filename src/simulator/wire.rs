//! The connection below HTTP/2: frames of our own between those of the library, and ends that the
//! library would not make.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

use super::peer::Socket;

/// The length of a frame's head (RFC 9113, section 4.1), in bytes.
const HEAD: usize = 9;

/// How a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Fin,
    Reset,
}

/// What is to happen on the wire.
#[derive(Debug, Default)]
pub(super) struct Control {
    state: Mutex<State>,
    /// Told when there is news: whoever polls the connection must do so.
    pub(super) news: Notify,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Bytes>,
    ending: Option<Ending>,
}

impl Control {
    /// Sends a frame between two others.
    pub(super) fn send(&self, frame: Bytes) {
        self.state().frames.push_back(frame);
        self.news.notify_one();
    }

    /// Ends the connection. Nothing is written after.
    pub(super) fn end(&self, ending: Ending) {
        self.state().ending = Some(ending);
        self.news.notify_one();
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.state().ending
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection.
#[derive(Debug)]
pub(super) struct Wire {
    socket: Socket,
    /// What was read before it was known that this is HTTP/2.
    read: BytesMut,
    control: Arc<Control>,
    place: Place,
    /// A frame of ours that is half written.
    own: Bytes,
    closed: bool,
}

impl Wire {
    pub(super) fn new(socket: Socket, read: BytesMut, control: Arc<Control>) -> Self {
        let (place, own) = (Place::default(), Bytes::new());
        Self {
            socket,
            read,
            control,
            place,
            own,
            closed: false,
        }
    }

    /// Ready when the wire may carry on: our frames are written, or it has been ended.
    fn poll_own(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.control.ending() {
            Some(Ending::Reset) => {
                self.socket.reset_on_close();
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            Some(Ending::Fin) if !self.closed => {
                let _ = ready!(Pin::new(&mut self.socket).poll_shutdown(cx));
                self.closed = true;
                return Poll::Ready(Ok(()));
            }
            _ => {}
        }
        while !self.closed && self.place.between_frames() {
            if self.own.is_empty() {
                let Some(frame) = self.control.state().frames.pop_front() else {
                    break;
                };
                self.own = frame;
            }
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.own))?;
            self.own.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

/// Where in the library's stream of frames the next byte stands.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    head: [u8; HEAD],
    read: usize,
    left: usize,
}

impl Place {
    fn between_frames(self) -> bool {
        self.read == 0 && self.left == 0
    }

    fn advance(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.left > 0 {
                let now = self.left.min(bytes.len());
                self.left -= now;
                bytes = bytes.get(now..).unwrap_or_default();
                continue;
            }
            if let Some(place) = self.head.get_mut(self.read) {
                *place = byte;
            }
            self.read += 1;
            bytes = rest;
            if self.read == HEAD {
                let [a, b, c, ..] = self.head;
                self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.read = 0;
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.control.ending() == Some(Ending::Reset) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if !self.read.is_empty() {
            let now = self.read.len().min(buf.remaining());
            buf.put_slice(&self.read.split_to(now));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_own(cx))?;
        if self.closed {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, buf))?;
        self.place.advance(buf.get(..written).unwrap_or_default());
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_own(cx))?;
        match self.closed {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.closed {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.socket).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_wherever_the_writes_are_cut() {
        // SETTINGS without payload, DATA of three bytes.
        let bytes = b"\0\0\0\x04\0\0\0\0\0\0\0\x03\0\x01\0\0\0\x01abc";
        let mut between = Vec::new();
        let mut place = Place::default();
        for (at, byte) in bytes.iter().enumerate() {
            if place.between_frames() {
                between.push(at);
            }
            place.advance(&[*byte]);
        }
        assert_eq!(between, [0, HEAD]);
        assert!(place.between_frames());
        let mut at_once = Place::default();
        at_once.advance(bytes);
        assert!(at_once.between_frames());
    }
}
