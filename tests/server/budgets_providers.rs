//! What a provider says and does to the budgets of an attempt: refusals that let them rest, headers that
//! brake, answers that cost less than was reserved, and connections that never opened.

use std::time::Duration;

use redrive::{
    proto::{Mode, VerdictClass as Class, WaitSource, waiting::Reason},
    verdict::{Stage, transport::TransportKind},
};

use crate::{
    budgets::{answers, length, waiting, with_another_route},
    support::{responses::Responses, *},
};

/// Room for everything.
const WIDE: &str = "\
budgets:
  - {name: wide, match: {provider: a}, requests: [{limit: 100, window: 60s}]}
";

/// Output of two answers in a minute.
const TOKENS: &str = "\
budgets:
  - {name: tokens, match: {provider: a}, output_tokens: [{limit: 5000, window: 60s}], refund: all}
";

#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_wait_stops_others_then_one_tries_and_then_all_go() {
    // A rest of the one credential alone would let the other be used at once.
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulation/server/key");
    let credentials = [1, 2].map(|n| format!("{{name: k{n}, api_key: {{file: '{keys}{n}.txt'}}}}"));
    let config = CONFIG.replace(
        "'http://a.test/v1'",
        &format!(
            "'http://a.test/v1', credentials: [{}]",
            credentials.join(", ")
        ),
    );
    let bench = Bench::configured(&(config + WIDE)).await;
    bench
        .provider
        .then(sent().header("retry-after", "30").head(429).end())
        .then(
            stream()
                .wait(secs(5))
                .text("probe")
                .wait(secs(30))
                .complete(),
        );
    let refused = bench.generate(start()).await;
    settle().await;
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut other = bench.generate(start()).await;
        let told = waiting(&mut other).await;
        assert_eq!(
            (told.reason(), told.budget.as_str()),
            (Reason::Cooldown, "wide")
        );
        let expected = length(told.expected);
        assert!(expected >= secs(30), "never shorter: {expected:?}");
        others.push(other);
    }
    answers(&bench);
    let first = bench.provider.received()[0].at;
    for rpc in others {
        let ended = rpc.end().await;
        ended.message();
        assert_eq!(
            ended.ledger().entries[0].wait_source(),
            WaitSource::Provider
        );
    }
    refused.end().await.message();
    let received = bench.provider.received();
    assert_eq!(received.len(), 5);
    let probe = received[1].at;
    assert!(probe - first >= secs(30));
    for later in &received[2..] {
        assert!(
            later.at - probe >= secs(5) && later.at - probe < secs(30),
            "one tries first, until its answer begins: {:?} after the probe",
            later.at - probe
        );
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_stands_for_no_provider_does_not_rest_for_one() {
    let all = "budgets:\n  - {name: all, match: {}, requests: [{limit: 100, window: 60s}]}\n";
    let bench = Bench::configured(&with_another_route(all)).await;
    bench
        .provider
        .then(sent().header("retry-after", "700").head(429).end())
        .then(answer("ok"));
    let refused = bench.generate(start()).await.end().await;
    assert_eq!(refused.class(), Class::RateLimited);
    // The same budget, another provider.
    let (ended, took) = timed(bench.generate(start().on("other")).await.end()).await;
    assert_eq!((ended.message().as_str(), took), ("ok", Duration::ZERO));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn headers_of_an_answer_that_say_nothing_remains_hold_the_next_one_back() {
    for head in [200, 500] {
        let bench = Bench::start_and(WIDE).await;
        let with_headers = || {
            sent()
                .header("content-type", "text/event-stream")
                .header("x-ratelimit-remaining-requests", "0")
                .header("x-ratelimit-reset-requests", "20s")
                .head(head)
        };
        bench.provider.then(match head {
            200 => with_headers().text("ok").complete(),
            _ => with_headers().end(),
        });
        answers(&bench);
        let first = bench.generate(start()).await;
        settle().await;
        let (ended, took) = timed(bench.generate(start()).await.end()).await;
        ended.message();
        assert!(took >= secs(19) && took < secs(22), "{took:?}");
        first.end().await.message();
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_gives_back_what_it_did_not_use() {
    let bench = Bench::start_and(TOKENS).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(10)).complete())
        .then(answer("two"));
    let mut first = bench.generate(start()).await;
    first.text().await;
    // 4096 tokens are reserved for each, and 3 are used.
    let mut second = bench.generate(start()).await;
    waiting(&mut second).await;
    let (ended, took) = timed(second.end()).await;
    assert_eq!(ended.message(), "two");
    assert_eq!(took, secs(10), "as soon as the first is settled");
    first.end().await.message();
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_costs_what_was_seen() {
    let bench = Bench::start_and(TOKENS).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(100)))
        .then(answer("two"));
    let mut first = bench.generate(start()).await;
    first.text().await;
    first.vanish();
    settle().await;
    let (ended, took) = timed(bench.generate(start()).await.end()).await;
    assert_eq!(ended.message(), "two");
    assert_eq!(took, Duration::ZERO);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_never_sent_uses_nothing() {
    let bench = Bench::start_and(
        "budgets:\n  - {name: main, match: {provider: a}, requests: [{limit: 1, window: 60s}]}\n",
    )
    .await;
    bench
        .provider
        .then(Script::default().fail(TransportKind::Connect, Stage::Connect))
        .then(answer("ok"));
    let (ended, took) = timed(bench.generate(start()).await.end()).await;
    assert_eq!(ended.message(), "ok");
    assert_eq!(ended.sends(), (2, 1));
    assert!(took < secs(2), "a backoff and no window: {took:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_too_old_at_the_hand_over_is_not_used() {
    let bench = Bench::start_and(
        "budgets:\n  - {name: main, match: {provider: a}, requests: [{limit: 2, window: 60s}]}\n",
    )
    .await;
    // The connect timer is 10 s, and so is the life of a lease that is not sent.
    bench
        .provider
        .then(connecting().wait(secs(11)).hand_over().head(200))
        .then(answer("ok"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "ok");
    assert_eq!(ended.sends(), (2, 1));
    assert_eq!(bench.provider.may_have_received(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_reads_a_stored_response_on_takes_a_request_and_no_tokens() {
    let bench = Bench::configured(
        "\
providers:
  p: {base_url: 'http://p.test/v1', profile: hosted, protocol: openai_responses, resume: stored}
routes:
  default:
    targets: [{provider: p, model: m}]
    recovery: {backoff: {jitter: 0}}
budgets:
  - {name: tokens, match: {provider: p}, output_tokens: [{limit: 5000, window: 60s}], refund: all}
  - {name: requests, match: {provider: p}, requests: [{limit: 2, window: 60s}]}
",
    )
    .await;
    let mut events = Responses::default();
    let begun = events.stored("resp_1") + &events.text(0, "The sky");
    let output = serde_json::json!([{"type": "message", "id": "msg_1", "content": [
        {"type": "output_text", "text": "The sky is blue."}]}]);
    let rest = [
        events.text(0, " is blue."),
        events.text_done(0, "The sky is blue."),
        events.completed(output),
    ];
    bench
        .provider
        .then(stream().data(begun).wait(secs(1)).reset())
        .then(stream().data(rest.concat()).end());
    let (ended, took) = timed(bench.generate(start()).await.end()).await;
    assert_eq!(ended.message(), "The sky is blue.");
    assert_eq!(ended.modes(), [Mode::First, Mode::Resume]);
    assert!(took < secs(4), "4096 tokens are still reserved: {took:?}");
    // Both requests of the window are used.
    let mut next: Rpc = bench.generate(start()).await;
    let told = waiting(&mut next).await;
    assert_eq!(told.reason(), Reason::Budget);
    next.send(cancel(""));
    next.end().await;
    bench.finish().await;
}
