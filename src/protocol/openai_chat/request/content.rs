//! Content parts: text, media and a provider's own blocks.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    super::dialect::{Pdf, Settings},
    raw,
};
use crate::{
    proto::{Media, media::Source},
    protocol::adapter::RequestError,
};

/// OpenAI refuses a file without a name, and the contract carries none.
const FILE_NAME: &str = "document.pdf";

/// The content of a message: plain where it is one text, which every server reads.
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
            (1, Some(ContentPart::Text { text })) => Self::Text(text),
            (_, Some(last)) => {
                parts.push(last);
                Self::Parts(parts)
            }
        }
    }
}

/// A part of a message's content.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
    InputAudio {
        input_audio: InputAudio,
    },
    File {
        file: File<'a>,
    },
    #[serde(untagged)]
    Native(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct InputAudio {
    data: String,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    filename: &'static str,
    file_data: Cow<'a, str>,
}

/// A provider's own block, passed through as a part.
pub(super) fn native(json: &[u8]) -> Result<ContentPart<'_>, RequestError> {
    raw::object(json)
        .map(ContentPart::Native)
        .map_err(|error| RequestError::invalid("native_json", error.to_string()))
}

/// Images by value or by address; WAV and MP3 by value; PDF as the dialect has it.
pub(super) fn media(media: &Media, settings: Settings) -> Result<ContentPart<'_>, RequestError> {
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
    match mime_type {
        "" => Err(RequestError::invalid("mime_type", "must be set")),
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => audio(source, "wav"),
        "audio/mpeg" | "audio/mp3" => audio(source, "mp3"),
        "application/pdf" => pdf(source, settings.pdf),
        _ if is_image(mime_type) => Ok(ContentPart::ImageUrl {
            image_url: ImageUrl {
                url: address(source, mime_type),
            },
        }),
        _ => Err(RequestError::invalid(
            "mime_type",
            "has no form in OpenAI Chat Completions",
        )),
    }
}

/// An image type that can stand in a `data:` address without changing its meaning.
fn is_image(mime_type: &str) -> bool {
    mime_type.strip_prefix("image/").is_some_and(|subtype| {
        !subtype.is_empty()
            && subtype
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
    })
}

fn audio<'a>(source: &Source, format: &'static str) -> Result<ContentPart<'a>, RequestError> {
    match source {
        Source::Data(data) => Ok(ContentPart::InputAudio {
            input_audio: InputAudio {
                data: STANDARD.encode(data),
                format,
            },
        }),
        Source::Uri(_) => Err(RequestError::invalid(
            "uri",
            "has no form for audio in OpenAI Chat Completions: send the data",
        )),
    }
}

fn pdf(source: &Source, form: Pdf) -> Result<ContentPart<'_>, RequestError> {
    match (form, source) {
        (Pdf::No, _) => Err(RequestError::invalid(
            "mime_type",
            "has no form in this dialect of OpenAI Chat Completions",
        )),
        (Pdf::Data, Source::Uri(_)) => Err(RequestError::invalid(
            "uri",
            "has no form for files in OpenAI Chat Completions: send the data",
        )),
        (Pdf::Data | Pdf::DataOrAddress, source) => Ok(ContentPart::File {
            file: File {
                filename: FILE_NAME,
                file_data: address(source, "application/pdf"),
            },
        }),
    }
}

fn address<'a>(source: &'a Source, mime_type: &str) -> Cow<'a, str> {
    match source {
        Source::Uri(uri) => Cow::Borrowed(uri),
        Source::Data(data) => {
            Cow::Owned(format!("data:{mime_type};base64,{}", STANDARD.encode(data)))
        }
    }
}
