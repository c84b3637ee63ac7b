//! One request over one connection, from the wait for it to the last byte.
//!
//! ```text
//!                 hand-over                head
//!  Opening ─────────────────▶ Awaiting ──────────▶ Reading ──▶ Over
//!     │ ▲ │ unsent, was open      │                   │
//!     │ └─┘                       ▼                   ▼
//!     └────────▶ Failed        Failed             Failed, End
//!      (not sent)           (may be sent)
//! ```
//!
//! `Opening` is left once, by the hand-over or by failing; only a hand-over that proves it sent nothing,
//! over a connection that had been open before, leads back to it.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use tokio::time::{self, Sleep};

use super::{
    super::{Exchange, Permit, Request, Signal, Slot},
    errors::unsent,
    gunzip::{BadGzip, Decoder},
    h1::{self, MAX_HEAD_BYTES},
    link::{Flight, Link},
    message::Message,
    pool::Site,
};
use crate::verdict::{
    Stage,
    transport::{TransportError, TransportKind},
};

/// How long an accepted response's rest may take to come before its connection is closed.
const DRAIN_TIME: Duration = Duration::from_millis(250);

/// How much an accepted response's rest may hold before its connection is closed, in bytes.
const DRAIN_BYTES: usize = 64 << 10;

type Opening = Pin<Box<dyn Future<Output = Result<Link, TransportError>> + Send>>;

/// An exchange over real sockets.
pub(super) struct HttpExchange {
    state: State,
    site: Arc<Site>,
    slot: Option<Box<dyn Slot>>,
    permit: Option<Box<dyn Permit>>,
    /// The end of the connect timer.
    send_by: Option<Pin<Box<Sleep>>>,
    condemned: bool,
}

enum State {
    Opening {
        link: Opening,
        message: Box<Message>,
    },
    /// The request could not be made out.
    Refused(TransportError),
    Awaiting(Flight),
    Reading {
        flight: Flight,
        decoder: Decoder,
        stage: Stage,
    },
    Over,
}

impl HttpExchange {
    /// Begins to connect when first polled.
    pub(super) fn open(
        site: Arc<Site>,
        slot: Box<dyn Slot>,
        request: Request,
        permit: Option<Box<dyn Permit>>,
    ) -> Self {
        let timeout = request.connect_timeout;
        let state = match message(&site, request) {
            Ok(message) => State::Opening {
                link: Box::pin(site.clone().link()),
                message,
            },
            Err(error) => State::Refused(error),
        };
        let send_by = (!timeout.is_zero()).then(|| Box::pin(time::sleep(timeout)));
        Self {
            state,
            site,
            slot: Some(slot),
            permit,
            send_by,
            condemned: false,
        }
    }

    /// The hand-over: the one place where a request leaves this process.
    fn poll_opening(
        &mut self,
        mut link: Opening,
        message: Box<Message>,
        cx: &mut Context<'_>,
    ) -> Poll<Signal> {
        loop {
            if let Some(timer) = &mut self.send_by
                && timer.as_mut().poll(cx).is_ready()
            {
                return self.failed(unsent(
                    TransportKind::NotSentInTime,
                    "no connection in time",
                ));
            }
            let found = match link.as_mut().poll(cx) {
                Poll::Ready(Ok(found)) => found,
                Poll::Ready(Err(error)) => return self.failed(error),
                Poll::Pending => {
                    self.state = State::Opening { link, message };
                    return Poll::Pending;
                }
            };
            let was_open = found.was_open();
            let may_leave = self.permit.as_mut().is_none_or(|permit| permit.leave());
            if !may_leave {
                return self.failed(unsent(
                    TransportKind::NotSentInTime,
                    "the time to send had passed",
                ));
            }
            let sent = found.send(&message, cx);
            if let (Err(()), Some(permit)) = (&sent, &mut self.permit) {
                permit.stayed();
            }
            match sent {
                Ok(flight) => {
                    self.state = State::Awaiting(flight);
                    self.send_by = None;
                    self.permit = None;
                    return Poll::Ready(Signal::Sent);
                }
                Err(()) if was_open => link = Box::pin(self.site.clone().link()),
                Err(()) => {
                    let detail = "the connection was closed before the request was sent";
                    return self.failed(unsent(TransportKind::Connect, detail));
                }
            }
        }
    }

    fn poll_awaiting(&mut self, mut flight: Flight, cx: &mut Context<'_>) -> Poll<Signal> {
        let head = match flight.poll_head(cx) {
            Poll::Ready(Ok(head)) => head,
            Poll::Ready(Err(error)) => return self.failed(error),
            Poll::Pending => {
                self.state = State::Awaiting(flight);
                return Poll::Pending;
            }
        };
        if let Err((kind, detail)) = check(&head) {
            return self.failed(TransportError {
                kind,
                stage: Stage::Request,
                detail,
            });
        }
        let stage = if head.status.is_success() {
            Stage::Stream
        } else {
            Stage::Response
        };
        self.state = State::Reading {
            flight,
            decoder: Decoder::new(&head.headers),
            stage,
        };
        Poll::Ready(Signal::Head {
            status: head.status,
            headers: head.headers,
        })
    }

    fn poll_reading(
        &mut self,
        mut flight: Flight,
        mut decoder: Decoder,
        stage: Stage,
        cx: &mut Context<'_>,
    ) -> Poll<Signal> {
        match poll_plain(&mut flight, &mut decoder, stage, cx) {
            Poll::Pending => {
                self.state = State::Reading {
                    flight,
                    decoder,
                    stage,
                };
                Poll::Pending
            }
            Poll::Ready(Some(Ok(data))) => {
                self.state = State::Reading {
                    flight,
                    decoder,
                    stage,
                };
                Poll::Ready(Signal::Data(data))
            }
            Poll::Ready(Some(Err(error))) => self.failed(error),
            Poll::Ready(None) => {
                if let Some(link) = flight.into_link().filter(|_| !self.condemned) {
                    settle(link, self.site.clone(), self.slot.take(), cx);
                }
                self.slot = None;
                Poll::Ready(Signal::End)
            }
        }
    }

    /// Closes what is open, then tells.
    fn failed(&mut self, error: TransportError) -> Poll<Signal> {
        self.state = State::Over;
        self.slot = None;
        Poll::Ready(Signal::Failed(error))
    }
}

impl Exchange for HttpExchange {
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        match mem::replace(&mut self.state, State::Over) {
            State::Opening { link, message } => self.poll_opening(link, message, cx),
            State::Refused(error) => self.failed(error),
            State::Awaiting(flight) => self.poll_awaiting(flight, cx),
            State::Reading {
                flight,
                decoder,
                stage,
            } => self.poll_reading(flight, decoder, stage, cx),
            State::Over => Poll::Pending,
        }
    }

    fn condemn(&mut self) {
        self.condemned = true;
        if let State::Awaiting(flight) | State::Reading { flight, .. } = &self.state {
            flight.condemn();
        }
    }

    fn drain(mut self: Box<Self>) {
        if let State::Reading { mut flight, .. } = mem::replace(&mut self.state, State::Over)
            && !self.condemned
        {
            let (site, slot) = (self.site.clone(), self.slot.take());
            tokio::spawn(async move {
                let mut room = DRAIN_BYTES;
                let rest = poll_fn(|cx| poll_rest(&mut flight, &mut room, cx));
                if time::timeout(DRAIN_TIME, rest).await == Ok(true)
                    && let Some(link) = flight.into_link()
                {
                    keep_when_ready(link, site).await;
                }
                drop(slot);
            });
        }
    }
}

/// Makes out the request; a failure here sends nothing.
fn message(site: &Site, request: Request) -> Result<Box<Message>, TransportError> {
    let target = site
        .target
        .as_ref()
        .map_err(|e| unsent(TransportKind::Connect, e.as_str()))?;
    Message::new(target, request)
        .map(Box::new)
        .map_err(|error| {
            unsent(
                TransportKind::Protocol,
                format!("the request is not valid: {error}"),
            )
        })
}

/// What a head must keep to whichever version of HTTP brought it.
fn check(head: &http::response::Parts) -> Result<(), (TransportKind, String)> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        let detail = "the server switched protocols without being asked";
        return Err((TransportKind::Protocol, detail.into()));
    }
    let line =
        |(name, value): (&http::HeaderName, &http::HeaderValue)| name.as_str().len() + value.len();
    if head.headers.iter().map(line).sum::<usize>() > MAX_HEAD_BYTES {
        return Err((
            TransportKind::HeadTooLarge,
            "the response head is too large".into(),
        ));
    }
    Ok(())
}

/// Body bytes with the content-encoding undone.
fn poll_plain(
    flight: &mut Flight,
    decoder: &mut Decoder,
    stage: Stage,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, TransportError>>> {
    let bad = |kind, detail: &str| {
        Poll::Ready(Some(Err(TransportError {
            kind,
            stage,
            detail: detail.into(),
        })))
    };
    loop {
        if let Decoder::Gzip(gunzip) = decoder {
            match gunzip.next() {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(piece))),
                Ok(None) => {}
                Err(BadGzip) => {
                    return bad(
                        TransportKind::Encoding,
                        "the body is not gzip as its head says",
                    );
                }
            }
        }
        let Some(data) = ready!(flight.poll_data(stage, cx)) else {
            return match decoder.finish() {
                Ok(()) => Poll::Ready(None),
                Err(BadGzip) => bad(TransportKind::Truncated, "the gzip stream ended early"),
            };
        };
        let data = match data {
            Ok(data) if data.is_empty() => continue,
            Ok(data) => data,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        match decoder {
            Decoder::Identity => return Poll::Ready(Some(Ok(data))),
            Decoder::Gzip(gunzip) => gunzip.push(data),
            Decoder::Unknown(name) => {
                return bad(
                    TransportKind::Encoding,
                    &format!("content-encoding {name:?} is not supported"),
                );
            }
        }
    }
}

/// Reads and drops what is left; `true` if it ended as its framing says within `room`.
fn poll_rest(flight: &mut Flight, room: &mut usize, cx: &mut Context<'_>) -> Poll<bool> {
    loop {
        match ready!(flight.poll_data(Stage::Stream, cx)) {
            Some(Ok(data)) if data.len() <= *room => *room -= data.len(),
            Some(_) => return Poll::Ready(false),
            None => return Poll::Ready(true),
        }
    }
}

/// Gives a connection back: now if it is ready, else when it is, with its slot held till then.
fn settle(mut link: h1::Link, site: Arc<Site>, slot: Option<Box<dyn Slot>>, cx: &mut Context<'_>) {
    match link.poll_ready(cx) {
        Poll::Ready(Ok(())) => site.keep(link),
        Poll::Ready(Err(())) => {}
        Poll::Pending => {
            tokio::spawn(async move {
                keep_when_ready(link, site).await;
                drop(slot);
            });
        }
    }
}

/// The last bytes of a request may still be on their way out when its response has ended.
async fn keep_when_ready(mut link: h1::Link, site: Arc<Site>) {
    if time::timeout(DRAIN_TIME, poll_fn(|cx| link.poll_ready(cx))).await == Ok(Ok(())) {
        site.keep(link);
    }
}
