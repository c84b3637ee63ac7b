//! The client acts on what it got.

use redrive::proto::{Failed, StoppedBy, VerdictClass as Class, generate_response::Frame};
use tonic::Code;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn effects_are_confirmed_and_then_nothing_is_replayed() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(5)).reset());
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    let through = rpc.sequence();
    rpc.send(effects(through));
    match rpc.frame().await {
        Frame::Committed(confirmed) => assert_eq!(confirmed.through_sequence, through),
        other => panic!("{other:?} instead of a confirmation"),
    }
    let ended = rpc.end().await;
    stopped_by_effects(ended.failed());
    assert_eq!(ended.class(), Class::Transport);
    assert!(!ended.shape().contains(&"preview_reset"));
    bench.finish().await;
}

fn stopped_by_effects(failed: &Failed) {
    assert_eq!(failed.stopped_by(), StoppedBy::Effects);
    assert!(!failed.safe_to_send_again);
}

#[tokio::test(start_paused = true)]
async fn confirmed_effects_do_not_stop_a_success() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(5)).text("lo").complete());
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    rpc.send(effects(rpc.sequence()));
    let ended = rpc.end().await;
    assert_eq!(ended.message(), "Hello");
    assert!(ended.shape().contains(&"confirmed"));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn effects_on_void_output_end_the_generation() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(1)).reset());
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    let through = rpc.sequence();
    // The failure is known, the reset on its way, when the client claims.
    tokio::time::sleep(millis(1500)).await;
    rpc.send(effects(through));
    let ended = rpc.end().await;
    stopped_by_effects(ended.failed());
    assert!(!ended.shape().contains(&"confirmed"));
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn effects_after_the_reset_claim_nothing() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(1)).reset());
    bench
        .provider
        .then(stream().wait(secs(5)).text("Hello").complete());
    let mut rpc = bench.generate(start()).await;
    rpc.until(|frame| matches!(frame, Frame::PreviewReset(_)))
        .await;
    rpc.send(effects(rpc.sequence()));
    let ended = rpc.end().await;
    assert_eq!(ended.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn effects_beyond_what_was_sent_are_an_invalid_argument() {
    for beyond in [0, 100] {
        let bench = Bench::start().await;
        bench.provider.then(stream().text("Hel"));
        let mut rpc = bench.generate(start()).await;
        rpc.text().await;
        rpc.send(effects(beyond));
        let ended = rpc.end().await;
        assert_eq!(ended.code(), Code::InvalidArgument);
        assert!(
            ended.reason().starts_with("effects.through_sequence"),
            "{}",
            ended.reason()
        );
        assert_eq!(bench.provider.fates(), [Fate::Aborted]);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_effects_is_safe_to_send_again() {
    let bench = Bench::start().await;
    bench.provider.then(status(401).end());
    let ended = bench.generate(start()).await.end().await;
    assert!(ended.failed().safe_to_send_again);
    assert_eq!(ended.class(), Class::Auth);
    assert_eq!(ended.code(), Code::FailedPrecondition);
    bench.finish().await;
}
