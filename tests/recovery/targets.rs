//! Targets, credentials and circuits: where the next attempt goes.

use redrive::{
    proto::StoppedBy,
    recovery::{Event, Params},
    verdict::{Class, Failure, Origin, Stage},
};

use crate::support::*;

fn fail_sent(script: &mut Script, failure: Failure) {
    script.sent();
    script.fail(failure);
}

// N21
#[test]
fn a_fallback_is_used_when_the_first_target_refuses_before_output() {
    let mut script = Script::start(params(2));
    fail_sent(&mut script, provider(Class::Auth));
    script.answer("Hi");
    assert_eq!(
        script.told(),
        [
            "accepted left=11 deadline=600s",
            "attempt 1 a/m first left=10",
            "attempt 2 b/m restart left=9 fallback",
            "delta 2.0 \"Hi\"",
            "committed stop \"Hi\"",
        ]
    );
}

// N22, as amended
#[test]
fn a_fallback_is_used_after_output_too_once_that_is_void() {
    let mut script = Script::start(params(2));
    script.open();
    script.text("Hel");
    script.fail(provider(Class::QuotaExhausted));
    script.answer("Hi");
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hel\"",
            "reset 1 quota_exhausted",
            "attempt 2 b/m restart left=9 fallback",
            "delta 2.0 \"Hi\"",
            "committed stop \"Hi\"",
        ]
    );
}

#[test]
fn two_tries_per_target_then_the_next_cyclically_and_no_backoff_on_a_first_visit() {
    let mut script = Script::start(params(2));
    for _ in 0..6 {
        fail_sent(&mut script, reset());
        script.pass(s(9));
    }
    assert_eq!(script.visited(), [0, 0, 1, 1, 0, 0, 1]);
    assert_eq!(script.sent_at()[..4], [0, 1, 9, 18 + 1]);
}

#[test]
fn disabled_fallback_stays_at_the_first_target() {
    let mut script = Script::start(params_with(2, |p| p.fallback = false));
    for _ in 0..3 {
        fail_sent(&mut script, reset());
        script.next_send();
    }
    fail_sent(&mut script, provider(Class::Auth));
    assert_eq!(script.visited(), [0, 0, 0, 0]);
    assert_eq!(script.last(), "failed auth by not_retryable");
}

#[test]
fn a_permanent_verdict_excludes_its_target_for_good() {
    for class in [
        Class::QuotaExhausted,
        Class::Auth,
        Class::Permission,
        Class::NotFound,
        Class::RedirectRefused,
        Class::TimeoutFirstToken,
    ] {
        let mut script = Script::start(params(2));
        fail_sent(&mut script, provider(class));
        for _ in 0..3 {
            fail_sent(&mut script, reset());
            script.next_send();
        }
        assert_eq!(script.visited(), [0, 1, 1, 1, 1], "{class:?}");
    }
}

#[test]
fn what_is_wrong_with_the_request_goes_nowhere() {
    for class in [
        Class::InvalidRequest,
        Class::ContentFiltered,
        Class::MalformedOutput,
        Class::TooLarge,
        Class::Unclassified,
    ] {
        let mut script = Script::start(params(3));
        fail_sent(&mut script, provider(class));
        assert_eq!(script.visited(), [0], "{class:?}");
        assert!(script.last().ends_with("by not_retryable"));
    }
}

#[test]
fn an_untrusted_certificate_moves_to_the_next_target_at_once() {
    let mut failure = refused();
    failure.retryable = false;
    let mut script = Script::start(params(2));
    script.fail(failure);
    assert_eq!(script.visited(), [0, 1]);
}

#[test]
fn a_first_token_timeout_replays_on_its_target_only_if_the_route_says_so() {
    let mut script = Script::start(params_with(1, |p| p.policy.replay_first_token = true));
    script.open();
    script.pass(s(599));
    script.keepalive();
    script.pass(s(1));
    assert_eq!(script.last(), "failed timeout_first_token by deadline");
    let mut params = params_with(1, |p| {
        p.policy.replay_first_token = true;
        p.policy.deadline = s(6000);
    });
    let mut script = Script::start(params.clone());
    script.open();
    script.pass(s(601));
    assert_eq!(script.visited(), [0, 0]);
    params.policy.replay_first_token = false;
    let mut script = Script::start(params);
    script.open();
    script.pass(s(601));
    assert_eq!(script.visited(), [0]);
    assert_eq!(script.last(), "failed timeout_first_token by no_target");
}

#[test]
fn a_context_overflow_goes_only_where_the_window_is_known_to_be_larger() {
    let windows = |sizes: [Option<u64>; 3]| {
        let mut params = params(3);
        let mut targets = params.targets.to_vec();
        for (target, size) in targets.iter_mut().zip(sizes) {
            target.context_window = size;
        }
        params.targets = targets.into();
        params
    };
    let mut script = Script::start(windows([Some(8), Some(8), Some(128)]));
    fail_sent(&mut script, provider(Class::ContextOverflow));
    assert_eq!(script.visited(), [0, 2]);
    let mut script = Script::start(windows([Some(8), None, None]));
    fail_sent(&mut script, provider(Class::ContextOverflow));
    assert_eq!(script.last(), "failed context_overflow by not_retryable");
}

#[test]
fn a_short_rate_limit_is_waited_for_and_a_long_one_moves_on_at_once() {
    let mut script = Script::start(params(2));
    fail_sent(&mut script, provider_wait(Class::RateLimited, s(5)));
    assert_eq!(script.last(), "waiting cooldown 5s");
    script.pass(s(5));
    assert_eq!(script.visited(), [0, 0]);
    let mut script = Script::start(params(2));
    fail_sent(&mut script, provider_wait(Class::RateLimited, s(6)));
    assert_eq!(script.visited(), [0, 1]);
}

#[test]
fn a_target_that_was_tried_twice_has_used_up_our_patience() {
    let mut script = Script::start(params(2));
    fail_sent(&mut script, provider_wait(Class::RateLimited, s(5)));
    script.pass(s(5));
    fail_sent(&mut script, provider_wait(Class::RateLimited, s(5)));
    assert_eq!(script.visited(), [0, 0, 1]);
}

#[test]
fn with_no_other_target_a_long_rate_limit_is_waited_for() {
    let mut script = Script::start(params(1));
    for _ in 0..3 {
        fail_sent(&mut script, provider_wait(Class::RateLimited, s(60)));
        script.pass(s(60));
    }
    assert_eq!(script.sent_at(), [0, 60, 120, 180]);
}

fn with_credentials(count: usize) -> Params {
    let mut params = params(1);
    change_targets(&mut params, |target| target.credentials = count);
    params
}

#[test]
fn a_rate_limit_binds_its_credential_and_another_goes_at_once() {
    let mut script = Script::start(with_credentials(3));
    for _ in 0..3 {
        fail_sent(&mut script, provider_wait(Class::RateLimited, s(30)));
    }
    let used: Vec<_> = script.sends.iter().map(|send| send.credential).collect();
    assert_eq!(used, [Some(0), Some(1), Some(2)]);
    assert_eq!(script.last(), "waiting cooldown 30s");
    script.pass(s(30));
    assert_eq!(script.sends.last().unwrap().credential, Some(0));
}

#[test]
fn a_resting_credential_rests_for_all_generations() {
    let commons = commons();
    let mut first = Script::start_at(at(0), with_credentials(2), &commons);
    fail_sent(&mut first, provider_wait(Class::RateLimited, s(30)));
    let second = Script::start_at(at(1), with_credentials(2), &commons);
    assert_eq!(second.sends[0].credential, Some(1));
    let third = Script::start_at(at(31), with_credentials(2), &commons);
    assert_eq!(third.sends[0].credential, Some(0));
}

#[test]
fn an_exhausted_quota_rests_for_an_hour_or_as_long_as_the_provider_says() {
    for (failure, rest) in [
        (provider(Class::QuotaExhausted), 3600),
        (provider_wait(Class::QuotaExhausted, s(7200)), 7200),
    ] {
        let commons = commons();
        let mut first = Script::start_at(at(0), with_credentials(2), &commons);
        fail_sent(&mut first, failure);
        assert_eq!(first.visited(), [0], "one request per target");
        let early = Script::start_at(at(rest - 1), with_credentials(2), &commons);
        assert_eq!(early.sends[0].credential, Some(1));
        let late = Script::start_at(at(rest), with_credentials(2), &commons);
        assert_eq!(late.sends[0].credential, Some(0));
    }
}

#[test]
fn no_usable_target_is_told_with_the_soonest_time_if_that_was_supplied() {
    let commons = commons();
    let mut first = Script::start_at(at(0), params(1), &commons);
    fail_sent(&mut first, provider_wait(Class::QuotaExhausted, s(7200)));
    let second = Script::start_at(at(200), params(1), &commons);
    assert_eq!(
        second.last(),
        "failed no_target by no_target retry_after=7000s"
    );
    assert_eq!(second.sent_count(), 0);
    let commons = self::commons();
    let mut first = Script::start_at(at(0), params(1), &commons);
    fail_sent(&mut first, provider(Class::QuotaExhausted));
    let second = Script::start_at(at(600), params(1), &commons);
    assert_eq!(second.last(), "failed no_target by no_target");
    assert!(second.failed().verdict.unwrap().message.contains("3000s"));
}

#[test]
fn a_generation_that_begins_while_its_target_rests_waits_for_it() {
    let commons = commons();
    let mut first = Script::start_at(at(0), params(1), &commons);
    fail_sent(&mut first, provider_wait(Class::RateLimited, s(30)));
    let mut second = Script::start_at(at(10), params(1), &commons);
    assert_eq!(
        second.told(),
        ["accepted left=11 deadline=600s", "waiting cooldown 20s"]
    );
    second.pass(s(20));
    assert_eq!(second.sent_at(), [30]);
}

#[test]
fn a_rest_that_begins_while_a_slot_is_waited_for_is_respected() {
    let commons = commons();
    let mut queued = Script::new(at(0), params(1), &commons);
    queued.slots = false;
    queued.handle(Event::Start);
    let mut other = Script::start_at(at(0), params(1), &commons);
    fail_sent(&mut other, provider_wait(Class::RateLimited, s(30)));
    queued.reserved();
    assert_eq!(queued.sent_count(), 0);
    assert_eq!(queued.last(), "waiting cooldown 30s");
}

#[test]
fn a_wait_that_another_generation_prolonged_beyond_the_deadline_keeps_the_verdict() {
    let commons = commons();
    let mut waiting = Script::start_at(at(0), params(1), &commons);
    let mut other = Script::start_at(at(0), params(1), &commons);
    fail_sent(&mut waiting, provider_wait(Class::RateLimited, s(30)));
    fail_sent(&mut other, provider_wait(Class::RateLimited, s(599)));
    waiting.pass(s(30));
    assert_eq!(waiting.last(), "waiting cooldown 569s");
    let mut another = Script::start_at(at(590), params(1), &commons);
    another.pass(s(9));
    fail_sent(&mut another, provider_wait(Class::QuotaExhausted, s(9000)));
    waiting.pass(s(569));
    assert_eq!(
        waiting.last(),
        "failed rate_limited by no_target retry_after=30s"
    );
}

#[test]
fn a_full_connection_queue_does_not_mask_the_verdict_of_an_attempt() {
    let full = || Failure::new(Class::NoTarget, Origin::Us, Stage::Admission, "queue full");
    let mut script = Script::new(at(0), params(2), &commons());
    script.slots = false;
    script.handle(Event::Start);
    script.handle(Event::ReservationRefused(full()));
    assert_eq!(script.last(), "failed no_target by no_target");
    let mut script = Script::start(params(2));
    script.slots = false;
    fail_sent(&mut script, provider(Class::Auth));
    script.handle(Event::ReservationRefused(full()));
    assert_eq!(script.last(), "failed auth by no_target");
    assert_eq!(script.failed().verdict.unwrap().target, "a/m");
}

/// Five failures of `a`, which open its circuit.
fn open_circuit(commons: &Shared, now: u64) {
    for _ in 0..5 {
        let mut script = Script::start_at(
            at(now),
            params_with(1, |p| p.policy.max_attempts = 1),
            commons,
        );
        fail_sent(&mut script, reset());
    }
}

#[test]
fn an_open_circuit_moves_new_generations_to_the_next_target() {
    let commons = commons();
    open_circuit(&commons, 0);
    assert_eq!(Script::start_at(at(29), params(2), &commons).visited(), [1]);
    assert_eq!(Script::start_at(at(30), params(2), &commons).visited(), [0]);
}

#[test]
fn an_open_circuit_never_shuts_the_last_target() {
    let commons = commons();
    open_circuit(&commons, 0);
    assert_eq!(Script::start_at(at(1), params(1), &commons).visited(), [0]);
}

#[test]
fn exactly_one_probe_goes_through_a_half_open_circuit() {
    let commons = commons();
    open_circuit(&commons, 0);
    let mut queued = Script::new(at(30), params(2), &commons);
    queued.slots = false;
    queued.handle(Event::Start);
    let mut probe = Script::start_at(at(30), params(2), &commons);
    assert_eq!(probe.visited(), [0]);
    assert_eq!(Script::start_at(at(31), params(2), &commons).visited(), [1]);
    queued.slots = true;
    queued.reserved();
    assert_eq!(
        queued.visited(),
        [1],
        "its slot came after the probe was taken"
    );
    probe.answer("Hi");
    assert_eq!(Script::start_at(at(32), params(2), &commons).visited(), [0]);
}

#[test]
fn a_failed_probe_opens_the_circuit_again() {
    let commons = commons();
    open_circuit(&commons, 0);
    let mut probe = Script::start_at(at(30), params(2), &commons);
    fail_sent(&mut probe, reset());
    assert_eq!(Script::start_at(at(59), params(2), &commons).visited(), [1]);
    assert_eq!(Script::start_at(at(60), params(2), &commons).visited(), [0]);
}

#[test]
fn a_cancelled_probe_lets_another_one_go_and_only_its_own_end_does() {
    let commons = commons();
    let mut old = Script::start_at(at(0), params(2), &commons);
    open_circuit(&commons, 0);
    let mut probe = Script::start_at(at(30), params(2), &commons);
    old.cancel();
    assert_eq!(Script::start_at(at(31), params(2), &commons).visited(), [1]);
    probe.cancel();
    assert_eq!(Script::start_at(at(32), params(2), &commons).visited(), [0]);
}

#[test]
fn a_refusal_that_proves_the_target_alive_closes_its_circuit() {
    let commons = commons();
    open_circuit(&commons, 0);
    let mut probe = Script::start_at(at(30), params(2), &commons);
    fail_sent(&mut probe, provider(Class::InvalidRequest));
    assert_eq!(Script::start_at(at(31), params(2), &commons).visited(), [0]);
}

/// What a generation ended with: the class and target of its verdict, and what stopped it.
fn end(script: &mut Script) -> (Class, String, StoppedBy) {
    let failed = script.generation.failed().expect("it failed");
    let verdict = failed.verdict.as_ref().unwrap();
    (verdict.class(), verdict.target.clone(), failed.stopped_by())
}

#[test]
fn a_fallbacks_own_refusal_does_not_mask_what_happened_before_it() {
    for refusal in [
        Class::Auth,
        Class::Permission,
        Class::NotFound,
        Class::QuotaExhausted,
        Class::ContextOverflow,
        Class::InvalidRequest,
    ] {
        let params = params_with(2, |params| params.policy.max_attempts = 3);
        let mut script = Script::start(params);
        for _ in 0..2 {
            fail_sent(&mut script, provider(Class::ProviderInternal));
            script.pass(s(9));
        }
        fail_sent(&mut script, provider(refusal));
        let (class, target, _) = end(&mut script);
        let told = (class, target.as_str());
        assert_eq!(told, (Class::ProviderInternal, "a/m"), "{refusal:?}");
        let ledger = script.generation.account();
        let last = ledger.entries.last().unwrap().verdict.as_ref().unwrap();
        assert_eq!(last.class(), refusal, "the ledger has it");
    }
}

#[test]
fn what_a_fallback_says_of_the_content_or_for_a_while_is_told() {
    for class in [Class::ContentFiltered, Class::RateLimited, Class::Stall] {
        let params = params_with(2, |params| params.policy.max_attempts = 3);
        let mut script = Script::start(params);
        for _ in 0..2 {
            fail_sent(&mut script, provider(Class::ProviderInternal));
            script.pass(s(9));
        }
        fail_sent(&mut script, provider(class));
        let (told, target, _) = end(&mut script);
        assert_eq!((told, target.as_str()), (class, "b/m"));
    }
}

#[test]
fn the_first_targets_refusal_is_told_although_a_fallback_refuses_too() {
    let mut script = Script::start(params(2));
    fail_sent(&mut script, provider(Class::Auth));
    fail_sent(&mut script, provider(Class::NotFound));
    let (class, target, stopped_by) = end(&mut script);
    assert_eq!((class, target.as_str()), (Class::Auth, "a/m"));
    assert_eq!(stopped_by, StoppedBy::NotRetryable);
}

#[test]
fn a_fallbacks_refusal_is_told_if_nothing_happened_before_it() {
    let mut params = params(2);
    params.targets = params.targets[1..].into();
    let mut script = Script::start(params);
    fail_sent(&mut script, provider(Class::Auth));
    let (class, target, _) = end(&mut script);
    assert_eq!((class, target.as_str()), (Class::Auth, "b/m"));
}

#[test]
fn a_wait_that_does_not_fit_is_told_with_the_verdict_that_asked_for_it() {
    let mut script = Script::start(params(2));
    for (class, wait) in [(Class::RateLimited, 3000), (Class::QuotaExhausted, 4000)] {
        let mut failure = provider(class);
        failure.wait = Some(s(wait));
        fail_sent(&mut script, failure);
    }
    let (class, target, stopped_by) = end(&mut script);
    assert_eq!(stopped_by, StoppedBy::WaitTooLong);
    assert_eq!((class, target.as_str()), (Class::QuotaExhausted, "b/m"));
}
