//! Which targets a start can go to, and what the ledger says of the others.

use redrive::proto::{Ledger, NativeBody, Protocol, Start, VerdictClass as Class, start::Input};
use serde_json::json;

use crate::support::{
    messages::{self, response},
    *,
};

/// A native body of Anthropic Messages.
fn native() -> Start {
    Start {
        input: Some(Input::Native(NativeBody {
            protocol: Protocol::AnthropicMessages.into(),
            json: br#"{"max_tokens":9,"messages":[]}"#.to_vec().into(),
        })),
        ..start()
    }
}

fn skipped(ledger: Option<&Ledger>) -> Vec<(&str, &str)> {
    let skipped = ledger.unwrap().skipped.iter();
    skipped
        .map(|target| (target.target.as_str(), target.reason.as_str()))
        .collect()
}

fn ledger_of(ended: &Ended) -> Option<&Ledger> {
    ended.committed().ledger.as_ref()
}

#[tokio::test(start_paused = true)]
async fn targets_of_another_protocol_are_skipped_and_the_first_sixteen_of_them_told() {
    let other: String = (0..17)
        .map(|n| format!("{{provider: b, model: m{n}}}, "))
        .collect();
    let bench = Bench::configured(&format!(
        "\
providers:
  a: {{protocol: anthropic_messages, base_url: 'http://a.test/v1'}}
  b: {{base_url: 'http://b.test/v1'}}
routes:
  default:
    targets: [{other}{{provider: a, model: claude}}]
"
    ))
    .await;
    bench
        .provider
        .then(response(&[messages::text(0, &["Hello"])], "end_turn"));
    let ended = bench.generate(native()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.sends(), (1, 1));
    let told = skipped(ledger_of(&ended));
    assert_eq!(told.len(), 16);
    let reason = "speaks PROTOCOL_OPENAI_CHAT, which is not the body's protocol";
    assert_eq!(told[0], ("b/m0", reason));
    assert_eq!(told[15], ("b/m15", reason));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_cannot_express_the_request_is_skipped_and_the_field_named() {
    let bench = Bench::configured(
        "\
providers:
  a: {protocol: anthropic_messages, base_url: 'http://a.test/v1'}
  b: {base_url: 'http://b.test/v1'}
routes:
  default:
    targets: [{provider: b, model: m}, {provider: a, model: claude}]
",
    )
    .await;
    bench.provider.then(answer("ok"));
    let mut seeded = conversation("Hi");
    seeded.sampling.get_or_insert_default().seed = Some(1);
    let seeded = Start {
        input: Some(Input::Conversation(seeded)),
        ..start()
    };
    let ended = bench.generate(seeded).await.end().await;
    assert_eq!(ended.message(), "ok");
    let told = skipped(ledger_of(&ended));
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, "a/claude");
    assert!(told[0].1.contains("sampling.seed"), "{told:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_of_the_clients_choice_has_not_the_window_of_the_targets_own() {
    let bench = Bench::configured(
        "\
providers:
  b: {base_url: 'http://b.test/v1'}
routes:
  default:
    models: ['m-*']
    targets: [{provider: b, model: m, context_window: 1000}, {provider: b, model: large, context_window: 9000}]
",
    )
    .await;
    let overflow = json!({"error": {"code": "context_length_exceeded", "message": "Too long."}});
    let refused = || status(400).data(overflow.to_string()).end();
    let model = |model: &str| Start {
        model: model.to_owned(),
        ..start()
    };
    bench.provider.then(refused());
    bench.provider.then(answer("ok"));
    let ended = bench.generate(model("")).await.end().await;
    assert_eq!(ended.message(), "ok");

    bench.provider.then(refused());
    let ended = bench.generate(model("m-2")).await.end().await;
    assert_eq!(ended.class(), Class::ContextOverflow);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}
