//! Targets that speak Anthropic Messages.

use redrive::proto::{
    Conversation, Message, NativeBody, Part, Protocol, Reasoning, Role, Start, StoppedBy, Tool,
    ToolCall, ToolResult, VerdictClass as Class, committed::Flag, delta::Content,
    generate_response::Frame, part::Part as Kind, start::Input,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{
    messages::{self, begun, response},
    *,
};

const ANTHROPIC: &str = "\
providers:
  a: {protocol: anthropic_messages, base_url: 'http://a.test/v1', profile: hosted, headers: {anthropic-beta: 'x-2026'}}
  b: {base_url: 'http://b.test/v1', profile: hosted}
routes:
  default:
    targets: [{provider: a, model: claude}]
  pair:
    targets: [{provider: b, model: m}, {provider: a, model: claude}]
";

/// What the deltas showed, in words.
fn shown(ended: &Ended) -> Vec<String> {
    let deltas = ended.told().filter_map(|frame| match frame {
        Frame::Delta(delta) => Some((delta.block, delta.content.as_ref()?)),
        _ => None,
    });
    let words = deltas.map(|(block, content)| {
        let words = match content {
            Content::Text(text) => format!("text {text}"),
            Content::Reasoning(text) => format!("reasoning {text}"),
            Content::ToolCall(start) => format!("call {} {}", start.id, start.name),
            Content::ToolArguments(text) => format!("arguments {text}"),
            Content::NativeBlock(json) => format!("native {}", String::from_utf8_lossy(json)),
            other => panic!("{other:?}"),
        };
        format!("{block} {words}")
    });
    words.collect()
}

fn parts(ended: &Ended) -> Vec<Kind> {
    let parts = ended.committed().message.iter();
    parts.map(|part| part.part.clone().unwrap()).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> Kind {
    Kind::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments_json: arguments.to_owned(),
    })
}

fn signed(text: &str, signature: &str) -> Kind {
    Kind::Reasoning(Reasoning {
        text: text.to_owned(),
        signature: signature.as_bytes().to_vec(),
        redacted: Vec::new(),
    })
}

fn said(role: Role, parts: Vec<Kind>) -> Message {
    Message {
        role: role.into(),
        parts: parts
            .into_iter()
            .map(|part| Part { part: Some(part) })
            .collect(),
    }
}

fn ask(conversation: Conversation) -> Start {
    Start {
        input: Some(Input::Conversation(conversation)),
        ..start()
    }
}

fn weather() -> Conversation {
    Conversation {
        tools: vec![Tool {
            name: "weather".to_owned(),
            ..Tool::default()
        }],
        ..conversation("Weather in Bern?")
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_thinking_and_tools_is_shown_committed_and_goes_back_as_it_came() {
    let bench = Bench::configured(ANTHROPIC).await;
    bench.provider.then(response(
        &[
            messages::thinking(0, "Ask.", "c2ln"),
            messages::whole(1, json!({"type": "redacted_thinking", "data": "eHl6"})),
            messages::text(2, &["Let me ", "see."]),
            messages::call(
                3,
                "tool_use",
                "toolu_1",
                "weather",
                &["", "{\"city\":", "\"Bern\"}"],
            ),
            messages::call(4, "tool_use", "toolu_2", "weather", &[]),
        ],
        "tool_use",
    ));
    let ended = bench.generate(ask(weather())).await.end().await;
    let all = shown(&ended).join("\n");
    assert!(all.starts_with("0 reasoning Ask."), "{all}");
    assert!(!all.contains("eHl6"), "{all}");
    let hidden = Kind::Reasoning(Reasoning {
        redacted: b"eHl6".to_vec(),
        ..Reasoning::default()
    });
    let turn = vec![
        signed("Ask.", "c2ln"),
        hidden,
        Kind::Text("Let me see.".into()),
        call("toolu_1", "weather", "{\"city\":\"Bern\"}"),
        call("toolu_2", "weather", "{}"),
    ];
    assert_eq!(parts(&ended), turn);
    let committed = ended.committed();
    assert_eq!(committed.native_finish_reason, "tool_use");
    assert_eq!(committed.model, "claude-2026");
    let usage = committed.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3));

    // The committed parts are the next turn.
    let result = |id: &str| {
        Kind::ToolResult(ToolResult {
            tool_call_id: id.to_owned(),
            parts: said(Role::Tool, vec![Kind::Text("Rain".into())]).parts,
            is_error: false,
        })
    };
    let mut next = weather();
    next.messages.push(said(Role::Assistant, turn));
    next.messages
        .push(said(Role::Tool, vec![result("toolu_1"), result("toolu_2")]));
    bench
        .provider
        .then(response(&[messages::text(0, &["Rain."])], "end_turn"));
    let ended = bench.generate(ask(next)).await.end().await;
    assert_eq!(ended.message(), "Rain.");
    let sent = &bench.provider.received()[1];
    assert_eq!(sent.path, "/messages");
    assert_eq!(sent.headers["anthropic-version"], "2023-06-01");
    assert_eq!(sent.headers["anthropic-beta"], "x-2026");
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    let blocks = json!([
        {"type": "thinking", "thinking": "Ask.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHl6"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}},
        {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}},
    ]);
    assert_eq!(body["messages"][1]["content"], blocks);
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn server_tools_are_whole_blocks_and_a_pause_asks_to_go_on() {
    let bench = Bench::configured(ANTHROPIC).await;
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    bench.provider.then(response(
        &[
            messages::call(0, "server_tool_use", "s", "web_search", &["{\"q\":", "1}"]),
            messages::whole(1, result.clone()),
            messages::text(2, &["So far"]),
        ],
        "pause_turn",
    ));
    let ended = bench.generate(start()).await.end().await;
    let [
        Kind::NativeJson(call),
        Kind::NativeJson(answer),
        Kind::Text(text),
    ] = &parts(&ended)[..]
    else {
        panic!("{:?}", ended.committed());
    };
    let call: Value = serde_json::from_slice(call).unwrap();
    assert_eq!(call["input"], json!({"q": 1}));
    assert_eq!(serde_json::from_slice::<Value>(answer).unwrap(), result);
    assert_eq!(text, "So far");
    let committed = ended.committed();
    assert_eq!(
        committed.finish_reason().as_str_name(),
        "FINISH_REASON_PAUSE"
    );
    assert_eq!(committed.native_finish_reason, "pause_turn");
    assert_eq!(committed.flags, [Flag::ContinuationRequired as i32]);

    // Sent back as it is, it goes on.
    let mut next = conversation("Say hello.");
    next.messages.push(said(Role::Assistant, parts(&ended)));
    bench
        .provider
        .then(response(&[messages::text(0, &["."])], "end_turn"));
    bench.generate(ask(next)).await.end().await.committed();
    let body: Value = serde_json::from_slice(&bench.provider.received()[1].body).unwrap();
    assert_eq!(body["messages"][1]["content"][0], call);
    assert_eq!(body["messages"][1]["content"][1], result);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_long_call_of_a_server_tool_is_output_from_its_beginning() {
    let bench = Bench::configured(ANTHROPIC).await;
    let piece = |piece: &str| {
        messages::delta(
            0,
            json!({"type": "input_json_delta", "partial_json": piece}),
        )
    };
    let call = json!({"type": "server_tool_use", "id": "s", "name": "code", "input": {}});
    let mut script = begun().wait(secs(590)).data(messages::block(0, call));
    // Past first_token and no_progress, within open_block.
    script = script.wait(secs(200)).data(piece("{\"a\":"));
    script = script.wait(secs(200)).data(piece("1}"));
    bench.provider.then(
        script
            .data(messages::block_stop(0))
            .data(messages::stop_reason("end_turn"))
            .data(messages::stop())
            .end(),
    );
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(shown(&ended).len(), 1);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_finish_with_and_without_text_and_withholds_calls() {
    let bench = Bench::configured(ANTHROPIC).await;
    bench.provider.then(response(&[], "refusal"));
    let ended = bench.generate(start()).await.end().await;
    let committed = ended.committed();
    assert_eq!(
        committed.finish_reason().as_str_name(),
        "FINISH_REASON_REFUSAL"
    );
    assert_eq!(committed.flags, [Flag::Empty as i32]);

    let call = messages::call(1, "tool_use", "t", "weather", &["{}"]);
    bench
        .provider
        .then(response(&[messages::text(0, &["Well"]), call], "refusal"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Well");
    assert_eq!(ended.committed().withheld_tool_calls.len(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_overload_in_the_stream_is_reset_and_replayed() {
    let bench = Bench::configured(ANTHROPIC).await;
    let cut = messages::block(0, json!({"type": "text", "text": "Hel"}));
    bench.provider.then(
        begun()
            .data(cut)
            .wait(secs(1))
            .data(messages::error("overloaded_error", "Overloaded")),
    );
    bench
        .provider
        .then(response(&[messages::text(0, &["Hello"])], "end_turn"));
    let ended = bench.generate(start()).await.end().await;
    let shape = ended.shape();
    assert!(shape.contains(&"preview_reset"), "{shape:?}");
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.sends(), (2, 2));
    let ledger = ended.committed().ledger.as_ref().unwrap();
    let verdict = ledger.entries[0].verdict.as_ref().unwrap();
    assert_eq!(verdict.class(), Class::Overloaded);
    assert_eq!(
        bench.provider.received()[0].body,
        bench.provider.received()[1].body
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_reason_without_the_stop_is_a_premature_end_and_replayed() {
    let bench = Bench::configured(ANTHROPIC).await;
    let hello = messages::text(0, &["Hello"]);
    bench.provider.then(
        begun()
            .data(hello.clone())
            .data(messages::stop_reason("end_turn"))
            .end(),
    );
    bench.provider.then(
        begun()
            .data(hello.clone())
            .data(messages::stop_reason("end_turn"))
            .data(DONE)
            .end(),
    );
    bench.provider.then(response(&[hello], "end_turn"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.sends(), (3, 3));
    let ledger = ended.committed().ledger.as_ref().unwrap();
    for entry in &ledger.entries[..2] {
        assert_eq!(entry.verdict.as_ref().unwrap().class(), Class::PrematureEof);
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_third_stop_reason_without_the_stop_ends_recovery() {
    let bench = Bench::configured(ANTHROPIC).await;
    for _ in 0..3 {
        bench.provider.then(
            begun()
                .data(messages::text(0, &["Hello"]))
                .data(messages::stop_reason("end_turn"))
                .end(),
        );
    }
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::PrematureEof);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::SamePlace);
    assert_eq!(ended.sends(), (3, 3));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_begins_again_is_corrupt() {
    let bench = Bench::configured(ANTHROPIC).await;
    bench.provider.then(
        begun()
            .data(messages::start("msg_1"))
            .data(messages::start("msg_2")),
    );
    bench
        .provider
        .then(response(&[messages::text(0, &["Hello"])], "end_turn"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.sends(), (2, 2));
    let ledger = ended.committed().ledger.as_ref().unwrap();
    assert_eq!(
        ledger.entries[0].verdict.as_ref().unwrap().class(),
        Class::Corrupt
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_message_instead_of_a_stream_is_permanent() {
    let bench = Bench::configured(ANTHROPIC).await;
    let whole = json!({
        "type": "message", "id": "msg_1", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn",
    });
    let script = sent().header("content-type", "application/json").head(200);
    bench.provider.then(script.data(whole.to_string()).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::Unclassified);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_spend_limit_that_looks_like_a_rate_limit_is_permanent() {
    let bench = Bench::configured(ANTHROPIC).await;
    let body = json!({"type": "error", "error": {
        "type": "rate_limit_error", "message": "Limit reached.",
        "details": {"error_code": "enforced_spend_limit_reached"},
    }});
    bench
        .provider
        .then(status(429).data(body.to_string()).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::QuotaExhausted);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_native_body_goes_to_its_protocol_only_and_is_changed_in_place() {
    let bench = Bench::configured(ANTHROPIC).await;
    bench
        .provider
        .then(response(&[messages::text(0, &["Hello"])], "end_turn"));
    let body = "{ \"max_tokens\" : 1.0e2,\n\"model\":\"x\", \"messages\":[] }";
    let native = Start {
        input: Some(Input::Native(NativeBody {
            protocol: Protocol::AnthropicMessages.into(),
            json: body.into(),
        })),
        include_native_events: true,
        ..start().on("pair")
    };
    let ended = bench.generate(native.clone()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let events = ended.told().filter(|frame| {
        matches!(frame, Frame::Delta(delta) if matches!(delta.content, Some(Content::NativeEvent(_))))
    });
    assert_eq!(events.count(), 7);
    let received = &bench.provider.received()[0];
    assert_eq!(received.provider, "a");
    let sent = "{\"stream\":true, \"max_tokens\" : 1.0e2,\n\"model\":\"claude\", \"messages\":[] }";
    assert_eq!(received.body, sent);

    // What Anthropic cannot express is refused before anything is sent.
    let mut seeded = conversation("Hi");
    seeded.sampling.get_or_insert_default().seed = Some(1);
    let ended = bench.generate(ask(seeded)).await.end().await;
    refused(
        ended,
        Code::InvalidArgument,
        "start.conversation.sampling.seed",
    );
    bench.finish().await;
}
