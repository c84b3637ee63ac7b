//! A socket whose peer's last words are heard.
//!
//! A server that refuses a large request answers and closes without reading the rest; the reset makes
//! our next write fail while its answer already lies in the socket's buffer. `hyper` gives up at the
//! failed write and never reads it. Here a write that fails so only ends the writing: the reader then
//! finds the answer, or the end of the stream.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::Io;

/// A socket that goes on reading when its peer takes no more.
pub(super) struct LastWords {
    io: Io,
    /// The peer takes no more: why.
    refused: Option<io::ErrorKind>,
}

impl LastWords {
    /// Changes nothing until a write fails.
    pub(super) fn new(io: Io) -> Self {
        Self { io, refused: None }
    }

    fn written(&mut self, len: usize, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Err(error)) if is_refusal(error.kind()) => {
                self.refused = Some(error.kind());
                Poll::Ready(Ok(len))
            }
            result => result,
        }
    }
}

fn is_refusal(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

impl AsyncRead for LastWords {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match (Pin::new(&mut self.io).poll_read(cx, buf), self.refused) {
            // Nothing more can come over a connection that was reset.
            (Poll::Pending, Some(kind)) => Poll::Ready(Err(kind.into())),
            (read, _) => read,
        }
    }
}

impl AsyncWrite for LastWords {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.refused.is_some() {
            return Poll::Ready(Ok(buf.len()));
        }
        let result = Pin::new(&mut self.io).poll_write(cx, buf);
        self.written(buf.len(), result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = bufs.iter().map(|buf| buf.len()).sum();
        if self.refused.is_some() {
            return Poll::Ready(Ok(len));
        }
        let result = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.written(len, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refused.is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A socket whose peer has sent `answer`, then reset it while it is written to.
    struct Reset {
        answer: &'static [u8],
        takes: usize,
    }

    impl AsyncRead for Reset {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.answer.is_empty() {
                return Poll::Pending;
            }
            buf.put_slice(std::mem::take(&mut self.answer));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Reset {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.takes == 0 {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let taken = buf.len().min(self.takes);
            self.takes -= taken;
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn the_answer_is_read_after_a_write_that_failed_and_then_the_reset() {
        let io = Reset {
            answer: b"413",
            takes: 1000,
        };
        let mut io = LastWords::new(Box::new(io));
        io.write_all(&[0; 10_000]).await.unwrap();
        io.flush().await.unwrap();
        let mut read = [0; 3];
        io.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"413");
        let end = io.read(&mut read).await.unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    }
}
