//! The seam of a provider protocol, and the registry of those that are built.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::{
    Decoder, DecoderOptions, Dialect, Protocol, anthropic_messages::AnthropicMessages,
    openai_chat::OpenaiChat, openai_responses::OpenaiResponses,
};
use crate::proto::{Conversation, Message, Part, Role, part};

/// One provider protocol: how a request is written and authorised.
///
/// Stateless and pure: the same input gives the same bytes, always.
pub trait Adapter: Send + Sync {
    /// Writes the request of one attempt. A replay sends the same value again, byte for byte.
    ///
    /// # Errors
    /// [`RequestError`], naming the field, where the input is wrong or the protocol has no form for it.
    /// Nothing is ever left out or changed silently.
    fn request(&self, input: RequestInput<'_>) -> Result<AdapterRequest, RequestError>;

    /// Adds `credential` to `headers`, marked as sensitive.
    ///
    /// # Errors
    /// [`CredentialError`] if it cannot stand in a header.
    fn authorize(
        &self,
        dialect: Dialect,
        credential: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), CredentialError>;

    /// A decoder for the body of one response.
    fn decoder(&self, options: DecoderOptions) -> Box<dyn Decoder>;

    /// `body`, which was written by [`Adapter::request`], asking for the continuation of a message that
    /// begins with `partial`. `None` where the dialect has no form for it, or the body constrains the
    /// output in a way that a continuation would lose.
    fn continuation(&self, dialect: Dialect, body: &Bytes, partial: &str) -> Option<Bytes> {
        let (_, _, _) = (dialect, body, partial);
        None
    }

    /// `body`, which was written by [`Adapter::request`], with `hint` for the model at its end. Every other
    /// byte stays as it was. `None` where the body has no place for it.
    fn hinted(&self, body: &Bytes, hint: &str) -> Option<Bytes> {
        let (_, _) = (body, hint);
        None
    }

    /// The hosts of those vendors that speak the protocol themselves; `*` stands for an account or a
    /// region. Providers there have the hosted profile unless another is set.
    fn vendor_hosts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Asks for the rest of a stored response, after `sequence`. `None` where none is stored.
    fn resumption(&self, response_id: &str, sequence: u64) -> Option<AdapterRequest> {
        let (_, _) = (response_id, sequence);
        None
    }
}

/// The protocols that are built, with their names in the configuration and on the command line.
pub const ADAPTERS: &[(Protocol, &str, &dyn Adapter)] = &[
    (Protocol::OpenaiChat, "openai_chat", &OpenaiChat),
    (
        Protocol::OpenaiResponses,
        "openai_responses",
        &OpenaiResponses,
    ),
    (
        Protocol::AnthropicMessages,
        "anthropic_messages",
        &AnthropicMessages,
    ),
];

/// The adapter of `protocol`; `None` where it is not built yet or unspecified.
pub fn adapter(protocol: Protocol) -> Option<&'static dyn Adapter> {
    let built = ADAPTERS.iter().find(|(built, ..)| *built == protocol);
    built.map(|(.., adapter)| *adapter)
}

/// Whether an answer can be continued at all in this protocol and dialect.
pub fn continues(protocol: Protocol, dialect: Dialect) -> bool {
    let question = Conversation {
        messages: vec![Message {
            role: Role::User.into(),
            parts: vec![Part {
                part: Some(part::Part::Text("-".to_owned())),
            }],
        }],
        ..Conversation::default()
    };
    let continuation = || {
        let adapter = adapter(protocol)?;
        let input = RequestInput {
            source: Source::Conversation(&question),
            model: "-",
            dialect,
            stored: false,
        };
        let request = adapter.request(input).ok()?;
        adapter.continuation(dialect, &request.body, "-")
    };
    continuation().is_some()
}

/// The adapter of a native body's `protocol` field.
///
/// # Errors
/// Invalid if the field is unset or unknown, not built yet for the protocols of later versions.
pub fn native_adapter(protocol: i32) -> Result<&'static dyn Adapter, RequestError> {
    const FIELD: &str = "native.protocol";
    let protocol = match Protocol::try_from(protocol) {
        Ok(Protocol::Unspecified) => return Err(RequestError::invalid(FIELD, "must be set")),
        Ok(protocol) => protocol,
        Err(_) => {
            return Err(RequestError::invalid(
                FIELD,
                "is not a protocol of this contract",
            ));
        }
    };
    adapter(protocol).ok_or_else(|| {
        RequestError::not_built_yet(
            FIELD,
            format!("{} is not built yet", protocol.as_str_name()),
        )
    })
}

/// What a request is written from.
#[derive(Clone, Copy)]
pub struct RequestInput<'a> {
    /// What the client sent.
    pub source: Source<'a>,
    /// The target's model, as the provider names it.
    pub model: &'a str,
    /// The target's deviations from the protocol.
    pub dialect: Dialect,
    /// The provider is to store the response, so that its stream can be resumed. A native body says
    /// so itself, or not.
    pub stored: bool,
}

/// The input of a generation.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Provider-neutral.
    Conversation(&'a Conversation),
    /// The JSON of a native body of the adapter's own protocol.
    Native(&'a Bytes),
}

/// A request, complete but for host, credential and the provider's fixed headers.
#[derive(Clone, PartialEq, Eq)]
pub struct AdapterRequest {
    /// POST, but for a resumption.
    pub method: Method,
    /// Path below the provider's base URL, with its leading slash.
    pub path: String,
    /// What the protocol needs: content type and accepted type.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl fmt::Debug for AdapterRequest {
    /// Not the body: it holds the prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdapterRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("headers", &self.headers)
            .field("body_len", &self.body.len())
            .finish()
    }
}

/// Why no request can be written: which field, and what is wrong with it. Carries no content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct RequestError {
    /// Whose fault it is.
    pub kind: RequestErrorKind,
    /// Path below `Start`, e.g. `conversation.messages[2].parts[0].media`.
    pub field: String,
    /// For a person, to be read after the field.
    pub reason: String,
}

/// Kinds of [`RequestError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestErrorKind {
    /// INVALID_ARGUMENT: wrong, or without a form in the target's protocol.
    Invalid,
    /// UNIMPLEMENTED: right, but of a later version.
    NotBuiltYet,
}

impl RequestError {
    /// `field` is wrong, or the protocol has no form for it.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            kind: RequestErrorKind::Invalid,
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// `field` is of a later version.
    pub fn not_built_yet(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            kind: RequestErrorKind::NotBuiltYet,
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// The same error, its field seen from one level further out.
    pub fn within(mut self, outer: impl fmt::Display) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// A credential that cannot stand in a header. Does not say more: it is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the credential holds characters that cannot stand in an HTTP header")]
pub struct CredentialError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_have_the_names_of_the_contract() {
        for (protocol, name, _) in ADAPTERS {
            let contract = format!("PROTOCOL_{}", name.to_ascii_uppercase());
            assert_eq!(contract, protocol.as_str_name());
        }
    }

    #[test]
    fn a_native_protocol_of_a_later_version_is_told_from_a_wrong_one() {
        let kind = |protocol| native_adapter(protocol).err().map(|error| error.kind);
        assert_eq!(kind(Protocol::OpenaiChat as i32), None);
        assert_eq!(
            kind(Protocol::Gemini as i32),
            Some(RequestErrorKind::NotBuiltYet)
        );
        assert_eq!(kind(0), Some(RequestErrorKind::Invalid));
        assert_eq!(kind(99), Some(RequestErrorKind::Invalid));
    }

    #[test]
    fn an_error_names_the_field_and_the_reason() {
        let error = RequestError::invalid("media.uri", "must be set").within("parts[0]");
        assert_eq!(error.to_string(), "parts[0].media.uri: must be set");
    }

    #[test]
    fn a_request_is_printed_without_its_body() {
        let request = AdapterRequest {
            method: Method::POST,
            path: "/chat/completions".into(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"a secret prompt"),
        };
        let printed = format!("{request:?}");
        assert!(printed.contains("body_len: 15"), "{printed}");
        assert!(!printed.contains("secret"), "{printed}");
    }
}
