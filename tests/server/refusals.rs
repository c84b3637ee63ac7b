//! What is refused before `accepted`: one `Failed` at sequence 1, its status, and nothing is sent.

use redrive::proto::{
    GateOptions, NativeBody, Protocol, RecoveryOptions, Start, Timers, start::Input,
};
use tonic::Code::{self, InvalidArgument, Unimplemented};

use crate::support::*;

/// Starts `edit`ed, each with the status and the field it is refused by.
type Case = (fn(&mut Start), Code, &'static str);

async fn all_refused(cases: &[Case]) {
    let bench = Bench::start().await;
    for (edit, code, field) in cases {
        let mut start = start();
        edit(&mut start);
        refused(bench.generate(start).await.end().await, *code, field);
    }
    assert_eq!(bench.provider.sends(), 0);
    assert_eq!(bench.metric("redrive_generations_total"), 0.0);
    bench.finish().await;
}

fn recovery(edit: fn(&mut RecoveryOptions)) -> Option<RecoveryOptions> {
    let mut options = RecoveryOptions::default();
    edit(&mut options);
    Some(options)
}

fn timers(edit: fn(&mut Timers)) -> Option<RecoveryOptions> {
    let mut timers = Timers::default();
    edit(&mut timers);
    Some(RecoveryOptions {
        timers: Some(timers),
        ..RecoveryOptions::default()
    })
}

fn native(protocol: Protocol, json: &'static str) -> Option<Input> {
    Some(Input::Native(NativeBody {
        protocol: protocol.into(),
        json: json.into(),
    }))
}

const BODY: &str = r#"{"model":"x","messages":[{"role":"user","content":"hi"}]}"#;

#[tokio::test(start_paused = true)]
async fn an_unknown_route_or_model_or_input_is_refused() {
    all_refused(&[
        (|s| s.route = "other".into(), InvalidArgument, "start.route"),
        (|s| s.route.clear(), InvalidArgument, "start.route"),
        (|s| s.model = "gpt".into(), InvalidArgument, "start.model"),
        (
            |s| s.model = format!("m-{}", "x".repeat(255)),
            InvalidArgument,
            "start.model",
        ),
        (|s| s.input = None, InvalidArgument, "start.input"),
        (|s| s.delivery = 9, InvalidArgument, "start.delivery"),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_later_version_are_unimplemented_by_name() {
    all_refused(&[(
        |s| s.input = native(Protocol::Gemini, BODY),
        Unimplemented,
        "start.native.protocol",
    )])
    .await;
}

#[tokio::test(start_paused = true)]
async fn gates_that_there_are_not_are_refused_by_field_and_bound() {
    const PRESET: &str = "start.gate.preset: must be \"off\", \"agent\" or \"lenient\"";
    const ATTEMPTS: &str = "start.gate.max_attempts: must be from 1 to 3";
    all_refused(&[
        (
            |s| s.gate = Some(gate("strict", None)),
            InvalidArgument,
            PRESET,
        ),
        (
            |s| s.gate = Some(gate("agent", Some(0))),
            InvalidArgument,
            ATTEMPTS,
        ),
        (
            |s| s.gate = Some(gate("", Some(4))),
            InvalidArgument,
            ATTEMPTS,
        ),
    ])
    .await;
}

fn gate(preset: &str, max_attempts: Option<u32>) -> GateOptions {
    GateOptions {
        preset: preset.into(),
        max_attempts,
    }
}

#[tokio::test(start_paused = true)]
async fn options_looser_than_the_route_are_refused_by_field_and_bound() {
    const MAX: &str = "start.recovery.max_attempts: must be from 1 to 11";
    const DEADLINE: &str = "start.recovery.deadline: must be above 0 and at most 600s";
    all_refused(&[
        (
            |s| s.recovery = recovery(|r| r.max_attempts = Some(12)),
            InvalidArgument,
            MAX,
        ),
        (
            |s| s.recovery = recovery(|r| r.max_attempts = Some(0)),
            InvalidArgument,
            MAX,
        ),
        (
            |s| s.recovery = recovery(|r| r.deadline = Some(duration(secs(601)))),
            InvalidArgument,
            DEADLINE,
        ),
        (
            |s| s.recovery = recovery(|r| r.deadline = Some(duration(secs(0)))),
            InvalidArgument,
            DEADLINE,
        ),
        (
            |s| s.recovery = timers(|t| t.connect = Some(duration(secs(11)))),
            InvalidArgument,
            "start.recovery.timers.connect: must be above 0 and at most 10s",
        ),
        (
            |s| s.recovery = timers(|t| t.first_token = Some(duration(secs(0)))),
            InvalidArgument,
            "start.recovery.timers.first_token: must be above 0 and at most 600s",
        ),
        (
            |s| s.recovery = timers(|t| t.inter_delta = Some(duration(secs(46)))),
            InvalidArgument,
            "start.recovery.timers.inter_delta: must be above 0 and at most 45s",
        ),
        (
            |s| s.recovery = timers(|t| t.open_block = Some(duration(secs(301)))),
            InvalidArgument,
            "start.recovery.timers.open_block: must be above 0 and at most 300s",
        ),
        (
            |s| s.recovery = timers(|t| t.no_progress = Some(duration(secs(301)))),
            InvalidArgument,
            "start.recovery.timers.no_progress: must be above 0 and at most 300s",
        ),
        (
            |s| {
                s.recovery = timers(|t| {
                    t.connect = Some(prost_types::Duration {
                        seconds: -1,
                        nanos: 0,
                    });
                });
            },
            InvalidArgument,
            "start.recovery.timers.connect",
        ),
        (
            |s| s.detach_grace = Some(duration(secs(3601))),
            InvalidArgument,
            "start.detach_grace",
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn ids_and_labels_are_bounded_by_name() {
    all_refused(&[
        (
            |s| s.request_id = "x".repeat(129),
            InvalidArgument,
            "start.request_id",
        ),
        (
            |s| s.scope = "x".repeat(129),
            InvalidArgument,
            "start.scope",
        ),
        (
            |s| s.labels = (0..17).map(|i| (format!("l{i}"), String::new())).collect(),
            InvalidArgument,
            "start.labels",
        ),
        (
            |s| s.labels = [("x".repeat(65), String::new())].into(),
            InvalidArgument,
            "start.labels",
        ),
        (
            |s| s.labels = [("l".into(), "x".repeat(65))].into(),
            InvalidArgument,
            "start.labels",
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn several_choices_and_broken_native_bodies_are_refused() {
    const NATIVE: Protocol = Protocol::OpenaiChat;
    all_refused(&[
        (
            |s| s.input = native(NATIVE, r#"{"n":2,"messages":[]}"#),
            InvalidArgument,
            "start.native.json",
        ),
        (
            |s| s.input = native(NATIVE, r#"{"messages":["#),
            InvalidArgument,
            "start.native.json",
        ),
        (
            |s| s.input = native(NATIVE, "[]"),
            InvalidArgument,
            "start.native.json",
        ),
        (
            |s| s.input = native(Protocol::Unspecified, BODY),
            InvalidArgument,
            "start.native.protocol",
        ),
        (
            |s| {
                let mut talk = conversation("hi");
                talk.provider_options_json = br#"{"n":2}"#.to_vec();
                s.input = Some(Input::Conversation(talk));
            },
            InvalidArgument,
            "start.conversation.provider_options_json",
        ),
        (
            |s| s.input = Some(Input::Conversation(Default::default())),
            InvalidArgument,
            "start.conversation.messages",
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_the_bounds_allow_is_taken() {
    let bench = Bench::start().await;
    bench.provider.then(answer("ok"));
    let mut start = start();
    start.model = "m-2".into();
    start.request_id = "x".repeat(128);
    start.scope = "x".repeat(128);
    start.labels = (0..16)
        .map(|i| (format!("{i:064}"), "y".repeat(64)))
        .collect();
    start.gate = Some(gate("agent", Some(3)));
    start.detach_grace = Some(duration(secs(3600)));
    start.recovery = Some(RecoveryOptions {
        max_attempts: Some(11),
        deadline: Some(duration(secs(600))),
        timers: Some(Timers {
            connect: Some(duration(secs(10))),
            first_token: Some(duration(secs(600))),
            inter_delta: Some(duration(secs(45))),
            open_block: Some(duration(secs(300))),
            no_progress: Some(duration(secs(300))),
        }),
        ..RecoveryOptions::default()
    });
    assert_eq!(bench.generate(start).await.end().await.message(), "ok");
    let received = &bench.provider.received()[0];
    assert_eq!(received.path, "/chat/completions");
    assert!(
        received.body.starts_with(br#"{"model":"m-2""#),
        "{:?}",
        received.body
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn attach_names_exactly_one_generation() {
    let bench = Bench::start().await;
    for (frame, code, field) in [
        (attach_to(""), InvalidArgument, "attach.generation_id"),
        (attach_to("unknown"), Code::NotFound, "attach.generation_id"),
        (
            attach_by_request("unknown"),
            Code::NotFound,
            "attach.request_id",
        ),
    ] {
        refused(bench.first(frame).await.end().await, code, field);
    }
    bench.finish().await;
}
