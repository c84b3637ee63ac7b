//! CONTINUE as clients see it: effects, deliveries, lagging and attaching.

use redrive::{
    proto::{Delivery, FinishReason},
    verdict::Class,
};

use crate::{
    continuing::{MORE, complete, continuing, cut_off, shut_the_first_target},
    support::*,
};

#[test]
fn effects_leave_continuing_as_the_one_way_on() {
    let mut script = Script::start(continuing(2));
    script.open();
    script.text("The sky");
    script.effects(3);
    script.usage(2);
    for _ in 0..3 {
        script.fail(reset());
        script.next_send();
        script.open();
    }
    assert_eq!(script.visited(), [0, 0, 0, 0], "and bind its target");
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), "committed stop \"The sky is blue.\"");
}

#[test]
fn effects_end_it_where_the_continuation_is_refused() {
    let mut script = Script::start(continuing(2));
    script.open();
    script.text("The sky");
    script.effects(3);
    script.fail(reset());
    script.next_send();
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(script.last(), "failed transport by effects unsafe");
    assert!(!script.told().iter().any(|frame| frame.starts_with("reset")));
}

#[test]
fn effects_bind_the_target_whatever_becomes_of_it() {
    let commons = commons();
    let mut script = Script::start_at(at(0), continuing(2), &commons);
    script.open();
    script.text("The sky");
    script.effects(3);
    script.fail(reset());
    shut_the_first_target(&commons);
    script.next_send();
    assert_eq!(script.last(), "attempt 2 a/m continue left=9");
}

#[test]
fn effects_may_be_claimed_while_the_continuation_is_waited_for() {
    let mut script = Script::start(continuing(2));
    script.open();
    script.text("The sky");
    script.fail(reset());
    script.effects(3);
    assert_eq!(script.last(), "confirmed through 3");
    script.next_send();
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(script.last(), "failed transport by effects unsafe");
}

#[test]
fn effects_on_a_continuation_that_is_void_end_it() {
    let mut script = cut_off(continuing(1), "Look:");
    script.open();
    script.text(MORE);
    script.tool_call(0, "f", "{");
    let seen = script.sequence();
    script.reads = false;
    script.fail(reset());
    script.effects(seen);
    script.read();
    assert_eq!(script.last(), "failed transport by effects unsafe");
}

#[test]
fn effects_on_a_text_of_which_the_end_is_void_end_it() {
    let mut script = cut_off(continuing(1), "Look:");
    script.open();
    script.text(MORE);
    script.tool_call(0, "f", "{");
    let seen = script.sequence();
    script.reads = false;
    script.fail(reset());
    script.next_send();
    script.effects(seen);
    script.read();
    assert_eq!(script.last(), "failed transport by effects unsafe");
}

#[test]
fn effects_on_the_text_are_confirmed_when_only_what_came_behind_it_is_void() {
    let mut script = cut_off(continuing(1), "Look:");
    script.open();
    script.text(MORE);
    script.tool_call(0, "f", "{");
    script.fail(reset());
    script.effects(3);
    assert_eq!(script.last(), "confirmed through 3");
    script.next_send();
    assert_eq!(script.last(), "attempt 3 a/m continue left=8");
}

#[test]
fn without_a_reset_output_is_continued_and_a_refusal_ends_it() {
    let mut params = continuing(2);
    params.delivery = Delivery::PreviewNoReset;
    let mut script = cut_off(params.clone(), "The sky");
    assert_eq!(script.last(), "attempt 2 a/m continue left=9");
    script.open();
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), "committed stop \"The sky is blue.\"");

    let mut script = cut_off(params, "The sky");
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(script.last(), "failed transport by no_reset");
}

#[test]
fn committed_only_sees_nothing_of_it_but_the_message() {
    let mut params = continuing(1);
    params.delivery = Delivery::CommittedOnly;
    let mut script = cut_off(params, "The sky");
    script.open();
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(
        script.told()[2..],
        [
            "waiting backoff 1s",
            "attempt 2 a/m continue left=9",
            "confirmed through 4",
            "committed stop \"The sky is blue.\"",
        ]
    );
}

#[test]
fn the_text_is_given_before_its_continuation_starts_to_a_client_that_lags() {
    let mut script = Script::start(continuing(1));
    script.read();
    script.reads = false;
    script.open();
    script.text("The ");
    script.text("sky");
    script.fail(reset());
    script.next_send();
    script.open();
    script.text(MORE);
    script.read();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"The sky\"".to_owned(),
            "waiting backoff 1s".into(),
            "attempt 2 a/m continue left=9".into(),
            "confirmed through 5".into(),
            format!("delta 2.1 {MORE:?}"),
        ]
    );
}

#[test]
fn who_attaches_is_given_the_text_and_its_continuation_as_of_their_attempts() {
    let mut params = continuing(1);
    params.detach_grace = s(60);
    let mut script = cut_off(params, "The sky");
    script.open();
    script.text(MORE);
    script.attach(Delivery::Preview);
    assert_eq!(
        script.told(),
        [
            "accepted left=9 deadline=599s attached".to_owned(),
            "attempt 2 a/m continue left=9".into(),
            "delta 1.0 \"The sky\"".into(),
            format!("delta 2.1 {MORE:?}"),
        ]
    );
    script.tool_call(0, "f", "{");
    script.fail(reset());
    assert_eq!(
        script.told()[6..],
        ["reset 2 transport wait=2s", "waiting backoff 2s"]
    );
}

#[test]
fn who_attaches_before_the_judgement_is_told_of_it() {
    let mut params = continuing(1);
    params.detach_grace = s(60);
    let mut script = cut_off(params, "The sky");
    script.reads = false;
    script.attach(Delivery::Preview);
    script.open();
    script.text(MORE);
    script.read();
    assert_eq!(
        script.told()[1..],
        [
            "attempt 2 a/m continue left=9".to_owned(),
            "delta 1.0 \"The sky\"".into(),
            "confirmed through 3".into(),
            format!("delta 2.1 {MORE:?}"),
        ]
    );
}

#[test]
fn who_attaches_while_the_continuation_is_waited_for_is_given_the_text() {
    let mut params = continuing(1);
    params.detach_grace = s(60);
    let mut script = Script::start(params);
    script.open();
    script.text("The sky");
    script.fail(reset());
    script.attach(Delivery::Preview);
    assert_eq!(
        script.told(),
        [
            "accepted left=10 deadline=600s attached",
            "attempt 1 a/m first left=10",
            "waiting backoff 1s",
            "delta 1.0 \"The sky\"",
        ]
    );
}
