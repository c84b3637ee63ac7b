//! `listen`: addresses, and how fast streams may be opened.

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use super::Resolver;
use crate::config::{
    model::{Admission, LabelRate, Listen, StreamRate},
    path::Path,
    raw,
    value::NOT_AVAILABLE,
};

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
        let admission = self.admission(&at.key("admission"), &raw.admission);
        Some(Listen {
            grpc: grpc?,
            admin: admin?,
            public: public?,
            max_connections: raw.max_connections.usize(),
            max_streams_per_connection: raw.max_streams_per_connection.u32(),
            max_request_bytes: raw.max_request_bytes.usize(),
            keepalive_interval: raw.keepalive.interval.0,
            keepalive_timeout: raw.keepalive.timeout.0,
            admission,
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

    fn admission(&mut self, at: &Path, raw: &raw::Admission) -> Admission {
        let per_connection = raw.per_connection.as_ref().and_then(|rate| {
            let streams = rate.streams.map(|n| n.u32());
            let burst = rate.burst.map(|n| n.u32());
            self.stream_rate(&at.key("per_connection"), streams, rate.per.0, burst)
        });
        let per_label = raw.per_label.as_ref().and_then(|rate| {
            let at = at.key("per_label");
            let streams = rate.streams.map(|n| n.u32());
            let burst = rate.burst.map(|n| n.u32());
            let label = self.label(&at.key("label"), rate.label.as_deref());
            let rate = self.stream_rate(&at, streams, rate.per.0, burst)?;
            let label = label?;
            Some(LabelRate { label, rate })
        });
        Admission {
            per_connection,
            per_label,
        }
    }

    fn stream_rate(
        &mut self,
        at: &Path,
        streams: Option<u32>,
        per: Duration,
        burst: Option<u32>,
    ) -> Option<StreamRate> {
        let Some(streams) = streams.and_then(NonZeroU32::new) else {
            let message = "a rate needs a number of streams";
            self.errors.missing(self.tree, &at.key("streams"), message);
            return None;
        };
        Some(StreamRate {
            streams,
            per,
            burst: burst.and_then(NonZeroU32::new).unwrap_or(streams),
        })
    }
}
