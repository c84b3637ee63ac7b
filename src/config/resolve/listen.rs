//! `listen`: addresses.

use std::net::SocketAddr;

use super::Resolver;
use crate::config::{model::Listen, path::Path, raw, value::NOT_AVAILABLE};

impl Resolver<'_> {
    pub(super) fn listen(&mut self, at: &Path, raw: &raw::Listen) -> Option<Listen> {
        let grpc = self.address(&at.key("grpc"), &raw.grpc);
        let admin = self.address(&at.key("admin"), &raw.admin);
        let public = self.address(&at.key("public"), &raw.public);
        if admin.is_some_and(|address| !address.ip().to_canonical().is_loopback()) {
            let message =
                "the admin listener must be on a loopback address, such as 127.0.0.1:15091";
            self.refuse(&at.key("admin"), message);
        }
        let listeners = [("grpc", grpc), ("admin", admin), ("public", public)];
        for (n, (key, address)) in listeners.iter().enumerate() {
            let taken = listeners
                .iter()
                .take(n)
                .find(|(_, other)| address.is_some_and(|a| a.port() != 0) && other == address);
            if let Some((other, _)) = taken {
                self.refuse(&at.key(key), format!("the same address as listen.{other}"));
            }
        }
        Some(Listen {
            grpc: grpc?,
            admin: admin?,
            public: public?,
            max_connections: raw.max_connections.usize(),
            max_streams_per_connection: raw.max_streams_per_connection.u32(),
            max_request_bytes: raw.max_request_bytes.usize(),
            keepalive_interval: raw.keepalive.interval.0,
            keepalive_timeout: raw.keepalive.timeout.0,
            reflection: raw.reflection,
        })
    }

    fn address(&mut self, at: &Path, text: &str) -> Option<SocketAddr> {
        if text.starts_with("unix:") {
            self.refuse(at, format!("Unix sockets are {NOT_AVAILABLE}"));
            return None;
        }
        let address = text.parse().ok();
        if address.is_none() {
            let message =
                "expected an IP address and a port, such as 127.0.0.1:50051 or [::1]:50051";
            self.refuse(at, message);
        }
        address
    }
}
