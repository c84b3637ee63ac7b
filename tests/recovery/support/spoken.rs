//! A whole answer as each protocol streams it.

use redrive::protocol::Protocol;
use serde_json::{Value, json};

/// A piece of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    Text(&'a str),
    /// That it declines, in its own words; not in Messages.
    Refusal(&'a str),
    Thought(&'a str),
    /// Thought that the provider keeps to itself; in Messages only.
    Hidden,
    /// A call of a tool that the provider runs itself; not in Chat.
    Own,
    /// Name and arguments.
    Call(&'a str, &'a str),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Natural,
    /// At the token limit.
    Truncated,
    /// The model declines; in Messages only.
    Refused,
    /// In Messages only.
    Paused,
}

/// The body of a response in each protocol that can say it.
pub fn in_each_protocol(said: &[Said<'_>], end: End) -> Vec<(Protocol, String)> {
    let all = [
        (Protocol::OpenaiChat, chat(said, end)),
        (Protocol::AnthropicMessages, messages(said, end)),
        (Protocol::OpenaiResponses, responses(said, end)),
    ];
    let said = all
        .into_iter()
        .filter_map(|(protocol, events)| Some((protocol, body(&events?))));
    said.collect()
}

fn body(events: &[Value]) -> String {
    let events = events.iter().map(|event| match event.as_str() {
        Some(word) => format!("data: {word}\n\n"),
        None => format!("data: {event}\n\n"),
    });
    events.collect()
}

fn has_call(said: &[Said<'_>]) -> bool {
    said.iter().any(|one| matches!(one, Said::Call(..)))
}

fn chat(said: &[Said<'_>], end: End) -> Option<Vec<Value>> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
    };
    let mut events = Vec::new();
    for (place, one) in said.iter().enumerate() {
        let delta = match one {
            Said::Text(text) => json!({"content": text}),
            Said::Refusal(text) => json!({"refusal": text}),
            Said::Thought(text) => json!({"reasoning_content": text}),
            Said::Call(name, arguments) => json!({"tool_calls": [{
                "index": place, "id": format!("t{place}"), "type": "function",
                "function": {"name": name, "arguments": arguments},
            }]}),
            Said::Hidden | Said::Own => return None,
        };
        events.push(chunk(delta, None));
    }
    let finish = match end {
        End::Natural if has_call(said) => "tool_calls",
        End::Natural => "stop",
        End::Truncated => "length",
        End::Refused | End::Paused => return None,
    };
    events.extend([chunk(json!({}), Some(finish)), json!("[DONE]")]);
    Some(events)
}

fn messages(said: &[Said<'_>], end: End) -> Option<Vec<Value>> {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [], "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, one) in said.iter().enumerate() {
        let (block, delta) = match one {
            Said::Text(text) => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            ),
            Said::Thought(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": text}),
            ),
            Said::Hidden => (
                json!({"type": "redacted_thinking", "data": "ZGF0YQ"}),
                json!(null),
            ),
            Said::Own => (
                json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
                json!({"type": "input_json_delta", "partial_json": "{}"}),
            ),
            Said::Call(name, arguments) => (
                json!({"type": "tool_use", "id": format!("t{index}"), "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments}),
            ),
            Said::Refusal(_) => return None,
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        if !delta.is_null() {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = match end {
        End::Natural if has_call(said) => "tool_use",
        End::Natural => "end_turn",
        End::Truncated => "max_tokens",
        End::Refused => "refusal",
        End::Paused => "pause_turn",
    };
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
        "usage": {"output_tokens": 9}}),
    );
    events.push(json!({"type": "message_stop"}));
    Some(events)
}

fn responses(said: &[Said<'_>], end: End) -> Option<Vec<Value>> {
    let created = json!({"id": "r", "status": "in_progress"});
    let mut events = vec![json!({"type": "response.created", "response": created})];
    for (place, one) in said.iter().enumerate() {
        let delta = |kind: &str, text: &str| {
            json!({"type": format!("response.{kind}.delta"), "output_index": place,
                "content_index": 0, "summary_index": 0, "delta": text})
        };
        let item = |kind: &str, item: Value| {
            json!({"type": format!("response.output_item.{kind}"), "output_index": place,
                "item": item})
        };
        match one {
            Said::Text(text) => events.push(delta("output_text", text)),
            Said::Refusal(text) => events.push(delta("refusal", text)),
            Said::Thought(text) => events.push(delta("reasoning_summary_text", text)),
            Said::Own => {
                let call = json!({"type": "web_search_call", "id": "ws", "status": "completed"});
                events.extend([item("added", call.clone()), item("done", call)]);
            }
            Said::Call(name, arguments) => {
                let call = json!({"id": format!("f{place}"), "type": "function_call",
                    "call_id": format!("t{place}"), "name": name, "arguments": ""});
                events.push(item("added", call));
                events.push(delta("function_call_arguments", arguments));
            }
            Said::Hidden => return None,
        }
    }
    let (kind, details) = match end {
        End::Natural => ("completed", json!(null)),
        End::Truncated => ("incomplete", json!({"reason": "max_output_tokens"})),
        End::Refused | End::Paused => return None,
    };
    events.push(json!({"type": format!("response.{kind}"), "response": {
        "id": "r", "status": kind, "incomplete_details": details,
    }}));
    Some(events)
}
