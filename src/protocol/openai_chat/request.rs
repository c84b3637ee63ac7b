//! From a conversation or a native body to a request.

mod content;
mod continuation;
mod conversation;
mod message;
mod native;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};

use super::dialect::{CredentialHeader, Settings};
use super::hosts::VENDOR_HOSTS;
use crate::protocol::{
    Decoder, DecoderOptions, Dialect,
    adapter::{Adapter, AdapterRequest, CredentialError, RequestError, RequestInput, Source},
    hint,
};

/// Below the base URL, which for the vendor ends in `/v1`.
const PATH: &str = "/chat/completions";

const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// OpenAI Chat Completions.
#[derive(Clone, Copy, Debug)]
pub struct OpenaiChat;

impl Adapter for OpenaiChat {
    fn request(&self, input: RequestInput<'_>) -> Result<AdapterRequest, RequestError> {
        let settings = Settings::of(input.dialect);
        let body = match input.source {
            Source::Conversation(conversation) => {
                conversation::body(conversation, input.model, settings)
                    .map_err(|error| error.within("conversation"))?
            }
            Source::Native(json) => native::body(json, input.model, settings)?,
        };
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("text/event-stream")),
        ]);
        Ok(AdapterRequest {
            method: Method::POST,
            path: PATH.to_owned(),
            headers,
            body,
        })
    }

    fn authorize(
        &self,
        dialect: Dialect,
        credential: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), CredentialError> {
        let (name, value) = match Settings::of(dialect).credential {
            CredentialHeader::ApiKey => (API_KEY, HeaderValue::from_str(credential)),
            CredentialHeader::Bearer => (
                AUTHORIZATION,
                HeaderValue::try_from(format!("Bearer {credential}")),
            ),
        };
        let mut value = value.map_err(|_| CredentialError)?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }

    fn vendor_hosts(&self) -> &'static [&'static str] {
        VENDOR_HOSTS
    }

    fn decoder(&self, options: DecoderOptions) -> Box<dyn Decoder> {
        Box::new(super::Decoder::new(options.terminal).with_native_events(options.native_events))
    }

    fn continuation(&self, dialect: Dialect, body: &Bytes, partial: &str) -> Option<Bytes> {
        let form = Settings::of(dialect).continuation?;
        continuation::body(body, form, partial)
    }

    fn hinted(&self, body: &Bytes, hint: &str) -> Option<Bytes> {
        const FORM: hint::Form = hint::Form {
            said: "messages",
            text_type: "text",
            header: None,
        };
        hint::body(body, &FORM, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorized(dialect: Dialect, credential: &str) -> Result<HeaderMap, CredentialError> {
        let mut headers = HeaderMap::new();
        OpenaiChat.authorize(dialect, credential, &mut headers)?;
        Ok(headers)
    }

    #[test]
    fn a_credential_is_a_bearer_token_but_azure_has_its_own_header() {
        for dialect in Dialect::ALL {
            let (name, value) = match dialect {
                Dialect::Azure => ("api-key", "sk-1"),
                _ => ("authorization", "Bearer sk-1"),
            };
            let headers = authorized(dialect, "sk-1");
            let expected = HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]);
            assert_eq!(headers, Ok(expected), "{dialect:?}");
        }
    }

    #[test]
    fn a_credential_is_never_printed() {
        for dialect in [Dialect::Openai, Dialect::Azure] {
            let printed = format!("{:?}", authorized(dialect, "sk-1"));
            assert!(!printed.contains("sk-1"), "{printed}");
            assert!(printed.contains("Sensitive"), "{printed}");
        }
    }

    #[test]
    fn a_credential_with_a_line_break_is_refused() {
        for dialect in [Dialect::Openai, Dialect::Azure] {
            assert_eq!(authorized(dialect, "sk-1\r\nx: y"), Err(CredentialError));
        }
    }
}
