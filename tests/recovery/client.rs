//! The client's RPC: lost, detached, attached again, displaced, slow.

use redrive::{
    proto::Delivery,
    recovery::{Event, Next},
    verdict::{Class, Failure, Origin, Stage},
};

use crate::support::*;

fn detachable() -> Script {
    let mut script = Script::start(params_with(1, |p| p.detach_grace = s(60)));
    script.open();
    script.text("Hel");
    script
}

#[test]
fn a_detached_generation_completes_and_can_be_fetched() {
    let mut script = detachable();
    script.reads = false;
    script.handle(Event::ClientLost);
    script.text("lo");
    script.finish(redrive::proto::FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.generation.poll_timeout(), None);
    script.reads = true;
    script.attach(Delivery::Preview);
    assert_eq!(
        script.told(),
        [
            "accepted left=10 deadline=600s attached",
            "attempt 1 a/m first left=10",
            "delta 1.0 \"Hello\"",
            "committed stop \"Hello\"",
        ]
    );
    assert_eq!(script.next(), Next::Finished);
}

#[test]
fn a_failure_can_be_fetched_as_often_as_it_is_asked_for() {
    let mut script = detachable();
    script.fail(provider(Class::Auth));
    for _ in 0..2 {
        script.attach(Delivery::Preview);
        assert_eq!(
            script.told(),
            [
                "accepted left=10 deadline=600s attached",
                "failed auth by not_retryable",
            ]
        );
    }
}

#[test]
fn an_rpc_that_attaches_before_the_start_is_told_accepted_once() {
    let mut script = Script::new(at(0), params(1), &commons());
    script.attach(Delivery::Preview);
    script.handle(Event::Start);
    let told = script.told();
    let accepted = told.iter().filter(|line| line.starts_with("accepted"));
    assert_eq!(accepted.count(), 1, "{told:?}");
}

#[test]
fn nobody_attaches_within_the_grace_and_it_ends_there() {
    let mut script = detachable();
    script.reads = false;
    script.handle(Event::ClientLost);
    script.pass(s(30));
    script.keepalive();
    script.handle(Event::ClientLost);
    script.pass(s(29));
    script.keepalive();
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert!(
        script.generation.has_ended(),
        "being lost twice prolongs nothing"
    );
}

#[test]
fn attaching_gives_all_that_is_not_void_as_large_deltas_and_then_goes_on_live() {
    let mut script = detachable();
    script.text("lo");
    script.attach(Delivery::Preview);
    script.text("!");
    script.pass(s(44));
    assert_eq!(
        script.told(),
        [
            "accepted left=10 deadline=600s attached",
            "attempt 1 a/m first left=10",
            "delta 1.0 \"Hello\"",
            "delta 1.0 \"!\"",
        ]
    );
}

#[test]
fn attaching_between_attempts_tells_the_rest_of_the_wait() {
    let mut script = detachable();
    script.fail(provider_wait(Class::ProviderInternal, s(30)));
    script.pass(s(10));
    script.attach(Delivery::Preview);
    assert_eq!(
        script.told(),
        [
            "accepted left=10 deadline=590s attached",
            "waiting cooldown 20s",
        ]
    );
    script.pass(s(20));
    assert_eq!(script.last(), "attempt 2 a/m restart left=9");
}

#[test]
fn a_client_that_attached_after_a_failure_is_told_no_reset_of_what_it_never_had() {
    let mut script = detachable();
    script.reads = false;
    script.handle(Event::ClientLost);
    script.reads = true;
    script.fail(reset());
    script.attach(Delivery::Preview);
    script.pass(s(1));
    script.answer("Hello");
    assert!(!script.told().iter().any(|line| line.starts_with("reset")));
    assert_eq!(script.last(), "committed stop \"Hello\"");
}

#[test]
fn the_last_to_attach_wins() {
    let mut script = detachable();
    script.attach(Delivery::Preview);
    assert_eq!(script.generation.next_frame(at(0), 1), Next::Displaced);
    assert_eq!(script.generation.rpc(), 2);
    assert!(!script.generation.has_ended());
}

#[test]
fn a_cancel_frame_ends_even_a_detachable_generation() {
    let mut script = detachable();
    script.cancel();
    assert_eq!(script.last(), "failed cancelled by cancel");
}

#[test]
fn a_detached_generation_is_no_longer_bound_by_its_callers_deadline() {
    let mut script = Script::start(params_with(1, |p| {
        p.detach_grace = s(60);
        p.caller_deadline = Some(at(10));
    }));
    script.open();
    script.reads = false;
    script.handle(Event::ClientLost);
    script.pass(s(30));
    assert!(!script.generation.has_ended());
}

#[test]
fn a_broken_frame_ends_it_with_the_verdict_that_names_the_field() {
    let mut script = detachable();
    script.handle(Event::Violation(Failure::new(
        Class::InvalidRequest,
        Origin::Client,
        Stage::Admission,
        "start: a second one",
    )));
    assert_eq!(script.last(), "failed invalid_request by client");
    assert_eq!(
        script.failed().verdict.unwrap().message,
        "start: a second one"
    );
}

#[test]
fn a_client_that_takes_nothing_is_given_up_and_still_finds_its_terminal_frame() {
    let mut script = Script::start(params_with(1, |p| p.client_idle = s(30)));
    script.open();
    script.reads = false;
    script.text("Hel");
    script.pass(s(29));
    assert!(!script.generation.has_ended());
    script.pass(s(1));
    assert!(script.generation.has_ended());
    script.pass(s(29));
    script.read();
    assert_eq!(script.last(), "failed client_too_slow by client");
}

#[test]
fn one_that_never_comes_back_for_it_is_dropped() {
    let mut script = Script::start(params_with(1, |p| p.client_idle = s(30)));
    script.open();
    script.reads = false;
    script.text("Hel");
    script.pass(s(600));
    assert_eq!(script.next(), Next::TooSlow);
    assert_eq!(script.generation.poll_timeout(), None);
}

#[test]
fn a_slow_client_of_a_detachable_generation_loses_only_its_rpc() {
    let mut script = Script::start(params_with(1, |p| {
        p.client_idle = s(30);
        p.detach_grace = s(60);
    }));
    script.open();
    script.reads = false;
    script.text("Hel");
    script.pass(s(30));
    assert_eq!(script.next(), Next::TooSlow);
    assert!(!script.generation.has_ended());
    script.reads = true;
    script.attach(Delivery::Preview);
    assert_eq!(script.last(), "delta 1.0 \"Hel\"");
}

#[test]
fn a_client_that_reads_slowly_but_reads_is_not_too_slow() {
    let mut script = Script::start(params_with(1, |p| p.client_idle = s(30)));
    script.open();
    script.reads = false;
    for _ in 0..10 {
        script.text("x");
        script.pass(s(20));
        script.read_one();
    }
    assert!(!script.generation.has_ended());
}
