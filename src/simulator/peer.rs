//! One byte connection with a client: every wait also watches whether the client is still there.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;

use super::play::Gone;

/// The most bytes that wait to be looked at: the largest request and its head. Fixed.
const MAX_INBOX: usize = super::MAX_REQUEST + (128 << 10);

/// How long the client has to close after we did. Fixed.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// A connection, with or without TLS.
#[derive(Debug)]
pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// The next close is a reset.
    pub(super) fn reset_on_close(&self) {
        let tcp = match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        };
        // Fails only if the connection is gone already.
        let _ = tcp.set_zero_linger();
    }
}

/// A client and what it has sent.
#[derive(Debug)]
pub(super) struct Peer {
    socket: Socket,
    /// What has come and was not taken.
    pub(super) inbox: BytesMut,
    gone: bool,
}

impl Peer {
    pub(super) fn new(socket: Socket, inbox: BytesMut) -> Self {
        Self {
            socket,
            inbox,
            gone: false,
        }
    }

    /// Waits for more bytes.
    pub(super) async fn more(&mut self) -> Result<(), Gone> {
        let before = self.inbox.len();
        poll_fn(|cx| {
            let _ = self.poll_inbox(cx);
            match (self.gone, self.inbox.len() > before) {
                (_, true) => Poll::Ready(Ok(())),
                (true, false) => Poll::Ready(Err(Gone)),
                (false, false) => Poll::Pending,
            }
        })
        .await
    }

    /// Waits until the client is gone.
    pub(super) async fn until_gone(&mut self) {
        poll_fn(|cx| self.poll_inbox(cx)).await;
    }

    pub(super) async fn pause(&mut self, length: Duration) -> Result<(), Gone> {
        tokio::select! {
            biased;
            () = self.until_gone() => Err(Gone),
            () = sleep(length) => Ok(()),
        }
    }

    /// Writes all of `bytes`, at the client's pace.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Gone> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| {
                if self.poll_inbox(cx).is_ready() {
                    return Poll::Ready(Err(Gone));
                }
                let written = ready!(Pin::new(&mut self.socket).poll_write(cx, bytes));
                Poll::Ready(written.map_err(|_| Gone))
            })
            .await?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        self.socket.flush().await.map_err(|_| Gone)
    }

    /// Closes our side, and waits a little for the client's: a close with unread bytes is a reset.
    pub(super) async fn fin(&mut self) {
        let _ = self.socket.shutdown().await;
        let _ = timeout(LINGER, self.until_gone()).await;
    }

    /// Resets the connection once the client has read what there is.
    pub(super) async fn reset(&mut self) -> Result<(), Gone> {
        self.pause(super::play::BEFORE_RESET).await?;
        self.socket.reset_on_close();
        Ok(())
    }

    pub(super) fn into_parts(self) -> (Socket, BytesMut) {
        (self.socket, self.inbox)
    }

    /// Ready when the client is gone. One that sends more than it may is treated so too.
    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [0; 16 << 10];
        while !self.gone {
            let mut read = ReadBuf::new(&mut room);
            let result = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read));
            self.inbox.extend_from_slice(read.filled());
            let ended = result.is_err() || read.filled().is_empty();
            self.gone = ended || self.inbox.len() > MAX_INBOX;
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
