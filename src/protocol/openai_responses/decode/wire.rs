//! The shapes of the wire: the members that are read, each as the text it was written in. Of a
//! member's type nothing is demanded here, so that an error object beside a strange one is found; nor
//! that none is repeated: the last one counts.

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::protocol::json::shape::{Shape, each, object, of_any_other_type};

/// The most items that a list may have: output items, or parts of one.
pub(super) const MAX_LISTED: usize = 4096;

object! {
    /// The data of one event.
    Data {
        kind as "type": Option<&'a RawValue>,
        sequence_number: Option<&'a RawValue>,
        output_index: Option<&'a RawValue>,
        content_index: Option<&'a RawValue>,
        summary_index: Option<&'a RawValue>,
        delta: Option<&'a RawValue>,
        text: Option<&'a RawValue>,
        refusal: Option<&'a RawValue>,
        arguments: Option<&'a RawValue>,
        partial_image_b64: Option<&'a RawValue>,
        item: Option<&'a RawValue>,
        part: Option<&'a RawValue>,
        response: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
    }
}

object! {
    /// A response object.
    Response {
        id: Option<&'a RawValue>,
        model: Option<&'a RawValue>,
        status: Option<&'a RawValue>,
        background: Option<&'a RawValue>,
        store: Option<&'a RawValue>,
        output: Option<&'a RawValue>,
        usage: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
        incomplete_details: Option<&'a RawValue>,
    }
}

object! {
    /// `incomplete_details`.
    Incomplete {
        reason: Option<&'a RawValue>,
    }
}

object! {
    /// An output item.
    Item {
        kind as "type": Option<&'a RawValue>,
        id: Option<&'a RawValue>,
        call_id: Option<&'a RawValue>,
        name: Option<&'a RawValue>,
        arguments: Option<&'a RawValue>,
        content: Option<&'a RawValue>,
        summary: Option<&'a RawValue>,
        encrypted_content: Option<&'a RawValue>,
    }
}

object! {
    /// A part of a message's content, or of a reasoning item's content or summary.
    Part {
        kind as "type": Option<&'a RawValue>,
        text: Option<&'a RawValue>,
        refusal: Option<&'a RawValue>,
    }
}

object! {
    /// JSON that stands in no event.
    Body {
        object: Option<&'a RawValue>,
        output: Option<&'a RawValue>,
        choices: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
        detail: Option<&'a RawValue>,
    }
}

object! {
    /// Token counts.
    Usage {
        input_tokens: Option<&'a RawValue>,
        output_tokens: Option<&'a RawValue>,
        input_tokens_details: Option<&'a RawValue>,
        output_tokens_details: Option<&'a RawValue>,
    }
}

object! {
    /// The details of a count.
    TokenDetails {
        cached_tokens: Option<&'a RawValue>,
        cache_write_tokens: Option<&'a RawValue>,
        reasoning_tokens: Option<&'a RawValue>,
    }
}

/// Reads `raw` as an object; whatever else it is reads as an object without members.
pub(super) fn object<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// The items of a list; whatever else it is has none. No more than one beyond [`MAX_LISTED`], so that a
/// list of nothings does not take many times its own memory.
pub(super) fn list(raw: Option<&RawValue>) -> Vec<&RawValue> {
    let mut items = Vec::new();
    if let Some(raw) = raw {
        // What is no list has no items.
        let _ = each(raw, |item: &RawValue| {
            if items.len() <= MAX_LISTED {
                items.push(item);
            }
        });
    }
    items
}
