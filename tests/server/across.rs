//! Routes whose targets speak different protocols.

use std::time::Duration;

use http::{Method, header::AUTHORIZATION};
use redrive::proto::{
    Executed, Mode, NativeBody, Protocol, RecoveryOptions, Sampling, SkippedTarget, Start,
    StoppedBy, VerdictClass as Class, start::Input,
};
use serde_json::json;
use tonic::Code;

use crate::support::{messages, responses::Responses, *};

/// Three protocols; `c` to `r` in the order in which they are tried, and routes that begin elsewhere.
const TARGETS: &str = "\
routes:
  default:
    targets: [{provider: c, model: gpt}, {provider: a, model: claude}, {provider: r, model: o}]
    recovery: {backoff: {jitter: 0}}
  brief:
    targets: [{provider: c, model: gpt}, {provider: a, model: claude}, {provider: r, model: o}]
    recovery: {max_attempts: 3, backoff: {jitter: 0}}
  claudes:
    targets:
      - {provider: c, model: gpt}
      - {provider: a, model: claude}
      - {provider: r, model: o}
      - {provider: a, model: claude-2}
    recovery: {backoff: {jitter: 0}}
  responses: {targets: [{provider: r, model: o}, {provider: c, model: gpt}]}
  messages: {targets: [{provider: a, model: claude}, {provider: a, model: claude-2}]}
  mixed: {targets: [{provider: a, model: claude}, {provider: c, model: gpt}]}
";

/// Each provider has a key, and a header of its own.
async fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let provider = |name: &str, protocol: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("key-of-{name}")).unwrap();
        let file = file.display();
        format!(
            "  {name}: {{base_url: 'http://{name}.test/v1', profile: hosted, protocol: {protocol}, \
             credentials: [{{name: k, api_key: {{file: '{file}'}}}}], headers: {{x-{name}: '1'}}}}\n"
        )
    };
    let providers = [
        provider("c", "openai_chat"),
        provider("a", "anthropic_messages"),
        provider("r", "openai_responses"),
    ];
    Bench::configured(&format!("providers:\n{}{TARGETS}", providers.concat())).await
}

fn answer_of_messages(text: &str) -> Script {
    messages::response(&[messages::text(0, &[text])], "end_turn")
}

fn answer_of_responses(text: &str) -> Script {
    let mut stream = Responses::default();
    let all = [
        stream.created(),
        stream.text(0, text),
        stream.completed(json!([])),
    ];
    self::stream().data(all.concat()).end()
}

fn overloaded(retry_after: &str) -> Script {
    sent()
        .header("retry-after", retry_after)
        .head(529)
        .data(
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}})
                .to_string(),
        )
        .end()
}

fn native(protocol: Protocol, json: &str) -> Start {
    let native = NativeBody {
        protocol: protocol.into(),
        json: json.to_owned().into(),
    };
    Start {
        input: Some(Input::Native(native)),
        ..start()
    }
}

fn seeded() -> Start {
    let mut conversation = conversation("Hi");
    conversation.sampling = Some(Sampling {
        seed: Some(1),
        ..Sampling::default()
    });
    Start {
        input: Some(Input::Conversation(conversation)),
        ..start()
    }
}

fn providers(bench: &Bench) -> String {
    let received = bench.provider.received();
    received.iter().map(|send| &*send.provider).collect()
}

fn classes(ended: &Ended) -> Vec<Class> {
    let entries = ended.ledger().entries.iter();
    let verdicts = entries.filter_map(|entry| entry.verdict.as_ref());
    verdicts.map(|verdict| verdict.class()).collect()
}

fn skipped(ended: &Ended) -> Vec<(&str, &str)> {
    let skipped = ended.ledger().skipped.iter();
    skipped
        .map(|SkippedTarget { target, reason }| (&**target, &**reason))
        .collect()
}

/// Chat fails twice, the second time in its text; Messages is overloaded, once as a status and once in
/// its text; Responses answers.
fn a_bad_day(bench: &Bench) {
    bench.provider.then(status(503).end());
    bench
        .provider
        .then(stream().text("Hel").wait(secs(1)).reset());
    bench.provider.then(overloaded("3"));
    let begun = messages::block(0, json!({"type": "text", "text": "Hal"}));
    bench.provider.then(
        messages::begun()
            .data(begun)
            .wait(secs(1))
            .data(messages::error("overloaded_error", "Overloaded")),
    );
    bench.provider.then(answer_of_responses("Hello"));
}

#[tokio::test(start_paused = true)]
async fn each_class_has_its_way_through_three_protocols_inside_one_allowance() {
    let bench = bench().await;
    a_bad_day(&bench);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(
        ended.shape(),
        [
            "accepted",
            "attempt_started",
            "waiting",
            "attempt_started",
            "delta",
            "preview_reset",
            "attempt_started",
            "waiting",
            "attempt_started",
            "delta",
            "preview_reset",
            "attempt_started",
            "delta",
            "committed"
        ]
    );
    let started: Vec<_> = ended
        .started()
        .iter()
        .map(|s| (&*s.target, s.mode(), s.fallback, s.allowance_left))
        .collect();
    assert_eq!(
        started,
        [
            ("c/gpt", Mode::First, false, 10),
            ("c/gpt", Mode::Restart, false, 9),
            ("a/claude", Mode::Restart, true, 8),
            ("a/claude", Mode::Restart, true, 7),
            ("r/o", Mode::Restart, true, 6),
        ]
    );
    let void: Vec<u32> = ended.resets().iter().map(|reset| reset.attempt).collect();
    assert_eq!(void, [2, 4]);
    assert_eq!(ended.deltas(), ["Hel", "Hal", "Hello"]);
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.committed().model, "m-2026", "not claude-2026");

    let gaps: Vec<Duration> = (0..4).map(|send| bench.provider.gap(send)).collect();
    assert_eq!(gaps, [secs(1), secs(0), secs(3), secs(0)]);
    assert_eq!(ended.sends(), (5, 5));
    let ledger = ended.ledger();
    assert_eq!(ledger.waited.unwrap().seconds, 4);
    assert!(ledger.skipped.is_empty());
    let targets: Vec<&str> = ledger.entries.iter().map(|e| &*e.target).collect();
    assert_eq!(targets, ["c/gpt", "c/gpt", "a/claude", "a/claude", "r/o"]);
    let executed = ledger.entries.iter().all(|e| e.executed() == Executed::Yes);
    assert!(executed, "{:?}", ledger.entries);
    assert_eq!(
        classes(&ended),
        [
            Class::ProviderInternal,
            Class::Transport,
            Class::Overloaded,
            Class::Overloaded
        ]
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn each_send_is_written_in_the_protocol_of_its_target() {
    let bench = bench().await;
    a_bad_day(&bench);
    let mut asked = conversation("Say hello.");
    asked.system = "Be brief.".to_owned();
    let asked = Start {
        input: Some(Input::Conversation(asked)),
        ..start()
    };
    bench.generate(asked).await.end().await.committed();
    let sends = bench.provider.received();
    let paths: Vec<&str> = sends.iter().map(|send| &*send.path).collect();
    let (chat, messages) = ("/chat/completions", "/messages");
    assert_eq!(paths, [chat, chat, messages, messages, "/responses"]);
    assert!(sends.iter().all(|send| send.method == Method::POST));
    assert_eq!(sends[0].body, sends[1].body);
    assert_eq!(sends[2].body, sends[3].body);

    let key = |send: &Received, name: &str| send.headers.get(name).cloned();
    for (send, name, value) in [
        (&sends[0], "authorization", "Bearer key-of-c"),
        (&sends[2], "x-api-key", "key-of-a"),
        (&sends[4], "authorization", "Bearer key-of-r"),
    ] {
        assert_eq!(key(send, name).unwrap(), value);
        for own in ["x-c", "x-a", "x-r"] {
            let expected = own.ends_with(&send.provider);
            assert_eq!(send.headers.contains_key(own), expected, "{own}");
        }
        let version = send.headers.contains_key("anthropic-version");
        assert_eq!(version, send.provider == "a");
    }
    assert_eq!(key(&sends[2], AUTHORIZATION.as_str()), None);

    let chat = sends[0].json();
    assert_eq!(
        [&chat["model"], &chat["stream"]],
        [&json!("gpt"), &json!(true)]
    );
    assert_eq!(chat["messages"][0]["content"], "Be brief.");
    let messages = sends[2].json();
    assert_eq!(
        [&messages["model"], &messages["stream"]],
        [&json!("claude"), &json!(true)]
    );
    assert!(messages["system"].to_string().contains("Be brief."));
    assert_eq!(messages["messages"].as_array().unwrap().len(), 1);
    assert!(messages["max_tokens"].is_u64());
    let responses = sends[4].json();
    assert_eq!(
        [&responses["model"], &responses["stream"]],
        [&json!("o"), &json!(true)]
    );
    assert_eq!(responses["instructions"], "Be brief.");
    assert!(responses.get("messages").is_none());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_of_the_allowance_may_be_spent_before_the_last_target() {
    let bench = bench().await;
    bench.provider.then(status(503).end());
    bench.provider.then(status(503).end());
    bench.provider.then(overloaded("3"));
    let ended = bench.generate(start().on("brief")).await.end().await;
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Allowance);
    assert_eq!(ended.class(), Class::Overloaded);
    assert_eq!(providers(&bench), "cca");
    assert_eq!(ended.sends(), (3, 3));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_permanent_refusal_costs_one_send_per_target_and_an_invalid_request_one_in_all() {
    let bench = bench().await;
    bench.provider.then(status(401).end());
    bench.provider.then(status(404).end());
    bench.provider.then(status(403).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(providers(&bench), "car");
    let all = [Class::Auth, Class::NotFound, Class::Permission];
    assert_eq!(classes(&ended), all);
    assert_eq!(ended.class(), Class::Auth, "what the first said stands");
    assert_eq!(ended.code(), Code::FailedPrecondition);
    assert!(!ended.shape().contains(&"waiting"));
    bench.provider.then(status(400).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_native_body_is_replayed_as_it_is_and_only_where_its_protocol_is_spoken() {
    let bench = bench().await;
    bench.provider.then(status(500).end());
    bench.provider.then(status(500).end());
    bench.provider.then(answer_of_messages("Hello"));
    let body = "{\"model\" : \"claude\", \"max_tokens\":1.0e2,\n\"stream\":true, \"messages\":[] }";
    let asked = native(Protocol::AnthropicMessages, body).on("claudes");
    let ended = bench.generate(asked).await.end().await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(providers(&bench), "aaa");
    let other = |name: &str| format!("speaks {name}, which is not the body's protocol");
    assert_eq!(
        skipped(&ended),
        [
            ("c/gpt", &*other("PROTOCOL_OPENAI_CHAT")),
            ("r/o", &*other("PROTOCOL_OPENAI_RESPONSES"))
        ]
    );
    let started = ended.started();
    assert!(started.iter().all(|s| s.fallback), "{started:?}");
    let sends = bench.provider.received();
    assert_eq!([&sends[0].body, &sends[1].body], [body, body]);
    assert_eq!(sends[2].body, body.replace("claude", "claude-2"));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_native_body_that_fails_leaves_the_account_of_what_was_skipped() {
    let bench = bench().await;
    bench.provider.then(status(400).end());
    let asked = native(Protocol::OpenaiResponses, r#"{"input":"hi"}"#);
    let ended = bench.generate(asked).await.end().await;
    assert_eq!(ended.class(), Class::InvalidRequest);
    assert_eq!(providers(&bench), "r");
    let names: Vec<&str> = skipped(&ended).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["c/gpt", "a/claude"]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_native_body_that_no_target_speaks_is_refused() {
    let bench = bench().await;
    for (protocol, route) in [
        (Protocol::OpenaiChat, "messages"),
        (Protocol::OpenaiResponses, "messages"),
        (Protocol::AnthropicMessages, "responses"),
    ] {
        let asked = native(protocol, r#"{"max_tokens":1}"#).on(route);
        let ended = bench.generate(asked).await.end().await;
        refused(ended, Code::InvalidArgument, "start.native.protocol");
    }
    assert_eq!(bench.provider.sends(), 0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn without_fallback_a_native_body_must_be_of_the_first_target() {
    let bench = bench().await;
    let alone = |start: Start| Start {
        recovery: Some(RecoveryOptions {
            disable_fallback: true,
            ..RecoveryOptions::default()
        }),
        ..start
    };
    let asked = native(Protocol::OpenaiChat, r#"{"messages":[]}"#);
    let ended = bench
        .generate(alone(asked.clone().on("mixed")))
        .await
        .end()
        .await;
    assert!(
        ended.reason().contains("disable_fallback"),
        "{}",
        ended.reason()
    );
    refused(ended, Code::InvalidArgument, "start.native.protocol");
    assert_eq!(bench.provider.sends(), 0);
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(alone(asked)).await.end().await;
    assert_eq!(ended.message(), "Hello");
    assert!(skipped(&ended).is_empty(), "others were not asked for");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_first_target_has_no_form_for_is_refused_by_its_field() {
    let bench = bench().await;
    for route in ["mixed", "responses"] {
        let ended = bench.generate(seeded().on(route)).await.end().await;
        refused(
            ended,
            Code::InvalidArgument,
            "start.conversation.sampling.seed",
        );
    }
    assert_eq!(bench.provider.sends(), 0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_has_no_form_for_a_field_is_skipped_by_its_name() {
    let bench = bench().await;
    bench.provider.then(status(503).end());
    bench.provider.then(status(503).end());
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(seeded()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(providers(&bench), "ccc");
    let field = "start.conversation.sampling.seed: has no form in";
    assert_eq!(
        skipped(&ended),
        [
            ("a/claude", &*format!("{field} Anthropic Messages")),
            ("r/o", &*format!("{field} OpenAI Responses: leave it out"))
        ]
    );
    assert_eq!(bench.provider.received()[0].json()["seed"], 1);

    // Where the first is out of the question there is nowhere else to go.
    bench.provider.then(status(401).end());
    let ended = bench.generate(seeded()).await.end().await;
    assert_eq!(ended.class(), Class::Auth);
    assert_eq!(skipped(&ended).len(), 2);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_generations_of_a_scope_share_one_allowance_in_all_protocols() {
    let bench = bench().await;
    let scoped = || Start {
        scope: "turn".to_owned(),
        ..start().on("brief")
    };
    bench.provider.then(status(401).end());
    bench.provider.then(answer_of_messages("Hello"));
    let first = bench.generate(scoped()).await.end().await;
    assert_eq!(first.message(), "Hello");
    bench.provider.then(status(401).end());
    let second = bench.generate(scoped()).await.end().await;
    assert_eq!(second.failed().stopped_by(), StoppedBy::Allowance);
    assert_eq!(second.sends(), (1, 1));
    assert_eq!(providers(&bench), "cac");
    bench.finish().await;
}
