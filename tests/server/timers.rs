//! Time through the whole server: the provider's silence, waits, deadlines.

use redrive::proto::{
    RecoveryOptions, StoppedBy, Timers, VerdictClass as Class, generate_response::Frame,
    waiting::Reason,
};
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::*;

/// The message of the reset, and how long after the start it came.
async fn reset_of(bench: &Bench) -> (String, std::time::Duration) {
    let from = tokio::time::Instant::now();
    let mut rpc = bench.generate(start()).await;
    let reset = rpc
        .until(|frame| matches!(frame, Frame::PreviewReset(_)))
        .await;
    let took = from.elapsed();
    assert_eq!(rpc.end().await.message(), "Hello");
    let Frame::PreviewReset(reset) = reset else {
        unreachable!()
    };
    (reset.verdict.unwrap().message, took)
}

#[tokio::test(start_paused = true)]
async fn silence_after_the_first_token_is_a_stall_after_45_s() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("Hel"));
    bench.provider.then(answer("Hello"));
    let (message, took) = reset_of(&bench).await;
    assert!(message.contains("inter_delta"), "{message}");
    assert!(message.contains("45s"), "{message}");
    assert_eq!(took, secs(45));
    assert_eq!(bench.provider.fates(), [Fate::Condemned, Fate::Drained]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn keepalives_hold_off_the_stall_but_not_no_progress_after_300_s() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").keepalives(secs(1000), secs(20)));
    bench.provider.then(answer("Hello"));
    let (message, took) = reset_of(&bench).await;
    assert!(message.contains("no_progress"), "{message}");
    assert_eq!(took, secs(300));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_tool_call_may_be_silent_for_300_s() {
    let bench = Bench::start().await;
    bench.provider.then(
        stream()
            .data(tool_call(0, "call-1", "save"))
            .wait(secs(299))
            .data(tool_arguments(0, "{}"))
            .complete(),
    );
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.sends(), (1, 1));
    assert_eq!(ended.committed().message.len(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn no_first_token_within_600_s_is_a_timeout_that_is_not_replayed_there() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().keepalives(secs(1000), secs(20)));
    let (ended, took) = timed(async { bench.generate(start()).await.end().await }).await;
    assert_eq!(ended.class(), Class::TimeoutFirstToken);
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(took, secs(600));
    assert_eq!(bench.provider.fates(), [Fate::Condemned]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_open_within_10_s_is_not_a_send() {
    let bench = Bench::start().await;
    bench.provider.then(connecting());
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(ended.sends(), (2, 1));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_tail_is_waited_for_2_s_and_then_accepted() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hello").data(finish("stop")));
    let (ended, took) = timed(async { bench.generate(start()).await.end().await }).await;
    assert_eq!(ended.message(), "Hello");
    assert_eq!(took, secs(2));
    assert_eq!(bench.provider.fates(), [Fate::Drained]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_tail_voids_the_answer() {
    let bench = Bench::start().await;
    let late = error("The server had an error", "server_error", "");
    bench.provider.then(
        stream()
            .text("Hello")
            .data(finish("stop"))
            .wait(secs(1))
            .data(format!("data: {late}\n\n")),
    );
    bench.provider.then(answer("Hello again"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello again");
    assert!(ended.shape().contains(&"preview_reset"));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_clients_shorter_timer_holds() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("Hel"));
    let mut options = RecoveryOptions {
        timers: Some(Timers {
            inter_delta: Some(duration(secs(3))),
            ..Timers::default()
        }),
        ..RecoveryOptions::default()
    };
    options.max_attempts = Some(1);
    let (ended, took) =
        timed(async { bench.generate(start_with(options)).await.end().await }).await;
    assert_eq!(ended.class(), Class::Stall);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Allowance);
    assert_eq!(took, secs(3));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_rate_limits_wait_is_told_and_honoured() {
    let bench = Bench::start().await;
    bench.provider.then(rate_limited("30"));
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let waiting = ended.told().find_map(|frame| match frame {
        Frame::Waiting(waiting) => Some(waiting.clone()),
        _ => None,
    });
    let waiting = waiting.unwrap();
    assert!(waiting.expected.unwrap().seconds >= 30);
    assert_ne!(waiting.reason(), Reason::Unspecified);
    assert!(
        bench.provider.gap(0) >= secs(30),
        "{:?}",
        bench.provider.gap(0)
    );
    let ledger = ended.committed().ledger.as_ref().unwrap();
    assert!(ledger.waited.unwrap().seconds >= 30);
    bench.finish().await;
}

fn rate_limited(retry_after: &str) -> Script {
    sent()
        .header("retry-after", retry_after)
        .head(429)
        .data(error("Slow down", "requests", "rate_limit_exceeded"))
        .end()
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_the_deadline_fails_at_once_with_its_value() {
    let bench = Bench::start().await;
    bench.provider.then(rate_limited("3600"));
    let (ended, took) = timed(async { bench.generate(start()).await.end().await }).await;
    assert_eq!(took, secs(0));
    assert_eq!(ended.class(), Class::RateLimited);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::WaitTooLong);
    let verdict = ended.failed().verdict.as_ref().unwrap();
    assert_eq!(verdict.retry_after.unwrap().seconds, 3600);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn another_target_takes_over_at_once() {
    let bench = Bench::start().await;
    bench.provider.then(rate_limited("30"));
    bench.provider.then(answer("from b"));
    let (ended, took) = timed(async { bench.generate(start().on("pair")).await.end().await }).await;
    assert_eq!(ended.message(), "from b");
    assert_eq!(took, secs(0));
    let providers: Vec<String> = bench
        .provider
        .received()
        .into_iter()
        .map(|r| r.provider)
        .collect();
    assert_eq!(providers, ["a", "b"]);
    let fallbacks: Vec<bool> = ended
        .told()
        .filter_map(|frame| match frame {
            Frame::AttemptStarted(started) => Some(started.fallback),
            _ => None,
        })
        .collect();
    assert_eq!(fallbacks, [false, true]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn no_usable_target_is_told_with_the_time_one_returns() {
    let bench = Bench::start().await;
    bench.provider.then(rate_limited("3600"));
    bench.generate(start()).await.end().await;
    // The credential cools down for all: the next one does not even ask.
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::NoTarget);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::NoTarget);
    let details = ended.status.as_ref().unwrap().get_error_details();
    let wait = details.retry_info().unwrap().retry_delay.unwrap();
    assert!(wait > secs(3590) && wait <= secs(3600), "{wait:?}");
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_for_connections_is_no_target() {
    let bench = Bench::with_slots(CONFIG, 1).await;
    bench.provider.then(stream().text("busy"));
    let mut busy = bench.generate(start()).await;
    busy.text().await;
    bench.provider.fill_queue();
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(ended.class(), Class::NoTarget);
    assert_eq!(ended.sends(), (0, 0));
    busy.send(cancel(""));
    busy.end().await;
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_connection_is_told_and_served_in_order() {
    let bench = Bench::with_slots(CONFIG, 1).await;
    bench
        .provider
        .then(stream().text("one").wait(secs(5)).complete());
    bench.provider.then(answer("two"));
    let mut first = bench.generate(start()).await;
    first.text().await;
    let mut second = bench.generate(start()).await;
    let Frame::Waiting(waiting) = second.until(|f| matches!(f, Frame::Waiting(_))).await else {
        unreachable!()
    };
    assert_eq!(waiting.reason(), Reason::Connection);
    assert_eq!(second.end().await.message(), "two");
    assert_eq!(first.end().await.message(), "one");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_ends_it_in_time_for_the_ledger_to_arrive() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").keepalives(secs(60), secs(1)));
    let (ended, took) =
        timed(async { bench.generate_within(secs(20), start()).await.end().await }).await;
    assert_eq!(ended.class(), Class::Deadline);
    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Deadline);
    assert_eq!(ended.sends(), (1, 1));
    assert!(took >= millis(19_890) && took < secs(20), "{took:?}");
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_holds_in_silence_too() {
    let bench = Bench::start().await;
    bench.provider.then(sent());
    let (ended, took) =
        timed(async { bench.generate_within(secs(20), start()).await.end().await }).await;
    assert_eq!(ended.class(), Class::Deadline);
    assert!(took < secs(20), "{took:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_attached_callers_shorter_deadline_holds() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("Hel"));
    let mut first = bench.generate(start_as("r")).await;
    first.text().await;
    let (second, took) = timed(async {
        bench
            .generate_within(secs(5), start_as("r"))
            .await
            .end()
            .await
    })
    .await;
    assert_eq!(second.class(), Class::Deadline);
    assert!(took < secs(5), "{took:?}");
    first.end().await;
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_never_cuts_a_send_but_stops_its_replay() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(30)).reset());
    let options = RecoveryOptions {
        deadline: Some(duration(secs(10))),
        ..RecoveryOptions::default()
    };
    let (ended, took) =
        timed(async { bench.generate(start_with(options)).await.end().await }).await;
    assert_eq!(ended.class(), Class::Transport);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Deadline);
    assert_eq!(took, secs(30));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_allowance_bounds_all_attempts() {
    let bench = Bench::start().await;
    for _ in 0..3 {
        bench.provider.then(status(500).end());
    }
    let options = RecoveryOptions {
        max_attempts: Some(3),
        ..RecoveryOptions::default()
    };
    let ended = bench.generate(start_with(options)).await.end().await;
    assert_eq!(ended.class(), Class::ProviderInternal);
    assert_eq!(ended.failed().stopped_by(), StoppedBy::Allowance);
    assert_eq!(ended.sends(), (3, 3));
    assert!(bench.provider.gap(0) >= secs(1), "backoff");
    assert!(bench.provider.gap(1) >= secs(2), "backoff doubles");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_replay_sends_the_same_bytes() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(1)).reset());
    bench.provider.then(answer("Hello"));
    bench.generate(start()).await.end().await;
    let received = bench.provider.received();
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(received[0].headers, received[1].headers);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn two_rpcs_of_a_scope_share_one_allowance() {
    let bench = Bench::start().await;
    let scoped = |attempts| {
        let mut start = start_with(RecoveryOptions {
            max_attempts: Some(attempts),
            ..RecoveryOptions::default()
        });
        start.scope = "turn-1".into();
        start
    };
    bench.provider.then(status(400).end());
    bench.provider.then(status(400).end());
    bench.generate(scoped(2)).await.end().await;
    bench.generate(scoped(11)).await.end().await;
    let third = bench.generate(scoped(11)).await.end().await;
    assert_eq!(third.failed().stopped_by(), StoppedBy::Allowance);
    assert_eq!(third.sends(), (0, 0));
    assert_eq!(bench.provider.sends(), 2);
    bench.finish().await;
}
