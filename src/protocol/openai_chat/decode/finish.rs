//! Finish reasons, from the provider's word to the contract's.

use crate::proto::FinishReason;

/// What a non-empty `finish_reason` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// The response is complete.
    Complete(FinishReason),
    /// The server gave up.
    Failed,
}

/// Reads a finish reason. Case does not matter: gateways to Gemini pass `STOP` and `MAX_TOKENS` on.
pub(super) fn finish(native: &str) -> Finish {
    use FinishReason::*;
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(native));
    // `eos`: Together. `eos_token`, `stop_sequence`: Hugging Face TGI. `complete`: Cohere.
    // `reason_…`: xAI's names of the same in its gRPC interface.
    if is(&[
        "stop",
        "eos",
        "end_turn",
        "eos_token",
        "stop_sequence",
        "complete",
        "reason_stop",
    ]) {
        Finish::Complete(Stop)
    // `model_length`: Mistral. `model_context_window_exceeded`: Z.ai, Anthropic through gateways.
    } else if is(&[
        "length",
        "max_tokens",
        "model_length",
        "model_context_window_exceeded",
        "reason_max_len",
        "reason_max_context",
    ]) {
        Finish::Complete(Length)
    } else if is(&[
        "tool_calls",
        "tool_call",
        "function_call",
        "tool_use",
        "reason_tool_calls",
    ]) {
        Finish::Complete(ToolCalls)
    // `sensitive`: Z.ai. The rest: Gemini, Bedrock through gateways.
    } else if is(&[
        "content_filter",
        "sensitive",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "content_filtered",
        "guardrail_intervened",
    ]) {
        Finish::Complete(ContentFilter)
    } else if is(&["refusal"]) {
        Finish::Complete(Refusal)
    // `error`: Mistral, Together, OpenRouter. `abort`: vLLM, SGLang. `insufficient_system_resource`:
    // DeepSeek. `network_error`: Z.ai. `timeout`: Cohere. `reason_time_limit`: xAI. The rest: Gemini, Bedrock through gateways.
    } else if is(&[
        "error",
        "abort",
        "insufficient_system_resource",
        "network_error",
        "timeout",
        "reason_time_limit",
        "malformed_function_call",
        "unexpected_tool_call",
        "too_many_tool_calls",
        "malformed_tool_use",
        "malformed_model_output",
    ]) {
        Finish::Failed
    } else {
        Finish::Complete(Other)
    }
}
