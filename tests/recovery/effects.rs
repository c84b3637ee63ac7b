//! Effects: what the client acted on is never voided.

use redrive::{proto::Delivery, verdict::Class};

use crate::support::*;

/// A preview whose first delta is frame 3.
fn previewing() -> Script {
    let mut script = Script::start(params(2));
    script.open();
    script.text("Hel");
    script
}

// G20
#[test]
fn after_effects_nothing_restarts() {
    let mut script = previewing();
    script.effects(3);
    script.text("lo");
    script.fail(reset());
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hel\"",
            "confirmed through 3",
            "delta 1.0 \"lo\"",
            "failed transport by effects unsafe",
        ]
    );
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn an_attempt_with_effects_still_completes() {
    let mut script = previewing();
    script.effects(3);
    script.finish(redrive::proto::FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed stop \"Hel\"");
}

#[test]
fn effects_on_void_output_end_the_generation_during_the_wait() {
    let mut script = previewing();
    script.reads = false;
    script.fail(reset());
    script.effects(3);
    script.read();
    assert_eq!(script.last(), "failed transport by effects unsafe");
    script.pass(s(600));
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn effects_on_void_output_end_the_next_attempt_and_keep_the_verdict() {
    let mut script = previewing();
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.text("new");
    script.effects(3);
    assert_eq!(script.last(), "failed transport by effects unsafe");
    assert_eq!(script.failed().verdict.unwrap().attempt, 1);
    let ledger = script.ledger();
    assert_eq!(show::class(ledger.entries[1].verdict.as_ref()), "cancelled");
}

#[test]
fn effects_claimed_after_the_reset_was_seen_concern_nothing() {
    let mut script = previewing();
    script.fail(reset());
    let seen = script.sequence();
    script.effects(seen);
    assert_eq!(script.last(), format!("confirmed through {seen}"));
    script.pass(s(1));
    assert_eq!(script.sent_count(), 2);
}

#[test]
fn effects_of_the_replay_are_confirmed() {
    let mut script = previewing();
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.text("new");
    let seen = script.sequence();
    script.effects(seen);
    assert_eq!(script.last(), format!("confirmed through {seen}"));
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by effects unsafe");
}

#[test]
fn effects_beyond_what_was_sent_end_it_as_an_invalid_request() {
    for through in [0, 4, u64::MAX] {
        let mut script = previewing();
        script.effects(through);
        assert_eq!(script.last(), "failed invalid_request by client");
        assert!(
            script
                .failed()
                .verdict
                .unwrap()
                .message
                .contains("effects.through_sequence")
        );
    }
}

#[test]
fn effects_before_any_output_are_confirmed_and_bind_nothing() {
    let mut script = Script::start(params(1));
    script.effects(2);
    script.sent();
    script.fail(reset());
    assert_eq!(
        script.told()[2..],
        ["confirmed through 2", "waiting backoff 1s"]
    );
}

#[test]
fn queued_confirmations_merge() {
    let mut script = previewing();
    script.reads = false;
    for _ in 0..100 {
        script.effects(2);
        script.effects(3);
    }
    script.read();
    assert_eq!(script.told()[3..], ["confirmed through 3"]);
}

#[test]
fn effects_claimed_after_the_failure_make_it_unsafe_to_send_again() {
    let mut script = previewing();
    script.reads = false;
    script.fail(provider(Class::InvalidRequest));
    script.effects(3);
    script.read();
    assert_eq!(
        script.last(),
        "failed invalid_request by not_retryable unsafe"
    );
}

#[test]
fn effects_bind_the_generation_also_when_another_client_attaches() {
    let mut script = Script::start(params_with(1, |p| p.detach_grace = s(60)));
    script.open();
    script.text("Hel");
    script.effects(3);
    script.attach(Delivery::Preview);
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by effects unsafe");
}
