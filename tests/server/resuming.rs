//! RESUME: a response that OpenAI Responses stores is read on where it was cut off.

use http::{
    Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use redrive::proto::{
    Delivery, Delta, Mode, NativeBody, Part, Protocol, Start, StoppedBy, ToolCall,
    VerdictClass as Class, delta::Content, generate_response::Frame, part, start::Input,
};
use serde_json::{Value, json};

use crate::support::{responses::Responses, *};

async fn bench() -> Bench {
    Bench::configured(
        "\
providers:
  p: {base_url: 'http://p.test/v1', profile: hosted, protocol: openai_responses, resume: stored}
  q: {base_url: 'http://q.test/v1', profile: hosted, protocol: openai_responses}
routes:
  default:
    targets: [{provider: p, model: m}]
    recovery: {backoff: {jitter: 0}}
  forgetful:
    targets: [{provider: q, model: m}]
",
    )
    .await
}

/// "The sky" of a response that is stored, its last event number 1.
fn begun() -> (Responses, String) {
    let mut stream = Responses::default();
    let all = stream.stored("resp_1") + &stream.text(0, "The sky");
    (stream, all)
}

fn cut_off(events: String) -> Script {
    stream().data(events).wait(secs(1)).reset()
}

/// `text`, and the end of the response as it stands in the provider's store.
fn ending(mut stream: Responses, text: &str, whole: &str) -> Script {
    let output = json!([{"type": "message", "id": "msg_1", "content": [
        {"type": "output_text", "text": whole}]}]);
    let all = [
        stream.text(0, text),
        stream.text_done(0, whole),
        stream.completed(output),
    ];
    self::stream().data(all.concat()).end()
}

fn expired() -> Script {
    status(404)
        .data(error("Not found", "invalid_request_error", ""))
        .end()
}

fn anew(text: &str) -> Script {
    let mut stream = Responses::default();
    let events = stream.stored("resp_2");
    ending(stream, text, text).before(events)
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_for_with_a_get_and_nothing_is_void() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-1").unwrap();
    let config = format!(
        "\
providers:
  p:
    base_url: 'http://p.test/v1'
    protocol: openai_responses
    resume: stored
    credentials: [{{name: main, api_key: {{file: '{}'}}}}]
    headers: {{openai-project: 'proj_1'}}
routes:
  default: {{targets: [{{provider: p, model: m}}]}}
",
        key.display()
    );
    let bench = Bench::configured(&config).await;
    let (rest, first) = begun();
    bench.provider.then(cut_off(first));
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(
        ended.shape(),
        [
            "accepted",
            "attempt_started",
            "delta",
            "waiting",
            "attempt_started",
            "delta",
            "committed"
        ]
    );
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
    assert_eq!(ended.deltas(), ["The sky", " is blue."]);
    let committed = ended.committed();
    let whole = part::Part::Text("The sky is blue.".into());
    assert_eq!(committed.message, [Part { part: Some(whole) }]);
    assert_eq!(committed.model, "m-2026");
    assert!(committed.flags.is_empty(), "{:?}", committed.flags);

    let [post, get] = bench.provider.received().try_into().unwrap();
    assert_eq!(
        (post.method.clone(), &*post.path),
        (Method::POST, "/responses")
    );
    let body = post.json();
    assert_eq!([&body["background"], &body["store"]], [true, true]);
    assert_eq!(get.method, Method::GET);
    assert_eq!(get.path, "/responses/resp_1?stream=true&starting_after=1");
    assert!(get.body.is_empty());
    assert_eq!(get.headers[AUTHORIZATION], "Bearer sk-1");
    assert_eq!(get.headers[ACCEPT], "text/event-stream");
    assert_eq!(get.headers["openai-project"], "proj_1");
    assert!(!get.headers.contains_key(CONTENT_TYPE));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn its_tokens_are_counted_once_and_each_get_is_an_attempt() {
    let bench = bench().await;
    let (rest, first) = begun();
    bench.provider.then(cut_off(first));
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue."));
    let ended = bench.generate(start()).await.end().await;
    let ledger = ended.ledger();
    let whole = ended.committed().usage;
    assert_eq!(whole.unwrap().output_tokens, 5);
    assert_eq!(ledger.total_usage, whole);
    assert_eq!(ledger.void_output_tokens, 0);
    let entries: Vec<_> = ledger.entries.iter().map(|entry| entry.usage).collect();
    assert_eq!(entries, [None, whole]);
    let left: Vec<u32> = ended.started().iter().map(|s| s.allowance_left).collect();
    assert_eq!(left, [10, 9]);
    assert_eq!(ended.sends(), (2, 2));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn each_cut_asks_for_what_is_missing_since_the_last_whole_event() {
    let bench = bench().await;
    let (mut rest, first) = begun();
    // The event that the first cut goes through is lost, and comes again.
    let lost = rest.clone().text(0, " is");
    bench
        .provider
        .then(cut_off(first + &lost[..lost.len() - 9]));
    bench.provider.then(cut_off(rest.text(0, " is")));
    // Nothing new before the third.
    bench.provider.then(stream().end());
    bench
        .provider
        .then(ending(rest, " blue.", "The sky is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.deltas(), ["The sky", " is", " blue."]);
    assert_eq!(ended.message(), "The sky is blue.");
    assert!(ended.resets().is_empty());
    let cursors: Vec<_> = bench.provider.received()[1..]
        .iter()
        .map(|get| get.path.rsplit('=').next().unwrap().to_owned())
        .collect();
    assert_eq!(cursors, ["1", "2", "2"]);
    assert_eq!(ended.ledger().total_usage, ended.committed().usage);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn silence_and_events_that_are_known_already_change_nothing() {
    let bench = bench().await;
    let (rest, first) = begun();
    bench.provider.then(stream().data(first.clone()));
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue.").before(first));
    let ended = bench.generate(start()).await.end().await;
    let stall = ended.ledger().entries[0].verdict.clone().unwrap();
    assert_eq!(stall.class(), Class::Stall);
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
    assert_eq!(ended.deltas(), ["The sky", " is blue."]);
    assert_eq!(ended.message(), "The sky is blue.");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_whole_although_it_was_cut_off_in_its_arguments() {
    let bench = bench().await;
    let mut stream = Responses::default();
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
        "arguments": ""});
    let first = [
        stream.stored("resp_1"),
        stream.added(0, call.clone()),
        stream.arguments(0, "{\"a\":"),
    ];
    let mut whole = call;
    whole["arguments"] = "{\"a\":1}".into();
    let rest = [
        stream.arguments(0, "1}"),
        stream.done(0, whole.clone()),
        stream.completed(json!([whole])),
    ];
    bench.provider.then(cut_off(first.concat()));
    bench
        .provider
        .then(self::stream().data(rest.concat()).end());
    let ended = bench.generate(start()).await.end().await;
    let call = part::Part::ToolCall(ToolCall {
        id: "call_1".into(),
        name: "f".into(),
        arguments_json: "{\"a\":1}".into(),
    });
    assert_eq!(ended.committed().message, [Part { part: Some(call) }]);
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
    assert!(ended.resets().is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_expired_is_void_before_it_is_made_anew_from_the_same_request() {
    let bench = bench().await;
    let (_, first) = begun();
    bench.provider.then(cut_off(first));
    bench.provider.then(expired());
    bench.provider.then(anew("It is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume, Mode::Restart]);
    assert_eq!(
        ended.shape(),
        [
            "accepted",
            "attempt_started",
            "delta",
            "waiting",
            "attempt_started",
            "preview_reset",
            "attempt_started",
            "delta",
            "committed"
        ]
    );
    let [reset] = ended.resets().try_into().unwrap();
    let verdict = reset.verdict.as_ref().unwrap();
    assert_eq!((reset.attempt, verdict.class()), (1, Class::Transport));
    assert_eq!(ended.message(), "It is blue.");
    assert_eq!(ended.sends(), (3, 3));
    let sent = bench.provider.received();
    assert_eq!(
        (&sent[0].method, &sent[0].body),
        (&sent[2].method, &sent[2].body)
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_new_one_is_read_on_in_turn() {
    let bench = bench().await;
    let (_, first) = begun();
    bench.provider.then(cut_off(first));
    bench.provider.then(expired());
    let mut stream = Responses::default();
    let second = stream.stored("resp_2") + &stream.text(0, "It is");
    bench.provider.then(cut_off(second));
    bench.provider.then(ending(stream, " blue.", "It is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "It is blue.");
    let get = &bench.provider.received()[3];
    assert_eq!(get.path, "/responses/resp_2?stream=true&starting_after=1");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn effects_do_not_stop_it_but_hold_on_to_what_expired() {
    for found in [true, false] {
        let bench = bench().await;
        let (rest, first) = begun();
        bench
            .provider
            .then(stream().data(first).wait(secs(5)).reset());
        bench.provider.then(match found {
            true => ending(rest, " is blue.", "The sky is blue."),
            false => expired(),
        });
        let mut rpc = bench.generate(start()).await;
        rpc.text().await;
        rpc.send(effects(rpc.sequence()));
        let ended = rpc.end().await;
        assert!(ended.shape().contains(&"confirmed"));
        assert!(ended.resets().is_empty());
        assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
        if found {
            assert_eq!(ended.message(), "The sky is blue.");
        } else {
            assert_eq!(ended.failed().stopped_by(), StoppedBy::Effects);
            assert_eq!(ended.class(), Class::Transport);
            assert!(!ended.failed().safe_to_send_again);
        }
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn clients_without_resets_and_without_deltas_get_the_whole_of_it() {
    for (delivery, deltas) in [
        (Delivery::PreviewNoReset, &["The sky", " is blue."][..]),
        (Delivery::CommittedOnly, &[]),
    ] {
        let bench = bench().await;
        let (rest, first) = begun();
        bench.provider.then(cut_off(first));
        bench
            .provider
            .then(ending(rest, " is blue.", "The sky is blue."));
        let ended = bench.generate(start_delivered(delivery)).await.end().await;
        assert_eq!(ended.message(), "The sky is blue.");
        assert_eq!(ended.deltas(), deltas);
        assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
        bench.finish().await;
    }
}

fn native(body: &str) -> Start {
    let native = NativeBody {
        protocol: Protocol::OpenaiResponses.into(),
        json: body.to_owned().into(),
    };
    Start {
        input: Some(Input::Native(native)),
        ..start()
    }
}

#[tokio::test(start_paused = true)]
async fn a_native_body_is_read_on_only_if_it_asked_for_the_background() {
    let bench = bench().await;
    let (rest, first) = begun();
    bench.provider.then(cut_off(first));
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue."));
    let asks = r#"{"model":"m","stream":true,"input":"hi","background":true}"#;
    let ended = bench.generate(native(asks)).await.end().await;
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
    assert_eq!(bench.provider.received()[0].body, asks);

    let mut stream = Responses::default();
    let first = stream.created() + &stream.text(0, "The sky");
    bench.provider.then(cut_off(first));
    bench.provider.then(anew("It is blue."));
    let asks = r#"{"model":"m","stream":true,"input":"hi","store":true}"#;
    let ended = bench.generate(native(asks)).await.end().await;
    assert_eq!(ended.modes(), [Mode::First, Mode::Restart]);
    assert_eq!(ended.resets().len(), 1);
    let sent = bench.provider.received();
    assert_eq!([&sent[2].body, &sent[3].body], [asks, asks]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn where_it_is_not_configured_nothing_is_read_on() {
    let bench = bench().await;
    let (_, first) = begun();
    bench.provider.then(cut_off(first));
    bench.provider.then(anew("It is blue."));
    let asks = r#"{"model":"m","stream":true,"input":"hi","background":true}"#;
    let start = native(asks).on("forgetful");
    let ended = bench.generate(start).await.end().await;
    assert_eq!(ended.modes(), [Mode::First, Mode::Restart]);
    assert_eq!(ended.message(), "It is blue.");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_passing_refusal_of_the_get_is_waited_out() {
    let bench = bench().await;
    let (rest, first) = begun();
    bench.provider.then(cut_off(first));
    bench.provider.then(limited("20"));
    bench.provider.then(status(503).end());
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "The sky is blue.");
    assert_eq!(ended.modes()[1..], [Mode::Resume; 3]);
    assert_eq!(bench.provider.gap(1), secs(20));
    assert!(ended.resets().is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_providers_own_events_come_once_each_and_in_order() {
    let bench = bench().await;
    let (mut rest, first) = begun();
    let mut ahead = rest.clone();
    ahead.skip();
    let lost = ahead.text(0, " blue.");
    bench.provider.then(stream().data(first.clone() + &lost));
    // More than what is missing, and broken off in the middle.
    let next = rest.text(0, " is");
    let again = first + &next + "data: {\"type\":\n\n";
    bench.provider.then(stream().data(again));
    bench
        .provider
        .then(ending(rest, " blue.", "The sky is blue."));
    let start = Start {
        include_native_events: true,
        ..start()
    };
    let ended = bench.generate(start).await.end().await;
    assert_eq!(ended.message(), "The sky is blue.");
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume, Mode::Resume]);
    let numbers: Vec<u64> = ended
        .told()
        .filter_map(|frame| match frame {
            Frame::Delta(Delta {
                content: Some(Content::NativeEvent(json)),
                ..
            }) => serde_json::from_slice::<Value>(json).unwrap()["sequence_number"].as_u64(),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    bench.finish().await;
}

/// A provider with two keys, of which the first rests for 30 s: the response is made with the second.
async fn made_with_the_second_key(script: impl Fn() -> Script) -> (Bench, Rpc) {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, name).unwrap();
        format!("{{name: {name}, api_key: {{file: '{}'}}}}", file.display())
    };
    let config = format!(
        "\
providers:
  p:
    base_url: 'http://p.test/v1'
    profile: hosted
    protocol: openai_responses
    resume: stored
    credentials: [{}, {}]
routes:
  default: {{targets: [{{provider: p, model: m}}]}}
",
        key("one"),
        key("two")
    );
    let bench = Bench::configured(&config).await;
    bench.provider.then(limited("30"));
    bench.provider.then(script());
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    (bench, rpc)
}

fn limited(retry_after: &str) -> Script {
    let limit = error("Slow down", "requests", "rate_limit_exceeded");
    let head = sent().header("retry-after", retry_after).head(429);
    head.data(limit).end()
}

fn keys(bench: &Bench) -> Vec<String> {
    let received = bench.provider.received();
    let keys = received
        .iter()
        .map(|send| send.headers[AUTHORIZATION].to_str().unwrap());
    keys.map(|key| key.replace("Bearer ", "")).collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_for_with_the_key_that_it_was_made_with() {
    let (rest, first) = begun();
    let cut = || stream().data(first.clone()).wait(secs(40)).reset();
    let (bench, rpc) = made_with_the_second_key(cut).await;
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue."));
    let ended = rpc.end().await;
    assert_eq!(ended.message(), "The sky is blue.");
    assert_eq!(keys(&bench), ["one", "two", "two"]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn another_key_may_be_of_the_same_account_while_that_one_rests() {
    let (rest, first) = begun();
    let cut = || stream().data(first.clone()).wait(secs(40)).reset();
    let (bench, rpc) = made_with_the_second_key(cut).await;
    // Another generation learns that the second rests too, and waits for the first.
    bench.provider.then(limited("60"));
    bench.provider.then(anew("It is blue."));
    let other = bench.generate(start()).await;
    bench
        .provider
        .then(ending(rest, " is blue.", "The sky is blue."));
    let (ended, other) = tokio::join!(rpc.end(), other.end());
    assert_eq!(ended.message(), "The sky is blue.");
    assert_eq!(other.message(), "It is blue.");
    assert_eq!(keys(&bench), ["one", "two", "two", "one", "one"]);
    bench.finish().await;
}
