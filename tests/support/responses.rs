//! OpenAI Responses as a provider writes them.

use serde_json::{Value, json};

/// A stream, whose events are numbered.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    next: u64,
}

impl Responses {
    /// The next event.
    pub fn event(&mut self, mut event: Value) -> String {
        event["sequence_number"] = self.next.into();
        self.next += 1;
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    }

    /// An event is lost.
    pub fn skip(&mut self) {
        self.next += 1;
    }

    pub fn created(&mut self) -> String {
        self.event(json!({
            "type": "response.created",
            "response": {"id": "resp_1", "object": "response", "model": "m-2026", "status": "in_progress"},
        }))
    }

    /// The first event of a response that the provider stores.
    pub fn stored(&mut self, id: &str) -> String {
        self.event(json!({
            "type": "response.created",
            "response": {"id": id, "object": "response", "model": "m-2026", "status": "queued",
                "background": true, "store": true},
        }))
    }

    /// A piece of the first part of message `item`.
    pub fn text(&mut self, item: u32, delta: &str) -> String {
        self.event(json!({
            "type": "response.output_text.delta", "output_index": item, "content_index": 0,
            "delta": delta,
        }))
    }

    /// The whole of it.
    pub fn text_done(&mut self, item: u32, text: &str) -> String {
        self.event(json!({
            "type": "response.output_text.done", "output_index": item, "content_index": 0,
            "text": text,
        }))
    }

    pub fn added(&mut self, item: u32, value: Value) -> String {
        self.event(json!({
            "type": "response.output_item.added", "output_index": item, "item": value,
        }))
    }

    pub fn done(&mut self, item: u32, value: Value) -> String {
        self.event(json!({
            "type": "response.output_item.done", "output_index": item, "item": value,
        }))
    }

    pub fn arguments(&mut self, item: u32, delta: &str) -> String {
        self.event(json!({
            "type": "response.function_call_arguments.delta", "output_index": item, "delta": delta,
        }))
    }

    pub fn completed(&mut self, output: Value) -> String {
        self.event(json!({
            "type": "response.completed",
            "response": {
                "id": "resp_1", "status": "completed", "output": output,
                "usage": {
                    "input_tokens": 7, "input_tokens_details": {"cached_tokens": 2},
                    "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 1},
                },
            },
        }))
    }

    /// It failed inside the stream: twice told, as OpenAI does.
    pub fn failed(&mut self, code: &str, message: &str) -> String {
        let error = json!({"type": "tokens", "code": code, "message": message, "param": null});
        let first = self.event(json!({"type": "error", "error": error}));
        let second = self.event(json!({
            "type": "response.failed",
            "response": {"id": "resp_1", "status": "failed", "error": {"code": code, "message": message}},
        }));
        first + &second
    }
}
