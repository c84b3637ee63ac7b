//! Tokens are counted for the target that is reserved, beside the runtime, and hold nobody else up.

use std::{future::Future, sync::mpsc};

use redrive::proto::VerdictClass as Class;
use tokio::{runtime::Builder, task::spawn_blocking};

use crate::support::*;

fn limited(provider: &str) -> String {
    let limit = "input_tokens: [{limit: 50000, window: 60s}]";
    format!("budgets:\n  - {{name: main, match: {{provider: {provider}}}, {limit}}}\n")
}

/// More than is counted at once.
fn large() -> redrive::proto::Start {
    asking("x ".repeat(10_000))
}

fn asking(text: String) -> redrive::proto::Start {
    redrive::proto::Start {
        input: Some(redrive::proto::start::Input::Conversation(conversation(
            &text,
        ))),
        ..start()
    }
}

/// Runs `test` where nothing can be counted beside the runtime until it drops what it is given.
fn held_up<F: Future<Output = ()>>(test: impl FnOnce(mpsc::Sender<()>) -> F) {
    let mut builder = Builder::new_current_thread();
    let builder = builder.enable_all().start_paused(true);
    let runtime = builder.max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (release, held) = mpsc::channel::<()>();
        spawn_blocking(move || held.recv().is_err());
        test(release).await;
    });
}

#[test]
fn a_large_prompt_that_is_counted_delays_no_other_generation() {
    held_up(|release| async move {
        let bench = Bench::start_and(&limited("a")).await;
        bench.provider.always(|| answer("ok"));
        let mut counted = bench.generate(large()).await;
        counted.id().await;
        assert_eq!(bench.generate(start()).await.end().await.message(), "ok");
        assert_eq!(bench.provider.sends(), 1, "the large one is not counted");
        drop(release);
        let ended = counted.end().await;
        assert_eq!(ended.message(), "ok");
        let shape = ["accepted", "attempt_started", "delta", "committed"];
        assert_eq!(ended.shape(), shape, "counting is no wait");
        assert_eq!(bench.provider.sends(), 2);
        bench.finish().await;
    });
}

#[test]
fn a_fallback_is_counted_only_when_it_is_reserved() {
    held_up(|release| async move {
        let bench = Bench::start_and(&limited("b")).await;
        bench.provider.then(answer("first"));
        let ended = bench.generate(large().on("pair")).await.end().await;
        assert_eq!(ended.message(), "first");
        bench
            .provider
            .then(status(401).end())
            .then(answer("second"));
        let mut rpc = bench.generate(large().on("pair")).await;
        rpc.id().await;
        settle().await;
        assert_eq!(bench.provider.sends(), 2, "the fallback is being counted");
        drop(release);
        assert_eq!(rpc.end().await.message(), "second");
        bench.finish().await;
    });
}

#[test]
fn one_that_is_cancelled_while_it_is_counted_leaves_nothing_behind() {
    held_up(|release| async move {
        let bench = Bench::start_and(&limited("a")).await;
        let mut rpc = bench.generate(large()).await;
        rpc.id().await;
        rpc.send(cancel("enough"));
        let ended = rpc.end().await;
        assert_eq!(ended.class(), Class::Cancelled);
        assert_eq!(ended.sends(), (0, 0));
        assert_eq!(bench.provider.sends(), 0);
        drop(release);
        // The next one is counted behind it.
        bench.provider.then(answer("ok"));
        assert_eq!(bench.generate(large()).await.end().await.message(), "ok");
        assert_eq!(bench.server.budgets().account().0.granted, 1);
        bench.finish().await;
    });
}

#[tokio::test(start_paused = true)]
async fn a_large_prompt_above_the_limit_is_refused_when_it_is_counted() {
    let bench = Bench::start_and(&limited("a")).await;
    let rpc = bench.generate(asking("x ".repeat(30_000))).await;
    let ended = rpc.end().await;
    assert_eq!(ended.class(), Class::ExceedsLimit);
    assert_eq!(bench.provider.sends(), 0);
    bench.finish().await;
}
