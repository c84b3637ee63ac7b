//! Waits: our own backoff, waits that were asked for, and what fits.

use std::time::Duration;

use redrive::{
    proto::WaitSource,
    recovery::Event,
    verdict::{Class, Failure},
};

use crate::support::*;

fn wait_after(failures: usize, failure: Failure) -> Vec<String> {
    let mut script = Script::start(params_with(1, |p| p.policy.max_attempts = 20));
    for _ in 1..failures {
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.next_send();
    }
    script.sent();
    script.fail(failure);
    script.told()
}

// G26
#[test]
fn a_supplied_wait_above_our_own_is_waited() {
    let told = wait_after(2, provider_wait(Class::RateLimited, s(5)));
    assert_eq!(told.last().unwrap(), "waiting cooldown 5s");
}

// G27
#[test]
fn our_own_wait_stands_if_the_supplied_one_is_shorter() {
    let told = wait_after(4, provider_wait(Class::RateLimited, s(1)));
    assert_eq!(told.last().unwrap(), "waiting backoff 8s");
}

// G28 (the date itself is read by the verdict's wait parser)
#[test]
fn a_supplied_wait_is_waited_to_its_end() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider_wait(Class::RateLimited, s(30)));
    script.pass(s(29));
    assert_eq!(script.sent_count(), 1);
    script.pass(s(1));
    script.answer("Hi");
    assert_eq!(script.sent_at(), [0, 30]);
    let entry = &script.ledger().entries[1];
    assert_eq!(entry.wait_source(), WaitSource::Provider);
    assert_eq!(entry.waited.unwrap().seconds, 30);
}

// G29 (unreadable waits count as absent)
#[test]
fn without_a_supplied_wait_our_own_is_taken_and_told_as_ours() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider(Class::RateLimited));
    script.pass(s(1));
    script.answer("Hi");
    let entry = &script.ledger().entries[1];
    assert_eq!(entry.wait_source(), WaitSource::Backoff);
    assert_eq!(
        script.ledger().entries[0]
            .verdict
            .as_ref()
            .unwrap()
            .retry_after,
        None
    );
}

// G30
#[test]
fn a_wait_that_does_not_fit_fails_at_once_with_the_providers_value() {
    let mut script = Script::start(params_with(1, |p| p.policy.deadline = s(100)));
    script.sent();
    script.fail(provider_wait(Class::RateLimited, s(600)));
    assert_eq!(
        script.last(),
        "failed rate_limited by wait_too_long retry_after=600s"
    );
}

#[test]
fn a_wait_that_ends_at_the_deadline_does_not_fit_and_one_just_before_does() {
    for (wait, fits) in [(Duration::from_millis(99_999), true), (s(100), false)] {
        let mut script = Script::start(params_with(1, |p| {
            p.policy.deadline = s(100);
            p.policy.backoff.jitter = 0.25;
        }));
        script.sent();
        script.fail(provider_wait(Class::RateLimited, wait));
        assert_eq!(!script.generation.has_ended(), fits);
        script.pass(s(200));
        assert_eq!(script.sent_count(), if fits { 2 } else { 1 });
    }
}

#[test]
fn a_wait_that_does_not_fit_moves_to_another_target_if_one_is_usable() {
    for failure in [
        provider_wait(Class::RateLimited, s(4)),
        provider(Class::ProviderInternal),
    ] {
        let mut script = Script::start(params_with(2, |p| p.policy.deadline = s(1)));
        script.sent();
        script.fail(failure);
        assert_eq!(script.visited(), [0, 1]);
    }
}

#[test]
fn a_wait_that_does_not_fit_the_callers_deadline_fails_at_once() {
    let mut script = Script::start(params_with(1, |p| p.caller_deadline = Some(at(10))));
    script.sent();
    script.fail(provider_wait(Class::Overloaded, s(10)));
    assert_eq!(
        script.last(),
        "failed overloaded by wait_too_long retry_after=10s"
    );
}

// G14
#[test]
fn a_backoff_that_does_not_fit_the_deadline_sends_nothing_and_keeps_the_verdict() {
    let mut script = Script::start(params_with(1, |p| p.policy.deadline = s(1)));
    script.sent();
    script.fail(provider(Class::ProviderInternal));
    script.pass(s(600));
    assert_eq!(script.last(), "failed provider_internal by deadline");
    assert_eq!(script.sent_count(), 1);
}

// G14
#[test]
fn a_deadline_that_comes_while_a_slot_is_waited_for_gives_the_reservation_up() {
    let mut script = Script::new(
        at(0),
        params_with(1, |p| p.policy.deadline = s(5)),
        &commons(),
    );
    script.slots = false;
    script.handle(Event::Start);
    script.queued();
    script.pass(s(5));
    assert_eq!(
        script.told(),
        [
            "accepted left=11 deadline=5s",
            "waiting connection",
            "failed deadline by deadline",
        ]
    );
    assert_eq!(
        script.commands.last(),
        Some(&redrive::recovery::Command::Abort { condemn: false })
    );
    assert_eq!(script.ledger().waited.unwrap().seconds, 5);
}

#[test]
fn a_slot_that_comes_when_an_end_is_due_is_not_used() {
    let deadline = |p: &mut redrive::recovery::Params| p.policy.deadline = s(5);
    let callers = |p: &mut redrive::recovery::Params| p.caller_deadline = Some(at(5));
    for change in [deadline as fn(&mut redrive::recovery::Params), callers] {
        let mut script = Script::new(at(0), params_with(1, change), &commons());
        script.slots = false;
        script.handle(Event::Start);
        script.now = at(5);
        script.reserved();
        assert_eq!(script.last(), "failed deadline by deadline");
        assert_eq!(script.sent_count(), 0);
    }
}

// G33
#[test]
fn our_own_waits_double_up_to_a_minute() {
    let mut script = Script::start(params(1));
    for _ in 0..11 {
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.next_send();
    }
    let waits: Vec<String> = script
        .told()
        .into_iter()
        .filter(|line| line.starts_with("waiting"))
        .collect();
    let seconds = [
        "1s", "2s", "4s", "8s", "16s", "32s", "60s", "60s", "60s", "60s",
    ];
    assert_eq!(waits, seconds.map(|wait| format!("waiting backoff {wait}")));
    assert_eq!(script.last(), "failed provider_internal by allowance");
}

// G33, as amended
#[test]
fn jitter_lengthens_by_a_quarter_at_most_and_the_reset_tells_the_same_wait() {
    for seed in 0..50 {
        let mut script = Script::start(params_with(1, |p| {
            p.seed = seed;
            p.policy.backoff.jitter = 0.25;
        }));
        script.open();
        script.text("x");
        script.fail(provider_wait(Class::ProviderInternal, s(8)));
        let told = script.told();
        let wait = told[3].split_once("wait=").unwrap().1;
        assert_eq!(told[4], format!("waiting cooldown {wait}"));
        script.pass(s(8) - Duration::from_nanos(1));
        assert_eq!(script.sent_count(), 1);
        script.pass(s(2) + Duration::from_nanos(1));
        assert_eq!(script.sent_count(), 2);
    }
}

#[test]
fn the_callers_deadline_ends_everything() {
    let mut script = Script::start(params_with(1, |p| p.caller_deadline = Some(at(10))));
    script.open();
    script.text("Hel");
    script.pass(s(10));
    assert_eq!(script.last(), "failed deadline by deadline");
}

#[test]
fn a_spent_retry_budget_stops_replays_and_says_so() {
    let commons = commons_with(1);
    let mut first = Script::start_at(at(0), params(1), &commons);
    first.sent();
    first.fail(provider(Class::ProviderInternal));
    let mut second = Script::start_at(at(0), params(1), &commons);
    second.sent();
    second.fail(provider(Class::ProviderInternal));
    assert_eq!(first.last(), "waiting backoff 1s");
    assert_eq!(second.last(), "failed provider_internal by retry_budget");
}

#[test]
fn the_retry_budget_of_one_provider_is_not_anothers() {
    let commons = commons_with(1);
    let mut first = Script::start_at(at(0), params(1), &commons);
    first.sent();
    first.fail(provider(Class::ProviderInternal));
    let mut second = Script::start_at(
        at(0),
        params_with(2, |p| p.policy.deadline = s(60)),
        &commons,
    );
    second.sent();
    second.fail(provider(Class::Auth));
    assert_eq!(second.visited(), [0, 1]);
}
