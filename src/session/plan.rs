//! What a generation sends, settled before anything is sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use secrecy::ExposeSecret;

use crate::{
    config::Provider,
    protocol::{Decoder, DecoderOptions, adapter::adapter},
    upstream::Request,
};

/// The requests of a generation.
pub struct Plan {
    /// Whether the provider's own events are delivered too.
    pub native_events: bool,
    /// One per target, in the route's order.
    pub targets: Vec<PlannedTarget>,
}

/// One target's request.
pub struct PlannedTarget {
    /// `provider/model`.
    pub name: String,
    /// The model asked for.
    pub model: String,
    /// The provider.
    pub provider: Arc<Provider>,
    /// The method.
    pub method: Method,
    /// Path below the provider's base URL.
    pub path: String,
    /// Headers, without a credential.
    pub headers: HeaderMap,
    /// The body, sent byte for byte on every attempt.
    pub body: Bytes,
    /// Bounds everything before the hand-over.
    pub connect: Duration,
}

impl PlannedTarget {
    /// The request as it leaves, with a credential where the provider has any. `None` only if the
    /// credential cannot stand in a header.
    pub fn request(&self, credential: Option<usize>) -> Option<Request> {
        let mut headers = self.headers.clone();
        let credential = credential.and_then(|index| self.provider.credentials.get(index));
        if let Some(credential) = credential {
            let secret = credential.api_key.expose_secret();
            adapter(self.provider.protocol)?
                .authorize(self.provider.dialect, secret, &mut headers)
                .ok()?;
        }
        Some(Request {
            method: self.method.clone(),
            path: self.path.clone(),
            headers,
            body: self.body.clone(),
            connect_timeout: self.connect,
        })
    }

    /// A decoder for one response.
    pub fn decoder(&self, native_events: bool) -> Option<Box<dyn Decoder>> {
        let adapter = adapter(self.provider.protocol)?;
        Some(adapter.decoder(DecoderOptions {
            terminal: self.provider.terminal,
            native_events,
            ..DecoderOptions::default()
        }))
    }
}
