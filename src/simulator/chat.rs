//! OpenAI Chat Completions, as streams and errors of our own making.
//!
//! The shape of chunks, the usage chunk with empty `choices` and the closing `[DONE]`:
//! <https://platform.openai.com/docs/api-reference/chat-streaming>.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Op, Script};

/// A whole answer: `text` word by word, `pace` before each; then finish, usage and `[DONE]`.
pub fn answer(model: &str, text: &str, pace: Duration) -> Script {
    let words = text.split_inclusive(' ').count();
    beginning(model, text, pace)
        .then(chunk(model, json!({}), Some("stop")))
        .then(usage(model, words))
        .then(Op::Write(Bytes::from_static(b"data: [DONE]\n\n")))
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

/// The answer to a request that no script is for.
pub(super) fn no_script() -> Script {
    error(400, "the simulator has no script for this request")
}

/// One event with `delta`; with `finish` the one that says why the model stopped.
pub fn chunk(model: &str, delta: Value, finish: Option<&str>) -> Op {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    event(model, json!([choice]), Value::Null)
}

/// A prompt of a dozen tokens and `output` tokens of answer.
fn usage(model: &str, output: usize) -> Op {
    const PROMPT: usize = 12;
    let usage = json!({
        "prompt_tokens": PROMPT,
        "completion_tokens": output,
        "total_tokens": PROMPT + output,
    });
    event(model, json!([]), usage)
}

fn event(model: &str, choices: Value, usage: Value) -> Op {
    let chunk = json!({
        "id": "chatcmpl-simulated",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": choices,
        "usage": usage,
    });
    Op::Write(Bytes::from(format!("data: {chunk}\n\n")))
}
