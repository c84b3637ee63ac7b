//! Content parts of the input: text, media and a provider's own.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    proto::{Media, media::Source},
    protocol::{adapter::RequestError, json::raw},
};

/// OpenAI refuses data without a name, and the contract carries none.
const FILE_NAME: &str = "document.pdf";

/// The content of a message or a tool's result: plain where it is one text, which every server reads.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

impl<'a> Content<'a> {
    /// The content of these parts; none is the empty text.
    pub(super) fn of(mut parts: Vec<ContentPart<'a>>) -> Self {
        match (parts.len(), parts.pop()) {
            (_, None) => Self::Text(Cow::Borrowed("")),
            (1, Some(ContentPart::InputText { text } | ContentPart::OutputText { text })) => {
                Self::Text(text)
            }
            (_, Some(last)) => {
                parts.push(last);
                Self::Parts(parts)
            }
        }
    }
}

/// A part of a content list.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: Cow<'a, str>,
    },
    InputFile(File<'a>),
    OutputText {
        text: Cow<'a, str>,
    },
    Refusal {
        refusal: &'a str,
    },
    #[serde(untagged)]
    Native(&'a RawValue),
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum File<'a> {
    Data {
        filename: &'static str,
        file_data: String,
    },
    Address {
        file_url: &'a str,
    },
}

/// A provider's own block, passed through.
pub(super) fn native(json: &[u8]) -> Result<&RawValue, RequestError> {
    raw::object(json).map_err(|error| RequestError::invalid("native_json", error.to_string()))
}

/// Images and PDF, each by value or by address.
pub(super) fn media(media: &Media) -> Result<ContentPart<'_>, RequestError> {
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
    let mime_type = media.mime_type.as_str();
    match (mime_type, source) {
        ("", _) => Err(RequestError::invalid("mime_type", "must be set")),
        ("application/pdf", Source::Uri(file_url)) => {
            Ok(ContentPart::InputFile(File::Address { file_url }))
        }
        ("application/pdf", Source::Data(data)) => Ok(ContentPart::InputFile(File::Data {
            filename: FILE_NAME,
            file_data: by_value(mime_type, data),
        })),
        (_, source) if is_image(mime_type) => Ok(ContentPart::InputImage {
            image_url: match source {
                Source::Uri(uri) => Cow::Borrowed(uri),
                Source::Data(data) => Cow::Owned(by_value(mime_type, data)),
            },
        }),
        _ => Err(RequestError::invalid(
            "mime_type",
            "has no form in OpenAI Responses",
        )),
    }
}

/// An image type that can stand in a `data:` address without changing its meaning.
fn is_image(mime_type: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    mime_type
        .strip_prefix("image/")
        .is_some_and(|subtype| !subtype.is_empty() && subtype.bytes().all(plain))
}

fn by_value(mime_type: &str, data: &[u8]) -> String {
    format!("data:{mime_type};base64,{}", STANDARD.encode(data))
}
