//! The ledger: every attempt, whether it was executed, its tokens and its waits.

use redrive::{
    proto::{Executed, Mode, Usage, WaitSource},
    protocol,
    recovery::Event,
    verdict::Class,
};

use crate::support::*;

fn executed(script: &Script) -> Vec<Executed> {
    let ledger = script.ledger();
    let sends = ledger
        .entries
        .iter()
        .filter(|e| e.executed() != Executed::No);
    assert_eq!(ledger.sends as usize, sends.count());
    ledger
        .entries
        .iter()
        .map(|entry| entry.executed())
        .collect()
}

#[test]
fn a_connection_that_could_not_be_opened_was_not_executed() {
    let mut script = Script::start(params(1));
    script.fail(refused());
    script.pass(s(1));
    script.sent();
    script.fail(reset());
    script.pass(s(2));
    script.answer("Hi");
    assert_eq!(
        executed(&script),
        [Executed::No, Executed::Maybe, Executed::Yes]
    );
    let ledger = script.ledger();
    assert_eq!((ledger.attempts, ledger.sends), (3, 2));
}

#[test]
fn a_request_the_door_proved_unsent_after_all_was_not_executed() {
    let mut script = Script::start(params_with(1, |p| p.policy.max_attempts = 1));
    script.sent();
    script.fail(refused());
    assert_eq!(executed(&script), [Executed::No]);
}

#[test]
fn what_ends_an_attempt_from_outside_proves_nothing_about_its_request() {
    let ends: [fn(&mut Script); 5] = [
        Script::cancel,
        |script| script.handle(Event::OutOfMemory),
        |script| {
            script.handle(Event::Drain { until: at(0) });
            script.handle(Event::TimerDue);
        },
        |script| script.pass(s(20)),
        |script| script.effects(99),
    ];
    for end in ends {
        let mut script = Script::start(params_with(1, |p| p.caller_deadline = Some(at(20))));
        script.sent();
        end(&mut script);
        assert_eq!(executed(&script), [Executed::Maybe]);
        assert!(script.generation.may_have_sent());
    }
}

#[test]
fn an_attempt_that_ended_before_its_hand_over_was_not_executed() {
    let mut script = Script::start(params(1));
    script.cancel();
    assert_eq!(executed(&script), [Executed::No]);
    assert!(!script.generation.may_have_sent());
}

#[test]
fn one_request_that_may_have_left_is_enough() {
    let mut script = Script::start(params_with(1, |p| p.policy.max_attempts = 2));
    script.sent();
    script.fail(reset());
    script.pass(s(1));
    script.fail(refused());
    assert!(script.generation.may_have_sent());
}

#[test]
fn tokens_of_void_attempts_are_reported() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("twelve bytes");
    script.fail(reset());
    script.pass(s(1));
    script.open();
    script.text("x");
    script.decoded(protocol::Event::Usage(Usage {
        input_tokens: 5,
        output_tokens: 20,
        ..Usage::default()
    }));
    script.fail(reset());
    script.pass(s(2));
    script.answer("Hi");
    let ledger = script.ledger();
    assert_eq!(ledger.void_output_tokens, 3 + 20);
    let total = ledger.total_usage.unwrap();
    assert_eq!((total.input_tokens, total.output_tokens), (5, 3 + 20 + 1));
    let estimated: Vec<bool> = ledger.entries.iter().map(|e| e.usage_estimated).collect();
    assert_eq!(estimated, [true, false, false]);
}

#[test]
fn an_entry_tells_when_how_long_and_what_was_waited() {
    let mut script = Script::start(params_with(1, |p| p.wall_origin = s(1_000_000)));
    script.open();
    script.pass(s(2));
    script.text("a");
    script.pass(s(3));
    script.fail(provider_wait(Class::Overloaded, s(4)));
    script.pass(s(4));
    script.answer("Hi");
    let ledger = script.ledger();
    let first = &ledger.entries[0];
    assert_eq!(first.started_at.unwrap().seconds, 1_000_000);
    assert_eq!(first.time_to_first_token.unwrap().seconds, 2);
    assert_eq!(first.duration.unwrap().seconds, 5);
    assert_eq!((first.mode(), first.waited), (Mode::First, None));
    let second = &ledger.entries[1];
    assert_eq!(second.started_at.unwrap().seconds, 1_000_009);
    assert_eq!(
        (second.mode(), second.waited.unwrap().seconds),
        (Mode::Restart, 4)
    );
    assert_eq!(second.wait_source(), WaitSource::Provider);
    assert!(second.verdict.is_none());
    assert_eq!(ledger.waited.unwrap().seconds, 4);
}

#[test]
fn a_wait_that_led_to_no_attempt_is_accounted_too() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider_wait(Class::Overloaded, s(40)));
    script.pass(s(15));
    script.cancel();
    assert_eq!(script.ledger().waited.unwrap().seconds, 15);
}

#[test]
fn a_wait_that_protobuf_cannot_hold_is_told_as_the_longest_it_can() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider_wait(Class::RateLimited, std::time::Duration::MAX));
    let retry_after = script.failed().verdict.unwrap().retry_after.unwrap();
    assert_eq!(retry_after.seconds, 315_576_000_000);
}
