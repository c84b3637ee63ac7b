//! Anthropic Messages, as ready-made scripts speak it.
//!
//! The events: <https://docs.claude.com/en/docs/build-with-claude/streaming>; the errors:
//! <https://docs.claude.com/en/api/errors>.

use serde_json::{Value, json};

use super::speech::{Block, Failure, PROMPT, Said, Stop, TOOL, Voice, named_event};

/// The protocol.
pub(super) struct Messages;

impl Voice for Messages {
    fn begin(&mut self) -> String {
        let message = message(json!([]), None, 1);
        named_event(&json!({"type": "message_start", "message": message}))
    }

    fn text(&mut self, piece: &str, said: &Said) -> String {
        let delta = delta(json!({"type": "text_delta", "text": piece}));
        match said.is_first() {
            true => block(json!({"type": "text", "text": ""})) + &delta,
            false => delta,
        }
    }

    fn call(&mut self) -> String {
        block(json!({"type": "tool_use", "id": "toolu_simulated", "name": TOOL, "input": {}}))
    }

    fn arguments(&mut self, piece: &str) -> String {
        delta(json!({"type": "input_json_delta", "partial_json": piece}))
    }

    fn finish(&mut self, stop: Stop, said: &Said) -> Vec<String> {
        let reason = match (stop, &said.block) {
            (Stop::Limit, _) => "max_tokens",
            (Stop::Itself, Block::Call(_)) => "tool_use",
            (Stop::Itself, _) => "end_turn",
        };
        let block_stop = json!({"type": "content_block_stop", "index": 0});
        let message_delta = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": said.pieces},
        });
        let mut events = vec![named_event(&message_delta), self.done()];
        if said.block != Block::Nothing {
            events.insert(0, named_event(&block_stop));
        }
        events
    }

    /// The finish is the end.
    fn tail(&mut self, _: &Said) -> Vec<String> {
        Vec::new()
    }

    fn done(&mut self) -> String {
        named_event(&json!({"type": "message_stop"}))
    }

    fn fail(&mut self, failure: Failure) -> Vec<String> {
        vec![named_event(&self.refuse(failure))]
    }

    fn refuse(&self, failure: Failure) -> Value {
        let (kind, message) = match failure {
            Failure::Key => ("authentication_error", "invalid x-api-key"),
            Failure::Model => ("not_found_error", "model: simulated"),
            Failure::RateLimit => (
                "rate_limit_error",
                "This request would exceed your account's rate limit. Please try again later.",
            ),
            Failure::Quota => (
                "rate_limit_error",
                "You have reached your specified API usage limits.",
            ),
            Failure::Internal => ("api_error", "Internal server error"),
            Failure::Overloaded => ("overloaded_error", "Overloaded"),
            Failure::Context => (
                "invalid_request_error",
                "prompt is too long: 9001 tokens > 8192 maximum",
            ),
            Failure::Filter => (
                "invalid_request_error",
                "Output blocked by content filtering policy",
            ),
            Failure::NoScript => (
                "invalid_request_error",
                "the simulator has no script for this request",
            ),
        };
        let mut error = json!({"type": kind, "message": message});
        if let Failure::Quota = failure {
            error["details"] = json!({"error_code": "enforced_spend_limit_reached"});
        }
        json!({"type": "error", "error": error, "request_id": "req_simulated"})
    }

    fn whole(&self, said: &Said) -> Value {
        let content = match &said.block {
            Block::Text(text) => json!([{"type": "text", "text": text}]),
            _ => json!([]),
        };
        message(content, Some("end_turn"), said.pieces)
    }

    fn half(&mut self) -> String {
        let before =
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""#;
        format!("event: content_block_delta\ndata: {before}")
    }

    fn keepalive(&self) -> String {
        named_event(&json!({"type": "ping"}))
    }
}

fn message(content: Value, stop: Option<&str>, output: usize) -> Value {
    json!({
        "id": "msg_simulated",
        "type": "message",
        "role": "assistant",
        "model": "simulated",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": {"input_tokens": PROMPT, "output_tokens": output},
    })
}

fn block(block: Value) -> String {
    named_event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

fn delta(delta: Value) -> String {
    named_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}
