//! Texts that are continued where they were cut off, in the dialects that have a form for it.

use redrive::proto::{
    Delivery, Mode, ResponseFormat, Start, StoppedBy, VerdictClass as Class,
    generate_response::Frame, start::Input,
};
use serde_json::{Value, json};

use crate::support::*;

async fn bench(dialect: &str) -> Bench {
    let config = format!(
        "\
providers:
  a: {{base_url: 'http://a.test/v1', profile: hosted, dialect: {dialect}, continue: prefill}}
  b: {{base_url: 'http://b.test/v1', profile: hosted}}
routes:
  default:
    targets: [{{provider: a, model: m}}]
    recovery: {{backoff: {{jitter: 0}}}}
  pair:
    targets: [{{provider: a, model: m}}, {{provider: b, model: n}}]
"
    );
    Bench::configured(&config).await
}

fn sent_bodies(bench: &Bench) -> Vec<Value> {
    let received = bench.provider.received();
    let bodies = received
        .iter()
        .map(|send| serde_json::from_slice(&send.body).unwrap());
    bodies.collect()
}

fn modes(ended: &Ended) -> Vec<Mode> {
    let started = ended.told().filter_map(|frame| match frame {
        Frame::AttemptStarted(started) => Some(started.mode()),
        _ => None,
    });
    started.collect()
}

/// More than is held back.
const REST: &str =
    " is blue, because the air scatters the short waves of the light more than the long ones.";

#[tokio::test(start_paused = true)]
async fn a_text_is_continued_in_every_dialect_that_is_known_to() {
    let last = |more: Value| {
        let mut message = json!({"role": "assistant", "content": "The sky"});
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        message
    };
    for (dialect, message, members) in [
        ("openrouter", last(json!({})), json!({})),
        ("llamacpp", last(json!({})), json!({})),
        ("ollama", last(json!({})), json!({})),
        ("mistral", last(json!({"prefix": true})), json!({})),
        ("deepseek", last(json!({"prefix": true})), json!({})),
        ("moonshot", last(json!({"partial": true})), json!({})),
        ("qwen", last(json!({"partial": true})), json!({})),
        (
            "sglang",
            last(json!({})),
            json!({"continue_final_message": true}),
        ),
        (
            "vllm",
            last(json!({})),
            json!({"continue_final_message": true, "add_generation_prompt": false}),
        ),
    ] {
        let bench = bench(dialect).await;
        bench.provider.then(stream().text("The sky ").reset());
        bench.provider.then(stream().text(REST).complete());
        let ended = bench.generate(start()).await.end().await;
        assert_eq!(ended.message(), format!("The sky{REST}"), "{dialect}");
        assert_eq!(
            ended.shape(),
            [
                "accepted",
                "attempt_started",
                "delta",
                "waiting",
                "attempt_started",
                "confirmed",
                "delta",
                "committed"
            ],
            "{dialect}"
        );
        assert_eq!(modes(&ended), [Mode::First, Mode::Continue]);
        let [first, second] = sent_bodies(&bench).try_into().unwrap();
        let mut expected = first;
        expected["messages"].as_array_mut().unwrap().push(message);
        for (member, value) in members.as_object().unwrap() {
            expected[member] = value.clone();
        }
        assert_eq!(second, expected, "{dialect}");
        bench.finish().await;
    }
}

/// One event of Anthropic Messages.
fn event(data: Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

fn anthropic(text: &str) -> Script {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}});
    stream()
        .data(event(json!({"type": "message_start", "message": message})))
        .data(event(json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}})))
        .data(event(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}})))
}

#[tokio::test(start_paused = true)]
async fn a_text_is_continued_over_anthropic_messages() {
    let config = "\
providers:
  a: {base_url: 'http://a.test/v1', protocol: anthropic_messages, continue: prefill}
routes:
  default: {targets: [{provider: a, model: claude-haiku-4-5}]}
";
    let bench = Bench::configured(config).await;
    bench.provider.then(anthropic("The sky\n").reset());
    let rest = anthropic("\nis blue.")
        .data(event(json!({"type": "content_block_stop", "index": 0})))
        .data(event(
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 4}}),
        ))
        .data(event(json!({"type": "message_stop"})));
    bench.provider.then(rest.end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "The sky\nis blue.");
    assert_eq!(ended.committed().message.len(), 1);
    let [_, second] = sent_bodies(&bench).try_into().unwrap();
    let last = second["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        last.contains("assistant") && last.contains("\"The sky\""),
        "{last}"
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_continuation_is_void_and_restarted_with_the_first_body() {
    let bench = bench("openrouter").await;
    bench.provider.then(stream().text("The sky").reset());
    let refusal = error(
        "Prefill is not supported",
        "invalid_request_error",
        "unsupported",
    );
    bench.provider.then(status(400).data(refusal).end());
    bench.provider.then(answer("It is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "It is blue.");
    assert_eq!(modes(&ended), [Mode::First, Mode::Continue, Mode::Restart]);
    let reset = ended.told().find_map(|frame| match frame {
        Frame::PreviewReset(reset) => Some(reset.clone()),
        _ => None,
    });
    let verdict = reset.unwrap().verdict.unwrap();
    assert_eq!((verdict.class(), verdict.attempt), (Class::Transport, 1));
    let bodies = sent_bodies(&bench);
    assert_eq!(bodies[0], bodies[2]);
    assert_ne!(bodies[0], bodies[1]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_begun_anew_is_never_seen() {
    let bench = bench("openrouter").await;
    bench.provider.then(stream().text("The sky is").reset());
    bench
        .provider
        .then(stream().text("The sky was green").complete());
    bench.provider.then(answer("It is blue."));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.deltas(), ["The sky is", "It is blue."]);
    assert_eq!(ended.message(), "It is blue.");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_echo_that_comes_in_pieces_is_never_seen() {
    let bench = bench("vllm").await;
    bench.provider.then(stream().text("The sky is").reset());
    let echo = stream()
        .text("The ")
        .text("sky is")
        .text(" blue.")
        .complete();
    bench.provider.then(echo);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.deltas(), ["The sky is", " blue."]);
    assert_eq!(ended.message(), "The sky is blue.");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn constrained_output_is_not_continued() {
    let bench = bench("openrouter").await;
    bench.provider.then(stream().text("{").reset());
    bench.provider.then(answer("{}"));
    let mut start = start();
    if let Some(Input::Conversation(conversation)) = &mut start.input {
        conversation.response_format = Some(ResponseFormat {
            json: true,
            ..ResponseFormat::default()
        });
    }
    let ended = bench.generate(start).await.end().await;
    assert_eq!(modes(&ended), [Mode::First, Mode::Restart]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn effects_do_not_stop_a_continuation() {
    let bench = bench("openrouter").await;
    bench
        .provider
        .then(stream().text("The sky").wait(secs(5)).reset());
    bench.provider.then(stream().text(REST).complete());
    let mut rpc = bench.generate(start().on("pair")).await;
    rpc.text().await;
    rpc.send(effects(rpc.sequence()));
    let ended = rpc.end().await;
    assert_eq!(ended.message(), format!("The sky{REST}"));
    assert_eq!(
        ended
            .shape()
            .iter()
            .filter(|name| **name == "confirmed")
            .count(),
        2
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_reset_a_refused_continuation_ends_it() {
    let bench = bench("openrouter").await;
    bench.provider.then(stream().text("The sky").reset());
    bench.provider.then(status(400).end());
    let start = Start {
        delivery: Delivery::PreviewNoReset.into(),
        ..start()
    };
    let ended = bench.generate(start).await.end().await;
    assert_eq!(ended.failed().stopped_by(), StoppedBy::NoReset);
    assert_eq!(ended.class(), Class::Transport);
    assert_eq!(ended.sends(), (2, 2));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_call_gets_the_whole_text() {
    let bench = bench("openrouter").await;
    bench.provider.then(stream().text("The sky").reset());
    bench.provider.then(stream().text(REST).complete());
    let completed = bench.complete(start_as("once")).await.unwrap();
    let message = completed.committed.unwrap().message;
    assert_eq!(message.len(), 1, "one text, however many attempts wrote it");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn who_attaches_gets_the_whole_text() {
    let bench = bench("openrouter").await;
    bench.provider.then(stream().text("The sky").reset());
    bench
        .provider
        .then(stream().text(REST).wait(secs(5)).complete());
    let mut rpc = bench.generate(start().with_grace(secs(60))).await;
    let id = rpc.id().await;
    rpc.text().await;
    rpc.vanish();
    tokio::time::sleep(secs(3)).await;
    let attached = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(attached.deltas(), ["The sky", REST]);
    assert_eq!(attached.message(), format!("The sky{REST}"));
    bench.finish().await;
}
