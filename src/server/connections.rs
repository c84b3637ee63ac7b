//! The gRPC listener's connections: counted, and bounded.
//!
//! HTTP/2 finds a dead client by its PING, but cannot let go of one that takes no bytes: its last frame
//! waits in front of a full socket, for ever. So a connection whose client takes nothing is ended here.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};
use tokio_stream::Stream;

use crate::{
    config::Listen,
    telemetry::{Gauge, Guard},
};

/// How long a client may take to say hello. From then on HTTP/2 PINGs find out whether it is alive;
/// before, nothing would, and its place would be taken for ever. Fixed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// The length of HTTP/2's connection preface (RFC 9113, section 3.4).
const HELLO_BYTES: usize = 24;

/// An accepted connection; its place is free again when it is dropped.
pub struct Connection {
    stream: TcpStream,
    /// Until it has said hello.
    hello: Option<Hello>,
    /// How long a client may take nothing; `None` is for ever.
    stuck_after: Option<Duration>,
    /// While it takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
    _alive: Guard,
}

struct Hello {
    missing: usize,
    timeout: Pin<Box<Sleep>>,
}

/// Pause after a failed accept, mostly for want of file descriptors: trying at once would spin. Fixed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener's clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time. A further one is closed at once, so that its client learns it now and not
    /// by a time-out.
    pub connections: usize,
    /// How long a client may take no byte although there are some for it, before its connection is
    /// ended; `None` is for ever.
    pub stuck: Option<Duration>,
}

impl From<&Listen> for Bounds {
    /// A client that takes nothing cannot answer a PING either: it has as long as a silent one, and for
    /// ever where there are no PINGs.
    fn from(listen: &Listen) -> Self {
        let (interval, timeout) = (listen.keepalive_interval, listen.keepalive_timeout);
        Self {
            connections: listen.max_connections,
            stuck: (!interval.is_zero()).then_some(interval.saturating_add(timeout)),
        }
    }
}

/// Accepts connections within `bounds`, and counts them.
pub fn incoming(
    listener: TcpListener,
    bounds: Bounds,
    gauge: Gauge,
) -> impl Stream<Item = io::Result<Connection>> + Send {
    Incoming {
        accept: move |cx: &mut Context<'_>| listener.poll_accept(cx).map_ok(|(stream, _)| stream),
        places: Arc::new(Semaphore::new(bounds.connections)),
        stuck_after: bounds.stuck,
        gauge,
        pause: None,
    }
}

struct Incoming<A> {
    accept: A,
    places: Arc<Semaphore>,
    stuck_after: Option<Duration>,
    gauge: Gauge,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<A> Incoming<A>
where
    A: FnMut(&mut Context<'_>) -> Poll<io::Result<TcpStream>>,
{
    /// The next connection, however many before it fail to come up.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<TcpStream> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!((self.accept)(cx)) {
                Ok(stream) => return Poll::Ready(stream),
                Err(error) => {
                    tracing::warn!(%error, "a client connection could not be accepted");
                    self.pause = Some(Box::pin(tokio::time::sleep(ACCEPT_PAUSE)));
                }
            }
        }
    }
}

impl<A> Stream for Incoming<A>
where
    A: FnMut(&mut Context<'_>) -> Poll<io::Result<TcpStream>> + Unpin,
{
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let stream = ready!(self.poll_accept(cx));
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                tracing::warn!("listen.max_connections is reached; a connection was closed");
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "no TCP_NODELAY");
            }
            let _alive = Guard::new(&self.gauge);
            let hello = Hello {
                missing: HELLO_BYTES,
                timeout: Box::pin(tokio::time::sleep(HELLO_TIMEOUT)),
            };
            return Poll::Ready(Some(Ok(Connection {
                stream,
                hello: Some(hello),
                stuck_after: self.stuck_after,
                stuck: None,
                _place: place,
                _alive,
            })));
        }
    }
}

impl Connection {
    /// `written`, or an error once the client has taken nothing for too long.
    fn unless_stuck(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let Some(length) = self.stuck_after else {
            return written;
        };
        let timer = self
            .stuck
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(length)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Some(hello) = &mut self.hello else {
            return read;
        };
        if read.is_pending() {
            return match hello.timeout.as_mut().poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            };
        }
        hello.missing = hello.missing.saturating_sub(buf.filled().len() - filled);
        if hello.missing == 0 {
            self.hello = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.unless_stuck(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.unless_stuck(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_without_file_descriptors_does_not_spin() {
        let mut tried = 0;
        let mut incoming = Incoming {
            accept: |_: &mut Context<'_>| {
                tried += 1;
                Poll::Ready(Err(io::Error::other("too many open files")))
            },
            places: Arc::new(Semaphore::new(1)),
            stuck_after: None,
            gauge: Gauge::default(),
            pause: None,
        };
        let next = poll_fn(|cx| Pin::new(&mut incoming).poll_next(cx));
        let second = Duration::from_millis(950);
        assert!(tokio::time::timeout(second, next).await.is_err());
        assert_eq!(tried, 10);
    }
}
