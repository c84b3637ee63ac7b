//! Chat Completions as a provider writes them.

use serde_json::{Value, json};

/// One event of the stream.
pub fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A chunk whose one choice has `delta`.
pub fn chunk(delta: Value) -> String {
    event(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    }))
}

pub fn text(text: &str) -> String {
    chunk(json!({ "content": text }))
}

pub fn role() -> String {
    chunk(json!({ "role": "assistant", "content": "" }))
}

pub fn tool_call(index: u32, id: &str, name: &str) -> String {
    chunk(json!({ "tool_calls": [{
        "index": index, "id": id, "type": "function",
        "function": { "name": name, "arguments": "" },
    }]}))
}

pub fn tool_arguments(index: u32, fragment: &str) -> String {
    chunk(json!({ "tool_calls": [{
        "index": index, "function": { "arguments": fragment },
    }]}))
}

pub fn finish(reason: &str) -> String {
    event(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-2026",
        "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
    }))
}

pub fn usage(input: u64, output: u64) -> String {
    event(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-2026", "choices": [],
        "usage": {
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        },
    }))
}

pub const DONE: &str = "data: [DONE]\n\n";

/// A comment, which is all a provider sends while it has nothing to say.
pub const KEEPALIVE: &str = ": keepalive\n\n";

/// An error in the provider's own format.
pub fn error(message: &str, kind: &str, code: &str) -> String {
    json!({ "error": { "message": message, "type": kind, "code": code } }).to_string()
}
