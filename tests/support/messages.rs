//! Anthropic Messages as a provider writes them.

use serde_json::{Value, json};

use super::provider::{Script, stream};

/// One event of the stream.
pub fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or("message");
    format!("event: {name}\ndata: {data}\n\n")
}

pub fn start(id: &str) -> String {
    event(&json!({ "type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": "claude-2026", "content": [],
        "stop_reason": null, "usage": { "input_tokens": 7, "output_tokens": 1 },
    }}))
}

pub fn ping() -> String {
    event(&json!({ "type": "ping" }))
}

pub fn block(index: u32, block: Value) -> String {
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

pub fn delta(index: u32, delta: Value) -> String {
    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

pub fn block_stop(index: u32) -> String {
    event(&json!({ "type": "content_block_stop", "index": index }))
}

/// A block that is whole in its start.
pub fn whole(index: u32, content: Value) -> String {
    block(index, content) + &block_stop(index)
}

/// A block of text in these pieces.
pub fn text(index: u32, pieces: &[&str]) -> String {
    let begun = block(index, json!({ "type": "text", "text": "" }));
    let deltas = pieces
        .iter()
        .map(|piece| delta(index, json!({ "type": "text_delta", "text": piece })));
    begun + &deltas.collect::<String>() + &block_stop(index)
}

pub fn thinking(index: u32, text: &str, signature: &str) -> String {
    let empty = json!({ "type": "thinking", "thinking": "", "signature": "" });
    block(index, empty)
        + &delta(index, json!({ "type": "thinking_delta", "thinking": text }))
        + &delta(
            index,
            json!({ "type": "signature_delta", "signature": signature }),
        )
        + &block_stop(index)
}

/// A call that streams its input in these pieces.
pub fn call(index: u32, kind: &str, id: &str, name: &str, pieces: &[&str]) -> String {
    let begun = json!({ "type": kind, "id": id, "name": name, "input": {} });
    let deltas = pieces.iter().map(|piece| {
        delta(
            index,
            json!({ "type": "input_json_delta", "partial_json": piece }),
        )
    });
    block(index, begun) + &deltas.collect::<String>() + &block_stop(index)
}

/// The stop reason, with the counts.
pub fn stop_reason(reason: &str) -> String {
    event(&json!({
        "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 3 },
    }))
}

pub fn stop() -> String {
    event(&json!({ "type": "message_stop" }))
}

/// An error in the provider's own format.
pub fn error(kind: &str, message: &str) -> String {
    event(&json!({ "type": "error", "error": { "type": kind, "message": message } }))
}

/// A response that has begun.
pub fn begun() -> Script {
    stream().data(start("msg_1")).data(ping())
}

/// A whole response.
pub fn response(blocks: &[String], reason: &str) -> Script {
    let script = blocks
        .iter()
        .fold(begun(), |script, block| script.data(block.clone()));
    script.data(stop_reason(reason)).data(stop()).end()
}
