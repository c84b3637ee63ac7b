//! What is left of a session after its end.

use std::sync::Arc;

use redrive::{
    proto::{Delivery, generate_response::Frame},
    recovery::Event,
};
use tokio::time;

use crate::{
    rig::{Rig, poll},
    support::{Bench, Provider, answer, secs, settle, start, stream, timed},
};

#[tokio::test(start_paused = true)]
async fn the_requests_of_a_kept_generation_are_not_kept() {
    let provider = Provider::new(1);
    provider.then(answer("Hello"));
    let rig = Rig::new(provider);
    let held = Arc::strong_count(&rig.target.provider);
    let session = rig.session("g", None);
    rig.insert(&session);
    assert_eq!(Arc::strong_count(&rig.target.provider), held + 1);
    session.handle(Event::Start);
    settle().await;
    // Though its client has not taken the end yet, and others may attach.
    assert_eq!(Arc::strong_count(&rig.target.provider), held);
    assert!(matches!(
        poll(&session, 1).unwrap().frame,
        Some(Frame::Accepted(_))
    ));
    assert_eq!(session.attach(Delivery::Preview, None), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_does_not_wait_for_a_client_that_reads_nothing() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().pieces(40, &"x".repeat(64 << 10)).complete());
    let stuck = bench.generate(start()).await;
    settle().await;
    bench.drain.cancel();
    time::sleep(secs(5)).await;
    bench.server.hurry();
    let (_, took) = timed(bench.serving_ends()).await;
    assert!(took <= secs(3), "{took:?}");
    stuck.vanish();
    bench.finish().await;
}
