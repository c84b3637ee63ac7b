//! What each delivery shows, and when `progress` and `waiting` are told.

use std::time::Duration;

use redrive::{proto::Delivery, verdict::Class};

use crate::support::*;

fn delivered(delivery: Delivery) -> Script {
    Script::start(params_with(1, |p| p.delivery = delivery))
}

#[test]
fn committed_only_gets_every_control_frame_but_no_delta_and_no_reset() {
    let mut script = delivered(Delivery::CommittedOnly);
    script.open();
    script.text("Hel");
    script.keepalive();
    script.fail(reset());
    script.pass(s(1));
    script.answer("Hello");
    assert_eq!(
        script.told(),
        [
            "accepted left=11 deadline=600s",
            "attempt 1 a/m first left=10",
            "progress 1 0ns",
            "waiting backoff 1s",
            "attempt 2 a/m restart left=9",
            "committed stop \"Hello\"",
        ]
    );
}

// G36
#[test]
fn without_a_reset_a_failure_after_the_first_delta_ends_it() {
    let mut script = delivered(Delivery::PreviewNoReset);
    script.open();
    script.text("Hel");
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by no_reset");
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn without_a_reset_a_failure_before_the_first_delivered_delta_is_replayed() {
    let mut script = delivered(Delivery::PreviewNoReset);
    script.open();
    script.reads = false;
    script.text("never delivered");
    script.fail(reset());
    script.reads = true;
    script.pass(s(1));
    script.answer("Hello");
    assert_eq!(
        script.told()[2..],
        [
            "waiting backoff 1s",
            "attempt 2 a/m restart left=9",
            "delta 2.0 \"Hello\"",
            "committed stop \"Hello\"",
        ]
    );
}

#[test]
fn a_reset_drops_what_was_not_delivered() {
    let mut script = delivered(Delivery::Unspecified);
    script.open();
    script.text("Hel");
    script.reads = false;
    script.text("lo");
    script.fail(reset());
    script.read();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hel\"",
            "reset 1 transport wait=1s",
            "waiting backoff 1s",
        ]
    );
}

#[test]
fn progress_comes_at_the_first_keepalive_of_a_silence_and_then_every_ten_seconds() {
    let mut script = delivered(Delivery::Preview);
    script.open();
    script.text("a");
    for _ in 0..6 {
        script.pass(s(5));
        script.keepalive();
    }
    script.text("b");
    script.pass(s(1));
    script.keepalive();
    assert_eq!(
        script.told()[3..],
        [
            "progress 1 5s",
            "progress 1 15s",
            "progress 1 25s",
            "delta 1.0 \"b\"",
            "progress 1 1s",
        ]
    );
}

#[test]
fn progress_is_told_only_to_a_client_that_keeps_up() {
    let mut script = delivered(Delivery::Preview);
    script.open();
    script.text("a");
    script.reads = false;
    script.text("b");
    for _ in 0..5 {
        script.pass(s(20));
        script.keepalive();
    }
    script.read();
    assert_eq!(script.told()[3..], ["delta 1.0 \"b\""]);
}

#[test]
fn a_wait_that_was_prolonged_unseen_is_told_once() {
    let commons = commons();
    let mut first = Script::start_at(at(0), params(1), &commons);
    first.sent();
    first.fail(provider_wait(Class::RateLimited, s(10)));
    let mut second = Script::new(at(0), params(1), &commons);
    second.reads = false;
    second.handle(redrive::recovery::Event::Start);
    first.pass(s(10));
    first.sent();
    first.fail(provider_wait(Class::RateLimited, s(10)));
    second.pass(s(10));
    second.read();
    assert_eq!(
        second.told(),
        ["accepted left=11 deadline=600s", "waiting cooldown 10s"]
    );
}

#[test]
fn a_queue_for_a_connection_is_told() {
    let mut script = Script::new(at(0), params(1), &commons());
    script.slots = false;
    script.handle(redrive::recovery::Event::Start);
    script.queued();
    script.pass(Duration::from_secs(3));
    script.reserved();
    script.answer("Hi");
    assert_eq!(script.told()[1], "waiting connection");
    assert_eq!(script.ledger().entries[0].waited.unwrap().seconds, 3);
}
