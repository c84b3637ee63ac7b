//! What every provider protocol is decoded into.

use crate::proto::{FinishReason, Usage};

/// One normalised event of a provider's stream. Text borrows from the receive buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// The provider named the response: its id and the model that answers. May be repeated.
    Started {
        /// The provider's id of the response, where it gives one.
        response_id: Option<&'a str>,
        /// The model as the provider reports it.
        model: Option<&'a str>,
    },
    /// Output. Empty deltas are never emitted: they are [`Event::Keepalive`].
    Delta(Delta<'a>),
    /// Proof of life without output: a comment, a ping, a role-only or empty chunk, a filter chunk.
    Keepalive {
        /// `false` for a comment (which does not extend the `tail` timer), `true` for anything else.
        content: bool,
    },
    /// The provider's own event, as it came and before what was made of it. Only where it was asked for.
    Native {
        /// The data of the event.
        data: &'a [u8],
    },
    /// Token counts; the last one wins.
    Usage(Usage),
    /// The semantic terminal: the provider gave its finish reason. Told once, and again only if the
    /// provider changes it; the last one counts.
    Finish {
        /// The contract's word for it.
        reason: FinishReason,
        /// As the provider spelled it.
        native: &'a str,
    },
    /// A finish reason that is a failure (`error`, `abort`, …); `verdict::inband::bad_finish` reads it.
    BadFinish {
        /// As the provider spelled it.
        native: &'a str,
    },
    /// The stream terminal (`[DONE]`): nothing of the response follows.
    End {
        /// `true` where the dialect says that this alone completes the response.
        completes: bool,
    },
    /// An error object inside a successful response; `verdict::inband::classify` reads it.
    Error {
        /// As it came, so not always JSON: all the data of the event that holds the error (in the
        /// place where its protocol puts it), the value of a field that is the error, or a body
        /// outside the events.
        json: &'a [u8],
    },
    /// The bytes are not what the protocol allows; `verdict::decode` reads it.
    Undecodable(DecodeError),
}

/// A piece of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Reasoning or thinking text.
    Reasoning(&'a str),
    /// A refusal in the model's words.
    Refusal(&'a str),
    /// A tool call begins. `call` numbers the calls of this response in order of appearance.
    ToolCallStart {
        /// Which call.
        call: u32,
        /// The provider's id, or one made up by the adapter where the provider gives none.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
    },
    /// A fragment of a tool call's argument text.
    ToolArguments {
        /// Which call.
        call: u32,
        /// The fragment, exactly as streamed.
        fragment: &'a str,
    },
}

/// Why the bytes of a stream could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// An event is larger than [`super::MAX_EVENT_BYTES`].
    TooLarge,
    /// An event's data is not JSON, or not of the shape that the protocol allows.
    Json,
    /// Not UTF-8.
    Utf8,
    /// A whole, non-streamed completion: a replay would pay again.
    WholeCompletion,
    /// Not a stream at all: HTML or other text.
    NotAStream,
}
