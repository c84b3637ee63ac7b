//! `listen`, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::value::{Count, GIB, HOUR, KIB, Later, MIB, SECOND, Size, Span};

/// Where the sidecar listens, and the bounds of its listeners.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Listen {
    /// Address and port of gRPC. (`unix:PATH` is not available in this version.)
    pub(in crate::config) grpc: String,
    /// Address and port of the admin listener (drain): loopback only.
    pub(in crate::config) admin: String,
    /// Address and port of the public listener: health and metrics only.
    pub(in crate::config) public: String,
    /// TLS of the gRPC listener. Not available in this version.
    pub(in crate::config) tls: Option<Later>,
    /// Bearer token for gRPC clients. Not available in this version.
    pub(in crate::config) token: Option<Later>,
    /// gRPC connections at most; further ones are closed at once.
    pub(in crate::config) max_connections: Count<1, 65_535, 1024>,
    /// Streams per gRPC connection at most.
    pub(in crate::config) max_streams_per_connection: Count<1, 65_535, 1024>,
    /// The largest client frame.
    pub(in crate::config) max_request_bytes: Size<KIB, GIB, { 16 * MIB }>,
    /// HTTP/2 PINGs of the gRPC listener.
    pub(in crate::config) keepalive: Keepalive,
    /// How fast clients may open streams. Without it: as fast as they like.
    pub(in crate::config) admission: Admission,
    /// Serve gRPC reflection.
    pub(in crate::config) reflection: bool,
}

impl Default for Listen {
    fn default() -> Listen {
        Listen {
            grpc: "127.0.0.1:50051".to_owned(),
            admin: "127.0.0.1:15091".to_owned(),
            public: "0.0.0.0:15090".to_owned(),
            tls: None,
            token: None,
            max_connections: Count::default(),
            max_streams_per_connection: Count::default(),
            max_request_bytes: Size::default(),
            keepalive: Keepalive::default(),
            admission: Admission::default(),
            reflection: false,
        }
    }
}

/// HTTP/2 PINGs of the gRPC listener.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Keepalive {
    /// Between PINGs; 0 is off.
    pub(in crate::config) interval: Span<0, HOUR, { 20 * SECOND }>,
    /// How long a PING may go unanswered before the connection is closed.
    pub(in crate::config) timeout: Span<1, HOUR, { 10 * SECOND }>,
}

/// How fast clients may open streams; those over it are refused at once, and start nothing.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Admission {
    /// Calls of Generate and Complete, attaching ones too, by one gRPC connection.
    pub(in crate::config) per_connection: Option<StreamRate>,
    /// Starts of generations by one value of a label; those without the label together.
    pub(in crate::config) per_label: Option<LabelRate>,
}

/// `burst` at once, then `streams` evenly over each `per`.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["streams"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct StreamRate {
    /// Streams. Required.
    pub(in crate::config) streams: Option<Count<1, 1_000_000, 1>>,
    /// In this time.
    pub(in crate::config) per: Span<1, HOUR, { SECOND }>,
    /// At once. Default: `streams`.
    pub(in crate::config) burst: Option<Count<1, 1_000_000, 1>>,
}

/// By the value of a label: `burst` at once, then `streams` evenly over each `per`.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["label", "streams"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct LabelRate {
    /// The name of a label of `start.labels`. Required.
    pub(in crate::config) label: Option<String>,
    /// Streams. Required.
    pub(in crate::config) streams: Option<Count<1, 1_000_000, 1>>,
    /// In this time.
    pub(in crate::config) per: Span<1, HOUR, { SECOND }>,
    /// At once. Default: `streams`.
    pub(in crate::config) burst: Option<Count<1, 1_000_000, 1>>,
}
