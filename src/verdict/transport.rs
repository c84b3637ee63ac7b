//! What the network did, and the verdict on it.

use super::{Class, Failure, Origin, Stage, message};

/// What went wrong between the sidecar and a provider, as far as the door out can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// What happened.
    pub kind: TransportKind,
    /// How far the exchange had come: `Connect` proves that nothing was sent.
    pub stage: Stage,
    /// For a person; no request content. Credentials are removed from it.
    pub detail: String,
}

/// Kinds of transport failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// The name did not resolve.
    Dns,
    /// No connection: refused, unreachable, or cut off during the handshake.
    Connect,
    /// The server's certificate is not trusted or not valid for the name. Not transient.
    UntrustedCertificate,
    /// A TLS failure other than trust.
    Tls,
    /// The connection was reset or closed before the exchange was complete.
    Reset,
    /// The body ended short of its framing (chunked terminator, content-length, END_STREAM).
    Truncated,
    /// HTTP/2: the server went away (GOAWAY) before answering this stream.
    GoAway,
    /// HTTP/2: the stream was refused. Does not prove that nothing was processed.
    RefusedStream,
    /// HTTP/2: the stream was reset with another code.
    StreamReset,
    /// The peer broke HTTP framing.
    Protocol,
    /// A content-encoding that was not asked for and cannot be decoded.
    Encoding,
    /// The configured proxy refused or failed.
    Proxy,
    /// The response head is larger than the fixed bound.
    HeadTooLarge,
    /// The lease or the connect timer ran out before the request was handed to a connection.
    NotSentInTime,
}

/// The verdict on a transport failure.
///
/// Only for an exchange without a response, or for the body of a successful one: an error that has a
/// response is judged by the response. An abort by ourselves is no transport failure and has no kind
/// here: whoever aborted knows why.
pub fn classify(error: &TransportError) -> Failure {
    let class = match error.kind {
        TransportKind::Encoding => Class::Corrupt,
        TransportKind::HeadTooLarge => Class::TooLarge,
        TransportKind::NotSentInTime => Class::TimeoutConnect,
        _ => Class::Transport,
    };
    let detail = message::clean(&error.detail);
    let mut failure = Failure::new(class, Origin::Network, error.stage, detail);
    if error.kind == TransportKind::UntrustedCertificate {
        failure.retryable = false;
    }
    failure
}
