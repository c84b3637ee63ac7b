//! Requests as they are sent: what the client gave, written in a provider's protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic;
mod continuations;
mod conversations;
mod golden;
mod hints;
mod native;
mod parts;
mod refused;
mod responses;

use bytes::Bytes;
use redrive::proto::Conversation;
use redrive::protocol::{
    Dialect, Protocol,
    adapter::{Adapter, AdapterRequest, RequestError, RequestInput, Source, adapter},
};

fn openai_chat() -> &'static dyn Adapter {
    adapter(Protocol::OpenaiChat).unwrap()
}

/// The request of a native body for the model `m`.
fn native(json: &Bytes) -> Result<AdapterRequest, RequestError> {
    openai_chat().request(RequestInput {
        source: Source::Native(json),
        model: "m",
        dialect: Dialect::Openai,
        stored: false,
    })
}

/// The body of a conversation for the model `the-model`.
fn sent(conversation: &Conversation, dialect: Dialect) -> Result<Vec<u8>, RequestError> {
    let request = openai_chat().request(RequestInput {
        source: Source::Conversation(conversation),
        model: "the-model",
        dialect,
        stored: false,
    })?;
    Ok(request.body.to_vec())
}
