//! From a conversation or a native body to a request.

mod content;
mod conversation;
mod input;
mod tools;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};

use crate::protocol::{
    Decoder, DecoderOptions, Dialect,
    adapter::{Adapter, AdapterRequest, CredentialError, RequestError, RequestInput, Source},
    hint, native,
    openai_chat::OpenaiChat,
};

/// Below the base URL, which for the vendor ends in `/v1`.
const PATH: &str = "/responses";

/// The longest response id that is asked for again, in bytes. OpenAI's have about 60.
const MAX_ID_BYTES: usize = 256;

/// OpenAI Responses.
#[derive(Clone, Copy, Debug)]
pub struct OpenaiResponses;

impl Adapter for OpenaiResponses {
    fn request(&self, input: RequestInput<'_>) -> Result<AdapterRequest, RequestError> {
        let body = match input.source {
            Source::Conversation(conversation) => {
                conversation::body(conversation, input.model, input.stored)
                    .map_err(|error| error.within("conversation"))?
            }
            Source::Native(json) => native::body(json, input.model)?,
        };
        let mut headers = accept();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
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
        // The same servers with the same keys.
        OpenaiChat.authorize(dialect, credential, headers)
    }

    fn decoder(&self, options: DecoderOptions) -> Box<dyn Decoder> {
        Box::new(super::Decoder::new(options))
    }

    fn hinted(&self, body: &Bytes, hint: &str) -> Option<Bytes> {
        const FORM: hint::Form = hint::Form {
            said: "input",
            text_type: "input_text",
            header: None,
        };
        hint::body(body, &FORM, hint)
    }

    /// `GET /responses/{id}`: the stream of a stored response, from the event after `sequence` on. An
    /// id that cannot stand in a path as it is, is no id.
    fn resumption(&self, response_id: &str, sequence: u64) -> Option<AdapterRequest> {
        is_id(response_id).then(|| AdapterRequest {
            method: Method::GET,
            path: format!("{PATH}/{response_id}?stream=true&starting_after={sequence}"),
            headers: accept(),
            body: Bytes::new(),
        })
    }
}

/// Whether a response can be asked for by `id`.
pub(super) fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain)
}

fn accept() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_stored_response_is_asked_for_by_its_id_and_number() {
        let request = OpenaiResponses.resumption("resp_0-a", 41).unwrap();
        assert_eq!(request.method, Method::GET);
        assert_eq!(
            request.path,
            "/responses/resp_0-a?stream=true&starting_after=41"
        );
        assert_eq!(request.headers, accept());
        assert!(request.body.is_empty());
    }

    #[test]
    fn an_id_that_would_lead_elsewhere_is_not_asked_for() {
        for id in ["", "..", "a/b", "a?b", "a#b", "a b", "a%2fb", "é"] {
            assert_eq!(OpenaiResponses.resumption(id, 0), None, "{id}");
        }
        assert_eq!(OpenaiResponses.resumption(&"a".repeat(257), 0), None);
    }
}
