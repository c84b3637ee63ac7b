//! What a client is shown before the end, however fast it reads.

use redrive::proto::{
    Committed, Delivery, StoppedBy, VerdictClass as Class,
    generate_response::Frame,
    part::Part::{Text, ToolCall},
};
use tonic::Code;

use crate::support::*;

/// A failure in the middle, and a whole answer.
fn broken_then_whole(bench: &Bench) {
    bench
        .provider
        .then(stream().text("Hel").wait(millis(1)).reset());
    bench.provider.then(answer("Hello"));
}

#[tokio::test(start_paused = true)]
async fn a_preview_is_reset_before_its_replay() {
    let bench = Bench::start().await;
    broken_then_whole(&bench);
    let mut rpc = bench.generate(start()).await;
    // It has the first token before it breaks.
    assert_eq!(rpc.text().await, "Hel");
    let ended = rpc.end().await;
    assert_eq!(
        ended.shape(),
        [
            "accepted",
            "attempt_started",
            "delta",
            "preview_reset",
            "waiting",
            "attempt_started",
            "delta",
            "committed"
        ]
    );
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.sends(), (2, 2));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn committed_only_gets_no_delta_and_no_reset() {
    let bench = Bench::start().await;
    broken_then_whole(&bench);
    let ended = bench
        .generate(start_delivered(Delivery::CommittedOnly))
        .await
        .end()
        .await;
    assert_eq!(
        ended.shape(),
        [
            "accepted",
            "attempt_started",
            "waiting",
            "attempt_started",
            "committed"
        ]
    );
    assert_eq!(ended.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn without_resets_a_failure_after_the_first_delta_ends_the_generation() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(millis(1)).reset());
    let ended = bench
        .generate(start_delivered(Delivery::PreviewNoReset))
        .await
        .end()
        .await;
    assert_eq!(
        ended.shape(),
        ["accepted", "attempt_started", "delta", "failed"]
    );
    assert_eq!(ended.failed().stopped_by(), StoppedBy::NoReset);
    assert_eq!(ended.class(), Class::Transport);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn without_resets_a_failure_before_the_first_delta_is_replayed() {
    let bench = Bench::start().await;
    bench.provider.then(stream().keepalive().reset());
    bench.provider.then(answer("Hello"));
    let ended = bench
        .generate(start_delivered(Delivery::PreviewNoReset))
        .await
        .end()
        .await;
    assert_eq!(ended.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_keeps_up_gets_every_token_at_once() {
    let bench = Bench::start().await;
    let script = stream()
        .text("a")
        .wait(secs(1))
        .text("b")
        .wait(secs(1))
        .text("c");
    bench.provider.then(script.complete());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.deltas(), ["a", "b", "c"]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_lags_gets_larger_deltas_and_never_more() {
    let bench = Bench::start().await;
    let piece = "0123456789".repeat(100);
    bench
        .provider
        .then(stream().pieces(3000, &piece).wait(secs(5)).complete());
    let mut rpc = bench.generate(start()).await;
    rpc.id().await;
    tokio::time::sleep(secs(2)).await;
    let ended = rpc.end().await;
    let deltas = ended.deltas();
    assert_eq!(deltas.concat().len(), 3_000_000);
    // A window of 64 KiB and the transport's own buffer in single tokens, the rest in large pieces.
    assert!(deltas.len() < 1000, "{} deltas", deltas.len());
    assert!(
        deltas.iter().any(|delta| delta.len() > 400_000),
        "no large delta"
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_holds_up_neither_the_provider_nor_a_stall_timer() {
    let bench = Bench::start().await;
    let piece = "x".repeat(100_000);
    bench
        .provider
        .then(stream().pieces(20, &piece).wait(secs(1)).complete());
    let mut rpc = bench.generate(start()).await;
    rpc.id().await;
    tokio::time::sleep(secs(100)).await;
    // Read to its end long ago, although the client has hardly read.
    assert_eq!(bench.provider.fates(), [Fate::Drained]);
    let ended = rpc.end().await;
    assert_eq!(ended.message().len(), 2_000_000);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_drops_what_was_not_delivered() {
    let bench = Bench::start().await;
    let piece = "x".repeat(100_000);
    bench
        .provider
        .then(stream().pieces(20, &piece).wait(secs(1)).reset());
    bench.provider.then(answer("short"));
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    tokio::time::sleep(secs(30)).await;
    let ended = rpc.end().await;
    assert_eq!(ended.message(), "short");
    let void: usize = ended.deltas().iter().map(|delta| delta.len()).sum();
    assert!(
        void < 1_900_000,
        "{void} bytes of deltas, nearly all of them void"
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_large_message_is_committed_in_parts_below_a_mebibyte() {
    let bench = Bench::start().await;
    let piece = "ä".repeat(32 << 10);
    bench.provider.then(stream().pieces(40, &piece).complete());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), piece.repeat(40));
    let parts: Vec<u32> = committed_frames(&ended).map(|c| c.part).collect();
    assert_eq!(parts, [1, 2, 3]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_of_two_mebibytes_has_a_frame_of_its_own() {
    let bench = Bench::start().await;
    bench.provider.then(call_of(2 << 20).complete());
    let ended = bench.generate(start()).await.end().await;
    let parts: Vec<_> = committed_frames(&ended).map(|c| &c.message).collect();
    assert!(matches!(parts[0][0].part, Some(Text(_))));
    assert!(matches!(parts[1][0].part, Some(ToolCall(_))));
    assert_eq!(parts[1].len(), 1);
    assert_eq!(
        ended.committed().finish_reason(),
        redrive::proto::FinishReason::ToolCalls
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_above_three_mebibytes_is_too_large() {
    let bench = Bench::start().await;
    bench.provider.then(call_of(7 << 19).complete());
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::TooLarge);
    assert_eq!(ended.code(), Code::ResourceExhausted);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
}

/// Text, and a tool call with arguments of `bytes`.
fn call_of(bytes: usize) -> Script {
    let piece = "x".repeat(64 << 10);
    let mut script = stream()
        .text("Calling.")
        .data(tool_call(0, "call-1", "save"))
        .data(tool_arguments(0, r#"{"text":""#));
    for _ in 0..bytes / piece.len() {
        script = script.data(tool_arguments(0, &piece));
    }
    script.data(tool_arguments(0, r#""}"#))
}

fn committed_frames(ended: &Ended) -> impl Iterator<Item = &Committed> {
    ended.told().filter_map(|frame| match frame {
        Frame::Committed(committed) => Some(committed),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_message_above_its_bound_is_too_large_and_is_cut_off() {
    let route = CONFIG.replace("models:", "max_message_bytes: 10KiB\n    models:");
    let bench = Bench::configured(&route).await;
    bench.provider.then(stream().pieces(20, &"x".repeat(1000)));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::TooLarge);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::NotRetryable);
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    bench.finish().await;
}

const SMALL: &str = "limits: {max_total_bytes: 100KiB}\n";

#[tokio::test(start_paused = true)]
async fn a_generation_that_would_fill_the_memory_ends_too_large() {
    let bench = Bench::start_and(SMALL).await;
    bench.provider.then(stream().pieces(150, &"x".repeat(1000)));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::TooLarge);
    assert!(
        ended.reason().contains("max_total_bytes"),
        "{}",
        ended.reason()
    );
    assert_eq!(bench.metric("redrive_transcript_bytes"), 0.0);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn new_work_is_refused_while_running_work_fills_the_memory() {
    let bench = Bench::start_and("limits: {max_total_bytes: 1KiB}\n").await;
    // A text of 896 and a block's 128: exactly full.
    bench
        .provider
        .then(stream().text(&"x".repeat(896)).wait(secs(9)).complete());
    let mut first = bench.generate(start()).await;
    first.text().await;
    let second = bench.generate(start()).await.end().await;
    refused(second, Code::ResourceExhausted, "transcripts fill");
    assert_eq!(first.end().await.message().len(), 896);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn kept_results_are_given_up_for_new_work() {
    let bench = Bench::start_and("limits: {max_total_bytes: 1KiB}\n").await;
    bench.provider.then(answer(&"x".repeat(896)));
    bench.provider.then(answer("new"));
    let mut first = bench.generate(start()).await;
    let id = first.id().await;
    first.end().await;
    let second = bench.generate(start()).await.end().await;
    assert_eq!(second.message(), "new");
    let gone = bench.first(attach_to(&id)).await.end().await;
    refused(gone, Code::NotFound, "attach.generation_id");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn kept_results_are_given_up_before_running_work_is_cut() {
    let bench = Bench::start_and(SMALL).await;
    bench.provider.then(answer(&"x".repeat(60_000)));
    bench.provider.then(answer(&"y".repeat(60_000)));
    bench.generate(start()).await.end().await;
    let second = bench.generate(start()).await.end().await;
    assert_eq!(second.message().len(), 60_000);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_holds_no_message() {
    // Given up by its client before it is forgotten, and the other way round.
    for idle in ["20s", "120s"] {
        let idle = format!("client_idle: {idle}\n    models:");
        let bench = Bench::configured(&CONFIG.replace("models:", &idle)).await;
        let piece = "x".repeat(100_000);
        bench.provider.then(stream().pieces(20, &piece).complete());
        let rpc = bench.generate(start()).await;
        tokio::time::sleep(secs(10)).await;
        assert!(bench.metric("redrive_transcript_bytes") > 2_000_000.0);
        tokio::time::sleep(secs(300)).await;
        assert_eq!(bench.metric("redrive_transcript_bytes"), 0.0);
        rpc.vanish();
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_result_does_not_keep_its_request() {
    let bench = Bench::start().await;
    bench.provider.then(answer("Hello"));
    bench.generate(start_as("r")).await.end().await;
    settle().await;
    assert!(bench.provider.body_was_let_go(0));
    let again = bench.first(attach_by_request("r")).await.end().await;
    assert_eq!(again.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn keepalives_are_told_at_once_and_then_every_ten_seconds() {
    let bench = Bench::start().await;
    let script = stream().text("a").keepalives(secs(30), secs(5)).text("b");
    bench.provider.then(script.complete());
    let ended = bench.generate(start()).await.end().await;
    let silences: Vec<i64> = ended
        .told()
        .filter_map(|frame| match frame {
            Frame::Progress(progress) => progress.silent_for.map(|silent| silent.seconds),
            _ => None,
        })
        .collect();
    assert_eq!(silences, [5, 15, 25]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_of_nothing_surface_as_an_empty_object() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().data(tool_call(0, "call-1", "now")).complete());
    let ended = bench.generate(start()).await.end().await;
    let Some(ToolCall(call)) = &ended.committed().message[0].part else {
        panic!("no tool call");
    };
    assert_eq!(call.arguments_json, "{}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn tool_calls_cut_by_the_token_limit_are_withheld() {
    let bench = Bench::start().await;
    let script = stream()
        .text("Calling.")
        .data(tool_call(0, "call-1", "save"))
        .data(tool_arguments(0, r#"{"text":"#))
        .data(finish("length"))
        .data(DONE)
        .end();
    bench.provider.then(script);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.committed().withheld_tool_calls.len(), 1);
    assert_eq!(ended.committed().message.len(), 1);
    bench.finish().await;
}
