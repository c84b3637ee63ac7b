//! `Complete`: the same machinery for callers that want only the end.

use redrive::proto::{VerdictClass as Class, part};
use tonic::Code;

use crate::support::{check::check_details, *};

#[tokio::test(start_paused = true)]
async fn it_answers_the_whole_message() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(1)).reset());
    bench.provider.then(answer("Hello"));
    let response = bench.complete(start_as("r")).await.unwrap();
    let committed = response.committed.unwrap();
    assert!(committed.r#final);
    assert_eq!(committed.part, 0);
    assert_eq!(
        committed.message[0].part,
        Some(part::Part::Text("Hello".into()))
    );
    assert_eq!(committed.ledger.unwrap().sends, 2);
    assert!(!response.generation_id.is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn it_requires_a_request_id() {
    let bench = Bench::start().await;
    let status = bench.complete(start()).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().starts_with("start.request_id"),
        "{status:?}"
    );
    check_details(&status, Class::InvalidRequest, &[("sends", "0".into())]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_clients_retry_attaches() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().wait(secs(5)).text("Hello").complete());
    let (first, second) = tokio::join!(bench.complete(start_as("r")), async {
        tokio::time::sleep(secs(1)).await;
        bench.complete(start_as("r")).await
    });
    assert_eq!(first.unwrap_err().code(), Code::Aborted);
    let second = second.unwrap();
    let third = bench.complete(start_as("r")).await.unwrap();
    assert_eq!(second, third);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn parts_are_put_together() {
    let bench = Bench::start().await;
    let piece = "ä".repeat(32 << 10);
    bench.provider.then(stream().pieces(40, &piece).complete());
    let committed = bench
        .complete(start_as("r"))
        .await
        .unwrap()
        .committed
        .unwrap();
    assert_eq!(committed.message.len(), 1);
    assert_eq!(
        committed.message[0].part,
        Some(part::Part::Text(piece.repeat(40)))
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_above_three_mebibytes_is_resource_exhausted() {
    let bench = Bench::start().await;
    let piece = "x".repeat(64 << 10);
    bench.provider.then(stream().pieces(50, &piece).complete());
    let status = bench.complete(start_as("r")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    check_details(&status, Class::TooLarge, &[("sends", "1".into())]);
    // It is whole, and there for a Generate.
    let ended = bench.first(attach_by_request("r")).await.end().await;
    assert_eq!(ended.message().len(), 50 * piece.len());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_its_status() {
    let bench = Bench::start().await;
    bench.provider.then(status(401).end());
    let status = bench.complete(start_as("r")).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let metadata = [
        ("sends", "1".to_owned()),
        ("attempts", "1".to_owned()),
        ("target", "a/m".to_owned()),
        ("stopped_by", "NOT_RETRYABLE".to_owned()),
    ];
    check_details(&status, Class::Auth, &metadata);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_cancels_it() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("Hel"));
    let call = tokio::time::timeout(secs(5), bench.complete(start_as("r")));
    assert!(call.await.is_err());
    settle().await;
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    bench.finish().await;
}
