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
    /// Text, reasoning and refusal that follow belong to this block of the protocol. Told when a block
    /// begins, and again when output goes back to an earlier one. A protocol without blocks of its own
    /// never tells it: there a change of kind opens a block.
    Block {
        /// The protocol's number of it, the same in a resumed stream; also the `call` of its deltas if
        /// it is a tool call. Not its place in the message.
        block: u32,
        /// What it will hold.
        kind: BlockKind,
    },
    /// Nothing more will come of this block.
    BlockEnd {
        /// As in [`Event::Block`].
        block: u32,
    },
    /// The whole content of a block, as the provider repeats it at the block's end. Where it differs
    /// from what was streamed, it is right; a block that streamed nothing is filled by it, in the place
    /// where it is told. Of what comes whole and once (a signature, a native block) it only says that
    /// there is one. Never empty.
    Snapshot {
        /// As in [`Event::Block`].
        block: u32,
        /// The whole text, reasoning or refusal, all arguments of a tool call that has begun, or what
        /// comes whole.
        whole: Delta<'a>,
    },
    /// How far the stream has come, where it is stored and can be resumed after this point.
    Cursor {
        /// The sequence number of the last event that was read whole.
        sequence: u64,
    },
    /// An event or block that this version does not know: passed over and counted. Also a sign of life.
    Unknown,
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
    /// The provider gave its finish reason, and its protocol wants more before the response is complete:
    /// [`Event::Finish`] comes with that. Where the one proves the other, this is never told.
    Finishing,
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
    /// The signature of the current reasoning block, whole; the provider wants it back with the next
    /// turn. Ends the block.
    ReasoningSignature(&'a str),
    /// A reasoning block whose content the provider keeps hidden, whole.
    RedactedReasoning(&'a str),
    /// A provider's own block (a server tool's call or result, media), whole: one JSON value.
    NativeBlock(&'a str),
}

/// What a block of the protocol holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text or a refusal.
    Text,
    /// Reasoning.
    Reasoning,
    /// A call of one of the client's tools.
    ToolCall,
    /// A block of the provider's own: its beginning is output already.
    Native,
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
    /// Events are missing: their sequence numbers leave a gap.
    Gap,
    /// The response began again, under another id.
    Restarted,
}
