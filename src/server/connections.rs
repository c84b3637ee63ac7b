//! The gRPC listener's connections: counted, and bounded.

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
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::telemetry::{Gauge, Guard};

/// How long a client may take to say hello. From then on HTTP/2 PINGs find out whether it is alive;
/// before, nothing would, and its place would be taken for ever. Fixed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept, mostly for want of file descriptors: trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The length of HTTP/2's connection preface (RFC 9113, section 3.4).
const HELLO_BYTES: usize = 24;

/// An accepted connection; its place is free again when it is dropped.
pub struct Connection {
    stream: TcpStream,
    /// Until it has said hello.
    hello: Option<Hello>,
    _place: OwnedSemaphorePermit,
    _alive: Guard,
}

struct Hello {
    missing: usize,
    timeout: Pin<Box<Sleep>>,
}

/// Accepts connections, at most `max` at a time: a further one is closed at once, so that its client
/// learns it now and not by a time-out.
pub fn incoming(
    listener: TcpListener,
    max: usize,
    gauge: Gauge,
) -> impl Stream<Item = io::Result<Connection>> + Send {
    Incoming {
        listener,
        places: Arc::new(Semaphore::new(max)),
        gauge,
        pause: None,
    }
}

struct Incoming {
    listener: TcpListener,
    places: Arc<Semaphore>,
    gauge: Gauge,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            let stream = match self.listener.poll_accept(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((stream, _))) => stream,
                // One connection's failure to come up, or no descriptors: the listener goes on. The
                // server around this stream would ask again at once.
                Poll::Ready(Err(error)) => {
                    tracing::warn!(%error, "a client connection could not be accepted");
                    self.pause = Some(Box::pin(tokio::time::sleep(ACCEPT_PAUSE)));
                    continue;
                }
            };
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
                _place: place,
                _alive,
            })));
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
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
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
