//! How an RPC opens: its headers, its first frame, and what may not come after it.

use redrive::proto::{Conversation, GenerateRequest, VerdictClass as Class, start::Input};
use tonic::Code;

use crate::support::*;

const GENERATE: &str = "redrive.v1.GenerationService/Generate";

#[tokio::test(start_paused = true)]
async fn headers_go_out_before_the_provider_answers_and_before_the_first_frame() {
    let bench = Bench::start().await;
    bench.provider.then(connecting());
    // Returns only once the headers are here.
    let (mut rpc, took) = timed(bench.open()).await;
    assert_eq!(took, secs(0));
    assert!(rpc.frames.is_empty());
    rpc.send(generate(start()));
    rpc.id().await;
    rpc.send(cancel(""));
    assert_eq!(rpc.end().await.class(), Class::Cancelled);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_told_in_order_and_committed() {
    let bench = Bench::start().await;
    let script = stream().data(role()).text("Hel").text("lo").complete();
    bench.provider.then(script);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(
        ended.shape(),
        ["accepted", "attempt_started", "delta", "committed"]
    );
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.sends(), (1, 1));
    let committed = ended.committed();
    assert_eq!(committed.model, "m-2026");
    assert_eq!(committed.provider_request_id, "req-1");
    assert_eq!(committed.usage.as_ref().unwrap().output_tokens, 3);
    assert_eq!(bench.metric("redrive_generations_total"), 1.0);
    assert_eq!(bench.metric("redrive_sends_total"), 1.0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn no_first_frame_within_ten_seconds_is_deadline_exceeded() {
    let bench = Bench::start().await;
    let rpc = bench.open().await;
    let (ended, took) = timed(rpc.end()).await;
    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert_eq!(ended.class(), Class::Deadline);
    assert_eq!(ended.shape(), ["failed"]);
    assert!(took >= secs(10) && took < secs(11), "{took:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_half_close_after_start_cancels_nothing() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().wait(secs(3)).text("ok").complete());
    let mut rpc = bench.generate(start()).await;
    rpc.half_close();
    assert_eq!(rpc.end().await.message(), "ok");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_start_is_refused() {
    let bench = Bench::start().await;
    let mut rpc = bench.open().await;
    rpc.half_close();
    refused(rpc.end().await, Code::InvalidArgument, "start");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_frame_that_is_neither_start_nor_attach_is_refused() {
    let bench = Bench::start().await;
    for frame in [cancel("why"), effects(1)] {
        let rpc = bench.first(frame).await;
        refused(rpc.end().await, Code::InvalidArgument, "frame");
    }
    let rpc = bench.open().await;
    rpc.send_raw(GenerateRequest::default());
    refused(rpc.end().await, Code::InvalidArgument, "frame");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_start_or_attach_or_an_empty_frame_cancels_the_generation() {
    for (second, field) in [
        (request(generate(start())), "start"),
        (request(attach_to("x")), "attach"),
        (GenerateRequest::default(), "frame"),
    ] {
        let bench = Bench::start().await;
        bench.provider.then(stream().text("so far"));
        let mut rpc = bench.generate(start()).await;
        assert_eq!(rpc.text().await, "so far");
        rpc.send_raw(second);
        let ended = rpc.end().await;
        assert_eq!(ended.code(), Code::InvalidArgument);
        assert_eq!(ended.class(), Class::InvalidRequest);
        assert!(
            ended.reason().starts_with(&format!("{field}: ")),
            "{}",
            ended.reason()
        );
        assert_eq!(bench.provider.fates(), [Fate::Aborted]);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_oversized_frame_is_refused_by_name_and_first_or_later_alike() {
    let bench = Bench::start_and("listen: {max_request_bytes: 4KiB}\n").await;
    let mut large = start();
    let question = "x".repeat(8 << 10);
    large.input = Some(Input::Conversation(Conversation {
        system: question,
        ..conversation("Hi")
    }));
    let rpc = bench.generate(large.clone()).await;
    refused(rpc.end().await, Code::InvalidArgument, "frame");

    bench.provider.then(stream().text("so far"));
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    rpc.send(generate(large));
    let ended = rpc.end().await;
    assert_eq!(ended.code(), Code::InvalidArgument);
    assert!(
        ended.reason().contains("max_request_bytes"),
        "{}",
        ended.reason()
    );
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_before_its_first_frame_leaves_nothing() {
    let bench = Bench::start().await;
    bench.open().await.vanish();
    settle().await;
    assert_eq!(bench.metric("redrive_grpc_streams_active"), 0.0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_frame_are_refused_by_name() {
    let bench = Bench::start().await;
    let answer = raw::call(&bench, GENERATE, b"\x00\x00\x00\x00\x03\xff\xff\xff").await;
    assert_eq!(answer.status, Code::InvalidArgument as i32);
    assert!(answer.message.starts_with("frame"), "{}", answer.message);
    bench.finish().await;
}
