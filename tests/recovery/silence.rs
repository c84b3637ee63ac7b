//! Silence: which timer runs when, what resets it, and what its expiry says.

use std::time::Duration;

use redrive::{
    proto::FinishReason,
    protocol::{self, Delta},
    recovery::{Command, Event, Params, settings::Timers},
    verdict::Class,
};

use crate::support::*;

const MINUTE: Duration = s(60);

/// The default profile, and a failure of the first attempt ends the generation.
fn once() -> Params {
    params_with(1, |p| p.policy.max_attempts = 1)
}

fn once_self_hosted() -> Params {
    let mut params = once();
    set_timers(&mut params, Timers::SELF_HOSTED);
    params
}

fn message(script: &Script) -> String {
    script.failed().verdict.unwrap().message
}

// N1
#[test]
fn silence_for_the_whole_window_is_a_stall() {
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    script.text("b");
    script.pass(s(45) - Duration::from_nanos(1));
    assert!(!script.generation.has_ended());
    script.pass(Duration::from_nanos(1));
    assert_eq!(script.last(), "failed stall by allowance");
    assert!(script.failed().verdict.unwrap().retryable);
    assert!(script.commands.contains(&Command::Abort { condemn: true }));
}

// N2
#[test]
fn a_slow_but_steady_stream_completes() {
    let mut script = Script::start(once());
    script.open();
    for _ in 0..6 {
        script.text("x");
        script.pass(s(5));
    }
    script.finish(FinishReason::Stop);
    script.usage(6);
    script.done();
    assert_eq!(script.last(), "committed stop \"xxxxxx\"");
}

// N3
#[test]
fn before_the_first_token_the_silence_window_does_not_apply() {
    let mut script = Script::start(once());
    script.open();
    script.pass(4 * s(45));
    script.text("late");
    assert_eq!(script.last(), "delta 1.0 \"late\"");
}

// N4
#[test]
fn keepalives_before_the_first_token_arm_nothing() {
    let mut script = Script::start(once());
    script.open();
    script.keepalive();
    script.keepalive();
    script.pass(4 * s(45));
    script.text("late");
    assert_eq!(script.last(), "delta 1.0 \"late\"");
}

// N5
#[test]
fn a_client_that_holds_an_update_stalls_nothing() {
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    script.text("b");
    script.reads = false;
    for _ in 0..15 {
        script.pass(s(30));
        script.text(".");
    }
    script.read();
    assert_eq!(script.last(), "delta 1.0 \"...............\"");
    assert!(!script.generation.has_ended());
}

// N6
#[test]
fn a_window_of_zero_is_off_and_a_cancel_still_ends() {
    let mut script = Script::start({
        let mut params = once();
        let off = Timers {
            inter_delta: Duration::ZERO,
            no_progress: Duration::ZERO,
            ..Timers::HOSTED
        };
        set_timers(&mut params, off);
        params
    });
    script.open();
    script.text("a");
    script.pass(100 * s(45));
    assert!(!script.generation.has_ended());
    script.cancel();
    assert_eq!(script.last(), "failed cancelled by cancel");
}

// N7
#[test]
fn keepalives_hold_off_the_silence_window_but_not_no_progress() {
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    for _ in 0..7 {
        script.pass(s(40));
        script.keepalive();
    }
    assert!(!script.generation.has_ended());
    script.pass(s(20));
    assert_eq!(script.last(), "failed stall by allowance");
    assert_eq!(
        message(&script),
        "redrive ended the attempt: timer no_progress (300s) ran out in text, last event: a keepalive"
    );
}

// N8
#[test]
fn an_end_in_time_is_clean_and_leaves_no_timer() {
    let mut script = Script::start(once());
    script.answer("Hi");
    assert_eq!(script.last(), "committed stop \"Hi\"");
    assert_eq!(script.generation.poll_timeout(), None);
}

// N9
#[test]
fn a_cancel_while_armed_is_a_cancel() {
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    script.pass(s(44));
    script.cancel();
    script.pass(s(10));
    assert_eq!(script.last(), "failed cancelled by cancel");
}

// N10
#[test]
fn reasoning_arms_and_gets_the_longer_window() {
    let mut script = Script::start(once());
    script.open();
    script.delta(Delta::Reasoning("hm"));
    script.pass(s(299));
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert_eq!(
        message(&script),
        "redrive ended the attempt: timer open_block (300s) ran out in reasoning, last event: a delta"
    );
}

#[test]
fn a_tool_call_gets_the_longer_window() {
    let mut script = Script::start(once());
    script.open();
    script.tool_call(0, "f", "");
    script.pass(s(299));
    script.keepalive();
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert!(message(&script).contains("no_progress (300s)"));
}

// N11
#[test]
fn a_count_first_arms_nothing() {
    let mut script = Script::start(once());
    script.open();
    script.usage(0);
    script.pass(4 * s(45));
    assert!(!script.generation.has_ended());
}

// N12, as amended
#[test]
fn a_finish_reason_arms_only_the_tail_and_its_expiry_accepts() {
    let mut script = Script::start(once());
    script.open();
    script.finish(FinishReason::Stop);
    script.pass(s(1));
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert_eq!(
        script.last(),
        "committed stop FLAG_EMPTY FLAG_USAGE_ESTIMATED"
    );
    assert!(script.commands.contains(&Command::Finish));
}

#[test]
fn content_lengthens_the_tail_comments_do_not() {
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    script.finish(FinishReason::Stop);
    script.pass(Duration::from_millis(1500));
    script.usage(1);
    script.pass(Duration::from_millis(1500));
    script.keepalive();
    assert!(!script.generation.has_ended());
    script.pass(Duration::from_millis(500));
    assert_eq!(script.last(), "committed stop \"a\"");
}

#[test]
fn the_tail_is_ten_seconds_in_all() {
    let mut script = Script::start(once());
    script.open();
    script.finish(FinishReason::Stop);
    for _ in 0..9 {
        script.pass(s(1));
        script.decoded(protocol::Event::Keepalive { content: true });
        assert!(!script.generation.has_ended());
    }
    script.pass(s(1));
    assert!(script.generation.has_ended());
}

#[test]
fn a_tail_of_zero_does_not_wait() {
    let mut params = once();
    let timers = Timers {
        tail: Duration::ZERO,
        ..Timers::HOSTED
    };
    set_timers(&mut params, timers);
    let mut script = Script::start(params);
    script.open();
    script.text("a");
    script.finish(FinishReason::Stop);
    assert_eq!(script.last(), "committed stop \"a\" FLAG_USAGE_ESTIMATED");
}

// N13, as amended
#[test]
fn nothing_but_output_ends_the_wait_for_the_first_token() {
    let mut script = Script::start(once_self_hosted());
    script.open();
    for _ in 0..29 {
        script.pass(MINUTE);
        script.keepalive();
    }
    assert!(!script.generation.has_ended());
    script.pass(MINUTE);
    assert_eq!(script.last(), "failed timeout_first_token by no_target");
}

// N14
#[test]
fn the_first_token_starts_the_window_of_silence() {
    let mut script = Script::start(once_self_hosted());
    script.open();
    script.pass(s(1700));
    script.text("a");
    script.pass(s(599));
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert!(message(&script).contains("inter_delta (600s)"));
}

// N15
#[test]
fn a_later_keepalive_restarts_silence_but_not_progress() {
    let mut script = Script::start(once_self_hosted());
    script.open();
    script.text("a");
    script.pass(s(599));
    script.keepalive();
    script.pass(s(599));
    script.keepalive();
    assert!(!script.generation.has_ended());
    script.pass(s(2));
    assert!(message(&script).contains("no_progress (1200s)"));
}

// N16
#[test]
fn without_no_progress_keepalives_hold_for_ever() {
    let mut params = once();
    let timers = Timers {
        no_progress: Duration::ZERO,
        ..Timers::HOSTED
    };
    set_timers(&mut params, timers);
    let mut script = Script::start(params);
    script.open();
    script.text("a");
    for _ in 0..1000 {
        script.pass(s(40));
        script.keepalive();
    }
    assert!(!script.generation.has_ended());
}

// N17
#[test]
fn a_timer_of_an_earlier_attempt_that_comes_late_is_ignored() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("a");
    script.pass(s(44));
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.handle(Event::TimerDue);
    script.pass(s(10));
    assert_eq!(script.sent_count(), 2);
    assert!(!script.generation.has_ended());
}

// N18
#[test]
fn an_attempt_that_only_named_itself_leaves_no_trace() {
    let started = |id| protocol::Event::Started {
        response_id: Some(id),
        model: Some("real-model"),
    };
    let mut script = Script::start(params(1));
    script.open();
    script.decoded(started("resp_1"));
    script.fail(provider(Class::ProviderInternal));
    script.pass(s(1));
    script.open();
    script.decoded(started("resp_2"));
    script.text("Hi");
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
    assert!(!script.told().iter().any(|line| line.starts_with("reset")));
    assert!(!format!("{:?}", script.frames).contains("resp_1"));
    assert!(format!("{:?}", script.frames).contains("resp_2"));
}

// N19
#[test]
fn an_empty_answer_keeps_what_the_provider_said_of_it() {
    let mut script = Script::start(params(1));
    script.open();
    script.decoded(protocol::Event::Started {
        response_id: Some("resp_1"),
        model: Some("real-model"),
    });
    script.finish(FinishReason::Stop);
    script.usage(0);
    script.done();
    assert_eq!(script.last(), "committed stop FLAG_EMPTY");
    let shown = format!("{:?}", script.frames.last());
    assert!(shown.contains("resp_1") && shown.contains("real-model"));
}

// N20, as amended
#[test]
fn a_stall_after_output_is_reset_and_replayed() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("a");
    script.pass(s(45));
    assert_eq!(
        script.told()[3..],
        ["reset 1 stall wait=1s", "waiting backoff 1s"]
    );
    script.pass(s(1));
    script.answer("b");
    assert_eq!(script.last(), "committed stop \"b\"");
}

// N23
#[test]
fn a_pre_emption_of_five_minutes_survives_when_self_hosted_and_stalls_when_hosted() {
    for (params, survives) in [(once_self_hosted(), true), (once(), false)] {
        let mut script = Script::start(params);
        script.open();
        script.text("a");
        script.pass(s(300));
        assert_eq!(!script.generation.has_ended(), survives);
    }
}

// N24
#[test]
fn thirteen_minutes_to_the_first_token_survive_when_self_hosted_and_time_out_when_hosted() {
    for (params, survives) in [(once_self_hosted(), true), (once(), false)] {
        let mut script = Script::start(params);
        script.open();
        for _ in 0..13 {
            script.pass(MINUTE);
            script.upstream_of(
                1,
                redrive::recovery::Upstream::Decoded(protocol::Event::Keepalive { content: true }),
            );
        }
        assert_eq!(!script.generation.has_ended(), survives);
    }
}

// N25
#[test]
fn pings_for_ever_are_ended_by_no_progress() {
    let mut script = Script::start(once_self_hosted());
    script.open();
    script.text("a");
    let mut pings = 0;
    while !script.generation.has_ended() {
        script.pass(s(15));
        script.upstream_of(
            1,
            redrive::recovery::Upstream::Decoded(protocol::Event::Keepalive { content: false }),
        );
        pings += 1;
    }
    assert_eq!(pings * 15, 1200);
    assert!(message(&script).contains("no_progress"));
}

// N26
#[test]
fn every_expiry_names_its_timer_its_length_and_the_phase() {
    let mut script = Script::start(once());
    script.pass(s(10));
    assert_eq!(script.last(), "failed timeout_connect by allowance");
    assert_eq!(
        message(&script),
        "redrive ended the attempt: timer connect (10s) ran out before the first token, \
         last event: none"
    );
    let mut script = Script::start(once());
    script.open();
    script.pass(s(600));
    assert_eq!(
        message(&script),
        "redrive ended the attempt: timer first_token (600s) ran out before the first token, \
         last event: the response head"
    );
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    script.pass(s(45));
    assert_eq!(
        message(&script),
        "redrive ended the attempt: timer inter_delta (45s) ran out in text, last event: a delta"
    );
}

#[test]
fn a_head_without_a_told_hand_over_ends_the_connect_timer() {
    let mut script = Script::start(once());
    script.upstream_of(
        1,
        redrive::recovery::Upstream::Head {
            status: 200,
            request_id: None,
        },
    );
    script.pass(s(60));
    assert!(!script.generation.has_ended());
    script.pass(s(540));
    assert_eq!(script.last(), "failed timeout_first_token by no_target");
}

#[test]
fn a_started_event_is_a_sign_of_life() {
    let mut script = Script::start(once());
    script.open();
    script.text("a");
    script.pass(s(40));
    script.decoded(protocol::Event::Started {
        response_id: None,
        model: Some("m"),
    });
    script.pass(s(40));
    assert!(!script.generation.has_ended());
}
