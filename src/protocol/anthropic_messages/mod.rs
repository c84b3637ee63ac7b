//! PURE. Anthropic Messages (`POST /messages`) and the servers that follow it.
//!
//! Wire facts: anthropics/anthropic-sdk-python 009b0353 (`types/`, `_streaming.py`), recordings of
//! Anthropic, Vertex AI, OpenRouter and Bedrock, and what is named beside single facts.

mod decode;
mod request;

pub use decode::Decoder;
pub use request::AnthropicMessages;
