//! What a generation sends, settled before anything is sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use secrecy::ExposeSecret;

use super::Estimate;
use crate::{
    budgets::Matched,
    config::Provider,
    protocol::{Decoder, DecoderOptions, adapter::adapter},
    recovery::{FollowUp, Hint},
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
    /// The budgets that an attempt takes part of, by the index of its credential (one entry where the
    /// provider has none).
    pub budgets: Vec<Arc<Matched>>,
    /// What an attempt takes of them at most; nothing where none of them limits tokens.
    pub tokens: Estimate,
}

/// What an attempt asks for beside the original request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// What the model is told of an answer that was rejected.
    pub hint: Option<&'a Hint>,
    /// The rest of an answer.
    pub follow_up: Option<&'a FollowUp>,
}

impl PlannedTarget {
    /// The request as it leaves, with a credential where the provider has any. `None` only if the
    /// credential cannot stand in a header, or the provider has no form for what is to follow.
    pub fn request(&self, credential: Option<usize>, asked: Asked<'_>) -> Option<Request> {
        let mut request = self.original();
        if let Some(hint) = asked.hint {
            let hinted = adapter(self.provider.protocol)?.hinted(&self.body, hint.as_str());
            // A body without a place for it may still be answered better the next time.
            request.body = hinted.unwrap_or(request.body);
        }
        match asked.follow_up {
            None => {}
            Some(FollowUp::Continue { partial }) => {
                request.body = adapter(self.provider.protocol)?.continuation(
                    self.provider.dialect,
                    &request.body,
                    partial,
                )?;
            }
            Some(FollowUp::Resume { response_id, after }) => {
                let rest = adapter(self.provider.protocol)?.resumption(response_id, *after)?;
                request = Request {
                    method: rest.method,
                    path: rest.path,
                    headers: rest.headers,
                    body: rest.body,
                    ..request
                };
                self.provider.add_headers(&mut request.headers);
            }
        }
        let credential = credential.and_then(|index| self.provider.credentials.get(index));
        if let Some(credential) = credential {
            let secret = credential.api_key.expose_secret();
            adapter(self.provider.protocol)?
                .authorize(self.provider.dialect, secret, &mut request.headers)
                .ok()?;
        }
        Some(request)
    }

    /// The budgets that an attempt with this credential takes part of.
    pub fn matched(&self, credential: usize) -> Arc<Matched> {
        self.budgets.get(credential).cloned().unwrap_or_default()
    }

    /// Whether the provider can be asked to continue the answer to this request.
    pub fn continues(&self) -> bool {
        let form = || {
            let adapter = adapter(self.provider.protocol)?;
            adapter.continuation(self.provider.dialect, &self.body, "-")
        };
        self.provider.prefill && form().is_some()
    }

    fn original(&self) -> Request {
        Request {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            connect_timeout: self.connect,
        }
    }

    /// A decoder for one response, or for the rest of one that is stored.
    pub fn decoder(&self, native_events: bool, after: Option<u64>) -> Option<Box<dyn Decoder>> {
        let adapter = adapter(self.provider.protocol)?;
        Some(adapter.decoder(DecoderOptions {
            terminal: self.provider.terminal,
            native_events,
            cursor: self.provider.resume,
            after,
        }))
    }
}
