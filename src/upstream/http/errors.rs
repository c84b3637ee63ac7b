//! Names for what goes wrong on the way to a provider.
//!
//! Libraries wrap errors in errors: what decides is found by walking the sources. Nothing here prints
//! a header or a body.

use std::{error::Error, io};

use crate::verdict::{
    Stage, clip,
    transport::{TransportError, TransportKind},
};

/// A failure before the hand-over: nothing was sent.
pub(super) fn unsent(kind: TransportKind, detail: impl Into<String>) -> TransportError {
    TransportError {
        kind,
        stage: Stage::Connect,
        detail: detail.into(),
    }
}

/// A failure on an HTTP/1.1 connection after the hand-over.
pub(super) fn http1(error: &hyper::Error, stage: Stage) -> TransportError {
    let kind = if error.is_parse_too_large() {
        TransportKind::HeadTooLarge
    } else if error.is_parse() || error.is_parse_status() {
        TransportKind::Protocol
    } else if error.is_incomplete_message() {
        match stage {
            Stage::Response | Stage::Stream => TransportKind::Truncated,
            _ => TransportKind::Reset,
        }
    } else {
        find::<rustls::Error>(error)
            .map(|_| TransportKind::Tls)
            .or_else(|| find::<io::Error>(error).map(io_kind))
            .unwrap_or(TransportKind::Reset)
    };
    TransportError {
        kind,
        stage,
        detail: chain(error),
    }
}

/// A failure of an HTTP/2 stream that waits for its head. `alone` says that no other stream can have
/// brought the connection down.
pub(super) fn http2_head(error: &h2::Error, alone: bool) -> TransportError {
    let failure = http2(error, Stage::Request);
    if alone && blames_the_head(error) {
        return TransportError {
            kind: TransportKind::HeadTooLarge,
            ..failure
        };
    }
    failure
}

/// A failure of an HTTP/2 stream after the hand-over.
pub(super) fn http2(error: &h2::Error, stage: Stage) -> TransportError {
    let reason = error.reason();
    let kind = if error.is_remote() && error.is_go_away() {
        TransportKind::GoAway
    } else if error.is_remote() && reason == Some(h2::Reason::REFUSED_STREAM) {
        TransportKind::RefusedStream
    } else if error.is_remote() {
        TransportKind::StreamReset
    } else if error.is_library() {
        TransportKind::Protocol
    } else if find::<rustls::Error>(error).is_some() {
        TransportKind::Tls
    } else {
        TransportKind::Reset
    };
    TransportError {
        kind,
        stage,
        detail: chain(error),
    }
}

/// Whether h2 itself gave up a head: for its size, or for too many CONTINUATION frames. The reason it
/// gives is that of other floods too, so what it tells the peer beside it decides.
fn blames_the_head(error: &h2::Error) -> bool {
    let text = error.to_string();
    error.is_library()
        && ["header_list_way_too_large", "too_many_continuations"]
            .iter()
            .any(|told| text.contains(told))
}

/// A TLS handshake that failed.
pub(super) fn handshake(error: &io::Error) -> TransportError {
    match find::<rustls::Error>(error) {
        Some(rustls::Error::InvalidCertificate(reason)) => unsent(
            TransportKind::UntrustedCertificate,
            format!("the server's certificate is not trusted ({reason}); see extra_ca"),
        ),
        Some(tls) => unsent(TransportKind::Tls, format!("TLS handshake failed: {tls}")),
        None => unsent(
            TransportKind::Connect,
            format!("the connection was cut off during the TLS handshake: {error}"),
        ),
    }
}

fn io_kind(error: &io::Error) -> TransportKind {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => TransportKind::Truncated,
        // hyper's chunked decoder: sizes and line ends that are not what they must be.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => TransportKind::Protocol,
        _ => TransportKind::Reset,
    }
}

/// The first error of type `E` among an error and its sources. `io::Error` hides what it wraps from
/// `source`, so it is opened too.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        if let Some(inner) = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            return find(inner);
        }
        next = error.source();
    }
    None
}

/// An error and its sources in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let source = error.to_string();
        if !text.ends_with(&source) {
            text.push_str(": ");
            text.push_str(&source);
        }
        next = error.source();
    }
    // A GOAWAY carries text of the peer's, as long as a frame may be.
    clip(&mut text);
    text
}
