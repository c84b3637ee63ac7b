//! The turn gate and the schemas of tools, as clients see it.

use redrive::proto::{
    Mode, NativeBody, Protocol, Start, StoppedBy, VerdictClass as Class, committed::Flag,
    start::Input,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::{
    gating::{GATED, added, ask, assert_called, bodies, calls, events, question},
    support::{
        messages::{self, response},
        responses::Responses,
        *,
    },
};

const RIGHT: &str = r#"{"path":"a.txt"}"#;
const OF_ANOTHER_TYPE: &str = r#"{"path":["a secret"]}"#;

/// Routes, one for each protocol.
const ROUTES: [(&str, Protocol); 3] = [
    ("default", Protocol::OpenaiChat),
    ("claude", Protocol::AnthropicMessages),
    ("stored", Protocol::OpenaiResponses),
];

/// The schema of the tool `read`: `path` is a text, and nothing else is there.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"path": {"$ref": "#/$defs/path"}},
        "required": ["path"],
        "additionalProperties": false,
        "$defs": {"path": {"type": "string"}},
    })
}

/// A question with a tool of that schema.
fn ask_with(schema: &Value) -> Start {
    let mut question = question();
    question.tools[0].parameters_json = schema.to_string().into_bytes();
    Start {
        input: Some(Input::Conversation(question)),
        ..ask()
    }
}

/// The same as a body in the provider's format.
fn ask_natively(protocol: Protocol, schema: &Value) -> Start {
    let said = json!([{"role": "user", "content": "What is in a.txt?"}]);
    let body = match protocol {
        Protocol::OpenaiChat => json!({
            "tools": [{"type": "function", "function": {"name": "read", "parameters": schema}}],
            "messages": said,
        }),
        Protocol::AnthropicMessages => json!({
            "tools": [{"name": "read", "input_schema": schema}],
            "max_tokens": 99, "messages": said,
        }),
        _ => json!({
            "tools": [{"type": "function", "name": "read", "parameters": schema}],
            "input": said,
        }),
    };
    Start {
        input: Some(Input::Native(NativeBody {
            protocol: protocol.into(),
            json: body.to_string().into(),
        })),
        ..ask()
    }
}

/// A whole response that calls `read`.
fn call(protocol: Protocol, arguments: &str) -> Script {
    match protocol {
        Protocol::OpenaiChat => calls(&[("read", arguments)]),
        Protocol::AnthropicMessages => {
            let call = messages::call(0, "tool_use", "call_0", "read", &[arguments]);
            response(&[call], "tool_use")
        }
        _ => {
            let item = |arguments: &str| {
                json!({"type": "function_call", "id": "fc_1", "call_id": "call_0", "name": "read",
                    "arguments": arguments})
            };
            let mut stream = Responses::default();
            events(&[
                stream.created(),
                stream.added(0, item("")),
                stream.arguments(0, arguments),
                stream.done(0, item(arguments)),
                stream.completed(json!([item(arguments)])),
            ])
        }
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_are_repaired_in_every_protocol_and_format() {
    for (route, protocol) in ROUTES {
        for start in [ask_with(&schema()), ask_natively(protocol, &schema())] {
            let bench = Bench::configured(GATED).await;
            bench.provider.then(call(protocol, OF_ANOTHER_TYPE));
            bench
                .provider
                .then(call(protocol, r#"{"path":"a.txt","mode":"r"}"#));
            bench.provider.then(call(protocol, RIGHT));
            let ended = bench.generate(start.on(route)).await.end().await;
            assert_called(ended.committed());
            let modes = [Mode::First, Mode::GateRetry, Mode::GateRetry];
            assert_eq!(ended.modes(), modes, "{route}");
            for entry in &ended.ledger().entries[..2] {
                let verdict = entry.verdict.clone().unwrap();
                assert_eq!(verdict.class(), Class::GateRejected);
                assert_eq!(verdict.gate_reason, "tool_error");
                assert!(!format!("{verdict:?}").contains("secret"));
            }
            let bodies = bodies(&bench);
            let hints = [&bodies[1], &bodies[2]].map(|body| added(&bodies[0], body));
            for (hint, member) in hints
                .iter()
                .zip(["/path (type)", "/mode (additionalProperties)"])
            {
                assert!(hint.contains("The arguments for read were not"), "{hint}");
                let told = format!("Wrong by the schema of read: {member}.");
                assert!(hint.contains(&told), "{route}: {hint}");
                assert!(!hint.contains("secret"), "{hint}");
            }
            bench.finish().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_never_fit_end_it() {
    for (route, protocol) in ROUTES {
        let bench = Bench::configured(GATED).await;
        for _ in 0..3 {
            bench.provider.then(call(protocol, OF_ANOTHER_TYPE));
        }
        let ended = bench
            .generate(ask_with(&schema()).on(route))
            .await
            .end()
            .await;
        assert_eq!(ended.code(), Code::Aborted, "{route}");
        let failed = ended.failed();
        assert_eq!(failed.stopped_by(), StoppedBy::Gate);
        let verdict = failed.verdict.clone().unwrap();
        assert_eq!(
            (verdict.class(), &*verdict.gate_reason),
            (Class::GateRejected, "tool_error")
        );
        assert_eq!(ended.sends(), (3, 3));
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_fit_is_withheld_beside_one_that_does() {
    let bench = Bench::configured(GATED).await;
    bench
        .provider
        .then(calls(&[("read", RIGHT), ("read", OF_ANOTHER_TYPE)]));
    let ended = bench.generate(ask_with(&schema())).await.end().await;
    let committed = ended.committed();
    assert_called(committed);
    assert_eq!(committed.flags, [i32::from(Flag::ToolCallsWithheld)]);
    assert_eq!(
        committed.withheld_tool_calls[0].arguments_json,
        OF_ANOTHER_TYPE
    );
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_checked_is_committed() {
    let mut remote = schema();
    remote["properties"]["path"] = json!({"$ref": "https://example.com/path.json"});
    let mut without_end = schema();
    without_end["$ref"] = "#".into();
    let mut hostile = schema();
    hostile["properties"]["path"] = json!({"pattern": r"^(?:(a+)\1*)+$"});
    for schema in [remote, without_end, hostile, json!({"type": "file"})] {
        let bench = Bench::configured(GATED).await;
        bench.provider.then(calls(&[("read", r#"{"mode":7}"#)]));
        let ended = bench.generate(ask_with(&schema)).await.end().await;
        assert_eq!(ended.code(), Code::Ok, "{schema}");
        assert_eq!(ended.sends(), (1, 1), "{schema}");
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_schemas_are_not_looked_at() {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(calls(&[("read", OF_ANOTHER_TYPE)]));
    let ended = bench
        .generate(ask_with(&schema()).on("ungated"))
        .await
        .end()
        .await;
    assert_eq!((ended.code(), ended.sends()), (Code::Ok, (1, 1)));
    bench.finish().await;
}
