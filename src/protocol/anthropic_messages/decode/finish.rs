//! Stop reasons, from the provider's word to the contract's.

use crate::proto::FinishReason;

/// Reads a stop reason. None is a failure: what the provider could not do it tells by an error.
pub(super) fn finish(native: &str) -> FinishReason {
    match native {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        // Server tools are still at work, or the conversation was compacted: the message is to be sent
        // back as it is, to be gone on with.
        "pause_turn" | "compaction" => FinishReason::Pause,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Other,
    }
}
