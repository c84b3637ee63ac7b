//! PURE. OpenAI Chat Completions (`POST /chat/completions`) and its dialects.
//!
//! Wire facts: openai/openai-openapi f85dbe22, `CreateChatCompletionRequest`.

mod decode;
mod dialect;
mod hosts;
mod request;

pub use decode::Decoder;
pub use request::OpenaiChat;

use super::{Dialect, Terminal};

/// What completes a response of `dialect`, unless it is configured.
pub fn default_terminal(dialect: Dialect) -> Terminal {
    dialect::Settings::of(dialect).terminal
}
