//! IO. The one door out: connections to providers, and the exchange of one request over one of them.
//!
//! [`Upstream`] is the seam: the sidecar drives [`http::Door`], tests on a paused clock put a
//! scripted one in its place. One [`Exchange`] is at most one physical request.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ::http::{HeaderMap, Method, StatusCode, Uri};
use bytes::Bytes;

use crate::verdict::transport::TransportError;

pub mod http;

/// How HTTP/2 is used towards a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2 {
    /// Where ALPN offers it.
    Auto,
    /// HTTP/1.1 only.
    Off,
    /// Cleartext HTTP/2 without negotiation (on `https`: HTTP/2 required).
    PriorKnowledge,
}

/// A way out of the network that is used only because it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// `http://host:port` of a proxy that accepts CONNECT.
    pub url: Uri,
    /// Hosts that are reached directly: exact names, `.suffix`, addresses, each with an optional port;
    /// ranges in CIDR notation; `*`.
    pub no_proxy: Vec<String>,
}

/// Where a provider's requests go and how.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider's name in the configuration.
    pub name: String,
    /// Scheme, authority and the path that request paths are appended to.
    pub base_url: Uri,
    /// Connections at most; HTTP/1.1 carries one exchange each.
    pub max_connections: usize,
    /// HTTP/2 towards this provider.
    pub http2: Http2,
    /// PEM of further certificate authorities to trust, beside the public ones.
    pub extra_ca: Option<Bytes>,
    /// The proxy, if one is configured.
    pub proxy: Option<Proxy>,
}

/// One request, complete before anything is dispatched. The body is sent as it stands.
#[derive(Clone)]
pub struct Request {
    /// POST, but for the rest of a stored response, which is a GET without a body.
    pub method: Method,
    /// Path and query below the endpoint's base URL, e.g. `/chat/completions`.
    pub path: String,
    /// Every header but `host`, `content-length` and `accept-encoding`, which the door sets.
    pub headers: HeaderMap,
    /// The body, byte for byte.
    pub body: Bytes,
    /// Bounds everything before the hand-over to a connection; zero is off.
    pub connect_timeout: Duration,
}

impl fmt::Debug for Request {
    /// Neither headers (credentials) nor body (prompts).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("body_len", &self.body.len())
            .finish()
    }
}

/// What an exchange reports, in this order: `Sent`? `Head`? `Data`* (`End` | `Failed`).
#[derive(Debug)]
pub enum Signal {
    /// The request was handed to a ready connection: from here on it may have left.
    Sent,
    /// The response head.
    Head {
        /// The status.
        status: StatusCode,
        /// Its headers.
        headers: HeaderMap,
    },
    /// Body bytes, content-encoding undone.
    Data(Bytes),
    /// The body ended as its framing says.
    End,
    /// The exchange is over. `stage` says whether the request may have left.
    Failed(TransportError),
}

/// One request in flight. Dropping it ends the exchange with the provider at once: HTTP/1.1 closes the
/// connection, HTTP/2 resets the stream; a request that was not handed over yet is never sent.
pub trait Exchange: Send {
    /// The next signal. Not called again after `End` or `Failed`.
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Signal>;

    /// The provider stalled on this exchange: its connection takes no new requests.
    fn condemn(&mut self);

    /// The response was accepted before its framing ended: read the rest in the background, within
    /// fixed bounds, so that the connection can serve again.
    fn drain(self: Box<Self>);
}

/// The right to make one send, asked for in the same synchronous step as the hand-over.
pub trait Permit: Send {
    /// The first byte is about to leave. `false`: the time to send has passed, and nothing may leave.
    /// Asked again before another hand-over of the same request.
    fn leave(&mut self) -> bool;

    /// The hand-over proved that not a byte has left.
    fn stayed(&mut self);
}

/// A place among an endpoint's connections; released when dropped or when its exchange ends.
pub trait Slot: Send {}

/// Waiting for a slot.
pub type SlotFuture = Pin<Box<dyn Future<Output = Result<Box<dyn Slot>, QueueFull>> + Send>>;

/// Too many generations already wait for a connection to this endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many generations wait for a connection to this provider")]
pub struct QueueFull;

/// The door out.
pub trait Upstream: Send + Sync {
    /// Takes a connection slot, in order of asking; ready at once where one is free.
    fn slot(&self, endpoint: &Arc<Endpoint>) -> SlotFuture;

    /// Sends `request` at most once, if `permit` allows it when it is about to leave.
    fn open(
        &self,
        endpoint: &Arc<Endpoint>,
        slot: Box<dyn Slot>,
        request: Request,
        permit: Option<Box<dyn Permit>>,
    ) -> Box<dyn Exchange>;
}
