//! Requests as they are sent: what the client gave, written in a provider's protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conversations;
mod native;
mod refused;

use bytes::Bytes;
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
    })
}
