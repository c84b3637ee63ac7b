//! The turn gate, as clients see it.

use redrive::proto::{
    Committed, Conversation, Effects, FinishReason, GateOptions, Mode, NativeBody, Protocol, Start,
    StoppedBy, Tool, ToolCall, ToolChoice, VerdictClass as Class, committed::Flag,
    generate_request, generate_response::Frame, part::Part as Kind, start::Input, tool_choice,
};
use serde_json::json;
use tonic::Code;

use crate::support::{
    messages::{self, response},
    responses::Responses,
    *,
};

pub const GATED: &str = "\
providers:
  a: {base_url: 'http://a.test/v1', profile: hosted}
  b: {base_url: 'http://b.test/v1', profile: hosted}
  c: {protocol: anthropic_messages, base_url: 'http://c.test/v1', profile: hosted}
  r: {protocol: openai_responses, base_url: 'http://r.test/v1', profile: hosted}
routes:
  default:
    targets: [{provider: a, model: m}, {provider: b, model: n}]
    gate: {preset: agent}
  short:
    targets: [{provider: a, model: m}]
    recovery: {max_attempts: 2}
    gate: {preset: agent, max_attempts: 6}
  lenient:
    targets: [{provider: a, model: m}]
    gate: {preset: lenient, max_attempts: 2}
  wrapped:
    targets: [{provider: a, model: m}]
    gate: {preset: agent, accept_bare_final: false, max_attempts: 2}
  ungated:
    targets: [{provider: a, model: m}]
  claude:
    targets: [{provider: c, model: claude}]
    gate: {preset: agent}
  stored:
    targets: [{provider: r, model: m}]
    gate: {preset: agent}
";

/// A question with the tool `read`, whose `path` is required.
pub fn question() -> Conversation {
    Conversation {
        tools: vec![Tool {
            name: "read".into(),
            parameters_json: br#"{"type":"object","required":["path"]}"#.to_vec(),
            ..Tool::default()
        }],
        ..conversation("What is in a.txt?")
    }
}

pub fn ask() -> Start {
    Start {
        input: Some(Input::Conversation(question())),
        ..start()
    }
}

/// The same, and a call is demanded.
fn demand() -> Start {
    let mut question = question();
    question.tool_choice = Some(ToolChoice {
        mode: tool_choice::Mode::Required.into(),
        ..ToolChoice::default()
    });
    Start {
        input: Some(Input::Conversation(question)),
        ..start()
    }
}

fn gate(preset: &str, max_attempts: Option<u32>) -> Option<GateOptions> {
    Some(GateOptions {
        preset: preset.into(),
        max_attempts,
    })
}

/// A whole response that calls these tools.
pub fn calls(calls: &[(&str, &str)]) -> Script {
    let mut script = stream();
    for (index, (name, arguments)) in (0..).zip(calls) {
        script = script
            .data(tool_call(index, &format!("call_{index}"), name))
            .data(tool_arguments(index, arguments));
    }
    script
        .data(finish("tool_calls"))
        .data(usage(7, 3))
        .data(DONE)
        .end()
}

pub fn good_call() -> Script {
    calls(&[("read", r#"{"path":"a.txt"}"#)])
}

/// The model only thinks.
pub fn silent() -> Script {
    stream().complete()
}

pub fn assert_called(committed: &Committed) {
    let call = ToolCall {
        id: "call_0".into(),
        name: "read".into(),
        arguments_json: r#"{"path":"a.txt"}"#.into(),
    };
    let parts: Vec<_> = committed.message.iter().map(|part| &part.part).collect();
    assert_eq!(parts, [&Some(Kind::ToolCall(call))]);
    assert_eq!(committed.finish_reason(), FinishReason::ToolCalls);
}

/// The bodies that the provider got, as they are.
pub fn bodies(bench: &Bench) -> Vec<String> {
    let received = bench.provider.received().into_iter();
    let bodies = received.map(|one| String::from_utf8(one.body.to_vec()).unwrap());
    bodies.collect()
}

/// The first answer is rejected for `reason`, the second one is accepted; what the hint says.
async fn repaired(start: Start, first: Script, reason: &str) -> String {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(first);
    bench.provider.then(good_call());
    let ended = bench.generate(start).await.end().await;
    assert_called(ended.committed());
    assert_eq!(ended.modes(), [Mode::First, Mode::GateRetry]);
    assert_eq!(ended.sends(), (2, 2));
    let ledger = ended.ledger();
    let verdict = ledger.entries[0].verdict.clone().unwrap();
    assert_eq!(
        (verdict.class(), &*verdict.gate_reason),
        (Class::GateRejected, reason)
    );
    assert!(!verdict.retryable);
    assert_eq!(ledger.entries[1].verdict, None);
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 6);
    assert_eq!(ledger.void_output_tokens, 3);
    assert_eq!(ledger.waited, Some(duration(secs(0))));
    for reset in ended.resets() {
        assert_eq!(reset.verdict, Some(verdict.clone()));
        assert_eq!(reset.wait, None);
    }
    let bodies = bodies(&bench);
    let added = added(&bodies[0], &bodies[1]);
    bench.finish().await;
    added
}

/// What `long` has more than `short`, in one place.
pub fn added(short: &str, long: &str) -> String {
    let same = |(a, b): &(char, char)| a == b;
    let front: usize = short
        .chars()
        .zip(long.chars())
        .take_while(same)
        .map(|(c, _)| c.len_utf8())
        .sum();
    let rest = &short[front..];
    let added = long[front..].strip_suffix(rest);
    added.expect("every other byte stays").to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_repaired() {
    let hint = repaired(ask(), silent(), "empty").await;
    assert!(hint.contains("no visible text and no tool call"), "{hint}");
}

#[tokio::test(start_paused = true)]
async fn a_demanded_call_is_repaired() {
    let hint = repaired(demand(), answer("It holds text."), "required_tool").await;
    assert!(hint.contains("which this request demands"), "{hint}");
}

#[tokio::test(start_paused = true)]
async fn an_announcement_is_repaired() {
    let hint = repaired(ask(), answer("Let me read a.txt."), "missing_tool").await;
    assert!(hint.contains("announced an action"), "{hint}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_cannot_be_run_are_repaired() {
    for (name, arguments, told) in [
        (
            "raed",
            r#"{"path":"a.txt"}"#,
            "There is no tool of this name: raed",
        ),
        (
            "read",
            "{}",
            "The arguments for read were not one complete JSON object",
        ),
        ("read", r#"{"path":"a."#, "The arguments for read"),
        ("read", "[]", "The arguments for read"),
    ] {
        let hint = repaired(ask(), calls(&[(name, arguments)]), "tool_error").await;
        assert!(hint.contains(told), "{name} {arguments}: {hint}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_bare_only_where_that_is_asked_for() {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(answer("Text."));
    let ended = bench.generate(ask()).await.end().await;
    assert_eq!((ended.message(), ended.sends()), ("Text.".into(), (1, 1)));
    bench.provider.then(answer("Text."));
    bench.provider.then(answer("Text."));
    let ended = bench.generate(ask().on("wrapped")).await.end().await;
    assert_eq!(ended.class(), Class::GateRejected);
    assert_eq!(ended.failed().verdict.as_ref().unwrap().gate_reason, "bare");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_rejection_ends_it_and_no_fallback_is_asked() {
    let bench = Bench::configured(GATED).await;
    for _ in 0..3 {
        bench.provider.then(silent());
    }
    let ended = bench.generate(ask()).await.end().await;
    assert_eq!(ended.code(), Code::Aborted);
    let failed = ended.failed();
    assert_eq!(failed.stopped_by(), StoppedBy::Gate);
    assert!(failed.safe_to_send_again);
    let verdict = failed.verdict.clone().unwrap();
    assert_eq!(
        (verdict.class(), &*verdict.gate_reason),
        (Class::GateRejected, "empty")
    );
    assert_eq!((verdict.attempt, &*verdict.target), (3, "a/m"));
    assert_eq!(ended.sends(), (3, 3));
    assert_eq!(ended.ledger().total_usage.unwrap().output_tokens, 9);
    // Hints do not accumulate: both are the same.
    let bodies = bodies(&bench);
    assert_eq!(bodies[1], bodies[2]);
    assert_ne!(bodies[0], bodies[1]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_stay_malformed_are_malformed_output() {
    let bench = Bench::configured(GATED).await;
    for _ in 0..3 {
        bench.provider.then(calls(&[("read", r#"{"path"#)]));
    }
    let ended = bench.generate(ask()).await.end().await;
    assert_eq!(
        (ended.class(), ended.code()),
        (Class::MalformedOutput, Code::Aborted)
    );
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Gate);
    assert_eq!(ended.sends(), (3, 3));
    // Without the gate it is that at once.
    bench.provider.then(calls(&[("read", r#"{"path"#)]));
    let ended = bench.generate(ask().on("ungated")).await.end().await;
    assert_eq!(ended.class(), Class::MalformedOutput);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::NotRetryable);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_announcement_is_delivered_in_the_end() {
    let bench = Bench::configured(GATED).await;
    for _ in 0..3 {
        bench.provider.then(answer("Let me read a.txt."));
    }
    let ended = bench.generate(ask()).await.end().await;
    assert_eq!(ended.message(), "Let me read a.txt.");
    assert_eq!(ended.sends(), (3, 3));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_call_beside_a_good_one_is_withheld() {
    let bench = Bench::configured(GATED).await;
    bench
        .provider
        .then(calls(&[("read", r#"{"path":"a.txt"}"#), ("raed", "{}")]));
    let ended = bench.generate(ask()).await.end().await;
    let committed = ended.committed();
    assert_called(committed);
    assert_eq!(committed.flags, [i32::from(Flag::ToolCallsWithheld)]);
    assert_eq!(committed.withheld_tool_calls[0].name, "raed");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_smaller_allowance_ends_it_first() {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(silent());
    bench.provider.then(silent());
    let ended = bench.generate(ask().on("short")).await.end().await;
    assert_eq!(ended.class(), Class::GateRejected);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Allowance);
    assert_eq!(ended.sends(), (2, 2));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn after_effects_the_answer_stays() {
    let bench = Bench::configured(GATED).await;
    bench
        .provider
        .then(stream().text("Let me read a.txt.").wait(secs(1)).complete());
    let mut rpc = bench.generate(ask()).await;
    rpc.until(|frame| matches!(frame, Frame::Delta(_))).await;
    rpc.send(generate_request::Frame::Effects(Effects {
        through_sequence: rpc.sequence(),
    }));
    let ended = rpc.end().await;
    assert_eq!(ended.message(), "Let me read a.txt.");
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_retry_is_recovered_with_the_same_request() {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(silent());
    bench.provider.then(stream().text("So").reset());
    bench.provider.then(good_call());
    let ended = bench.generate(ask()).await.end().await;
    assert_called(ended.committed());
    assert_eq!(
        ended.modes(),
        [Mode::First, Mode::GateRetry, Mode::GateRetry]
    );
    let bodies = bodies(&bench);
    assert_eq!(bodies[1], bodies[2]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_turns_the_gate_on_and_makes_it_stricter() {
    let bench = Bench::configured(GATED).await;
    let start = |route: &str, options| Start {
        gate: options,
        ..ask().on(route)
    };
    bench.provider.then(silent());
    let ended = bench.generate(start("ungated", None)).await.end().await;
    assert_eq!(ended.sends(), (1, 1));
    bench.provider.then(silent());
    bench.provider.then(good_call());
    let on = start("ungated", gate("agent", None));
    assert_called(bench.generate(on).await.end().await.committed());
    bench.provider.then(silent());
    let once = start("default", gate("", Some(1)));
    let ended = bench.generate(once).await.end().await;
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Gate);
    bench.provider.then(answer("Text."));
    let stricter = start("lenient", gate("agent", Some(2)));
    assert_eq!(
        bench.generate(stricter).await.end().await.message(),
        "Text."
    );
    for (route, options, reason) in [
        (
            "default",
            gate("off", None),
            "start.gate.preset: must not be looser than \"agent\"",
        ),
        (
            "default",
            gate("lenient", None),
            "start.gate.preset: must not be looser than \"agent\"",
        ),
        (
            "lenient",
            gate("off", None),
            "start.gate.preset: must not be looser than \"lenient\"",
        ),
        (
            "lenient",
            gate("", Some(3)),
            "start.gate.max_attempts: must be from 1 to 2",
        ),
    ] {
        let ended = bench.generate(start(route, options)).await.end().await;
        refused(ended, Code::InvalidArgument, reason);
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_native_body_gets_the_hint_too_and_its_tools_are_known() {
    let bench = Bench::configured(GATED).await;
    let body = r#"{"messages": [{"role": "user", "content": "Read it."}], "x": 1.0,
        "tools": [{"type": "function", "function": {"name": "read"}}], "tool_choice": "required"}"#;
    let native = Start {
        input: Some(Input::Native(NativeBody {
            protocol: Protocol::OpenaiChat.into(),
            json: body.into(),
        })),
        ..start()
    };
    bench.provider.then(answer("No."));
    bench.provider.then(calls(&[("raed", "{}")]));
    bench.provider.then(good_call());
    let ended = bench.generate(native).await.end().await;
    assert_called(ended.committed());
    let bodies = bodies(&bench);
    assert!(added(&bodies[0], &bodies[1]).contains("which this request demands"));
    assert!(added(&bodies[0], &bodies[2]).contains("Use only these exact names: read."));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn anthropic_answers_are_judged_alike() {
    let bench = Bench::configured(GATED).await;
    let thought = messages::begun()
        .data(messages::thinking(0, "Hm.", "c2ln"))
        .wait(secs(1))
        .data(messages::stop_reason("end_turn"))
        .data(messages::stop());
    bench.provider.then(thought.end());
    let input = ["{\"path\":", "\"a.txt\"}"];
    let call = messages::call(0, "tool_use", "call_0", "read", &input);
    bench.provider.then(response(&[call], "tool_use"));
    let ended = bench.generate(ask().on("claude")).await.end().await;
    assert_called(ended.committed());
    assert_eq!(ended.modes(), [Mode::First, Mode::GateRetry]);
    assert_eq!(ended.resets().len(), 1);
    assert!(bodies(&bench)[1].contains("# On your last answer"));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn responses_are_judged_alike() {
    let bench = Bench::configured(GATED).await;
    let mut stream = Responses::default();
    let item = |text: &str| json!([{"type": "message", "content": [{"type": "output_text", "text": text}]}]);
    let first = [
        stream.created(),
        stream.text(0, "Let me read a.txt."),
        stream.completed(item("Let me read a.txt.")),
    ];
    bench.provider.then(events(&first));
    let mut stream = Responses::default();
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_0", "name": "read",
        "arguments": "{\"path\":\"a.txt\"}"});
    let begun = json!({"type": "function_call", "id": "fc_1", "call_id": "call_0", "name": "read",
        "arguments": ""});
    let second = [
        stream.created(),
        stream.added(0, begun),
        stream.arguments(0, "{\"path\":\"a.txt\"}"),
        stream.done(0, call.clone()),
        stream.completed(json!([call])),
    ];
    bench.provider.then(events(&second));
    let ended = bench.generate(ask().on("stored")).await.end().await;
    assert_called(ended.committed());
    assert_eq!(ended.modes(), [Mode::First, Mode::GateRetry]);
    bench.finish().await;
}

pub fn events(events: &[String]) -> Script {
    let begun = events
        .iter()
        .fold(stream(), |script, event| script.data(event.clone()));
    begun.end()
}
