//! The names in the cases are older than the design.

use redrive::proto::{FinishReason, Protocol, VerdictClass as Class};

/// The class that a case means.
pub fn class(name: &str) -> Class {
    let name = match name {
        "stall_inactivity" | "inactivity" => "stall",
        "server_error" | "http_5xx" => "provider_internal",
        "corrupt_event" => "corrupt",
        "event_too_large" => "too_large",
        "malformed_function_call" | "malformed_tool_arguments" => "malformed_output",
        "shutdown" => "draining",
        "caller_deadline" => "deadline",
        "provider_error_unclassified" => "unclassified",
        "content_filter" => "content_filtered",
        "request_exceeds_limit" => "exceeds_limit",
        "no_finish_reason" => "premature_eof",
        "empty_completion" => "gate_rejected",
        name if name.starts_with("transport_") || name == "tls_untrusted" => "transport",
        name => name,
    };
    let full = format!("VERDICT_CLASS_{}", name.to_uppercase());
    Class::from_str_name(&full).unwrap_or_else(|| panic!("{name:?} is no class"))
}

/// The protocol that a case means, and its name in the configuration.
pub fn protocol(name: &str) -> (Protocol, &'static str) {
    match name {
        // Some are about the transport or the client, and are written in this one.
        "openai_chat" | "any" | "grpc" | "http2" | "limiter" => {
            (Protocol::OpenaiChat, "openai_chat")
        }
        "openai_responses" => (Protocol::OpenaiResponses, "openai_responses"),
        "anthropic" => (Protocol::AnthropicMessages, "anthropic_messages"),
        other => panic!("protocol {other} is not built"),
    }
}

/// The finish reason that a case means. The contract has finer words for what some providers say.
pub fn finish(name: &str, native: Option<&str>) -> FinishReason {
    let name = match (name, native) {
        ("content_filter", Some("refusal")) => "refusal",
        ("other", Some("pause_turn")) => "pause",
        (name, _) => name,
    };
    let full = format!("FINISH_REASON_{}", name.to_uppercase());
    FinishReason::from_str_name(&full).unwrap_or_else(|| panic!("{name:?} is no finish reason"))
}
