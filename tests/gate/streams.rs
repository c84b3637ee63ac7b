//! What is streamed is judged the same in every protocol.

use redrive::{
    gate::{Choice, Decision, Piece, Policy, Reason, Snapshot, Tools, decide},
    proto::FinishReason,
    protocol::{DecoderOptions, Delta, Event, Protocol, adapter::adapter},
};

use crate::{calls, offered, retry, stop};

/// An attempt as a decoder gives it.
#[derive(Default)]
struct Streamed {
    blocks: Vec<(Option<(u32, String)>, String)>,
    finish: Option<FinishReason>,
}

impl Streamed {
    fn of(protocol: Protocol, events: &[&str]) -> Self {
        let mut decoder = adapter(protocol)
            .unwrap()
            .decoder(DecoderOptions::default());
        let mut streamed = Self::default();
        for event in events {
            let event = format!("data: {event}\n\n");
            decoder.feed(event.as_bytes(), &mut |event| streamed.see(&event));
        }
        decoder.end(true, &mut |event| streamed.see(&event));
        streamed
    }

    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Finish { reason, .. } => self.finish = Some(*reason),
            Event::Delta(Delta::Text(text) | Delta::Refusal(text)) => {
                self.blocks.push((None, (*text).to_owned()));
            }
            Event::Delta(Delta::ToolCallStart { call, name, .. }) => {
                let started = Some((*call, (*name).to_owned()));
                self.blocks.push((started, String::new()));
            }
            Event::Delta(Delta::ToolArguments { call, fragment }) => {
                let of_call = |block: &&mut (Option<(u32, String)>, String)| {
                    block.0.as_ref().is_some_and(|(number, _)| number == call)
                };
                let block = self.blocks.iter_mut().find(of_call);
                block.expect("the call has begun").1.push_str(fragment);
            }
            Event::Error { .. } | Event::Undecodable(_) => panic!("{event:?}"),
            _ => {}
        }
    }

    fn judged(&self, policy: &Policy, tools: &Tools) -> Decision {
        let pieces = self.blocks.iter().map(|(call, text)| match call {
            Some((_, name)) => Piece::Call {
                name,
                arguments: text,
            },
            None => Piece::Text(text),
        });
        let finish = self.finish.expect("the stream has a finish reason");
        decide(&Snapshot::of(pieces, finish, tools), policy)
    }
}

/// The same attempt in each protocol: a text, calls with their arguments, and how it ends.
fn in_all_protocols(text: &str, tools: Calls<'_>, end: End) -> Vec<(Protocol, Streamed)> {
    vec![
        (Protocol::OpenaiChat, chat(text, tools, end)),
        (Protocol::AnthropicMessages, messages(text, tools, end)),
        (Protocol::OpenaiResponses, responses(text, tools, end)),
    ]
}

/// Tool calls: name and arguments.
type Calls<'a> = &'a [(&'a str, &'a str)];

#[derive(Clone, Copy, PartialEq)]
enum End {
    Natural,
    Truncated,
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn streamed(protocol: Protocol, events: &[String]) -> Streamed {
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    Streamed::of(protocol, &events)
}

fn chat(text: &str, tools: Calls<'_>, end: End) -> Streamed {
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"{{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":{finish}}}]}}"#
        )
    };
    let mut events = vec![chunk(&format!(r#""content":{}"#, json(text)), "null")];
    for (index, (name, arguments)) in tools.iter().enumerate() {
        let function = format!(r#""name":"{name}","arguments":{}"#, json(arguments));
        let call = format!(
            r#""tool_calls":[{{"index":{index},"id":"t{index}","type":"function","function":{{{function}}}}}]"#
        );
        events.push(chunk(&call, "null"));
    }
    let finish = match (end, tools) {
        (End::Truncated, _) => r#""length""#,
        (End::Natural, []) => r#""stop""#,
        (End::Natural, _) => r#""tool_calls""#,
    };
    events.push(chunk("", finish));
    events.push("[DONE]".to_owned());
    streamed(Protocol::OpenaiChat, &events)
}

fn messages(text: &str, tools: Calls<'_>, end: End) -> Streamed {
    let mut events = vec![
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}"#.to_owned(),
    ];
    let mut block = |index: usize, start: String, delta: String| {
        events.push(format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#
        ));
        events.push(format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#
        ));
        events.push(format!(
            r#"{{"type":"content_block_stop","index":{index}}}"#
        ));
    };
    block(
        0,
        r#"{"type":"text","text":""}"#.to_owned(),
        format!(r#"{{"type":"text_delta","text":{}}}"#, json(text)),
    );
    for (index, (name, arguments)) in tools.iter().enumerate() {
        block(
            index + 1,
            format!(r#"{{"type":"tool_use","id":"t{index}","name":"{name}","input":{{}}}}"#),
            format!(
                r#"{{"type":"input_json_delta","partial_json":{}}}"#,
                json(arguments)
            ),
        );
    }
    let reason = match (end, tools) {
        (End::Truncated, _) => "max_tokens",
        (End::Natural, []) => "end_turn",
        (End::Natural, _) => "tool_use",
    };
    events.push(format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":9}}}}"#
    ));
    events.push(r#"{"type":"message_stop"}"#.to_owned());
    streamed(Protocol::AnthropicMessages, &events)
}

fn responses(text: &str, tools: Calls<'_>, end: End) -> Streamed {
    let mut events = vec![
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress"}}"#.to_owned(),
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[]}}"#.to_owned(),
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":{}}}"#,
            json(text)
        ),
    ];
    for (index, (name, arguments)) in tools.iter().enumerate() {
        let output = index + 1;
        events.push(format!(
            r#"{{"type":"response.output_item.added","output_index":{output},"item":{{"id":"f{index}","type":"function_call","call_id":"t{index}","name":"{name}","arguments":""}}}}"#
        ));
        events.push(format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"f{index}","output_index":{output},"delta":{}}}"#,
            json(arguments)
        ));
    }
    events.push(match end {
        End::Natural => {
            r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#.to_owned()
        }
        End::Truncated => {
            r#"{"type":"response.incomplete","response":{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#.to_owned()
        }
    });
    streamed(Protocol::OpenaiResponses, &events)
}

#[test]
fn every_protocol_is_judged_the_same() {
    use End::*;
    let cases: [(&str, Calls<'_>, End, Decision); 9] = [
        ("answer", &[], Natural, stop()),
        ("", &[], Natural, retry(Reason::Empty)),
        ("", &[], Truncated, stop()),
        (
            "Let me check that.",
            &[],
            Natural,
            retry(Reason::MissingTool),
        ),
        ("Let me check that.", &[], Truncated, stop()),
        ("text", &[("Bash", r#"{"a":1}"#)], Natural, calls()),
        ("text", &[("Bsh", "{}")], Natural, retry(Reason::ToolError)),
        (
            "text",
            &[("Bash", r#"{"a":"#)],
            Natural,
            retry(Reason::ToolError),
        ),
        ("text", &[("Bash", r#"{"a":"#)], Truncated, stop()),
    ];
    for (text, tools, end, expected) in cases {
        for (protocol, streamed) in in_all_protocols(text, tools, end) {
            let found = streamed.judged(&Policy::LENIENT, &offered());
            assert_eq!(found, expected, "{protocol:?}: {text:?} {tools:?}");
        }
    }
}

#[test]
fn every_protocol_keeps_a_good_call_beside_a_broken_one() {
    let tools = [("Bash", "{}"), ("Read", "{")];
    for (protocol, streamed) in in_all_protocols("text", &tools, End::Natural) {
        let found = streamed.judged(&Policy::AGENT, &offered());
        assert_eq!(found, calls(), "{protocol:?}");
    }
}

#[test]
fn a_demanded_call_is_missed_in_every_protocol() {
    let demanded = Tools {
        choice: Choice::Required,
        ..offered()
    };
    for (protocol, streamed) in in_all_protocols("answer", &[], End::Natural) {
        let found = streamed.judged(&Policy::LENIENT, &demanded);
        assert_eq!(found, retry(Reason::RequiredTool), "{protocol:?}");
    }
}

#[test]
fn a_refusal_and_a_paused_turn_of_anthropic_are_accepted_without_text() {
    for reason in ["refusal", "pause_turn"] {
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":9}}}}"#
        );
        let events = [end, r#"{"type":"message_stop"}"#.to_owned()];
        let streamed = streamed(Protocol::AnthropicMessages, &events);
        assert_eq!(
            streamed.judged(&Policy::AGENT, &offered()),
            stop(),
            "{reason}"
        );
    }
}

#[test]
fn a_refusal_in_words_is_something_to_read() {
    let events = [
        r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"refusal":"No."},"finish_reason":null}]}"#,
        r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    let streamed = Streamed::of(Protocol::OpenaiChat, &events);
    assert_eq!(streamed.judged(&Policy::LENIENT, &offered()), stop());
}
