//! Streams that are opened faster than the listener admits are refused before `accepted`.

use redrive::proto::{
    CompleteRequest, CompleteResponse, Start, StoppedBy, VerdictClass as Class,
    generate_request::Frame, generation_service_client::GenerationServiceClient,
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

use crate::support::*;

/// A server with this `listen.admission`.
async fn bench(admission: &str) -> Bench {
    Bench::start_and(&format!("listen: {{admission: {{{admission}}}}}\n")).await
}

fn of(tenant: &str) -> Start {
    let mut start = start();
    start.labels.insert("tenant".into(), tenant.into());
    start
}

/// One that is answered at once.
async fn answered(bench: &Bench, start: Start) {
    bench.provider.then(answer("hello"));
    let ended = bench.generate(start).await.end().await;
    assert_eq!(ended.message(), "hello");
}

/// A call that may be over before its first frame is sent.
async fn call(bench: &Bench, frame: Frame) -> Ended {
    let rpc = bench.open().await;
    rpc.send_late(frame);
    rpc.end().await
}

/// The one frame, its status, and when to come back.
#[track_caller]
fn too_fast(ended: &Ended, subject: &str, wait: std::time::Duration) {
    assert_eq!(ended.shape(), ["failed"]);
    assert_eq!(ended.frames[0].sequence, 1);
    assert_eq!(ended.class(), Class::RateLimited);
    let failed = ended.failed();
    assert_eq!(failed.stopped_by(), StoppedBy::Limiter);
    assert!(failed.safe_to_send_again);
    let verdict = failed.verdict.as_ref().unwrap();
    assert!(verdict.retryable);
    assert_eq!(verdict.retry_after, Some(duration(wait)));
    told(ended.status.as_ref().unwrap(), subject, wait);
}

#[track_caller]
fn told(status: &Status, subject: &str, wait: std::time::Duration) {
    assert_eq!(status.code(), Code::ResourceExhausted);
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(info.reason, "RATE_LIMITED");
    assert_eq!(info.metadata["stopped_by"], "LIMITER");
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(wait));
    let [violation] = details.quota_failure().unwrap().violations.as_slice() else {
        panic!("one violation");
    };
    assert_eq!(violation.subject, subject);
    assert_eq!(violation.description, status.message());
}

async fn complete(channel: &Channel, start: Start) -> Result<CompleteResponse, Status> {
    let request = CompleteRequest { start: Some(start) };
    let mut client = GenerationServiceClient::new(channel.clone());
    let response = client.complete(request).await?;
    Ok(response.into_inner())
}

#[tokio::test(start_paused = true)]
async fn a_connection_opens_streams_at_its_pace() {
    let bench = bench("per_connection: {streams: 10, per: 1s, burst: 2}").await;
    answered(&bench, start()).await;
    answered(&bench, start()).await;
    let ended = call(&bench, generate(start())).await;
    too_fast(&ended, "listener:connection", millis(100));
    // It started nothing.
    assert_eq!(bench.provider.sends(), 2);
    assert_eq!(bench.metric("redrive_generations_total"), 2.0);
    assert_eq!(bench.metric("redrive_streams_refused_total"), 1.0);

    // A refusal costs nothing: what was told holds.
    tokio::time::advance(millis(99)).await;
    let ended = call(&bench, generate(start())).await;
    assert_eq!(ended.class(), Class::RateLimited);
    tokio::time::advance(millis(1)).await;
    answered(&bench, start()).await;
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_comes_before_the_first_frame() {
    let bench = bench("per_connection: {streams: 1, per: 10s}").await;
    answered(&bench, start()).await;
    // Nothing is sent; nothing is waited for.
    let ended = bench.open().await.end().await;
    too_fast(&ended, "listener:connection", secs(10));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn another_connection_has_a_pace_of_its_own() {
    let bench = bench("per_connection: {streams: 1, per: 60s}").await;
    answered(&bench, start()).await;
    let other = bench.connect().await;
    bench.provider.then(answer("hello"));
    assert!(complete(&other, start_as("a")).await.is_ok());
    let status = complete(&other, start_as("b")).await.unwrap_err();
    told(&status, "listener:connection", secs(60));
    let ended = call(&bench, generate(start())).await;
    too_fast(&ended, "listener:connection", secs(60));
    drop(other);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn attaching_opens_a_stream_too() {
    let bench = bench("per_connection: {streams: 1, per: 10s, burst: 3}").await;
    bench.provider.then(answer("hello"));
    let mut rpc = bench.generate(start_as("a")).await;
    let id = rpc.id().await;
    rpc.end().await.committed();
    // By the generation's id, and by a start with the request's.
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(ended.message(), "hello");
    let ended = bench.generate(start_as("a")).await.end().await;
    assert_eq!(ended.message(), "hello");
    let ended = call(&bench, attach_to(&id)).await;
    too_fast(&ended, "listener:connection", secs(10));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn each_value_of_the_label_starts_generations_at_its_pace() {
    let bench = bench("per_label: {label: tenant, streams: 1, per: 10s}").await;
    answered(&bench, of("gold")).await;
    let ended = bench.generate(of("gold")).await.end().await;
    too_fast(&ended, "listener:label:tenant", secs(10));
    let message = &ended.failed().verdict.as_ref().unwrap().message;
    assert_eq!(message, "tenant \"gold\" starts generations too fast");
    answered(&bench, of("silver")).await;

    // Those without the label are one of them, whatever else they have.
    answered(&bench, start()).await;
    let mut other = start();
    other.labels.insert("team".into(), "gold".into());
    let ended = bench.generate(other).await.end().await;
    too_fast(&ended, "listener:label:tenant", secs(10));

    // Of all connections together.
    let channel = bench.connect().await;
    let mut start = of("gold");
    start.request_id = "r".into();
    let status = complete(&channel, start).await.unwrap_err();
    told(&status, "listener:label:tenant", secs(10));
    drop(channel);
    assert_eq!(bench.provider.sends(), 3);
    assert_eq!(bench.metric("redrive_streams_refused_total"), 3.0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_attaches_starts_no_generation() {
    let bench = bench("per_label: {label: tenant, streams: 1, per: 10s}").await;
    let mut known = of("gold");
    known.request_id = "r".into();
    answered(&bench, known.clone()).await;
    for _ in 0..3 {
        let ended = bench.generate(known.clone()).await.end().await;
        assert_eq!(ended.message(), "hello");
    }
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_too_long_is_refused_as_such_and_kept_nowhere() {
    let bench = bench("per_label: {label: tenant, streams: 1, per: 10s}").await;
    let long = "x".repeat(65);
    for _ in 0..2 {
        let ended = bench.generate(of(&long)).await.end().await;
        refused(ended, Code::InvalidArgument, "start.labels");
    }
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn without_it_streams_are_opened_as_fast_as_clients_like() {
    let bench = Bench::start().await;
    for _ in 0..300 {
        answered(&bench, of("gold")).await;
    }
    bench.finish().await;
}
