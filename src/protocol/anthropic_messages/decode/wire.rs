//! The shapes of the wire.

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::protocol::json::shape::{Shape, object, of_any_other_type};

object! {
    /// The data of one event.
    Data {
        kind as "type": Option<&'a RawValue>,
        index: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
        content_block: Option<&'a RawValue>,
        delta: Delta<'a>,
        usage: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
    }
}

object! {
    /// The delta of a content block, or of the message.
    Delta {
        kind as "type": Option<&'a RawValue>,
        text: Option<&'a RawValue>,
        thinking: Option<&'a RawValue>,
        signature: Option<&'a RawValue>,
        partial_json: Option<&'a RawValue>,
        content: Option<&'a RawValue>,
        encrypted_content: Option<&'a RawValue>,
        stop_reason: Option<&'a RawValue>,
    }
}

object! {
    /// The message of a `message_start`.
    Message {
        id: Option<&'a RawValue>,
        model: Option<&'a RawValue>,
        content: Option<&'a RawValue>,
        stop_reason: Option<&'a RawValue>,
        usage: Option<&'a RawValue>,
    }
}

object! {
    /// A content block, as it begins.
    Block {
        kind as "type": Option<&'a RawValue>,
        text: Option<&'a RawValue>,
        thinking: Option<&'a RawValue>,
        signature: Option<&'a RawValue>,
        data: Option<&'a RawValue>,
        id: Option<&'a RawValue>,
        name: Option<&'a RawValue>,
        input: Option<&'a RawValue>,
    }
}

object! {
    /// Token counts.
    UsageFields {
        input_tokens: Option<&'a RawValue>,
        output_tokens: Option<&'a RawValue>,
        cache_creation_input_tokens: Option<&'a RawValue>,
        cache_read_input_tokens: Option<&'a RawValue>,
        output_tokens_details: OutputDetails<'a>,
    }
}

object! {
    /// What the output tokens went to.
    OutputDetails {
        thinking_tokens: Option<&'a RawValue>,
    }
}
