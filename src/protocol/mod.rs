//! PURE. Provider protocols: from a conversation or a native body to a request, and from body bytes
//! to [`Event`]s.
//!
//! An adapter knows nothing of retries, timers or clients. Adding a provider is one folder here and
//! one line in the registry.

pub mod adapter;
pub mod anthropic_messages;
mod dialect;
mod event;
mod hint;
mod json;
mod native;
pub mod openai_chat;
pub mod openai_responses;
mod options;
pub mod sse;

pub use dialect::Dialect;
pub use event::{BlockKind, DecodeError, Delta, Event};

/// The provider protocols of the contract.
pub use crate::proto::Protocol;

/// What completes a Chat Completions response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Terminal {
    /// A finish reason.
    #[default]
    FinishReason,
    /// `[DONE]` alone, for servers that never send a finish reason.
    DoneSentinel,
}

/// The largest event that is decoded, in bytes. Fixed.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Where decoded events go. Called synchronously, in order; text lives only for the call.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;

/// What a decoder is told about the response it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecoderOptions {
    /// What completes the response, where the protocol leaves that to the server.
    pub terminal: Terminal,
    /// Also emit [`Event::Native`].
    pub native_events: bool,
    /// Also emit [`Event::Cursor`]: the provider stores the response.
    pub cursor: bool,
    /// The body goes on after this sequence number of a stored response.
    pub after: Option<u64>,
}

/// Decodes the body of one response.
///
/// After [`Event::End`], [`Event::Error`] or [`Event::Undecodable`] it emits nothing more.
pub trait Decoder: Send {
    /// Takes the next bytes, however they were split.
    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>);

    /// The body ended. Only a `clean` end may complete an unterminated last event.
    fn end(&mut self, clean: bool, sink: &mut Sink<'_>);
}
