//! What a generation sends, settled before anything is sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use secrecy::ExposeSecret;

use crate::{
    config::Provider,
    protocol::{self, Decoder, Dialect, RequestError},
    upstream::Request,
};

/// The requests of a generation, one per target, in the route's order.
pub struct Plan {
    /// The route's name.
    pub route: String,
    /// The targets.
    pub targets: Vec<PlannedTarget>,
}

/// One target's request.
pub struct PlannedTarget {
    /// The provider.
    pub provider: Arc<Provider>,
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
    /// The request as it leaves, with a credential where the provider has any.
    pub fn request(&self, credential: Option<usize>) -> Result<Request, RequestError> {
        let mut headers = self.headers.clone();
        let credential = credential.and_then(|index| self.provider.credentials.get(index));
        if let Some(credential) = credential {
            let adapter = protocol::adapter(self.provider.protocol)?;
            adapter.authorize(
                self.provider.dialect,
                credential.api_key.expose_secret(),
                &mut headers,
            )?;
        }
        Ok(Request {
            path: self.path.clone(),
            headers,
            body: self.body.clone(),
            connect_timeout: self.connect,
        })
    }

    /// A decoder for one response.
    pub fn decoder(&self) -> Result<Box<dyn Decoder>, RequestError> {
        let adapter = protocol::adapter(self.provider.protocol)?;
        Ok(adapter.decoder(self.provider.dialect, self.provider.terminal))
    }

    /// The provider's deviations from its protocol.
    pub fn dialect(&self) -> Dialect {
        self.provider.dialect
    }
}
