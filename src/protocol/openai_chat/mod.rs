//! PURE. OpenAI Chat Completions (`POST /chat/completions`) and its dialects.
//!
//! Wire facts: openai/openai-openapi f85dbe22, `CreateChatCompletionRequest`.

mod request;

pub use request::OpenaiChat;
