//! RESUME: a stored response is read on.

use redrive::{
    proto::{Delivery, FinishReason},
    protocol::{Delta, Event},
    recovery::{FollowUp, Params},
    verdict::Class,
};

use crate::support::*;

/// Every target stores its responses.
fn storing(targets: usize) -> Params {
    params_with(targets, |params| {
        change_targets(params, |target| target.resumes = true);
    })
}

fn stored(script: &mut Script, id: &str) {
    script.open();
    script.decoded(Event::Started {
        response_id: Some(id),
        model: None,
    });
}

fn cursor(script: &mut Script, sequence: u64) {
    script.decoded(Event::Cursor { sequence });
}

/// A stored response that was cut off behind event 4, and its rest asked for.
fn cut_off(params: Params) -> Script {
    let mut script = Script::start(params);
    stored(&mut script, "resp_1");
    script.text("The sky");
    cursor(&mut script, 4);
    script.fail(reset());
    script.next_send();
    script
}

fn asked_for(script: &Script) -> Option<(String, u64)> {
    match script.sends.last()?.follow_up.clone()? {
        FollowUp::Resume { response_id, after } => Some((response_id.into(), after)),
        FollowUp::Continue { .. } => None,
    }
}

fn not_found() -> redrive::verdict::Failure {
    provider(Class::NotFound)
}

#[test]
fn a_stored_response_is_read_on_and_nothing_is_void() {
    let mut script = cut_off(storing(1));
    assert_eq!(asked_for(&script), Some(("resp_1".into(), 4)));
    script.open();
    script.text(" is");
    cursor(&mut script, 5);
    script.text(" blue.");
    script.finish(FinishReason::Stop);
    script.usage(9);
    script.end();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"The sky\"",
            "waiting backoff 1s",
            "attempt 2 a/m resume left=9",
            "delta 2.0 \" is\"",
            "delta 2.0 \" blue.\"",
            "committed stop \"The sky is blue.\"",
        ]
    );
    let ledger = script.ledger();
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 9, "counted once");
    assert_eq!(ledger.void_output_tokens, 0);
}

#[test]
fn a_response_that_is_still_written_is_asked_for_again_and_again() {
    let mut script = cut_off(storing(1));
    script.open();
    script.text(" is");
    cursor(&mut script, 6);
    script.end();
    script.next_send();
    assert_eq!(asked_for(&script), Some(("resp_1".into(), 6)));
    script.open();
    script.end();
    script.next_send();
    assert_eq!(asked_for(&script), Some(("resp_1".into(), 6)));
    script.answer(" blue.");
    assert_eq!(script.last(), "committed stop \"The sky is blue.\"");
    assert_eq!(script.sent_at(), [0, 1, 3, 7]);
}

#[test]
fn reading_on_is_bounded_by_the_allowance() {
    let mut params = storing(1);
    params.policy.max_attempts = 3;
    let mut script = cut_off(params);
    for _ in 0..2 {
        script.open();
        script.end();
        if !script.generation.has_ended() {
            script.next_send();
        }
    }
    assert_eq!(script.last(), "failed premature_eof by allowance");
    assert_eq!(script.sent_count(), 3);
}

#[test]
fn tool_calls_and_reasoning_are_read_on_in_their_blocks() {
    let mut script = Script::start(storing(1));
    stored(&mut script, "resp_1");
    script.delta(Delta::Reasoning("hm"));
    script.tool_call(3, "f", "{\"a\"");
    cursor(&mut script, 8);
    script.fail(reset());
    script.next_send();
    script.open();
    script.delta(Delta::ToolArguments {
        call: 3,
        fragment: ":1}",
    });
    script.finish(FinishReason::ToolCalls);
    script.usage(9);
    script.end();
    assert_eq!(
        script.told()[7..],
        [
            "delta 2.1 arguments \":1}\"",
            "committed tool_calls reasoning \"hm\" call id3 f \"{\\\"a\\\":1}\"",
        ]
    );
}

#[test]
fn an_expired_response_is_void_whoever_read_it_and_restarted() {
    let mut script = cut_off(storing(1));
    script.open();
    script.text(" is");
    cursor(&mut script, 5);
    script.fail(reset());
    script.next_send();
    script.sent();
    script.fail(not_found());
    assert_eq!(
        script.told()[5..],
        [
            "delta 2.0 \" is\"",
            "waiting backoff 2s",
            "attempt 3 a/m resume left=8",
            "reset 1 transport",
            "reset 2 transport",
            "attempt 4 a/m restart left=7",
        ]
    );
    stored(&mut script, "resp_2");
    script.text("Anew");
    cursor(&mut script, 1);
    script.fail(reset());
    script.next_send();
    assert_eq!(
        asked_for(&script),
        Some(("resp_2".into(), 1)),
        "the new one is stored too"
    );
}

#[test]
fn where_an_expired_response_ends_it_the_first_verdict_is_told() {
    let mut params = storing(1);
    params.policy.max_attempts = 2;
    let mut script = cut_off(params);
    script.sent();
    script.fail(not_found());
    assert_eq!(script.last(), "failed transport by allowance");
    let ledger = script.ledger();
    assert_eq!(show::class(ledger.entries[1].verdict.as_ref()), "not_found");
}

#[test]
fn a_response_that_failed_by_itself_is_not_read_on() {
    let mut script = Script::start(storing(1));
    stored(&mut script, "resp_1");
    script.text("The sky");
    cursor(&mut script, 4);
    script.decoded(Event::Error {
        json: br#"{"error":{"message":"m","code":"server_error"}}"#,
    });
    script.next_send();
    assert_eq!(script.last(), "attempt 2 a/m restart left=9");
}

#[test]
fn a_verdict_inside_the_rest_of_a_response_is_the_verdict() {
    let mut script = cut_off(storing(1));
    script.open();
    script.decoded(Event::Error {
        json: br#"{"error":{"message":"m","code":"invalid_prompt"}}"#,
    });
    assert_eq!(script.last(), "failed invalid_request by not_retryable");
}

#[test]
fn a_response_without_an_id_or_a_cursor_is_restarted() {
    let mut script = Script::start(storing(1));
    stored(&mut script, "resp_1");
    script.text("The sky");
    script.fail(reset());
    script.next_send();
    assert_eq!(script.last(), "attempt 2 a/m restart left=9");
    let mut script = Script::start(storing(1));
    script.open();
    script.text("The sky");
    cursor(&mut script, 4);
    script.fail(reset());
    script.next_send();
    assert_eq!(script.last(), "attempt 2 a/m restart left=9");
}

#[test]
fn a_response_is_read_on_before_its_first_word_too() {
    let mut script = Script::start(storing(1));
    stored(&mut script, "resp_1");
    cursor(&mut script, 1);
    script.fail(reset());
    script.next_send();
    assert_eq!(asked_for(&script), Some(("resp_1".into(), 1)));
}

#[test]
fn effects_leave_reading_on_as_a_way_on() {
    let mut script = Script::start(storing(2));
    stored(&mut script, "resp_1");
    script.text("The sky");
    cursor(&mut script, 4);
    script.effects(3);
    for _ in 0..3 {
        script.fail(reset());
        script.next_send();
        script.open();
    }
    assert_eq!(script.visited(), [0; 4], "and bind the target that has it");
    script.fail(reset());
    script.next_send();
    script.sent();
    script.fail(not_found());
    assert_eq!(script.last(), "failed transport by effects unsafe");
}

#[test]
fn without_a_reset_a_response_is_read_on_and_an_expired_one_ends_it() {
    let mut params = storing(1);
    params.delivery = Delivery::PreviewNoReset;
    let mut script = cut_off(params);
    assert_eq!(script.last(), "attempt 2 a/m resume left=9");
    script.sent();
    script.fail(not_found());
    assert_eq!(script.last(), "failed transport by no_reset");
}

#[test]
fn another_target_has_not_stored_it() {
    let mut script = cut_off(storing(2));
    script.sent();
    script.fail(reset());
    assert_eq!(
        script.told()[5..],
        ["reset 1 transport", "attempt 3 b/m restart left=8 fallback"]
    );
}

#[test]
fn who_attaches_is_given_all_of_it_as_of_the_attempt_that_reads_it() {
    let mut params = storing(1);
    params.detach_grace = s(60);
    let mut script = cut_off(params);
    script.open();
    script.text(" is");
    cursor(&mut script, 5);
    script.attach(Delivery::Preview);
    script.fail(reset());
    script.next_send();
    script.sent();
    script.fail(not_found());
    assert_eq!(
        script.told()[1..],
        [
            "attempt 2 a/m resume left=9",
            "delta 2.0 \"The sky is\"",
            "waiting backoff 2s",
            "attempt 3 a/m resume left=8",
            "reset 2 transport",
            "attempt 4 a/m restart left=7",
        ]
    );
}
