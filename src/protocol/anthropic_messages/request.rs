//! From a conversation or a native body to a request.

mod content;
mod continuation;
mod conversation;
mod message;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};

use crate::protocol::{
    Decoder, DecoderOptions, Dialect,
    adapter::{Adapter, AdapterRequest, CredentialError, RequestError, RequestInput, Source},
    hint, native,
};

/// Below the base URL, which for the vendor ends in `/v1`.
const PATH: &str = "/messages";

/// Where Anthropic reads an API key.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Where Azure does (anthropic-sdk-python `lib/foundry.py`); a bearer token there is an Entra token.
const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// The version of the API; required. Headers of the provider's configuration take its place.
const VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// Anthropic Messages.
#[derive(Clone, Copy, Debug)]
pub struct AnthropicMessages;

impl Adapter for AnthropicMessages {
    fn request(&self, input: RequestInput<'_>) -> Result<AdapterRequest, RequestError> {
        let body = match input.source {
            Source::Conversation(conversation) => conversation::body(conversation, input.model)
                .map_err(|error| error.within("conversation"))?,
            Source::Native(json) => native::body(json, input.model)?,
        };
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("text/event-stream")),
            VERSION,
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
        let (name, value) = match dialect {
            Dialect::Azure => (API_KEY, HeaderValue::from_str(credential)),
            // Their Messages endpoints read what their others do.
            Dialect::Openrouter | Dialect::Vllm => (
                AUTHORIZATION,
                HeaderValue::try_from(format!("Bearer {credential}")),
            ),
            _ => (X_API_KEY, HeaderValue::from_str(credential)),
        };
        let mut value = value.map_err(|_| CredentialError)?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }

    fn vendor_hosts(&self) -> &'static [&'static str] {
        &["api.anthropic.com"]
    }

    fn decoder(&self, options: DecoderOptions) -> Box<dyn Decoder> {
        Box::new(super::Decoder::new(options))
    }

    fn continuation(&self, _: Dialect, body: &Bytes, partial: &str) -> Option<Bytes> {
        continuation::body(body, partial)
    }

    fn hinted(&self, body: &Bytes, hint: &str) -> Option<Bytes> {
        const FORM: hint::Form = hint::Form {
            said: "messages",
            text_type: "text",
            header: Some("# On your last answer"),
        };
        hint::body(body, &FORM, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_has_the_header_of_the_server_and_is_never_printed() {
        for (dialect, name, value) in [
            (Dialect::Openai, "x-api-key", "sk-1"),
            (Dialect::Azure, "api-key", "sk-1"),
            (Dialect::Openrouter, "authorization", "Bearer sk-1"),
            (Dialect::Vllm, "authorization", "Bearer sk-1"),
        ] {
            let mut headers = HeaderMap::new();
            let told = AnthropicMessages.authorize(dialect, "sk-1", &mut headers);
            assert_eq!(told, Ok(()));
            let expected = HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]);
            assert_eq!(headers, expected, "{dialect:?}");
            let printed = format!("{headers:?}");
            assert!(!printed.contains("sk-1"), "{printed}");
            let broken = AnthropicMessages.authorize(dialect, "sk-1\r\nx: y", &mut headers);
            assert_eq!(broken, Err(CredentialError));
        }
    }
}
