//! What generations learn from one another: circuits of targets, and credentials that rest.

use http::header::AUTHORIZATION;
use redrive::proto::{
    StoppedBy, VerdictClass as Class, Waiting, generate_response::Frame, waiting::Reason,
};
use tonic_types::StatusExt;

use crate::support::*;

/// `once` tries `a` a single time.
const PAIR: &str = "\
providers:
  a: {base_url: 'http://a.test/v1', profile: hosted}
  b: {base_url: 'http://b.test/v1', profile: hosted}
routes:
  default:
    targets: [{provider: a, model: m}, {provider: b, model: n}]
    recovery: {backoff: {jitter: 0}}
  once:
    targets: [{provider: a, model: m}]
    recovery: {max_attempts: 1}
";

async fn fails(bench: &Bench, script: Script) {
    bench.provider.then(script);
    bench
        .generate(start().on("once"))
        .await
        .end()
        .await
        .failed();
}

/// Five failures in a row, each of another kind.
async fn opened() -> Bench {
    let bench = Bench::configured(PAIR).await;
    let hello = || stream().text("Hel");
    for script in [
        status(500).end(),
        status(529).end(),
        status(504).end(),
        hello().reset(),
        hello().end(),
    ] {
        fails(&bench, script).await;
    }
    bench
}

/// The providers that were asked since `from`, in order.
fn asked(bench: &Bench, from: usize) -> String {
    let received = bench.provider.received();
    received[from..]
        .iter()
        .map(|send| &*send.provider)
        .collect()
}

async fn hello(bench: &Bench) -> Ended {
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    ended
}

#[tokio::test(start_paused = true)]
async fn four_failures_or_an_answer_between_them_open_nothing() {
    let bench = Bench::configured(PAIR).await;
    for _ in 0..4 {
        fails(&bench, status(500).end()).await;
    }
    bench.provider.then(answer("Hello"));
    bench
        .generate(start().on("once"))
        .await
        .end()
        .await
        .committed();
    for _ in 0..4 {
        fails(&bench, status(500).end()).await;
    }
    hello(&bench).await;
    assert_eq!(asked(&bench, 9), "a");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn five_failures_open_a_circuit_and_others_go_to_the_next_target_at_once() {
    let bench = opened().await;
    let (ended, took) = timed(hello(&bench)).await;
    assert_eq!(took, secs(0));
    let [started] = ended.started().try_into().unwrap();
    assert_eq!((&*started.target, started.fallback), ("b/n", true));
    assert_eq!(ended.shape()[..2], ["accepted", "attempt_started"]);
    // Not skipped: it could take the request, and may be tried later.
    assert!(ended.ledger().skipped.is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_usable_target_is_never_shut() {
    let bench = opened().await;
    bench.provider.then(status(401).end());
    bench.provider.then(answer("Hello"));
    // `b` refuses for good: `a` is all there is.
    let (ended, took) = timed(async { bench.generate(start()).await.end().await }).await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(took, secs(0));
    assert_eq!(asked(&bench, 5), "ba");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn after_30_s_one_generation_probes_and_its_success_lets_all_others_back() {
    let bench = opened().await;
    tokio::time::sleep(secs(29)).await;
    hello(&bench).await;
    tokio::time::sleep(secs(1)).await;
    bench
        .provider
        .by(|_| stream().text("Hello").wait(secs(5)).complete());
    let probing = bench.generate(start()).await;
    let other = bench.generate(start()).await;
    let (first, second) = tokio::join!(probing.end(), other.end());
    assert_eq!([first.message(), second.message()], ["Hello", "Hello"]);
    let sent = asked(&bench, 5);
    assert!(["bab", "bba"].contains(&&*sent), "{sent}");
    hello(&bench).await;
    assert_eq!(asked(&bench, 8), "a");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_moves_on_at_once_and_opens_it_again() {
    let bench = opened().await;
    tokio::time::sleep(secs(30)).await;
    bench.provider.then(status(500).end());
    let (_, took) = timed(hello(&bench)).await;
    assert_eq!(took, secs(0), "no second try there");
    assert_eq!(asked(&bench, 5), "ab");
    tokio::time::sleep(secs(29)).await;
    hello(&bench).await;
    tokio::time::sleep(secs(1)).await;
    hello(&bench).await;
    assert_eq!(asked(&bench, 7), "ba");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_cancelled_makes_room_for_another() {
    let bench = opened().await;
    tokio::time::sleep(secs(30)).await;
    bench.provider.then(stream().text("Hel"));
    let mut probe = bench.generate(start()).await;
    probe.text().await;
    hello(&bench).await;
    probe.send(cancel(""));
    probe.end().await;
    hello(&bench).await;
    assert_eq!(asked(&bench, 5), "aba");
    bench.finish().await;
}

/// One target whose provider has two keys; `pair` has another target.
async fn pool() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, name).unwrap();
        format!("{{name: {name}, api_key: {{file: '{}'}}}}", file.display())
    };
    let config = format!(
        "\
providers:
  a: {{base_url: 'http://a.test/v1', profile: hosted, credentials: [{}, {}]}}
  b: {{base_url: 'http://b.test/v1', profile: hosted}}
routes:
  default:
    targets: [{{provider: a, model: m}}]
    recovery: {{backoff: {{jitter: 0}}}}
  pair:
    targets: [{{provider: a, model: m}}, {{provider: b, model: n}}]
    recovery: {{backoff: {{jitter: 0}}}}
",
        key("one"),
        key("two")
    );
    Bench::configured(&config).await
}

fn refusal(code: &str, retry_after: Option<&str>) -> Script {
    let head = match retry_after {
        Some(wait) => sent().header("retry-after", wait).head(429),
        None => status(429),
    };
    head.data(error("Slow down", "requests", code)).end()
}

fn limited(retry_after: &str) -> Script {
    refusal("rate_limit_exceeded", Some(retry_after))
}

/// The keys of all sends since `from`; none is a dash.
fn keys(bench: &Bench, from: usize) -> Vec<String> {
    let received = bench.provider.received();
    let keys = received[from..].iter().map(|send| {
        let header = send.headers.get(AUTHORIZATION);
        let key = header.map(|key| key.to_str().unwrap().replace("Bearer ", ""));
        key.unwrap_or_else(|| "-".to_owned())
    });
    keys.collect()
}

fn waits(ended: &Ended) -> Vec<&Waiting> {
    let waits = ended.told().filter_map(|frame| match frame {
        Frame::Waiting(waiting) => Some(waiting),
        _ => None,
    });
    waits.collect()
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_moves_to_the_next_key_at_once_and_lets_the_first_one_rest() {
    let bench = pool().await;
    bench.provider.then(limited("30"));
    bench.provider.then(answer("Hello"));
    let (ended, took) = timed(async { bench.generate(start().on("pair")).await.end().await }).await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(took, secs(0));
    assert!(waits(&ended).is_empty());
    let targets: Vec<&str> = ended.started().iter().map(|s| &*s.target).collect();
    assert_eq!(targets, ["a/m", "a/m"], "the same target");
    assert_eq!(keys(&bench, 0), ["one", "two"]);
    tokio::time::sleep(secs(29)).await;
    hello(&bench).await;
    tokio::time::sleep(secs(1)).await;
    hello(&bench).await;
    assert_eq!(keys(&bench, 2), ["two", "one"]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn while_all_keys_rest_the_other_target_goes_or_the_first_to_return_is_waited_for() {
    let bench = pool().await;
    bench.provider.then(limited("40"));
    bench.provider.then(limited("30"));
    bench.provider.then(answer("from b"));
    let ended = bench.generate(start().on("pair")).await.end().await;
    assert_eq!(keys(&bench, 0), ["one", "two", "-"]);
    assert!(waits(&ended).is_empty());
    // One that comes later, and has nowhere else to go.
    tokio::time::sleep(secs(10)).await;
    let (ended, took) = timed(hello(&bench)).await;
    assert_eq!(took, secs(20));
    let [wait] = waits(&ended).try_into().unwrap();
    assert_eq!(wait.reason(), Reason::Cooldown);
    assert_eq!(wait.expected.unwrap().seconds, 20);
    assert_eq!(keys(&bench, 3), ["two"]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_generation_whose_keys_all_rest_waits_for_the_first_to_return() {
    let bench = pool().await;
    bench.provider.then(limited("40"));
    bench.provider.then(limited("30"));
    let (ended, took) = timed(hello(&bench)).await;
    assert_eq!(took, secs(30));
    let [wait] = waits(&ended).try_into().unwrap();
    assert_eq!(wait.expected.unwrap().seconds, 30);
    assert_eq!(keys(&bench, 0), ["one", "two", "two"]);
    assert_eq!(ended.ledger().waited.unwrap().seconds, 30);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_does_not_fit_is_no_target_with_the_soonest_return() {
    let bench = pool().await;
    bench.provider.then(limited("5400"));
    bench.provider.then(limited("3600"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::RateLimited);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::WaitTooLong);
    tokio::time::sleep(secs(100)).await;
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::NoTarget);
    let details = ended.status.as_ref().unwrap().get_error_details();
    let wait = details.retry_info().unwrap().retry_delay.unwrap();
    assert_eq!(wait, secs(3500));
    assert_eq!(bench.provider.sends(), 2);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_nobody_asked_for_is_not_told_as_if_the_provider_had() {
    let bench = pool().await;
    for _ in 0..2 {
        bench.provider.then(refusal("insufficient_quota", None));
        let ended = bench.generate(start()).await.end().await;
        assert_eq!(ended.class(), Class::QuotaExhausted);
        assert_eq!(ended.sends(), (1, 1), "one request per target");
    }
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::NoTarget);
    assert!(ended.reason().contains("3600s"), "{}", ended.reason());
    let details = ended.status.as_ref().unwrap().get_error_details();
    assert!(details.retry_info().is_none());
    assert_eq!(keys(&bench, 0), ["one", "two"]);
    bench.finish().await;
}
