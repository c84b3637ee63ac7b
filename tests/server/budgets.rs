//! Generations that wait for a budget: what they are told, in which order they go, and what is left of
//! one that gives up.

use std::time::Duration;

use redrive::proto::{
    StoppedBy, VerdictClass as Class, WaitSource, Waiting, generate_response::Frame,
    waiting::Reason,
};
use tonic::Code;

use crate::support::*;

/// One request a minute.
const ONE_A_MINUTE: &str = "\
budgets:
  - {name: main, match: {provider: a}, requests: [{limit: 1, window: 60s}]}
";

/// One at a time.
const ONE_AT_A_TIME: &str = "\
budgets:
  - {name: single, match: {provider: a}, concurrent: 1}
";

/// [`CONFIG`] with a route `other`, to provider `b` alone, and with more at its end.
pub fn with_another_route(more: &str) -> String {
    let other = "routes:\n  other:\n    targets: [{provider: b, model: m}]\n";
    CONFIG.replace("routes:\n", other) + more
}

/// The next frame, which must be a wait.
pub async fn waiting(rpc: &mut Rpc) -> Waiting {
    match rpc
        .until(|frame| !matches!(frame, Frame::Accepted(_)))
        .await
    {
        Frame::Waiting(waiting) => waiting,
        other => panic!("{other:?} instead of a wait"),
    }
}

pub fn length(duration: Option<prost_types::Duration>) -> Duration {
    duration.expect("a duration").try_into().unwrap()
}

/// Answers everything at once.
pub fn answers(bench: &Bench) {
    bench.provider.always(|| answer("ok"));
}

#[tokio::test(start_paused = true)]
async fn the_second_generation_waits_for_the_window_and_then_goes() {
    let bench = Bench::start_and(ONE_A_MINUTE).await;
    answers(&bench);
    assert_eq!(bench.generate(start()).await.end().await.message(), "ok");
    let mut second = bench.generate(start()).await;
    let told = waiting(&mut second).await;
    assert_eq!(
        (told.reason(), told.budget.as_str()),
        (Reason::Budget, "main")
    );
    let expected = length(told.expected);
    assert_eq!(bench.provider.sends(), 1);
    let (ended, took) = timed(second.end()).await;
    assert_eq!(
        ended.shape(),
        [
            "accepted",
            "waiting",
            "attempt_started",
            "delta",
            "committed"
        ]
    );
    assert!(
        took >= expected && took < expected + secs(1),
        "{took:?}, told {expected:?}"
    );
    let gap = bench.provider.received()[1].at - bench.provider.received()[0].at;
    assert!(gap >= secs(60) && gap < secs(62), "{gap:?}");
    let entry = &ended.ledger().entries[0];
    assert_eq!(entry.wait_source(), WaitSource::Budget);
    let waited = length(entry.waited);
    assert!(
        waited >= expected && waited < expected + secs(1),
        "{waited:?}"
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn they_go_in_the_order_of_asking_one_per_window() {
    let bench = Bench::start_and(ONE_A_MINUTE).await;
    answers(&bench);
    let mut rpcs = Vec::new();
    for _ in 0..4 {
        rpcs.push(bench.generate(start()).await);
        settle().await;
    }
    for rpc in rpcs {
        rpc.end().await.message();
    }
    let received = bench.provider.received();
    for pair in received.windows(2) {
        assert!(pair[1].at - pair[0].at >= secs(60));
    }
    let took = received[3].at - received[0].at;
    assert!(took < secs(186), "the window is used: {took:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_leaves_no_place_in_line_and_uses_nothing() {
    type GiveUp = fn(Rpc);
    let ways: [GiveUp; 2] = [|rpc| rpc.send(cancel("")), Rpc::vanish];
    for give_up in ways {
        let bench = Bench::start_and(ONE_A_MINUTE).await;
        answers(&bench);
        bench.generate(start()).await.end().await.message();
        let mut gone = bench.generate(start()).await;
        waiting(&mut gone).await;
        let mut next = bench.generate(start()).await;
        waiting(&mut next).await;
        give_up(gone);
        next.end().await.message();
        let gap = bench.provider.gap(0);
        assert!(gap < secs(62), "the next one takes its place: {gap:?}");
        assert_eq!(bench.provider.sends(), 2);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_at_once() {
    let bench = Bench::start_and(ONE_A_MINUTE).await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    let mut rpc = bench.generate(start()).await;
    waiting(&mut rpc).await;
    rpc.send(cancel(""));
    let (ended, took) = timed(rpc.end()).await;
    assert_eq!(took, Duration::ZERO);
    assert_eq!(ended.code(), Code::Cancelled);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Cancel);
    assert_eq!(ended.sends(), (0, 0));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_is_one_at_a_time_however_it_ends() {
    let bench = Bench::start_and(ONE_AT_A_TIME).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(30)).complete())
        .then(
            status(400)
                .data(error("no", "invalid_request_error", ""))
                .end(),
        )
        .then(stream().text("three").wait(secs(30)))
        .then(answer("four"));
    let mut first = bench.generate(start()).await;
    first.text().await;
    let mut second = bench.generate(start()).await;
    let told = waiting(&mut second).await;
    assert_eq!((told.budget.as_str(), told.expected), ("single", None));
    let mut third = bench.generate(start()).await;
    waiting(&mut third).await;
    let mut fourth = bench.generate(start()).await;
    waiting(&mut fourth).await;
    assert_eq!(bench.provider.sends(), 1);
    assert_eq!(first.end().await.message(), "one");
    assert_eq!(second.end().await.class(), Class::InvalidRequest);
    third.text().await;
    settle().await;
    assert_eq!(bench.provider.sends(), 3, "the fourth still waits");
    third.vanish();
    assert_eq!(fourth.end().await.message(), "four");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_unknown_length_ends_with_the_callers_deadline_and_names_the_budget() {
    let bench = Bench::start_and(ONE_AT_A_TIME).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(30)).complete());
    let mut first = bench.generate(start()).await;
    first.text().await;
    let second = bench.generate_within(secs(5), start()).await.end().await;
    assert_eq!(second.code(), Code::DeadlineExceeded);
    assert_eq!(second.class(), Class::Deadline);
    let verdict = second.failed().verdict.clone().unwrap();
    assert_eq!(
        (verdict.budget.as_str(), verdict.limit.as_str()),
        ("single", "concurrent: 1")
    );
    first.end().await.message();
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_generation_waits_on_and_who_attaches_is_told_of_the_rest() {
    let bench = Bench::start_and(ONE_A_MINUTE).await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    let mut rpc = bench.generate(start_detached(secs(100))).await;
    let id = rpc.id().await;
    let whole = length(waiting(&mut rpc).await.expected);
    rpc.vanish();
    tokio::time::sleep(secs(20)).await;
    let mut rpc = bench.first(attach_to(&id)).await;
    let rest = length(waiting(&mut rpc).await.expected);
    assert_eq!(rest, whole - secs(20));
    rpc.vanish();
    tokio::time::sleep(secs(60)).await;
    assert_eq!(bench.provider.sends(), 2);
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(ended.message(), "ok");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_wait_when_its_grace_is_over() {
    let bench = Bench::start_and(&format!("{ONE_AT_A_TIME}drain: {{grace: 10s}}\n")).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(3600)).complete());
    let mut first = bench.generate(start()).await;
    first.text().await;
    let mut second = bench.generate(start()).await;
    waiting(&mut second).await;
    bench.drain.cancel();
    let (ended, took) = timed(second.end()).await;
    assert_eq!(ended.class(), Class::Draining);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Drain);
    assert!(took >= secs(9) && took < secs(11), "{took:?}");
    assert_eq!(ended.sends(), (0, 0));
    first.end().await;
    bench.serving_ends().await;
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_budget_holds_no_connection() {
    let bench = Bench::with_slots(&with_another_route(ONE_A_MINUTE), 1).await;
    answers(&bench);
    bench.generate(start()).await.end().await.message();
    let mut limited = bench.generate(start()).await;
    waiting(&mut limited).await;
    let (ended, took) = timed(bench.generate(start().on("other")).await.end()).await;
    assert_eq!((ended.message().as_str(), took), ("ok", Duration::ZERO));
    limited.end().await.message();
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_comes_while_no_connection_is_free_goes_to_who_has_one() {
    let bench = Bench::with_slots(&with_another_route(ONE_A_MINUTE), 1).await;
    bench
        .provider
        .then(answer("one"))
        .then(
            stream()
                .text("long")
                .keepalives(secs(100), secs(20))
                .complete(),
        )
        .then(answer("two"));
    bench.generate(start()).await.end().await.message();
    let mut limited = bench.generate(start()).await;
    waiting(&mut limited).await;
    let mut long = bench.generate(start().on("other")).await;
    long.text().await;
    let told = waiting(&mut limited).await;
    assert_eq!(told.reason(), Reason::Connection, "the budget has room now");
    long.end().await.message();
    let ended = limited.end().await;
    assert_eq!(ended.message(), "two");
    let waited = length(ended.ledger().entries[0].waited);
    assert!(waited >= secs(100) && waited < secs(101), "{waited:?}");
    bench.finish().await;
}
