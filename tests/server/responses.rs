//! OpenAI Responses, from the provider's bytes to the client's frames.

use redrive::proto::{
    Delivery, FinishReason, NativeBody, Part, PreviewReset, Protocol, Start, StoppedBy, Usage,
    VerdictClass as Class, committed::Flag, delta::Content, generate_response::Frame, part,
    start::Input,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{responses::Responses, *};

/// `p` keeps nothing, `q` keeps its responses.
const RESPONSES: &str = "\
providers:
  p: {base_url: 'http://p.test/v1', profile: hosted, protocol: openai_responses}
  q: {base_url: 'http://q.test/v1', profile: hosted, protocol: openai_responses, resume: stored}
routes:
  default:
    targets: [{provider: p, model: m}]
  stored:
    targets: [{provider: q, model: m}]
";

async fn bench() -> Bench {
    Bench::configured(RESPONSES).await
}

/// A stream with these events, at once.
fn events(events: &[String]) -> Script {
    stream().data(events.concat())
}

/// A whole answer.
fn hello() -> Script {
    let mut stream = Responses::default();
    let events_ = [
        stream.created(),
        stream.text(0, "Hel"),
        stream.text(0, "lo"),
        stream.completed(json!([])),
    ];
    events(&events_).end()
}

fn resets(ended: &Ended) -> Vec<PreviewReset> {
    let resets = ended.told().filter_map(|frame| match frame {
        Frame::PreviewReset(reset) => Some(reset.clone()),
        _ => None,
    });
    resets.collect()
}

fn parts(ended: &Ended) -> Vec<part::Part> {
    let parts = ended.committed().message.iter();
    parts.map(|Part { part }| part.clone().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn text_is_streamed_and_committed_with_its_name_and_tokens() {
    let bench = bench().await;
    bench.provider.then(hello());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let committed = ended.committed();
    assert_eq!(committed.finish_reason(), FinishReason::Stop);
    assert_eq!(committed.native_finish_reason, "completed");
    assert_eq!(committed.model, "m-2026");
    assert!(committed.flags.is_empty());
    let usage = Usage {
        input_tokens: 7,
        cache_read_input_tokens: 2,
        output_tokens: 5,
        reasoning_output_tokens: 1,
        ..Usage::default()
    };
    assert_eq!(committed.usage, Some(usage));
    let sent = bench.provider.received();
    assert_eq!(sent[0].path, "/responses");
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(body["store"], false);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stored_response_is_asked_for_where_that_is_configured() {
    let bench = bench().await;
    bench.provider.then(hello());
    bench.generate(start().on("stored")).await.end().await;
    let body: Value = serde_json::from_slice(&bench.provider.received()[0].body).unwrap();
    assert_eq!([&body["background"], &body["store"]], [true, true]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn reasoning_is_shown_and_signed_for_the_next_turn() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "Hm."}]});
    let all = [
        stream.created(),
        stream.added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        stream.event(
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": 0, "delta": "Hm."}),
        ),
        stream.done(0, reasoning.clone()),
        stream.text(1, "Hello"),
        stream.completed(json!([reasoning, {"type": "message", "content": [
            {"type": "output_text", "text": "Hello"}]}])),
    ];
    bench.provider.then(events(&all).end());
    let ended = bench.generate(start()).await.end().await;
    let parts = parts(&ended);
    let part::Part::Reasoning(reasoning) = &parts[0] else {
        panic!("{parts:?}");
    };
    assert_eq!(reasoning.text, "Hm.");
    let signature: Value = serde_json::from_slice(&reasoning.signature).unwrap();
    assert_eq!(
        signature,
        json!({"id": "rs_1", "encrypted_content": "gAAA"})
    );
    assert_eq!(parts[1], part::Part::Text("Hello".into()));
    assert_eq!(parts.len(), 2);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_whole_in_the_end_and_the_providers_own_items_come_as_they_are() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
        "arguments": ""});
    let all = [
        stream.created(),
        stream.added(0, json!({"type": "web_search_call", "id": "ws_1"})),
        stream.done(0, search.clone()),
        stream.added(1, call),
        stream.arguments(1, "{\"a\":"),
        stream.arguments(1, "1}"),
        stream.completed(json!([])),
    ];
    bench.provider.then(events(&all).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.committed().finish_reason(), FinishReason::ToolCalls);
    let parts = parts(&ended);
    assert_eq!(
        parts[0],
        part::Part::NativeJson(search.to_string().into_bytes())
    );
    let part::Part::ToolCall(call) = &parts[1] else {
        panic!("{parts:?}");
    };
    assert_eq!(
        [&call.id, &call.name, &call.arguments_json],
        ["call_1", "f", "{\"a\":1}"]
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_response_is_a_finish() {
    for (reason, expected) in [
        ("max_output_tokens", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
    ] {
        let bench = bench().await;
        let mut stream = Responses::default();
        let all = [
            stream.created(),
            stream.text(0, "Hel"),
            stream.event(json!({"type": "response.incomplete", "response": {
                "status": "incomplete", "incomplete_details": {"reason": reason}}})),
        ];
        bench.provider.then(events(&all).end());
        let ended = bench.generate(start()).await.end().await;
        assert_eq!(ended.committed().finish_reason(), expected);
        assert_eq!(ended.committed().native_finish_reason, reason);
        assert_eq!(bench.provider.sends(), 1);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_inside_the_stream_is_one_failure_and_is_replayed() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let all = [
        stream.created(),
        stream.failed(
            "rate_limit_exceeded",
            "Rate limit reached. Try again in 1s.",
        ),
    ];
    bench.provider.then(events(&all).end());
    bench.provider.then(hello());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let ledger = ended.committed().ledger.clone().unwrap();
    let verdict = ledger.entries[0].verdict.as_ref().unwrap();
    assert_eq!(verdict.class(), Class::RateLimited);
    assert_eq!(verdict.retry_after, None, "prose is no wait");
    assert_eq!(ledger.sends, 2);
    assert!(resets(&ended).is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_spent_quota_inside_the_stream_is_permanent() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let all = [
        stream.created(),
        stream.failed("insufficient_quota", "You exceeded your current quota."),
    ];
    bench.provider.then(events(&all).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::QuotaExhausted);
    assert_eq!(ended.code(), Code::ResourceExhausted);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_corrupt_and_replayed() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let first = [stream.created(), stream.text(0, "Hel")];
    stream.skip();
    let second = stream.text(0, "o");
    let script = events(&first).wait(secs(1)).data(second);
    bench.provider.then(script);
    bench.provider.then(hello());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let resets = resets(&ended);
    assert_eq!(resets.len(), 1);
    assert_eq!(resets[0].verdict.as_ref().unwrap().class(), Class::Corrupt);
    assert!(resets[0].blocks.is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_without_a_terminal_event_is_no_answer() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let all = [
        stream.created(),
        stream.text(0, "Hello"),
        stream.text_done(0, "Hello"),
    ];
    bench.provider.then(events(&all).wait(secs(1)).end());
    bench.provider.then(hello());
    let ended = bench.generate(start()).await.end().await;
    let verdict = resets(&ended)[0].verdict.clone().unwrap();
    assert_eq!(verdict.class(), Class::PrematureEof);
    assert_eq!(ended.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_response_is_not_paid_for_twice() {
    let bench = bench().await;
    let body = json!({"object": "response", "status": "completed", "error": null, "output": []});
    bench
        .provider
        .then(status(200).data(body.to_string()).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::Unclassified);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

/// "Hallo" and a second block are streamed; the snapshot says "Hello" a second later.
fn differing() -> Script {
    let mut stream = Responses::default();
    let first = [
        stream.created(),
        stream.text(0, "Hallo"),
        stream.text(1, "!"),
    ];
    let second = [stream.text_done(0, "Hello"), stream.completed(json!([]))];
    events(&first).wait(secs(1)).data(second.concat()).end()
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_differs_resets_its_block_alone() {
    let bench = bench().await;
    bench.provider.then(differing());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello!");
    assert_eq!(ended.deltas(), ["Hallo", "!", "Hello"]);
    let resets = resets(&ended);
    assert_eq!(resets.len(), 1);
    assert_eq!(
        (resets[0].attempt, resets[0].blocks.as_slice()),
        (1, &[0][..])
    );
    let verdict = resets[0].verdict.as_ref().unwrap();
    assert_eq!(verdict.class(), Class::Corrupt);
    assert!(verdict.message.contains("final snapshot"), "{verdict:?}");
    assert_eq!(ended.committed().flags, [Flag::SnapshotMismatch as i32]);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_without_resets_keeps_what_was_streamed_and_one_without_deltas_is_not_told() {
    for (delivery, message) in [
        (Delivery::PreviewNoReset, "Hallo!"),
        (Delivery::CommittedOnly, "Hello!"),
    ] {
        let bench = bench().await;
        bench.provider.then(differing());
        let ended = bench.generate(start_delivered(delivery)).await.end().await;
        assert_eq!(ended.message(), message);
        assert!(resets(&ended).is_empty());
        assert_eq!(ended.committed().flags, [Flag::SnapshotMismatch as i32]);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_effects_what_was_streamed_stays() {
    let bench = bench().await;
    bench.provider.then(differing());
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    rpc.send(effects(rpc.sequence()));
    let ended = rpc.end().await;
    assert_eq!(ended.message(), "Hallo!");
    assert!(resets(&ended).is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn effects_on_a_block_that_became_void_end_the_generation() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let first = [stream.created(), stream.text(0, "Hallo")];
    let second = stream.text_done(0, "Hello");
    bench
        .provider
        .then(events(&first).wait(secs(1)).data(second));
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    let through = rpc.sequence();
    tokio::time::sleep(millis(1500)).await;
    rpc.send(effects(through));
    let ended = rpc.end().await;
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Effects);
    assert!(!ended.failed().safe_to_send_again);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_only_the_snapshot_holds_is_shown_too() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let message = json!({"type": "message", "id": "msg_1", "content": [
        {"type": "output_text", "text": "Hello"}]});
    let all = [stream.created(), stream.completed(json!([message]))];
    bench.provider.then(events(&all).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.deltas(), ["Hello"]);
    assert_eq!(ended.message(), "Hello");
    assert!(ended.committed().flags.is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_native_body_goes_out_as_it_came_and_native_events_come_back() {
    let bench = bench().await;
    bench.provider.then(hello());
    let json = "{ \"model\":\"x\", \"input\" : \"hi\",\"stream\":true }";
    let native = NativeBody {
        protocol: Protocol::OpenaiResponses.into(),
        json: json.into(),
    };
    let start = Start {
        input: Some(Input::Native(native)),
        include_native_events: true,
        ..start()
    };
    let ended = bench.generate(start).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let sent = &bench.provider.received()[0].body;
    assert_eq!(sent.as_ref(), json.replace("\"x\"", "\"m\"").as_bytes());
    let native = ended.told().filter(|frame| {
        matches!(frame, Frame::Delta(delta) if matches!(delta.content, Some(Content::NativeEvent(_))))
    });
    assert_eq!(native.count(), 4);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn hidden_reasoning_may_take_as_long_as_an_open_block() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let first = [
        stream.created(),
        stream.text(0, "Hm."),
        stream.added(1, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
    ];
    let second = [stream.text(2, "Hello"), stream.completed(json!([]))];
    let script = events(&first).wait(secs(200)).data(second.concat()).end();
    bench.provider.then(script);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hm.Hello");
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}
