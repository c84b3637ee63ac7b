//! Content parts: text, media and a provider's own blocks.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::dialect::{Audio, Pdf, Settings};
use crate::{
    proto::{Media, media::Source},
    protocol::{adapter::RequestError, json::raw},
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
        input_audio: InputAudio<'a>,
    },
    File {
        file: File<'a>,
    },
    DocumentUrl {
        document_url: Cow<'a, str>,
    },
    Thinking {
        thinking: [Thought<'a>; 1],
    },
    #[serde(untagged)]
    Native(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum InputAudio<'a> {
    Format {
        data: Cow<'a, str>,
        format: &'static str,
    },
    Bare(String),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thought<'a> {
    Text { text: &'a str },
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    filename: &'static str,
    file_data: Cow<'a, str>,
}

/// Reasoning as a part.
pub(super) fn thinking(text: &str) -> ContentPart<'_> {
    ContentPart::Thinking {
        thinking: [Thought::Text { text }],
    }
}

/// A provider's own block, passed through as a part.
pub(super) fn native(json: &[u8]) -> Result<ContentPart<'_>, RequestError> {
    raw::object(json)
        .map(ContentPart::Native)
        .map_err(|error| RequestError::invalid("native_json", error.to_string()))
}

/// Images by value or by address; WAV, MP3 and PDF as the dialect has them.
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
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => {
            audio(source, "wav", settings.audio)
        }
        "audio/mpeg" | "audio/mp3" => audio(source, "mp3", settings.audio),
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

fn audio<'a>(
    source: &'a Source,
    format: &'static str,
    form: Audio,
) -> Result<ContentPart<'a>, RequestError> {
    let input_audio = match (form, source) {
        (Audio::No, _) => return Err(no_form("mime_type")),
        (Audio::Data | Audio::Bare, Source::Uri(_)) => {
            return Err(RequestError::invalid(
                "uri",
                "has no form for audio in OpenAI Chat Completions: send the data",
            ));
        }
        (Audio::Data, Source::Data(data)) => InputAudio::Format {
            data: STANDARD.encode(data).into(),
            format,
        },
        (Audio::Address, source) => InputAudio::Format {
            // The format is told beside it.
            data: address(source, ""),
            format,
        },
        (Audio::Bare, Source::Data(data)) => InputAudio::Bare(STANDARD.encode(data)),
    };
    Ok(ContentPart::InputAudio { input_audio })
}

fn no_form(field: &str) -> RequestError {
    RequestError::invalid(
        field,
        "has no form in this dialect of OpenAI Chat Completions",
    )
}

fn pdf(source: &Source, form: Pdf) -> Result<ContentPart<'_>, RequestError> {
    match (form, source) {
        (Pdf::No, _) => Err(no_form("mime_type")),
        (Pdf::Data, Source::Uri(_)) => Err(RequestError::invalid(
            "uri",
            "has no form for files in OpenAI Chat Completions: send the data",
        )),
        (Pdf::DocumentUrl, source) => Ok(ContentPart::DocumentUrl {
            document_url: address(source, "application/pdf"),
        }),
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
