//! One failure, from the socket to the client's error details.

use std::{sync::Arc, time::Duration};

use super::class::{self, Class};

/// The longest provider text that a verdict carries, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 512;

/// Who caused a failure. Only what the provider or the network to it caused may be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The provider said so, or fell silent.
    Provider,
    /// The way to the provider: DNS, TCP, TLS, HTTP framing.
    Network,
    /// The client of the sidecar.
    Client,
    /// Redrive itself: a limit, a drain, a bug.
    Us,
}

/// How far an attempt had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before anything was dispatched.
    Admission,
    /// Opening the connection; no byte of the request has left.
    Connect,
    /// The request may have left, no response head has come.
    Request,
    /// A response head that is an error, and its body.
    Response,
    /// Inside the stream of a successful response.
    Stream,
}

/// The budget that held something back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Its name in the configuration.
    pub budget: Arc<str>,
    /// Which of its limits, and what was asked of it where that matters; for a person.
    pub limit: String,
}

/// Why an attempt or a generation failed: what was seen, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class of the contract.
    pub class: Class,
    /// Who caused it.
    pub origin: Origin,
    /// How far the attempt had come.
    pub stage: Stage,
    /// Transient: the same request may succeed later. Never wider than the class allows.
    pub retryable: bool,
    /// `true` if it is proven that no byte of the request left the process.
    pub not_sent: bool,
    /// The wait the provider or a budget asked for, never invented.
    pub wait: Option<Duration>,
    /// The HTTP status, where a response head came.
    pub http_status: Option<u16>,
    /// The provider's own code or type, as it spelled it.
    pub code: Option<String>,
    /// For a person: at most [`MAX_MESSAGE_BYTES`] bytes, without credentials.
    pub message: String,
    /// The budget that denied, where one did. Boxed: most failures have none.
    pub denied: Option<Box<Denied>>,
    /// Why the turn gate rejected, in the contract's words. Empty where it did not.
    pub gate_reason: &'static str,
}

impl Failure {
    /// A failure with the defaults of its class.
    pub fn new(class: Class, origin: Origin, stage: Stage, message: impl Into<String>) -> Self {
        let mut message = message.into();
        clip(&mut message);
        Self {
            class,
            origin,
            stage,
            retryable: class::transient(class),
            not_sent: matches!(stage, Stage::Admission | Stage::Connect),
            wait: None,
            http_status: None,
            code: None,
            message,
            denied: None,
            gate_reason: "",
        }
    }

    /// The replay predicate: may the same request go to the same target again?
    ///
    /// Provider-origin (the provider or the way to it) and an allowlisted class. What our own code or
    /// a client caused never replays.
    pub fn replayable(&self) -> bool {
        use Class::*;
        matches!(self.origin, Origin::Provider | Origin::Network)
            && self.retryable
            && matches!(
                self.class,
                Transport
                    | TimeoutConnect
                    | TimeoutFirstToken
                    | TimeoutProvider
                    | Stall
                    | PrematureEof
                    | Corrupt
                    | RateLimited
                    | Overloaded
                    | ProviderInternal
            )
    }
}

/// Cuts `text` to [`MAX_MESSAGE_BYTES`] at a character boundary.
pub fn clip(text: &mut String) {
    if text.len() > MAX_MESSAGE_BYTES {
        let end = text.floor_char_boundary(MAX_MESSAGE_BYTES);
        text.truncate(end);
    }
}
