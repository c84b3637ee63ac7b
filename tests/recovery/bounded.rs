//! Bounded recovery: what is tried again, how often, and what the client sees of it.

use redrive::{
    proto::{FinishReason, StoppedBy},
    protocol::{self, Delta},
    recovery::{Command, Event, Upstream, settings::Replay},
    verdict::{Class, Failure, Origin, Stage},
};

use crate::support::*;

// G1, G35
#[test]
fn a_stream_without_finish_reason_is_void_before_its_replay_begins() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hel");
    script.end();
    script.pass(s(1));
    script.answer("Hello");
    assert_eq!(
        script.told(),
        [
            "accepted left=11 deadline=600s",
            "attempt 1 a/m first left=10",
            "delta 1.0 \"Hel\"",
            "reset 1 premature_eof wait=1s",
            "waiting backoff 1s",
            "attempt 2 a/m restart left=9",
            "delta 2.0 \"Hello\"",
            "committed stop \"Hello\"",
        ]
    );
    assert_eq!(script.sent_at(), [0, 1]);
}

// G2
#[test]
fn counts_and_an_end_do_not_stand_in_for_the_terminal() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hel");
    script.usage(3);
    script.end();
    assert_eq!(script.told()[3], "reset 1 premature_eof wait=1s");
}

// G3
#[test]
fn deltas_alone_do_not_complete() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("{\"a\":");
    script.text("1}");
    script.end();
    assert_eq!(script.told()[4], "reset 1 premature_eof wait=1s");
}

// G4
#[test]
fn a_token_limit_is_an_end_and_no_reason_to_try_again() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hel");
    script.finish(FinishReason::Length);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed length \"Hel\"");
    assert_eq!(script.sent_count(), 1);
}

// G5, as amended
#[test]
fn done_alone_completes_where_the_dialect_says_so() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.decoded(protocol::Event::End { completes: true });
    assert_eq!(script.last(), "committed stop \"Hi\" FLAG_USAGE_ESTIMATED");
}

// G5, as amended
#[test]
fn done_alone_completes_nothing_elsewhere() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.done();
    assert_eq!(script.told()[3], "reset 1 premature_eof wait=1s");
}

// G6
#[test]
fn an_end_after_the_finish_reason_is_success_with_usage_estimated() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hello, you");
    script.finish(FinishReason::Stop);
    script.end();
    assert_eq!(
        script.last(),
        "committed stop \"Hello, you\" FLAG_USAGE_ESTIMATED"
    );
    let ledger = script.ledger();
    assert!(ledger.entries[0].usage_estimated);
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 3);
}

// G7
#[test]
fn a_tool_call_that_was_cut_is_never_handed_out() {
    let mut script = Script::start(params(1));
    script.open();
    script.tool_call(0, "pay", "{\"amount\": 1");
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.tool_call(0, "pay", "{\"amount\": 10}");
    script.finish(FinishReason::ToolCalls);
    script.usage(1);
    script.done();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 call id0 pay",
            "delta 1.0 arguments \"{\\\"amount\\\": 1\"",
            "reset 1 transport wait=1s",
            "waiting backoff 1s",
            "attempt 2 a/m restart left=9",
            "delta 2.0 call id0 pay",
            "delta 2.0 arguments \"{\\\"amount\\\": 10}\"",
            "committed tool_calls call id0 pay \"{\\\"amount\\\": 10}\"",
        ]
    );
}

// G8, as amended
#[test]
fn a_whole_tool_call_of_an_attempt_that_fails_later_is_void() {
    let mut script = Script::start(params_with(1, |p| p.policy.max_attempts = 1));
    script.open();
    script.tool_call(0, "pay", "{}");
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by allowance");
    assert!(
        !script
            .told()
            .iter()
            .any(|line| line.starts_with("committed"))
    );
}

// G9
#[test]
fn a_client_that_goes_away_is_a_cancel_and_no_premature_end() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hel");
    script.reads = false;
    script.handle(Event::ClientLost);
    let failed = script.generation.failed().unwrap();
    assert_eq!(support_class(failed), "cancelled");
    assert_eq!(failed.stopped_by(), StoppedBy::Cancel);
    assert_eq!(
        script.commands.last(),
        Some(&Command::Abort { condemn: false })
    );
}

// G10
#[test]
fn an_allowance_of_three_is_three_requests() {
    let mut script = Script::start(params_with(1, |p| p.policy.max_attempts = 3));
    for _ in 0..3 {
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.pass(s(10));
    }
    assert_eq!(script.sent_count(), 3);
    assert_eq!(script.last(), "failed provider_internal by allowance");
    let ledger = script.ledger();
    assert_eq!((ledger.attempts, ledger.sends), (3, 3));
    assert_eq!(script.failed().verdict.unwrap().attempt, 3);
}

// G15
#[test]
fn the_deadline_does_not_cut_a_request_in_flight() {
    let mut script = Script::start(params_with(1, |p| p.policy.deadline = s(5)));
    script.open();
    script.text("slow");
    script.pass(s(30));
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed stop \"slow\"");
}

// G15
#[test]
fn what_fails_after_the_deadline_is_not_replayed() {
    let mut script = Script::start(params_with(2, |p| p.policy.deadline = s(5)));
    script.sent();
    script.pass(s(5));
    script.fail(provider(Class::ProviderInternal));
    assert_eq!(script.last(), "failed provider_internal by deadline");
    assert_eq!(script.sent_count(), 1);
}

// G16
#[test]
fn a_redirect_is_a_verdict_and_no_second_request() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider(Class::RedirectRefused));
    script.pass(s(600));
    assert_eq!(script.last(), "failed redirect_refused by not_retryable");
    assert_eq!(script.sent_count(), 1);
}

// G17, G34 (without a code that says otherwise)
#[test]
fn a_permanent_refusal_costs_one_request() {
    for class in [
        Class::Auth,
        Class::Permission,
        Class::InvalidRequest,
        Class::QuotaExhausted,
        Class::NotFound,
        Class::ContextOverflow,
        Class::ContentFiltered,
        Class::TooLarge,
        Class::Unclassified,
    ] {
        let mut script = Script::start(params(1));
        script.sent();
        script.fail(provider(class));
        script.pass(s(600));
        let label = redrive::verdict::class::label(class);
        assert_eq!(script.last(), format!("failed {label} by not_retryable"));
        assert_eq!(script.sent_count(), 1, "{label}");
    }
}

// G18, G34 (coded as overloaded)
#[test]
fn a_transient_refusal_is_tried_again() {
    for class in [
        Class::TimeoutProvider,
        Class::RateLimited,
        Class::ProviderInternal,
        Class::Overloaded,
        Class::Corrupt,
    ] {
        let mut script = Script::start(params(1));
        script.sent();
        script.fail(provider(class));
        script.pass(s(1));
        script.answer("Hello");
        assert_eq!(script.last(), "committed stop \"Hello\"");
        assert_eq!(script.sent_count(), 2, "{class:?}");
    }
}

// G19
#[test]
fn a_failure_of_our_own_never_replays_whatever_its_class() {
    for origin in [Origin::Us, Origin::Client] {
        let mut script = Script::start(params(2));
        script.sent();
        script.fail(Failure::new(
            Class::Transport,
            origin,
            Stage::Stream,
            "ours",
        ));
        script.pass(s(600));
        assert_eq!(script.last(), "failed transport by not_retryable");
        assert_eq!(script.sent_count(), 1);
    }
}

// G20: `effects.rs`, after_effects_nothing_restarts

// G21
#[test]
fn disabled_replay_still_counts_its_one_request() {
    let mut script = Script::start(params_with(2, |p| p.policy.replay = Replay::None));
    script.open();
    script.text("Hel");
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by replay_disabled");
    assert_eq!(script.ledger().sends, 1);
    assert_eq!(script.sent_count(), 1);
}

// G22
#[test]
fn a_cancel_during_backoff_ends_at_once_and_nothing_is_sent_any_more() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider(Class::ProviderInternal));
    script.cancel();
    assert_eq!(script.last(), "failed cancelled by cancel");
    assert_eq!(script.generation.poll_timeout(), None);
    script.pass(s(600));
    assert_eq!(script.sent_count(), 1);
}

// G23
#[test]
fn a_cancel_during_the_stream_aborts_and_commits_nothing() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hel");
    script.cancel();
    assert_eq!(script.last(), "failed cancelled by cancel");
    assert_eq!(
        script.commands.last(),
        Some(&Command::Abort { condemn: false })
    );
    let ledger = script.ledger();
    assert_eq!(ledger.entries[0].verdict.as_ref().unwrap().attempt, 1);
    assert_eq!(ledger.void_output_tokens, 1);
}

// G32
#[test]
fn an_allowance_of_one_is_one_request() {
    let mut script = Script::start(params_with(2, |p| p.policy.max_attempts = 1));
    script.sent();
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by allowance");
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn only_an_error_object_voids_what_is_already_complete() {
    let unclean = |script: &mut Script| script.fail(reset());
    let garbage = |script: &mut Script| {
        script.decoded(protocol::Event::Undecodable(protocol::DecodeError::Json));
    };
    for late in [unclean as fn(&mut Script), garbage] {
        let mut script = Script::start(params(1));
        script.open();
        script.text("Hi");
        script.finish(FinishReason::Stop);
        script.usage(1);
        late(&mut script);
        assert_eq!(script.last(), "committed stop \"Hi\"");
    }
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.finish(FinishReason::Stop);
    script.decoded(protocol::Event::Error {
        json: br#"{"error":{"code":"server_error","type":"server_error","message":"late"}}"#,
    });
    assert_eq!(script.told()[3], "reset 1 provider_internal wait=1s");
}

#[test]
fn an_error_object_inside_a_stream_is_replayed_only_if_its_code_is_listed() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.decoded(protocol::Event::Error {
        json: br#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#,
    });
    assert_eq!(script.told()[3], "reset 1 rate_limited wait=1s");
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.decoded(protocol::Event::Error {
        json: br#"{"error":{"code":"never_heard_of","message":"try again in 1s"}}"#,
    });
    assert_eq!(script.last(), "failed unclassified by not_retryable");
}

#[test]
fn a_finish_reason_that_is_a_failure_completes_nothing() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.decoded(protocol::Event::BadFinish {
        native: "never_heard_of",
    });
    assert_eq!(script.last(), "failed unclassified by not_retryable");
}

#[test]
fn damaged_bytes_are_tried_again_and_a_whole_completion_is_not_paid_twice() {
    let mut script = Script::start(params(1));
    script.open();
    script.decoded(protocol::Event::Undecodable(protocol::DecodeError::Json));
    assert_eq!(script.last(), "waiting backoff 1s");
    let mut script = Script::start(params(2));
    script.open();
    script.decoded(protocol::Event::Undecodable(
        protocol::DecodeError::WholeCompletion,
    ));
    assert_eq!(script.last(), "failed unclassified by not_retryable");
}

#[test]
fn late_signals_of_an_ended_attempt_are_not_heard() {
    let mut script = Script::start(params(1));
    script.open();
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.upstream_of(
        1,
        Upstream::Decoded(protocol::Event::Delta(Delta::Text("old"))),
    );
    script.upstream_of(
        1,
        Upstream::Decoded(protocol::Event::Finish {
            reason: FinishReason::Stop,
            native: "stop",
        }),
    );
    script.upstream_of(1, Upstream::End);
    script.upstream_of(1, Upstream::Failed(reset()));
    script.upstream_of(3, Upstream::End);
    script.text("new");
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed stop \"new\"");
    assert_eq!(script.sent_count(), 2);
}

#[test]
fn nothing_changes_after_the_end() {
    let mut script = Script::start(params(1));
    script.answer("Hi");
    let told = script.told();
    let commands = script.commands.len();
    script.cancel();
    script.handle(Event::Start);
    script.reserved();
    script.queued();
    script.handle(Event::OutOfMemory);
    script.handle(Event::Drain { until: at(0) });
    script.handle(Event::TimerDue);
    script.effects(2);
    script.upstream_of(1, Upstream::Failed(reset()));
    assert_eq!(script.told(), told);
    assert_eq!(script.commands.len(), commands);
    assert_eq!(script.generation.poll_timeout(), None);
}

#[test]
fn a_drain_lets_what_runs_finish_and_ends_the_rest() {
    let mut script = Script::start(params(1));
    script.handle(Event::Drain { until: at(10) });
    script.open();
    script.text("Hel");
    script.pass(s(9));
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert_eq!(script.last(), "failed draining by drain");
    assert_eq!(
        script.commands.last(),
        Some(&Command::Abort { condemn: false })
    );
}

#[test]
fn a_clock_that_jumps_neither_panics_nor_sends_early() {
    let mut script = Script::start_at(at(100), params(1), &commons());
    script.sent();
    script.fail(provider_wait(Class::RateLimited, s(20)));
    script.now = at(5);
    script.handle(Event::TimerDue);
    assert_eq!(script.sent_count(), 1);
    script.now = redrive::recovery::Time::from_origin(std::time::Duration::MAX);
    script.handle(Event::TimerDue);
    assert_eq!(
        script.last(),
        "failed rate_limited by deadline retry_after=20s"
    );
}

fn support_class(failed: &redrive::proto::Failed) -> String {
    show::class(failed.verdict.as_ref())
}
