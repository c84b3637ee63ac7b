//! One face for both versions of HTTP.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::response::Parts;

use super::{errors, h1, h2, message::Message};
use crate::verdict::{Stage, transport::TransportError};

/// A connection that can take one exchange now.
pub(super) enum Link {
    Http1(h1::Link),
    Http2(h2::Lane),
}

impl Link {
    /// It was open before this exchange asked for it: the peer may have left it since.
    pub(super) fn was_open(&self) -> bool {
        match self {
            Self::Http1(link) => link.reused,
            Self::Http2(lane) => lane.reused,
        }
    }

    /// The hand-over. `Err` proves that not a byte of the message was written.
    pub(super) fn send(self, message: &Message, cx: &mut Context<'_>) -> Result<Flight, ()> {
        match self {
            Self::Http1(link) => link
                .send(message, cx)
                .map(|flight| Flight::Http1(Box::new(flight))),
            Self::Http2(lane) => lane.send(message, cx).map(Flight::Http2),
        }
    }
}

/// A request that was handed over. Dropping it ends the exchange with the peer at once.
pub(super) enum Flight {
    Http1(Box<h1::Flight>),
    Http2(h2::Flight),
}

impl Flight {
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Parts, TransportError>> {
        match self {
            Self::Http1(flight) => flight
                .poll_head(cx)
                .map_err(|e| errors::http1(&e, Stage::Request)),
            Self::Http2(flight) => flight
                .poll_head(cx)
                .map_err(|e| errors::http2_head(&e, flight.is_alone())),
        }
    }

    /// Body bytes as they came; `None` is the end that the framing says.
    pub(super) fn poll_data(
        &mut self,
        stage: Stage,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        match self {
            Self::Http1(flight) => flight.poll_data(cx).map_err(|e| errors::http1(&e, stage)),
            Self::Http2(flight) => match flight.poll_data(cx) {
                // An early answer: the peer wants no more of the request (RFC 9113, section 8.1). An
                // answer that is an error is whole enough; any other was cut.
                Poll::Ready(Some(Err(error)))
                    if stage == Stage::Response && h2::is_no_error(&error) =>
                {
                    Poll::Ready(None)
                }
                data => data.map_err(|e| errors::http2(&e, stage)),
            },
        }
    }

    /// The connection takes no further exchange. HTTP/1.1 has none to refuse while this one lives.
    pub(super) fn condemn(&self) {
        if let Self::Http2(flight) = self {
            flight.condemn();
        }
    }

    /// After the end of the body: an HTTP/1.1 connection that can serve again. HTTP/2 needs no
    /// giving back.
    pub(super) fn into_link(self) -> Option<h1::Link> {
        match self {
            Self::Http1(flight) => flight.into_link(),
            Self::Http2(_) => None,
        }
    }
}
