//! Budgets under attack: crowds that wait, drivers that die, clients that are gone.

use redrive::proto::{StoppedBy, VerdictClass as Class};

use crate::{
    budgets::{answers, waiting},
    support::*,
};

const FAIR: &str = "\
budgets:
  - {name: single, match: {provider: a}, concurrent: 1, fairness: {label: tenant}}
drain: {grace: 10s}
";

fn none_of(bench: &Bench, series: &str) {
    let text = bench.telemetry.render_metrics().unwrap();
    assert!(text.contains(&format!("{series} 0\n")), "{series}: {text}");
}

fn nothing_is_held(bench: &Bench) {
    none_of(
        bench,
        r#"redrive_budget_used{budget="single",limit="concurrent"}"#,
    );
    none_of(bench, r#"redrive_budget_waiting{budget="single"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_waits_of_a_crowd_of_tenants_at_once() {
    let bench = Bench::start_and(FAIR).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(3600)).complete());
    let mut first = bench.generate(start()).await;
    first.text().await;
    let mut crowd = Vec::new();
    for number in 0..500 {
        let mut start = start();
        let tenant = format!("{number:0>64}");
        start.labels.insert("tenant".to_owned(), tenant);
        let mut rpc = bench.generate(start).await;
        waiting(&mut rpc).await;
        crowd.push(rpc);
    }
    bench.drain.cancel();
    for rpc in crowd {
        let ended = rpc.end().await;
        assert_eq!(ended.class(), Class::Draining);
        assert_eq!(ended.failed().stopped_by(), StoppedBy::Drain);
        assert_eq!(ended.sends(), (0, 0));
    }
    first.end().await;
    bench.serving_ends().await;
    assert_eq!(bench.provider.sends(), 1);
    nothing_is_held(&bench);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_dies_holds_no_place() {
    let bench = Bench::start_and(FAIR).await;
    bench
        .provider
        .then(stream().text("oh").wait(secs(5)).panic())
        .then(answer("two"));
    let mut first = bench.generate(start()).await;
    first.text().await;
    let mut second = bench.generate(start()).await;
    waiting(&mut second).await;
    assert_eq!(first.end().await.class(), Class::Unclassified);
    let (ended, took) = timed(second.end()).await;
    assert_eq!(ended.message(), "two");
    assert_eq!(took, std::time::Duration::ZERO);
    nothing_is_held(&bench);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_generation_that_stalls_gives_its_place_to_who_waits() {
    let bench = Bench::start_and(FAIR).await;
    bench
        .provider
        .then(stream().text("one"))
        .then(answer("two"))
        .then(answer("one, anew"));
    let mut first = bench.generate(start_detached(secs(300))).await;
    let id = first.id().await;
    first.text().await;
    first.vanish();
    let mut second = bench.generate(start()).await;
    waiting(&mut second).await;
    assert_eq!(second.end().await.message(), "two");
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(ended.message(), "one, anew");
    nothing_is_held(&bench);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_complete_waits_like_any_other() {
    let bench = Bench::start_and(FAIR).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(30)).complete());
    answers(&bench);
    let mut first = bench.generate(start()).await;
    first.text().await;
    let (completed, took) = timed(bench.complete(start_as("r"))).await;
    assert!(completed.unwrap().committed.unwrap().r#final);
    assert_eq!(took, secs(30));
    first.end().await;
    nothing_is_held(&bench);
    bench.finish().await;
}
