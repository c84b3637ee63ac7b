//! Generations that a budget cannot let through: what they end with, and where they go instead.

use redrive::proto::{StoppedBy, Verdict, VerdictClass as Class};
use tonic::Code;
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    budgets::{answers, length, waiting},
    support::*,
};

/// One request a minute of provider `a`, whose routes wait for 30 s at most.
const HURRIED: &str = "\
providers:
  a: {base_url: 'http://a.test/v1', profile: hosted}
  b: {base_url: 'http://b.test/v1', profile: hosted}
routes:
  default:
    targets: [{provider: a, model: m}]
    recovery: {deadline: 30s, backoff: {jitter: 0}}
  pair:
    targets: [{provider: a, model: m}, {provider: b, model: n}]
    recovery: {deadline: 30s}
budgets:
  - {name: main, match: {provider: a}, requests: [{limit: 1, window: 60s}]}
";

fn verdict(ended: &Ended) -> Verdict {
    ended.failed().verdict.clone().unwrap()
}

fn details(ended: &Ended) -> ErrorDetails {
    let status = ended.status.as_ref().unwrap();
    assert!(status.details().len() < 4096);
    status.get_error_details()
}

/// The one violation of a quota: its subject and its description.
fn violation(ended: &Ended) -> (String, String) {
    let details = details(ended);
    let violations = &details.quota_failure().expect("a quota").violations;
    assert_eq!(violations.len(), 1);
    (
        violations[0].subject.clone(),
        violations[0].description.clone(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_refused_at_once_and_says_when_to_come_back() {
    let bench = Bench::configured(HURRIED).await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    tokio::time::sleep(secs(10)).await;
    let (ended, took) = timed(bench.generate(start()).await.end()).await;
    assert_eq!(took, std::time::Duration::ZERO);
    assert_eq!(
        ended.shape(),
        ["accepted", "failed"],
        "nothing was waited for"
    );
    assert_eq!(ended.class(), Class::RateLimited);
    assert_eq!(ended.code(), Code::ResourceExhausted);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Limiter);
    assert!(ended.failed().safe_to_send_again);
    assert_eq!(ended.sends(), (0, 0));
    let wait = length(verdict(&ended).retry_after);
    assert!(wait >= secs(50) && wait < secs(52), "{wait:?}");
    let told = details(&ended).retry_info().unwrap().retry_delay;
    assert_eq!(told, Some(wait));
    assert_eq!(
        violation(&ended),
        ("budget:main".to_owned(), "requests: 1 in 1m".to_owned())
    );
    // Who comes back then is let through.
    tokio::time::sleep(wait).await;
    let (ended, took) = timed(bench.generate(start()).await.end()).await;
    assert_eq!(
        (ended.message().as_str(), took),
        ("ok", std::time::Duration::ZERO)
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_bounds_the_wait_too() {
    let bench = Bench::start_and(
        "budgets:\n  - {name: main, match: {}, requests: [{limit: 1, window: 60s}]}\n",
    )
    .await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    let (ended, took) = timed(bench.generate_within(secs(20), start()).await.end()).await;
    assert_eq!(took, std::time::Duration::ZERO);
    assert_eq!(ended.class(), Class::RateLimited);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn another_target_is_taken_where_a_wait_does_not_fit() {
    let bench = Bench::configured(HURRIED).await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    let ended = bench.generate(start().on("pair")).await.end().await;
    assert_eq!(ended.message(), "ok");
    assert_eq!(
        ended.shape(),
        ["accepted", "attempt_started", "delta", "committed"]
    );
    assert_eq!(bench.provider.received()[1].provider, "b");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn more_than_a_budget_can_ever_hold_is_refused_for_good_or_goes_elsewhere() {
    let bench = Bench::start_and(
        "budgets:\n  - {name: small, match: {provider: a}, output_tokens: [{limit: 10, window: 60s}]}\n",
    )
    .await;
    answers(&bench);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::ExceedsLimit);
    assert_eq!(ended.code(), Code::InvalidArgument);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Limiter);
    let (subject, description) = violation(&ended);
    assert_eq!(subject, "budget:small");
    assert_eq!(description, "output_tokens: 10 in 1m; 4096 asked for");
    assert!(ended.reason().contains("4096"), "{}", ended.reason());
    assert!(details(&ended).retry_info().is_none());
    let ended = bench.generate(start().on("pair")).await.end().await;
    assert_eq!(ended.message(), "ok");
    assert_eq!(bench.provider.received()[0].provider, "b");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_more_than_may_wait_is_refused_at_once() {
    let bench = Bench::start_and(
        "budgets:\n  - {name: main, match: {provider: a}, requests: [{limit: 1, window: 60s}], max_waiting: 2}\n",
    )
    .await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    let mut queued = Vec::new();
    for _ in 0..2 {
        let mut rpc = bench.generate(start()).await;
        waiting(&mut rpc).await;
        queued.push(rpc);
    }
    let (ended, took) = timed(bench.generate(start()).await.end()).await;
    assert_eq!(took, std::time::Duration::ZERO);
    assert_eq!(ended.class(), Class::RateLimited);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Limiter);
    assert_eq!(
        violation(&ended),
        ("budget:main".to_owned(), "max_waiting: 2".to_owned())
    );
    // When one who comes then would find room is known.
    let told = length(verdict(&ended).retry_after);
    assert!(told >= secs(60), "{told:?}");
    let details = details(&ended);
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(told));
    for rpc in queued {
        rpc.end().await.message();
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_does_not_mask_what_an_attempt_ended_with() {
    let bench = Bench::configured(HURRIED).await;
    bench.provider.then(status(500).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::ProviderInternal);
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Limiter);
    assert_eq!(ended.sends(), (1, 1));
    assert_eq!(violation(&ended).0, "budget:main");
    let wait = details(&ended).retry_info().unwrap().retry_delay.unwrap();
    assert!(wait >= secs(58) && wait < secs(61), "{wait:?}");
    bench.finish().await;
}
