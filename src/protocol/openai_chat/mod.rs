//! PURE. OpenAI Chat Completions (`POST /chat/completions`) and its dialects.
//!
//! Wire facts: openai/openai-openapi f85dbe22, `CreateChatCompletionRequest`.

mod decode;
mod dialect;
mod request;

pub use decode::Decoder;
pub use request::OpenaiChat;
