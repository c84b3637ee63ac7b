//! Budgets whose engine does not answer, or has yet to learn what was sent: waits like any other budget's,
//! and ends of their own. And sends that are cut, because the engine could not be told that they run.

use std::time::Duration;

use redrive::{
    limits::Spent,
    proto::{Delivery, Executed, FinishReason, WaitSource, waiting::Reason},
    recovery::{Command, Event, Params, Takes, Upstream, Wait},
    verdict::{Class, Denied, Failure, Origin, Stage},
};

use crate::support::*;

const LOST: &str = "engine redis: no answer from the engine in time";

/// A generation whose slot and lease come when the test says so.
fn asking(params: Params) -> Script {
    let mut script = Script::new(at(0), params, &commons());
    script.slots = false;
    script.handle(Event::Start);
    script
}

fn deadline(seconds: u64, targets: usize) -> Params {
    params_with(targets, |p| p.policy.deadline = s(seconds))
}

/// The engine of a budget does not answer, or learns for so long.
fn unavailable(script: &mut Script, budget: &str, expected: Option<Duration>) {
    script.handle(Event::Waiting(Wait {
        reason: Reason::LimiterUnavailable,
        denied: Some(Denied {
            budget: budget.into(),
            limit: LOST.into(),
        }),
        expected,
    }));
}

/// What the driver makes of a lease that is cut.
fn cut() -> Failure {
    let message = "the engine of budget main could not be told in time that this send still runs";
    let mut failure = Failure::new(
        Class::LimiterUnavailable,
        Origin::Us,
        Stage::Stream,
        message,
    );
    failure.denied = Some(Box::new(Denied {
        budget: "main".into(),
        limit: String::new(),
    }));
    failure
}

fn settled(script: &Script) -> Vec<Spent> {
    let settle = |command: &Command| match command {
        Command::Settle(spent) => Some(*spent),
        _ => None,
    };
    script.commands.iter().filter_map(settle).collect()
}

#[test]
fn an_engine_is_waited_for_and_the_wait_is_told_and_written_down() {
    let mut script = asking(params(1));
    unavailable(&mut script, "main", None);
    script.pass(s(2));
    unavailable(&mut script, "main", Some(s(70)));
    script.pass(s(70));
    assert_eq!(script.sent_count(), 0, "no request without a lease");
    script.reserved();
    script.answer("Hi");
    assert_eq!(
        script.told()[..4],
        [
            "accepted left=11 deadline=600s",
            "waiting limiter_unavailable main",
            "waiting limiter_unavailable main 70s",
            "attempt 1 a/m first left=10"
        ]
    );
    let entry = &script.ledger().entries[0];
    assert_eq!(entry.wait_source(), WaitSource::Budget);
    assert_eq!(entry.waited.unwrap().seconds, 72);
}

#[test]
fn a_client_that_attaches_is_told_that_the_engine_is_waited_for() {
    let mut script = asking(params_with(1, |p| p.detach_grace = s(60)));
    unavailable(&mut script, "main", Some(s(40)));
    script.handle(Event::ClientLost);
    script.pass(s(15));
    script.attach(Delivery::Preview);
    assert_eq!(script.last(), "waiting limiter_unavailable main 25s");
}

#[test]
fn an_engine_that_is_away_until_the_deadline_ends_it_by_the_limiter() {
    let mut script = asking(deadline(60, 1));
    unavailable(&mut script, "main", None);
    script.pass(s(60));
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main"
    );
    let verdict = script.failed().verdict.unwrap();
    assert!(verdict.retryable);
    assert_eq!(verdict.limit, LOST);
    assert_eq!(
        verdict.message,
        format!("the deadline passed before the engine of budget main granted anything ({LOST})")
    );
    assert_eq!(script.ledger().waited.unwrap().seconds, 60);
}

#[test]
fn the_callers_own_deadline_is_no_other_while_nothing_was_sent() {
    let mut script = asking(params_with(1, |p| p.caller_deadline = Some(at(20))));
    unavailable(&mut script, "main", None);
    script.pass(s(20));
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main"
    );
}

#[test]
fn what_was_waited_for_last_says_why_it_ended() {
    let mut script = asking(deadline(60, 1));
    unavailable(&mut script, "main", None);
    script.held_by("main", None);
    script.pass(s(60));
    assert_eq!(script.last(), "failed deadline by deadline budget=main");
    let mut script = asking(deadline(60, 1));
    script.held_by("main", None);
    unavailable(&mut script, "main", None);
    script.pass(s(60));
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main"
    );
}

#[test]
fn learning_that_ends_at_the_deadline_does_not_fit_and_just_before_does() {
    for (wait, fits) in [(Duration::from_millis(9_999), true), (s(10), false)] {
        let mut script = asking(deadline(10, 1));
        unavailable(&mut script, "main", Some(wait));
        assert_eq!(!script.generation.has_ended(), fits, "{wait:?}");
    }
}

#[test]
fn learning_that_does_not_fit_is_refused_at_once_with_its_time() {
    for params in [
        deadline(10, 1),
        params_with(1, |p| p.caller_deadline = Some(at(10))),
    ] {
        let mut script = asking(params);
        unavailable(&mut script, "main", Some(s(70)));
        assert_eq!(
            script.last(),
            "failed limiter_unavailable by limiter retry_after=70s budget=main"
        );
        let verdict = script.failed().verdict.unwrap();
        assert!(verdict.retryable);
        assert_eq!(
            verdict.message,
            format!("budget main grants nothing before the deadline ({LOST})")
        );
        let abort = Command::Abort { condemn: false };
        assert_eq!(script.commands.last(), Some(&abort));
        assert_eq!(script.generation.poll_timeout(), None);
    }
}

#[test]
fn learning_that_does_not_fit_leads_to_another_target_and_is_not_asked_again() {
    let mut script = asking(deadline(60, 2));
    unavailable(&mut script, "main", Some(s(70)));
    assert_eq!(script.asked.1, Takes::Whole);
    script.slots = true;
    script.reserved();
    for _ in 0..3 {
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.next_send();
    }
    assert_eq!(script.visited(), [1, 1, 1, 1]);
}

#[test]
fn of_an_engine_and_a_full_budget_the_soonest_is_told() {
    for (learns, full, told) in [
        (
            40,
            50,
            "limiter_unavailable by limiter retry_after=40s budget=a",
        ),
        (50, 40, "rate_limited by limiter retry_after=40s budget=b"),
    ] {
        let mut script = asking(deadline(10, 2));
        unavailable(&mut script, "a", Some(s(learns)));
        script.held_by("b", Some(s(full)));
        assert_eq!(script.last(), format!("failed {told}"));
    }
}

#[test]
fn an_attempts_verdict_is_not_masked_by_an_engine_that_is_away() {
    for (expected, told) in [
        (None, "failed provider_internal by limiter budget=main"),
        (
            Some(s(70)),
            "failed provider_internal by limiter retry_after=70s budget=main",
        ),
    ] {
        let mut script = asking(deadline(60, 1));
        script.reserved();
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.pass(s(1));
        unavailable(&mut script, "main", expected);
        script.pass(s(59));
        assert_eq!(script.last(), told);
        let failed = script.failed();
        let verdict = failed.verdict.unwrap();
        assert_eq!((verdict.attempt, &*verdict.limit), (1, LOST));
        let entry = failed.ledger.unwrap().entries.remove(0).verdict.unwrap();
        assert_eq!(entry.budget, "");
    }
}

#[test]
fn the_callers_own_deadline_stands_once_an_attempt_was_made() {
    let mut script = asking(params_with(1, |p| p.caller_deadline = Some(at(20))));
    script.reserved();
    script.sent();
    script.fail(provider(Class::ProviderInternal));
    script.pass(s(1));
    unavailable(&mut script, "main", None);
    script.pass(s(19));
    assert_eq!(script.last(), "failed deadline by deadline budget=main");
}

#[test]
fn every_other_end_of_a_wait_stays_what_it_is() {
    type End = fn(&mut Script);
    let ends: [(End, &str); 2] = [
        (|script| script.cancel(), "failed cancelled by cancel"),
        (
            |script| script.handle(Event::Drain { until: at(7) }),
            "failed draining by drain",
        ),
    ];
    for (end, told) in ends {
        let mut script = asking(deadline(30, 1));
        unavailable(&mut script, "main", None);
        end(&mut script);
        script.pass(s(7));
        assert_eq!(script.last(), told);
        let abort = Command::Abort { condemn: false };
        assert_eq!(script.commands.last(), Some(&abort));
    }
}

#[test]
fn a_cut_send_ends_at_once_and_is_never_replayed() {
    let mut script = Script::start(params(3));
    script.open();
    script.text("The sky");
    script.fail(cut());
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main"
    );
    let failed = script.failed();
    let verdict = failed.verdict.unwrap();
    assert!(verdict.retryable);
    assert_eq!((verdict.attempt, &*verdict.target), (1, "a/m"));
    assert_eq!(verdict.retry_after, None);
    let ledger = failed.ledger.unwrap();
    assert_eq!(ledger.entries[0].executed(), Executed::Yes);
    assert_eq!((ledger.attempts, ledger.sends), (1, 1));
    assert_eq!(settled(&script).len(), 1);
    assert!(script.commands.contains(&Command::Abort { condemn: false }));
    assert_eq!(script.generation.poll_timeout(), None);
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn a_cut_send_is_executed_as_it_was() {
    let mut waits_for_its_head = Script::start(params(1));
    waits_for_its_head.sent();
    let connects = Script::start(params(1));
    for (mut script, executed, settles) in [
        (waits_for_its_head, Executed::Maybe, 1),
        (connects, Executed::No, 0),
    ] {
        script.fail(cut());
        assert_eq!(script.ledger().entries[0].executed(), executed);
        assert_eq!(settled(&script).len(), settles);
    }
}

#[test]
fn what_is_complete_is_accepted_although_it_is_cut() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.finish(FinishReason::Stop);
    script.fail(cut());
    assert!(script.last().starts_with("committed stop \"Hi\""));
}

#[test]
fn a_cut_takes_nothing_back_that_a_client_acts_on() {
    let mut script = Script::start(params(2));
    script.open();
    script.text("The sky");
    let sequence = script.sequence();
    script.effects(sequence);
    script.fail(cut());
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main unsafe"
    );
}

#[test]
fn a_continuation_that_is_cut_is_no_refusal() {
    let mut script = Script::start(params_with(2, |p| {
        change_targets(p, |target| target.continues = true);
    }));
    script.open();
    script.text("The sky");
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.fail(cut());
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main"
    );
    assert_eq!(script.failed().verdict.unwrap().attempt, 2);
    assert_eq!(script.sent_count(), 2);
}

#[test]
fn a_cut_is_the_verdict_whatever_budget_held_another_target_back() {
    let mut script = asking(deadline(60, 2));
    script.held_by("other", Some(s(70)));
    script.reserved();
    script.open();
    script.fail(cut());
    assert_eq!(
        script.last(),
        "failed limiter_unavailable by limiter budget=main"
    );
}

#[test]
fn the_next_generation_may_go_to_a_target_whose_send_was_cut() {
    let commons = commons();
    let once = || params_with(1, |p| p.policy.circuit.failures = 1);
    let mut script = Script::start_at(at(0), once(), &commons);
    script.open();
    script.fail(cut());
    let mut next = Script::start_at(at(0), once(), &commons);
    next.answer("Hi");
    assert_eq!(next.sent_at(), [0]);
    script.upstream_of(1, Upstream::End);
    assert_eq!(script.sent_count(), 1);
}
