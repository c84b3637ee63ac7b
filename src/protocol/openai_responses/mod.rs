//! PURE. OpenAI Responses (`POST /responses`) and the servers that follow it.
//!
//! Wire facts: openai/openai-openapi f85dbe22, `CreateResponse` and `ResponseStreamEvent`, and
//! recordings of OpenAI, Azure, OpenRouter, xAI, LM Studio, Copilot and Bedrock.

mod decode;
mod request;

pub use decode::Decoder;
pub use request::OpenaiResponses;
