//! HTTP/1.1: one connection, one exchange at a time, polled by whoever owns it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{Builder, Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;

use super::{counted::Counted, dial::Io, last_words::LastWords, message::Message};

/// The largest response head, in bytes.
pub(super) const MAX_HEAD_BYTES: usize = 64 << 10;

/// Header lines in a response head at most.
pub(super) const MAX_HEADERS: usize = 128;

/// What a hand-over comes to; the error gives the message back if nothing of it was written.
type Outcome = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// An open connection that carries no exchange. Dropping it closes it.
pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Box<Connection<TokioIo<LastWords>, Full<Bytes>>>,
    _counted: Counted,
    /// It has carried an exchange before: the peer may have closed it since.
    pub(super) reused: bool,
}

impl Link {
    /// Wraps an open socket. Sends nothing.
    #[allow(
        clippy::disallowed_methods,
        reason = "the door: the one opening of HTTP/1.1"
    )]
    pub(super) async fn new(io: Io, counted: Counted) -> Result<Self, hyper::Error> {
        let (sender, connection) = builder()
            .handshake(TokioIo::new(LastWords::new(io)))
            .await?;
        let connection = Box::new(connection);
        Ok(Self {
            sender,
            connection,
            _counted: counted,
            reused: false,
        })
    }

    /// Resolves when the peer closes the connection, or breaks it.
    pub(super) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut *self.connection).poll(cx).map(drop)
    }

    /// Ready to carry the next exchange; `Err` if it never will.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        if self.poll_closed(cx).is_ready() {
            return Poll::Ready(Err(()));
        }
        self.sender.poll_ready(cx).map_err(drop)
    }

    /// The hand-over. `Err` proves that not a byte of the message was written.
    #[allow(
        clippy::disallowed_methods,
        reason = "the door: the one HTTP/1.1 hand-over"
    )]
    pub(super) fn send(mut self, message: &Message, cx: &mut Context<'_>) -> Result<Flight, ()> {
        match self.poll_ready(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(())) | Poll::Pending => return Err(()),
        }
        let mut flight = Flight {
            response: Box::pin(self.sender.try_send_request(message.http1())),
            early: None,
            body: None,
            link: Some(self),
        };
        match flight.poll_response(cx) {
            Poll::Ready(Err(error)) if error.message().is_some() => Err(()),
            Poll::Ready(outcome) => {
                flight.early = Some(outcome.map_err(TrySendError::into_error));
                Ok(flight)
            }
            Poll::Pending => Ok(flight),
        }
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(2 * MAX_HEAD_BYTES);
    builder
}

/// A connection with its exchange. Dropping it closes the connection.
pub(super) struct Flight {
    response: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    /// What the hand-over already brought, to be told after `Sent`.
    early: Option<Result<Response<Incoming>, hyper::Error>>,
    body: Option<Incoming>,
    /// `None` once the connection has come to its end.
    link: Option<Link>,
}

impl Flight {
    /// The response head; its body is then read by [`poll_data`](Self::poll_data).
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<http::response::Parts, hyper::Error>> {
        let outcome = match self.early.take() {
            Some(early) => early,
            None => ready!(self.poll_response(cx)).map_err(TrySendError::into_error),
        };
        let (head, body) = outcome?.into_parts();
        self.body = Some(body);
        Poll::Ready(Ok(head))
    }

    /// Body bytes; `None` is the end that the framing says. Trailers are passed over.
    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        self.poll_connection(cx);
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        loop {
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    /// After the end of the body: the connection, if it is still open.
    pub(super) fn into_link(self) -> Option<Link> {
        let mut link = self.link?;
        link.reused = true;
        Some(link)
    }

    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.poll_connection(cx);
        self.response.as_mut().poll(cx)
    }

    fn poll_connection(&mut self, cx: &mut Context<'_>) {
        if let Some(link) = &mut self.link
            && link.poll_closed(cx).is_ready()
        {
            self.link = None;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{
        io,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Waker,
        time::Duration,
    };

    use http::HeaderMap;
    use tokio::{
        io::{AsyncRead, AsyncWrite, ReadBuf},
        sync::Semaphore,
    };

    use super::*;
    use crate::upstream::{Request as Wanted, http::target::Target};

    /// A socket whose peer has closed it when it is read for the `eof_at`th time, counted from 1.
    struct Closing {
        reads: usize,
        eof_at: usize,
        written: Arc<AtomicUsize>,
    }

    impl AsyncRead for Closing {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.reads += 1;
            if self.reads >= self.eof_at {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            }
        }
    }

    impl AsyncWrite for Closing {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.written.fetch_add(bytes.len(), Ordering::Relaxed);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn message() -> Message {
        let target = Target::parse(&"http://host".parse().unwrap()).unwrap();
        let request = Wanted {
            method: http::Method::POST,
            path: "/".into(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{}"),
            connect_timeout: Duration::ZERO,
        };
        Message::new(&target, request).unwrap()
    }

    /// What a hand-over says, and how many bytes were written, where the peer closes at a given read.
    async fn hand_over(eof_at: usize) -> (bool, usize) {
        let written = Arc::new(AtomicUsize::new(0));
        let io = Closing {
            reads: 0,
            eof_at,
            written: written.clone(),
        };
        let counted = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        let counted = Counted::new(counted, &std::sync::Arc::default());
        let link = Link::new(Box::new(io), counted).await.unwrap();
        let flight = link.send(&message(), &mut Context::from_waker(Waker::noop()));
        (flight.is_ok(), written.load(Ordering::Relaxed))
    }

    /// The close may come before the check, between check and hand-over, or behind it.
    #[tokio::test]
    async fn a_hand_over_that_says_unsent_has_written_nothing_whenever_the_close_came() {
        let mut outcomes = Vec::new();
        for eof_at in 1..=8 {
            let (sent, written) = hand_over(eof_at).await;
            assert_eq!(
                sent,
                written > 0,
                "closed at read {eof_at}: {written} bytes"
            );
            outcomes.push(sent);
        }
        assert_eq!(
            outcomes[..2],
            [false, false],
            "both the check and the hand-over look"
        );
        assert!(
            outcomes.last().unwrap(),
            "an open connection takes the message"
        );
    }
}
