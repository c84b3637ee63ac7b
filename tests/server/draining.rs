//! The drain, health, reflection, and a bug of ours.

use redrive::{
    proto::{StoppedBy, VerdictClass as Class},
    server::State,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::support::*;

async fn health(bench: &Bench, service: &str) -> i32 {
    let mut client = HealthClient::new(bench.channel().clone());
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    client.check(request).await.unwrap().into_inner().status
}

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE: &str = "redrive.v1.GenerationService";

#[tokio::test(start_paused = true)]
async fn a_running_generation_finishes_and_new_ones_are_refused() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(40)).text("lo").complete());
    let mut running = bench.generate(start()).await;
    running.text().await;
    assert_eq!(health(&bench, SERVICE).await, SERVING);
    assert_eq!(health(&bench, "").await, SERVING);
    assert_eq!(bench.server.readiness.state(), State::Ready);

    bench.drain.cancel();
    settle().await;
    assert_eq!(bench.server.readiness.state(), State::Draining);
    assert_eq!(health(&bench, SERVICE).await, NOT_SERVING);
    assert_eq!(health(&bench, "").await, NOT_SERVING);
    let new = bench.generate(start()).await.end().await;
    assert_eq!(new.class(), Class::Draining);
    assert_eq!(new.code(), Code::Unavailable);
    assert_eq!(new.failed().stopped_by(), StoppedBy::Drain);
    assert_eq!(running.end().await.message(), "Hello");
    let (_, took) = timed(async { bench.serving_ends().await }).await;
    assert!(took < secs(5), "{took:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_is_attached_to() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(40)).text("lo").complete());
    let detached = start_as("r").with_grace(secs(30));
    let mut rpc = bench.generate(detached.clone()).await;
    rpc.text().await;
    rpc.vanish();
    bench.drain.cancel();
    settle().await;
    let again = bench.generate(detached).await.end().await;
    assert_eq!(again.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_runs_at_the_end_of_the_grace_ends_as_draining_even_in_silence() {
    let bench = Bench::start().await;
    // Silent for longer than the grace of 120 s: only the drain itself can end it.
    bench.provider.then(stream().data(role()));
    let mut running = bench.generate(start()).await;
    running.id().await;
    settle().await;
    bench.drain.cancel();
    let (ended, took) = timed(running.end()).await;
    assert_eq!(ended.class(), Class::Draining);
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Drain);
    assert!(ended.failed().safe_to_send_again);
    assert_eq!(took, secs(120));
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    bench.serving_ends().await;
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_cut_by_the_end_of_the_grace() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(sent().header("retry-after", "300").head(429).end());
    let mut running = bench.generate(start()).await;
    running.id().await;
    settle().await;
    bench.drain.cancel();
    let ended = running.end().await;
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Drain);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_grace_can_be_cut_short() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("Hel"));
    let mut running = bench.generate(start()).await;
    running.text().await;
    bench.drain.cancel();
    settle().await;
    bench.server.hurry();
    let (ended, took) = timed(running.end()).await;
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Drain);
    assert_eq!(took, secs(0));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_ends_at_once() {
    let bench = Bench::start().await;
    bench.drain.cancel();
    let (_, took) = timed(bench.serving_ends()).await;
    assert!(took <= secs(2), "{took:?}");
    // Though its client holds its connection.
    assert_eq!(bench.metric("redrive_grpc_connections_active"), 0.0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn reflection_is_off_unless_switched_on() {
    const LIST: &[u8] = b"\x00\x00\x00\x00\x02\x3a\x00";
    let bench = Bench::start().await;
    let off = raw::call(&bench, REFLECTION, LIST).await;
    assert_eq!(off.status, Code::Unimplemented as i32);
    bench.finish().await;

    let bench = Bench::start_and("listen: {reflection: true}\n").await;
    let on = raw::call(&bench, REFLECTION, LIST).await;
    assert_eq!(on.status, Code::Ok as i32);
    let body = String::from_utf8_lossy(&on.body);
    assert!(body.contains(SERVICE), "{body}");
    assert!(body.contains("grpc.health.v1.Health"), "{body}");
    bench.finish().await;
}

const REFLECTION: &str = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

#[tokio::test(start_paused = true)]
async fn a_driver_that_panics_ends_its_rpc_and_takes_nothing_else_down() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(40)).text("lo").complete());
    bench
        .provider
        .then(stream().text("oh").wait(secs(5)).panic());
    let mut neighbour = bench.generate(start()).await;
    neighbour.text().await;
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::Unclassified);
    assert_eq!(ended.code(), Code::Unknown);
    // What was sent is in the ledger, whatever became of it.
    assert_eq!(ended.sends(), (1, 1));
    assert_eq!(neighbour.end().await.message(), "Hello");
    assert_eq!(bench.provider.fates()[1], Fate::Aborted);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_no_obstacle_to_the_drain() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("oh").wait(secs(5)).panic());
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    bench.drain.cancel();
    rpc.end().await;
    let (_, took) = timed(bench.serving_ends()).await;
    assert!(took < secs(10), "{took:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_complete_whose_driver_panics_has_a_status() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("oh").panic());
    let status = bench.complete(start_as("r")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    bench.finish().await;
}
