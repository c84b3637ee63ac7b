//! The shapes of the wire: the members that are read, each as the text it was written in. Of a
//! member's type nothing is demanded here, so that an error object beside a strange one is found.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::json::shape::each;

/// The most items that a list may have: output items, or parts of one.
pub(super) const MAX_LISTED: usize = 4096;

/// The data of one event.
#[derive(Debug, Deserialize)]
pub(super) struct Data<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) sequence_number: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output_index: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content_index: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary_index: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_image_b64: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) part: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A response object.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) status: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) background: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) store: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<&'a RawValue>,
}

/// `incomplete_details`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow)]
    pub(super) reason: Option<&'a RawValue>,
}

/// An output item.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<&'a RawValue>,
}

/// A part of a message's content, or of a reasoning item's content or summary.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
}

/// JSON that stands in no event.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) choices: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) detail: Option<&'a RawValue>,
}

/// Token counts.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage<'a> {
    #[serde(borrow)]
    pub(super) input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output_tokens_details: Option<&'a RawValue>,
}

/// The details of a count.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TokenDetails<'a> {
    #[serde(borrow)]
    pub(super) cached_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) cache_write_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reasoning_tokens: Option<&'a RawValue>,
}

/// Reads `raw` as an object; whatever else it is reads as an object without members.
pub(super) fn object<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.filter(|raw| raw.get().starts_with('{'))
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
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
