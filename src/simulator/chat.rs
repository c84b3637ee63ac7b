//! OpenAI Chat Completions, as streams and errors of our own making.
//!
//! The shape of chunks, the usage chunk with empty `choices` and the closing `[DONE]`:
//! <https://platform.openai.com/docs/api-reference/chat-streaming>.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    Op, Script,
    speech::{Block, Failure, PROMPT, Said, Stop, TOOL, Voice},
};

/// What follows the last chunk.
const DONE: &str = "data: [DONE]\n\n";

const MODEL: &str = "simulated";

/// The protocol as ready-made scripts speak it.
pub(super) struct Chat;

/// A whole answer: `text` word by word, `pace` before each; then finish, usage and `[DONE]`.
pub fn answer(model: &str, text: &str, pace: Duration) -> Script {
    let words = text.split_inclusive(' ').count();
    beginning(model, text, pace)
        .then(chunk(model, json!({}), Some("stop")))
        .then(usage(model, words))
        .then(Op::Write(Bytes::from_static(DONE.as_bytes())))
}

/// An answer that has begun, `text` word by word, `pace` before each. The script's next step decides
/// what becomes of it.
pub fn beginning(model: &str, text: &str, pace: Duration) -> Script {
    let role = json!({"role": "assistant", "content": ""});
    let mut script = Script::event_stream().then(chunk(model, role, None));
    for word in text.split_inclusive(' ') {
        script = script
            .then(Op::Pause(pace))
            .then(chunk(model, json!({"content": word}), None));
    }
    script
}

/// An error before any stream.
pub fn error(status: u16, message: &str) -> Script {
    let kind = match status {
        429 => "rate_limit_exceeded",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": kind}});
    Script::new(status, "application/json").then(Op::Write(Bytes::from(body.to_string())))
}

/// One event with `delta`; with `finish` the one that says why the model stopped.
pub fn chunk(model: &str, delta: Value, finish: Option<&str>) -> Op {
    Op::Write(Bytes::from(delta_event(model, delta, finish)))
}

impl Voice for Chat {
    fn begin(&mut self) -> String {
        said(json!({"role": "assistant", "content": ""}))
    }

    fn text(&mut self, piece: &str, _: &Said) -> String {
        said(json!({"content": piece}))
    }

    fn call(&mut self) -> String {
        let function = json!({"name": TOOL, "arguments": ""});
        let call = json!({
            "index": 0, "id": "call_simulated", "type": "function", "function": function,
        });
        said(json!({"tool_calls": [call]}))
    }

    fn arguments(&mut self, piece: &str) -> String {
        said(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    }

    fn finish(&mut self, stop: Stop, said: &Said) -> Vec<String> {
        let reason = match (stop, &said.block) {
            (Stop::Limit, _) => "length",
            (Stop::Itself, Block::Call(_)) => "tool_calls",
            (Stop::Itself, _) => "stop",
        };
        vec![delta_event(MODEL, json!({}), Some(reason))]
    }

    fn tail(&mut self, said: &Said) -> Vec<String> {
        vec![event(MODEL, json!([]), tokens(said.pieces)), self.done()]
    }

    fn done(&mut self) -> String {
        DONE.to_owned()
    }

    /// Servers close such a stream as any other.
    fn fail(&mut self, failure: Failure) -> Vec<String> {
        vec![format!("data: {}\n\n", self.refuse(failure)), self.done()]
    }

    fn refuse(&self, failure: Failure) -> Value {
        json!({"error": openai_error(failure)})
    }

    fn whole(&self, said: &Said) -> Value {
        let text = match &said.block {
            Block::Text(text) => text.as_str(),
            _ => "",
        };
        let message = json!({"role": "assistant", "content": text});
        json!({
            "id": "chatcmpl-simulated",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": tokens(said.pieces),
        })
    }

    fn half(&mut self) -> String {
        r#"data: {"choices":[{"index":0,"delta":{"content":""#.to_owned()
    }
}

/// An error object of OpenAI.
///
/// Codes and messages: <https://platform.openai.com/docs/guides/error-codes>.
pub(super) fn openai_error(failure: Failure) -> Value {
    let (kind, code, message) = match failure {
        Failure::Key => (
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        Failure::Model => (
            "invalid_request_error",
            Some("model_not_found"),
            "The model does not exist or you do not have access to it.",
        ),
        Failure::RateLimit => (
            "requests",
            Some("rate_limit_exceeded"),
            "Rate limit reached, please slow down.",
        ),
        Failure::Quota => (
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Failure::Internal => (
            "server_error",
            None,
            "The server had an error while processing your request.",
        ),
        Failure::Overloaded => (
            "overloaded_error",
            Some("overloaded"),
            "The engine is currently overloaded, please try again later.",
        ),
        Failure::Context => (
            "invalid_request_error",
            Some("context_length_exceeded"),
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        ),
        Failure::Filter => (
            "invalid_request_error",
            Some("content_filter"),
            "The response was filtered.",
        ),
        Failure::NoScript => (
            "invalid_request_error",
            Some("invalid_request_error"),
            "the simulator has no script for this request",
        ),
    };
    json!({"type": kind, "code": code, "message": message, "param": null})
}

/// An event with this delta.
fn said(delta: Value) -> String {
    delta_event(MODEL, delta, None)
}

fn usage(model: &str, output: usize) -> Op {
    Op::Write(Bytes::from(event(model, json!([]), tokens(output))))
}

fn tokens(output: usize) -> Value {
    json!({
        "prompt_tokens": PROMPT,
        "completion_tokens": output,
        "total_tokens": PROMPT + output,
    })
}

fn delta_event(model: &str, delta: Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    event(model, json!([choice]), Value::Null)
}

fn event(model: &str, choices: Value, usage: Value) -> String {
    let chunk = json!({
        "id": "chatcmpl-simulated",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": choices,
        "usage": usage,
    });
    format!("data: {chunk}\n\n")
}
