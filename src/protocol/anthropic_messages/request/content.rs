//! Content blocks: text, media, calls, results, reasoning and the provider's own.

use std::{borrow::Cow, str};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    proto::{Media, Part, Reasoning, ToolCall, ToolResult, media::Source, part::Part as Kind},
    protocol::{adapter::RequestError, json::raw},
};

/// The images that can be sent by value (anthropic-sdk-python `base64_image_source_param.py`).
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The content of a message or a tool's result: plain where it is one text.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    pub(super) fn of(mut blocks: Vec<Block<'a>>) -> Self {
        match (blocks.len(), blocks.pop()) {
            (1, Some(Block::Text { text })) => Self::Text(text),
            (_, last) => {
                blocks.extend(last);
                Self::Blocks(blocks)
            }
        }
    }
}

/// A content block.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: WireSource<'a>,
    },
    Document {
        source: WireSource<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    #[serde(untagged)]
    Native(&'a RawValue),
}

/// Where an image or a document is.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireSource<'a> {
    Base64 { media_type: &'a str, data: String },
    Url { url: &'a str },
    Text { media_type: &'a str, data: &'a str },
}

/// What it is, of a part that must be something.
pub(super) fn kind(part: &Part) -> Result<&Kind, RequestError> {
    part.part
        .as_ref()
        .ok_or_else(|| RequestError::invalid("part", "must be set"))
}

/// A part without a form in `place`.
pub(super) fn misplaced(kind: &Kind, place: &str) -> RequestError {
    let field = match kind {
        Kind::Text(_) => "text",
        Kind::Media(_) => "media",
        Kind::ToolCall(_) => "tool_call",
        Kind::ToolResult(_) => "tool_result",
        Kind::Reasoning(_) => "reasoning",
        Kind::Refusal(_) => "refusal",
        Kind::NativeJson(_) => "native_json",
    };
    let reason = format!("has no form in {place} of Anthropic Messages");
    RequestError::invalid(field, reason)
}

/// Text. Anthropic refuses empty blocks.
pub(super) fn text(text: &str) -> Result<Block<'_>, RequestError> {
    match text {
        "" => Err(RequestError::invalid(
            "text",
            "must not be empty in Anthropic Messages",
        )),
        text => Ok(Block::Text {
            text: Cow::Borrowed(text),
        }),
    }
}

/// A provider's own block, passed through.
pub(super) fn native(json: &[u8]) -> Result<Block<'_>, RequestError> {
    raw::object(json)
        .map(Block::Native)
        .map_err(|error| RequestError::invalid("native_json", error.to_string()))
}

/// Images and PDF by value or by address, plain text by value.
pub(super) fn media(media: &Media) -> Result<Block<'_>, RequestError> {
    read_media(media).map_err(|error| error.within("media"))
}

fn read_media(media: &Media) -> Result<Block<'_>, RequestError> {
    let media_type = media.mime_type.as_str();
    let no_form = || RequestError::invalid("mime_type", "has no form in Anthropic Messages");
    let source = match &media.source {
        None => return Err(RequestError::invalid("source", "must be set")),
        Some(Source::Uri(uri)) if uri.is_empty() => {
            return Err(RequestError::invalid("uri", "must not be empty"));
        }
        Some(Source::Data(data)) if data.is_empty() => {
            return Err(RequestError::invalid("data", "must not be empty"));
        }
        Some(source) => source,
    };
    if media_type.is_empty() {
        return Err(RequestError::invalid("mime_type", "must be set"));
    }
    let encoded = |data: &[u8]| WireSource::Base64 {
        media_type,
        data: STANDARD.encode(data),
    };
    match (media_type, source) {
        ("application/pdf", Source::Data(data)) => Ok(Block::Document {
            source: encoded(data),
        }),
        ("application/pdf", Source::Uri(url)) => Ok(Block::Document {
            source: WireSource::Url { url },
        }),
        ("text/plain", Source::Data(data)) => Ok(Block::Document {
            source: WireSource::Text {
                media_type,
                data: str::from_utf8(data)
                    .map_err(|_| RequestError::invalid("data", "must be UTF-8"))?,
            },
        }),
        ("text/plain", Source::Uri(_)) => Err(RequestError::invalid(
            "uri",
            "has no form for plain text in Anthropic Messages: send the data",
        )),
        (_, Source::Data(data)) if IMAGES.contains(&media_type) => Ok(Block::Image {
            source: encoded(data),
        }),
        // The provider sees for itself which kind of image is there.
        (_, Source::Uri(url)) if media_type.starts_with("image/") => Ok(Block::Image {
            source: WireSource::Url { url },
        }),
        _ => Err(no_form()),
    }
}

/// A call of an earlier turn. Its arguments were checked when it was committed, or are the client's.
pub(super) fn call(call: &ToolCall) -> Result<Block<'_>, RequestError> {
    for (field, value) in [("id", &call.id), ("name", &call.name)] {
        if value.is_empty() {
            return Err(RequestError::invalid(field, "must be set"));
        }
    }
    let input = match call.arguments_json.as_str() {
        "" => empty_object(),
        json => Cow::Borrowed(
            raw::object(json.as_bytes())
                .map_err(|error| RequestError::invalid("arguments_json", error.to_string()))?,
        ),
    };
    Ok(Block::ToolUse {
        id: &call.id,
        name: &call.name,
        input,
    })
}

/// What a tool gave back: text, images, documents and native blocks.
pub(super) fn result(result: &ToolResult) -> Result<Block<'_>, RequestError> {
    if result.tool_call_id.is_empty() {
        return Err(RequestError::invalid("tool_call_id", "must be set"));
    }
    let mut content = Vec::with_capacity(result.parts.len());
    for (index, part) in result.parts.iter().enumerate() {
        let block = kind(part).and_then(|kind| match kind {
            Kind::Text(part) => text(part),
            Kind::Media(part) => media(part),
            Kind::NativeJson(json) => native(json),
            other => Err(misplaced(other, "a tool result")),
        });
        content.push(block.map_err(|error| error.within(format_args!("parts[{index}]")))?);
    }
    Ok(Block::ToolResult {
        tool_use_id: &result.tool_call_id,
        content: (!content.is_empty()).then(|| Content::of(content)),
        is_error: result.is_error,
    })
}

/// Reasoning goes back as it came: signed, or hidden. Anthropic refuses what it has not signed.
pub(super) fn reasoning(reasoning: &Reasoning) -> Result<Block<'_>, RequestError> {
    let utf8 = |field, bytes| {
        str::from_utf8(bytes).map_err(|_| RequestError::invalid(field, "must be UTF-8"))
    };
    if !reasoning.redacted.is_empty() {
        if !reasoning.text.is_empty() || !reasoning.signature.is_empty() {
            return Err(RequestError::invalid(
                "redacted",
                "has no form beside text or a signature in Anthropic Messages",
            ));
        }
        return Ok(Block::RedactedThinking {
            data: utf8("redacted", &reasoning.redacted)?,
        });
    }
    if reasoning.signature.is_empty() {
        return Err(RequestError::invalid(
            "signature",
            "must be set: Anthropic Messages takes only signed reasoning back; leave out any other",
        ));
    }
    Ok(Block::Thinking {
        thinking: &reasoning.text,
        signature: utf8("signature", &reasoning.signature)?,
    })
}

/// `{}`.
fn empty_object() -> Cow<'static, RawValue> {
    match serde_json::from_str::<&RawValue>("{}") {
        Ok(object) => Cow::Borrowed(object),
        // `{}` is JSON; `null` is the value of no bytes.
        Err(_) => Cow::Borrowed(RawValue::NULL),
    }
}
