//! The model's answers as providers write them.

use serde_json::{Value, json};

use crate::{
    scenario::{End, Protocol, Round},
    support::{
        chat,
        messages::{self, begun},
        responses::Responses,
        *,
    },
};

/// What the provider does with a send. The client sees each block before the next one comes.
pub fn script(protocol: Protocol, round: &Round) -> Script {
    match protocol {
        Protocol::Chat | Protocol::Prefill => in_chat(round),
        Protocol::Messages => in_messages(round),
        Protocol::Responses => in_responses(round),
    }
}

fn in_chat(round: &Round) -> Script {
    let mut script = stream();
    if !round.reasoning.is_empty() {
        let reasoning = json!({ "reasoning_content": round.reasoning });
        script = script.data(chat::chunk(reasoning)).wait(secs(1));
    }
    if round.end == End::Refuses {
        let refusal = json!({ "refusal": round.text });
        script = script.data(chat::chunk(refusal)).wait(secs(1));
    } else if !round.text.is_empty() {
        script = script.text(round.text).wait(secs(1));
    }
    for (index, (name, arguments)) in (0..).zip(round.calls) {
        script = script
            .data(tool_call(index, &format!("call_{index}"), name))
            .data(tool_arguments(index, arguments))
            .wait(secs(1));
    }
    let reason = match round.end {
        End::Breaks => return script.reset(),
        End::Stop | End::Refuses => "stop",
        End::ToolCalls => "tool_calls",
        End::Length => "length",
        End::Filtered => "content_filter",
        End::Pauses => panic!("{round:?} is not said so"),
    };
    let script = script.data(finish(reason));
    script.data(usage(7, 3)).data(DONE).end()
}

fn in_messages(round: &Round) -> Script {
    let mut blocks = Vec::new();
    if !round.reasoning.is_empty() {
        blocks.push(messages::thinking(0, round.reasoning, "c2ln"));
    }
    if !round.text.is_empty() {
        blocks.push(messages::text(blocks.len() as u32, &[round.text]));
    }
    if round.own {
        let place = blocks.len() as u32;
        let (kind, query) = ("server_tool_use", r#"{"query":"a.txt"}"#);
        let call = messages::call(place, kind, "srvtoolu_1", "web_search", &[query]);
        let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": []});
        blocks.extend([call, messages::whole(place + 1, found)]);
    }
    for (index, (name, arguments)) in round.calls.iter().enumerate() {
        let id = format!("call_{index}");
        let place = blocks.len() as u32;
        let call = messages::call(place, "tool_use", &id, name, &[arguments]);
        blocks.push(call);
    }
    let blocks = blocks.into_iter();
    let script = blocks.fold(begun(), |script, block| script.data(block).wait(secs(1)));
    let reason = match round.end {
        End::Breaks => return script.reset(),
        End::Stop => "end_turn",
        End::ToolCalls => "tool_use",
        End::Length => "max_tokens",
        End::Refuses => "refusal",
        End::Pauses => "pause_turn",
        End::Filtered => panic!("{round:?} is not said so"),
    };
    let script = script.data(messages::stop_reason(reason));
    script.data(messages::stop()).end()
}

fn in_responses(round: &Round) -> Script {
    let mut events = Responses::default();
    let mut output = Vec::new();
    let mut script = stream().data(events.created());
    if !round.reasoning.is_empty() {
        let item = |summary: Value| json!({"type": "reasoning", "id": "rs_1", "summary": summary});
        let whole = item(json!([{"type": "summary_text", "text": round.reasoning}]));
        let delta = json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": 0, "delta": round.reasoning});
        script = script
            .data(events.added(0, item(json!([]))))
            .data(events.event(delta))
            .data(events.done(0, whole.clone()))
            .wait(secs(1));
        output.push(whole);
    }
    if round.end == End::Refuses {
        let delta = json!({"type": "response.refusal.delta", "output_index": output.len(),
            "content_index": 0, "delta": round.text});
        script = script.data(events.event(delta)).wait(secs(1));
        let content = json!([{"type": "refusal", "refusal": round.text}]);
        output.push(json!({"type": "message", "content": content}));
    } else if !round.text.is_empty() {
        let place = output.len() as u32;
        script = script.data(events.text(place, round.text)).wait(secs(1));
        let text = round.snapshot.unwrap_or(round.text);
        output.push(json!({"type": "message", "content": [{"type": "output_text", "text": text}]}));
    }
    if round.own {
        let place = output.len() as u32;
        let call = |input: &str| {
            json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_9", "name": "shell",
                "input": input})
        };
        script = script
            .data(events.added(place, call("")))
            .data(events.done(place, call("cat a.txt")))
            .wait(secs(1));
        output.push(call("cat a.txt"));
    }
    for (index, (name, arguments)) in round.calls.iter().enumerate() {
        let place = output.len() as u32;
        let call = |arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{index}"),
                "call_id": format!("call_{index}"), "name": name, "arguments": arguments})
        };
        script = script
            .data(events.added(place, call("")))
            .data(events.arguments(place, arguments))
            .data(events.done(place, call(arguments)))
            .wait(secs(1));
        output.push(call(arguments));
    }
    let why = match round.end {
        End::Breaks => return script.reset(),
        End::Stop | End::ToolCalls | End::Refuses => {
            return script.data(events.completed(json!(output))).end();
        }
        End::Length => "max_output_tokens",
        End::Filtered => "content_filter",
        End::Pauses => panic!("{round:?} is not said so"),
    };
    let end = events.event(json!({
        "type": "response.incomplete",
        "response": {
            "id": "resp_1", "status": "incomplete", "output": output,
            "incomplete_details": {"reason": why},
            "usage": {"input_tokens": 7, "output_tokens": 5},
        },
    }));
    script.data(end).end()
}
