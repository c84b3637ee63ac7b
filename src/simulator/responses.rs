//! OpenAI Responses, as ready-made scripts speak it.
//!
//! The events: <https://platform.openai.com/docs/api-reference/responses-streaming>. An error inside
//! the stream is written as OpenAI does, which nests it and tells it twice.

use serde_json::{Value, json};

use super::{
    chat::openai_error,
    speech::{Block, Failure, PROMPT, Said, Stop, TOOL, Voice, named_event},
};

/// The protocol, with the number of the next event.
#[derive(Default)]
pub(super) struct Responses {
    next: u64,
}

impl Responses {
    /// Numbers an event.
    fn event(&mut self, mut event: Value) -> String {
        event["sequence_number"] = self.next.into();
        self.next += 1;
        named_event(&event)
    }

    /// An event of the one output item.
    fn of_item(&mut self, kind: &str, mut event: Value) -> String {
        event["type"] = kind.into();
        event["output_index"] = 0.into();
        self.event(event)
    }
}

impl Voice for Responses {
    fn begin(&mut self) -> String {
        let response = response("in_progress", &[]);
        let created = json!({"type": "response.created", "response": response});
        let in_progress = json!({"type": "response.in_progress", "response": response});
        self.event(created) + &self.event(in_progress)
    }

    fn text(&mut self, piece: &str, said: &Said) -> String {
        let mut text = String::new();
        if said.is_first() {
            let item = message("in_progress", &[]);
            text += &self.of_item("response.output_item.added", json!({"item": item}));
            let part = json!({"item_id": MESSAGE, "content_index": 0, "part": part("")});
            text += &self.of_item("response.content_part.added", part);
        }
        let delta = json!({"item_id": MESSAGE, "content_index": 0, "delta": piece});
        text + &self.of_item("response.output_text.delta", delta)
    }

    fn call(&mut self) -> String {
        let item = call("in_progress", "");
        self.of_item("response.output_item.added", json!({"item": item}))
    }

    fn arguments(&mut self, piece: &str) -> String {
        let delta = json!({"item_id": CALL, "delta": piece});
        self.of_item("response.function_call_arguments.delta", delta)
    }

    fn finish(&mut self, stop: Stop, said: &Said) -> Vec<String> {
        let (status, kind) = match stop {
            Stop::Itself => ("completed", "response.completed"),
            Stop::Limit => ("incomplete", "response.incomplete"),
        };
        let mut events = Vec::new();
        let item = match &said.block {
            Block::Nothing => None,
            Block::Text(text) => {
                let done = json!({"item_id": MESSAGE, "content_index": 0, "text": text});
                events.push(self.of_item("response.output_text.done", done));
                let part = part(text);
                let done = json!({"item_id": MESSAGE, "content_index": 0, "part": part});
                events.push(self.of_item("response.content_part.done", done));
                Some(message(status, &[part]))
            }
            Block::Call(arguments) => {
                let done = json!({"item_id": CALL, "name": TOOL, "arguments": arguments});
                events.push(self.of_item("response.function_call_arguments.done", done));
                Some(call(status, arguments))
            }
        };
        if let Some(item) = &item {
            events.push(self.of_item("response.output_item.done", json!({"item": item})));
        }
        let mut response = response(status, item.as_slice());
        response["usage"] = tokens(said.pieces);
        if stop == Stop::Limit {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        events.push(self.event(json!({"type": kind, "response": response})));
        events
    }

    /// The finish is the end.
    fn tail(&mut self, _: &Said) -> Vec<String> {
        Vec::new()
    }

    /// OpenAI sends none, but servers that imitate it do.
    fn done(&mut self) -> String {
        "data: [DONE]\n\n".to_owned()
    }

    fn fail(&mut self, failure: Failure) -> Vec<String> {
        let mut error = openai_error(failure);
        if error["code"].is_null() {
            // Unlike a body's error, the one of a response always has a code.
            error["code"] = error["type"].clone();
        }
        let mut response = response("failed", &[]);
        response["error"] = json!({"code": error["code"], "message": error["message"]});
        let first = self.event(json!({"type": "error", "error": error}));
        let second = self.event(json!({"type": "response.failed", "response": response}));
        vec![first, second]
    }

    fn refuse(&self, failure: Failure) -> Value {
        json!({"error": openai_error(failure)})
    }

    fn whole(&self, said: &Said) -> Value {
        let output = match &said.block {
            Block::Text(text) => Some(message("completed", &[part(text)])),
            _ => None,
        };
        let mut response = response("completed", output.as_slice());
        response["usage"] = tokens(said.pieces);
        response
    }

    fn half(&mut self) -> String {
        let kind = "response.output_text.delta";
        let number = self.next;
        self.next += 1;
        let before = format!(r#"{{"type":"{kind}","sequence_number":{number},"delta":""#);
        format!("event: {kind}\ndata: {before}")
    }
}

/// The id of the output item that is a message.
const MESSAGE: &str = "msg_simulated";

/// The id of the output item that is a tool call; the call's own is another.
const CALL: &str = "fc_simulated";

fn response(status: &str, output: &[Value]) -> Value {
    json!({
        "id": "resp_simulated",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": "simulated",
        "output": output,
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

fn message(status: &str, content: &[Value]) -> Value {
    json!({
        "id": MESSAGE,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    })
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn call(status: &str, arguments: &str) -> Value {
    json!({
        "id": CALL,
        "type": "function_call",
        "call_id": "call_simulated",
        "name": TOOL,
        "status": status,
        "arguments": arguments,
    })
}

fn tokens(output: usize) -> Value {
    json!({
        "input_tokens": PROMPT,
        "output_tokens": output,
        "total_tokens": PROMPT + output,
    })
}
