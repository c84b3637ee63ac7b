//! Providers that send nonsense: each ends in the one right terminal, and takes nothing else down.

use redrive::{
    proto::{RecoveryOptions, StoppedBy, VerdictClass as Class},
    verdict::{Stage, transport::TransportKind},
};
use tonic::Code;

use crate::support::*;

/// One attempt that is answered by `script`, beside a neighbour that must not notice.
async fn answered(script: Script) -> Ended {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(60)).text("lo").complete());
    let patient = RecoveryOptions::default();
    let mut neighbour = bench.generate(start_with(patient)).await;
    neighbour.half_close();
    // Not by text: the neighbour reads only at the end.
    settle().await;
    bench.provider.then(script);
    let once = RecoveryOptions {
        max_attempts: Some(1),
        ..RecoveryOptions::default()
    };
    let ended = bench.generate(start_with(once)).await.end().await;
    assert_eq!(bench.provider.sends(), 2);
    tokio::time::sleep(secs(20)).await;
    let mut neighbour_sees = neighbour;
    assert_eq!(neighbour_sees.text().await, "Hel");
    neighbour_sees.send_late(cancel(""));
    neighbour_sees.vanish();
    bench.finish().await;
    ended
}

#[tokio::test(start_paused = true)]
async fn garbage_is_corrupt() {
    let ended = answered(stream().data("data: {\"choices\": [}\n\n").end()).await;
    assert_eq!(ended.class(), Class::Corrupt);
    assert_eq!(ended.code(), Code::Unavailable);
    let ended = answered(stream().data(&b"data: \xff\xfe\n\n"[..]).end()).await;
    assert_eq!(ended.class(), Class::Corrupt);
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_is_too_large() {
    let piece = "x".repeat(1 << 20);
    let mut script = stream().data("data: ");
    for _ in 0..17 {
        script = script.data(piece.clone());
    }
    let ended = answered(script).await;
    assert_eq!(ended.class(), Class::TooLarge);
    assert_eq!(ended.code(), Code::ResourceExhausted);
}

#[tokio::test(start_paused = true)]
async fn an_endless_error_body_is_read_no_further_than_its_bound() {
    let mut script = status(500);
    for _ in 0..100 {
        script = script.data("x".repeat(10_000));
    }
    let ended = answered(script).await;
    assert_eq!(ended.class(), Class::ProviderInternal);
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_never_ends_is_waited_for_5_s() {
    let bench = Bench::start().await;
    let body = error("No such model", "invalid_request_error", "model_not_found");
    bench.provider.then(status(404).data(body));
    let (ended, took) = timed(async { bench.generate(start()).await.end().await }).await;
    assert_eq!(took, secs(5));
    assert_eq!(ended.class(), Class::NotFound);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_breaks_off_is_judged_by_its_status() {
    let ended = answered(status(403).data("{\"err").reset()).await;
    assert_eq!(ended.class(), Class::Permission);
    assert_eq!(ended.code(), Code::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_is_a_premature_end() {
    let ended = answered(stream().end()).await;
    assert_eq!(ended.class(), Class::PrematureEof);
    assert_eq!(ended.code(), Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn html_is_a_failure_and_never_an_answer() {
    for content_type in ["text/html", "text/event-stream"] {
        let page = "<!DOCTYPE html>\n<html><body>\nWelcome: to the proxy\n\n</body></html>\n";
        let script = sent().header("content-type", content_type).head(200);
        let ended = answered(script.data(page).end()).await;
        assert_ne!(ended.class(), Class::Unspecified);
        assert_eq!(ended.sends(), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_wrong_content_type_does_not_hide_a_good_stream() {
    let script = sent().header("content-type", "text/plain").head(200);
    let ended = answered(script.text("Hello").complete()).await;
    assert_eq!(ended.message(), "Hello");
}

#[tokio::test(start_paused = true)]
async fn a_whole_completion_instead_of_a_stream_is_unclassified_and_permanent() {
    let body = serde_json::json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello"}}],
    });
    let script = sent().header("content-type", "application/json").head(200);
    let bench = Bench::start().await;
    bench.provider.then(script.data(body.to_string()).end());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::Unclassified);
    assert_eq!(ended.code(), Code::Unknown);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::NotRetryable);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_after_the_end_are_not_heard() {
    let script = stream()
        .text("Hello")
        .data(finish("stop"))
        .data(format!("{DONE}{}garbage", text(" and more")))
        .end();
    let ended = answered(script).await;
    assert_eq!(ended.message(), "Hello");
}

#[tokio::test(start_paused = true)]
async fn an_error_object_in_the_stream_beats_everything() {
    let body = error(
        "The engine is overloaded",
        "server_error",
        "overloaded_error",
    );
    let script = stream().text("Hel").data(format!("data: {body}\n\n"));
    let ended = answered(script).await;
    assert_eq!(ended.class(), Class::Overloaded);
}

#[tokio::test(start_paused = true)]
async fn the_end_without_a_finish_reason_is_a_premature_end() {
    for script in [
        stream().text("Hel").end(),
        stream().text("Hel").data(DONE).end(),
    ] {
        let ended = answered(script).await;
        assert_eq!(ended.class(), Class::PrematureEof);
    }
}

#[tokio::test(start_paused = true)]
async fn a_break_after_the_finish_reason_changes_nothing() {
    let script = stream().text("Hello").data(finish("stop")).reset();
    let ended = answered(script).await;
    assert_eq!(ended.message(), "Hello");
}

#[tokio::test(start_paused = true)]
async fn broken_arguments_are_never_handed_out() {
    let script = stream()
        .data(tool_call(0, "call-1", "save"))
        .data(tool_arguments(0, r#"{"text":"#))
        .data(finish("tool_calls"))
        .data(DONE)
        .end();
    let ended = answered(script).await;
    assert_eq!(ended.class(), Class::MalformedOutput);
    assert_eq!(ended.code(), Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_refused() {
    let script = sent()
        .header("location", "http://elsewhere.test/")
        .head(307);
    let ended = answered(script.end()).await;
    assert_eq!(ended.class(), Class::RedirectRefused);
    assert_eq!(ended.code(), Code::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn what_the_door_reports_is_told_with_its_class() {
    for (kind, stage, class, sends) in [
        (TransportKind::Dns, Stage::Connect, Class::Transport, 0),
        (TransportKind::Connect, Stage::Connect, Class::Transport, 0),
        (
            TransportKind::UntrustedCertificate,
            Stage::Connect,
            Class::Transport,
            0,
        ),
        (
            TransportKind::NotSentInTime,
            Stage::Connect,
            Class::TimeoutConnect,
            0,
        ),
    ] {
        let ended = answered(connecting().fail(kind, stage)).await;
        assert_eq!(ended.class(), class, "{kind:?}");
        assert_eq!(ended.sends(), (1, sends), "{kind:?}");
    }
    for (kind, class) in [
        (TransportKind::Reset, Class::Transport),
        (TransportKind::RefusedStream, Class::Transport),
        (TransportKind::HeadTooLarge, Class::TooLarge),
    ] {
        let ended = answered(sent().fail(kind, Stage::Request)).await;
        assert_eq!(ended.class(), class, "{kind:?}");
        assert_eq!(ended.sends(), (1, 1), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_tiny_events_is_bounded_by_the_message() {
    let mut flood = String::new();
    for index in 0..20_000 {
        flood.push_str(&tool_call(index, "c", "f"));
    }
    let config = CONFIG.replace("models:", "max_message_bytes: 1MiB\n    models:");
    let bench = Bench::configured(&config).await;
    bench.provider.then(stream().data(flood).complete());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::TooLarge);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn permanent_refusals_cost_one_send() {
    for (code, class) in [
        (400, Class::InvalidRequest),
        (401, Class::Auth),
        (403, Class::Permission),
        (404, Class::NotFound),
    ] {
        let bench = Bench::start().await;
        bench.provider.then(status(code).end());
        let ended = bench.generate(start()).await.end().await;
        assert_eq!(ended.class(), class);
        assert_eq!(ended.sends(), (1, 1));
        bench.finish().await;
    }
}
