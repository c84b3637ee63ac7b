//! CONTINUE: the text of a cut-off answer stays and is continued by the target that wrote it. What
//! that means for the client is in `continuing_clients`.

use redrive::{
    proto::{Executed, FinishReason},
    protocol::Delta,
    recovery::FollowUp,
    verdict::Class,
};

use crate::support::*;

/// Text by whose repetition an echo, an overlap or a new beginning is known.
const LONG: &str = "The quick brown fox jumps over the lazy dog and runs into the dark forest";

/// More than is ever held back, and like nothing before it.
pub const MORE: &str =
    ", where it meets a badger, two hedgehogs and an owl that cannot sleep at night";

/// Every target can be asked to continue.
pub fn continuing(targets: usize) -> redrive::recovery::Params {
    params_with(targets, |params| {
        change_targets(params, |target| target.continues = true);
    })
}

/// Others find the first target down.
pub fn shut_the_first_target(commons: &Shared) {
    for _ in 0..4 {
        let mut other = Script::start_at(at(0), params(1), commons);
        other.sent();
        other.fail(refused());
        other.cancel();
    }
}

/// A preview of `text` that was cut off, and the continuation dispatched. The preview is frame 3, the
/// continuation's start frame 5.
pub fn cut_off(params: redrive::recovery::Params, text: &str) -> Script {
    let mut script = Script::start(params);
    script.open();
    script.usage(2);
    script.text(text);
    script.fail(reset());
    script.next_send();
    script
}

fn partial(script: &Script) -> Option<String> {
    match script.sends.last()?.follow_up.as_ref()? {
        FollowUp::Continue { partial } => Some(partial.to_string()),
        FollowUp::Resume { .. } => None,
    }
}

pub fn complete(script: &mut Script, reason: FinishReason) {
    script.finish(reason);
    script.usage(3);
    script.done();
}

#[test]
fn the_text_stays_and_the_rest_is_output_of_the_next_attempt() {
    let mut script = cut_off(continuing(1), "The sky");
    assert_eq!(partial(&script).as_deref(), Some("The sky"));
    script.open();
    script.text(" is blue");
    script.text(".");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(
        script.told(),
        [
            "accepted left=11 deadline=600s",
            "attempt 1 a/m first left=10",
            "delta 1.0 \"The sky\"",
            "waiting backoff 1s",
            "attempt 2 a/m continue left=9",
            "confirmed through 5",
            "delta 2.1 \" is blue.\"",
            "committed stop \"The sky is blue.\"",
        ]
    );
}

#[test]
fn nothing_is_shown_before_it_is_known_to_be_a_continuation() {
    let mut script = cut_off(continuing(1), "The sky");
    script.open();
    for letter in MORE.chars().take(63) {
        script.text(&letter.to_string());
        assert_eq!(script.last(), "attempt 2 a/m continue left=9");
    }
    let (held, rest) = MORE.split_at(64);
    script.text(&held[63..]);
    assert_eq!(
        script.told()[5..],
        [
            "confirmed through 5".to_owned(),
            format!("delta 2.1 {held:?}")
        ]
    );
    script.text(rest);
    assert_eq!(script.last(), format!("delta 2.1 {rest:?}"));
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), format!("committed stop \"The sky{MORE}\""));
}

#[test]
fn an_echo_is_not_shown_twice() {
    let mut script = cut_off(continuing(1), LONG);
    script.open();
    for piece in [&LONG[..10], &LONG[10..], "."] {
        script.text(piece);
    }
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), format!("committed stop \"{LONG}.\""));
}

#[test]
fn a_long_overlap_is_not_shown_twice() {
    let mut script = cut_off(continuing(1), LONG);
    script.open();
    script.text(&LONG[30..]);
    script.text(MORE);
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), format!("committed stop \"{LONG}{MORE}\""));
}

#[test]
fn a_text_that_was_complete_is_continued_by_nothing() {
    let mut script = cut_off(continuing(1), "All of it.");
    script.open();
    complete(&mut script, FinishReason::Stop);
    assert_eq!(
        script.told()[5..],
        ["confirmed through 5", "committed stop \"All of it.\""]
    );
}

#[test]
fn white_space_is_not_sent_but_stays_and_is_not_doubled() {
    for (continuation, whole) in [
        ("\n\n2.", "1.\n\n2."),
        ("2.", "1.\n\n2."),
        ("\n2.", "1.\n\n2."),
    ] {
        let mut script = cut_off(continuing(1), "1.\n\n");
        assert_eq!(partial(&script).as_deref(), Some("1."));
        script.open();
        script.text(continuation);
        complete(&mut script, FinishReason::Stop);
        assert_eq!(script.last(), format!("committed stop {whole:?}"));
    }
}

#[test]
fn white_space_alone_is_nothing_to_continue() {
    let mut script = cut_off(continuing(1), " \n");
    assert_eq!(
        script.told()[3..],
        [
            "reset 1 transport wait=1s",
            "waiting backoff 1s",
            "attempt 2 a/m restart left=9"
        ]
    );
    script.answer("anew");
    assert_eq!(script.last(), "committed stop \"anew\"");
}

#[test]
fn an_answer_begun_anew_is_void_unseen_and_restarted() {
    let mut script = cut_off(continuing(1), LONG);
    script.open();
    script.text(&LONG[..20]);
    script.text("which is another one");
    assert_eq!(
        script.told()[4..],
        [
            "attempt 2 a/m continue left=9",
            "reset 1 transport",
            "attempt 3 a/m restart left=8",
        ]
    );
    assert_eq!(script.sends[2].follow_up, None);
    script.answer("all of it");
    assert_eq!(script.last(), "committed stop \"all of it\"");
    let ledger = script.ledger();
    let classes: Vec<String> = ledger.entries[..2]
        .iter()
        .map(|entry| show::class(entry.verdict.as_ref()))
        .collect();
    assert_eq!(classes, ["transport", "malformed_output"]);
}

#[test]
fn an_answer_that_ends_as_the_first_one_began_is_begun_anew() {
    let mut script = cut_off(continuing(1), LONG);
    script.open();
    script.text(&LONG[..20]);
    script.finish(FinishReason::Stop);
    assert_eq!(script.last(), "attempt 3 a/m restart left=8");
}

#[test]
fn an_answer_that_thinks_or_refuses_first_is_begun_anew() {
    for delta in [
        Delta::Reasoning("hm"),
        Delta::Refusal("no"),
        Delta::ReasoningSignature("s"),
        Delta::RedactedReasoning("r"),
    ] {
        let mut script = cut_off(continuing(1), LONG);
        script.open();
        script.delta(delta);
        assert_eq!(script.last(), "attempt 3 a/m restart left=8", "{delta:?}");
    }
}

// G11
#[test]
fn a_refusal_is_not_the_verdict_and_is_not_repeated() {
    let mut script = cut_off(continuing(1), "The sky");
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(
        script.told()[4..],
        [
            "attempt 2 a/m continue left=9",
            "reset 1 transport",
            "attempt 3 a/m restart left=8",
        ]
    );
    script.open();
    script.text("Anew");
    script.fail(reset());
    script.next_send();
    assert_eq!(
        script.told()[8..],
        [
            "reset 3 transport wait=2s",
            "waiting backoff 2s",
            "attempt 4 a/m restart left=7"
        ]
    );
}

#[test]
fn a_refusal_inside_a_successful_response_is_one_too() {
    let mut script = cut_off(continuing(1), "The sky");
    script.open();
    script.text(" is");
    script.decoded(redrive::protocol::Event::Error {
        json: br#"{"error":{"message":"no prefill here","type":"invalid_request_error"}}"#,
    });
    assert_eq!(script.last(), "attempt 3 a/m restart left=8");
}

#[test]
fn where_a_refusal_ends_it_the_first_verdict_is_told_and_the_ledger_has_both() {
    let mut params = continuing(1);
    params.policy.max_attempts = 2;
    let mut script = cut_off(params, "The sky");
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(script.last(), "failed transport by allowance");
    assert_eq!(script.failed().verdict.unwrap().attempt, 1);
    let ledger = script.ledger();
    let refusal = &ledger.entries[1];
    assert_eq!(show::class(refusal.verdict.as_ref()), "invalid_request");
    assert_eq!(refusal.executed(), Executed::Maybe);
}

#[test]
fn a_refusal_is_not_told_either_when_the_restart_does_not_come() {
    let mut script = cut_off(continuing(1), "The sky");
    script.slots = false;
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    script.pass(s(600));
    assert_eq!(script.last(), "failed transport by deadline");
    assert_eq!(script.failed().verdict.unwrap().attempt, 1);
}

#[test]
fn what_was_to_be_continued_and_is_void_after_all_is_counted_so() {
    let mut script = cut_off(continuing(1), "The sky");
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    script.answer("anew");
    let ledger = script.ledger();
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 2 + 1);
    assert_eq!(ledger.void_output_tokens, 2);
}

#[test]
fn who_is_not_let_in_to_continue_is_not_asked_again_at_all() {
    for class in [Class::Auth, Class::Permission, Class::QuotaExhausted] {
        let mut script = cut_off(continuing(1), "The sky");
        script.sent();
        script.fail(provider(class));
        assert_eq!(script.last(), "failed transport by no_target", "{class:?}");
        let mut script = cut_off(continuing(2), "The sky");
        script.sent();
        script.fail(provider(class));
        let restarted = "attempt 3 b/m restart left=8 fallback";
        assert_eq!(script.last(), restarted, "{class:?}");
    }
}

#[test]
fn a_wait_that_comes_with_a_refusal_is_waited() {
    let mut script = cut_off(continuing(1), "The sky");
    script.sent();
    script.fail(provider_wait(Class::InvalidRequest, s(7)));
    assert_eq!(
        script.told()[5..],
        ["reset 1 transport wait=7s", "waiting cooldown 7s"]
    );
}

#[test]
fn a_continuation_that_fails_for_a_while_is_asked_for_again() {
    let mut script = cut_off(continuing(1), "The sky");
    script.open();
    script.text(" held back");
    script.fail(provider(Class::Overloaded));
    script.next_send();
    assert_eq!(
        script.told()[4..],
        [
            "attempt 2 a/m continue left=9",
            "waiting backoff 2s",
            "attempt 3 a/m continue left=8",
        ]
    );
    assert_eq!(partial(&script).as_deref(), Some("The sky"));
    script.open();
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), "committed stop \"The sky is blue.\"");
}

#[test]
fn a_continuation_is_continued_in_turn() {
    let mut script = cut_off(continuing(1), "The sky");
    script.open();
    script.text(MORE);
    script.usage(2);
    script.fail(reset());
    script.next_send();
    let both = format!("The sky{MORE}");
    assert_eq!(partial(&script), Some(both.clone()));
    script.open();
    script.text(" and so on.");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(
        script.told()[5..],
        [
            "confirmed through 5".to_owned(),
            format!("delta 2.1 {MORE:?}"),
            "waiting backoff 2s".into(),
            "attempt 3 a/m continue left=8".into(),
            "confirmed through 9".into(),
            "delta 3.2 \" and so on.\"".into(),
            format!("committed stop \"{both} and so on.\""),
        ]
    );
}

#[test]
fn a_second_continuation_that_is_refused_ends_it_because_the_text_is_final() {
    let mut script = cut_off(continuing(2), "The sky");
    script.open();
    script.text(MORE);
    script.fail(reset());
    script.next_send();
    assert_eq!(script.visited(), [0, 0, 0], "final text binds its target");
    script.sent();
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(script.last(), "failed transport by effects");
    assert_eq!(script.failed().verdict.unwrap().attempt, 2);
}

#[test]
fn what_comes_behind_the_text_is_void_alone_and_the_text_is_continued_again() {
    let mut script = cut_off(continuing(1), "Look:");
    script.open();
    script.text(MORE);
    script.tool_call(0, "f", "{\"a\":");
    script.fail(reset());
    script.next_send();
    assert_eq!(
        script.told()[9..],
        [
            "reset 2 transport wait=2s",
            "waiting backoff 2s",
            "attempt 3 a/m continue left=8",
        ]
    );
    assert_eq!(partial(&script).as_deref(), Some("Look:"));
    script.open();
    script.tool_call(0, "f", "{}");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(
        script.told()[12..],
        [
            "confirmed through 12",
            "delta 3.1 call id0 f",
            "delta 3.1 arguments \"{}\"",
            "committed tool_calls \"Look:\" call id0 f \"{}\"",
        ]
    );
}

#[test]
fn tool_calls_may_follow_the_text_in_a_continuation() {
    let mut script = cut_off(continuing(1), "Let me");
    script.open();
    script.text(" look.");
    script.tool_call(0, "f", "{}");
    complete(&mut script, FinishReason::ToolCalls);
    assert_eq!(
        script.told()[5..],
        [
            "confirmed through 5",
            "delta 2.1 \" look.\"",
            "delta 2.2 call id0 f",
            "delta 2.2 arguments \"{}\"",
            "committed tool_calls \"Let me look.\" call id0 f \"{}\"",
        ]
    );
}

#[test]
fn only_text_is_continued() {
    let outputs: [fn(&mut Script); 5] = [
        |script| script.tool_call(0, "f", "{}"),
        |script| script.delta(Delta::Reasoning("hm")),
        |script| script.delta(Delta::Refusal("no")),
        |script| script.delta(Delta::NativeBlock("{}")),
        |script| script.delta(Delta::RedactedReasoning("r")),
    ];
    for output in outputs {
        for before in [true, false] {
            let mut script = Script::start(continuing(1));
            script.open();
            if before {
                script.text("text");
            }
            output(&mut script);
            script.fail(reset());
            script.next_send();
            assert_eq!(script.last(), "attempt 2 a/m restart left=9");
        }
    }
}

#[test]
fn nothing_is_continued_that_showed_nothing_or_where_nobody_asked_for_it() {
    let mut script = Script::start(continuing(1));
    script.open();
    script.fail(reset());
    script.next_send();
    assert_eq!(script.last(), "attempt 2 a/m restart left=9");
    let script = cut_off(params(1), "The sky");
    assert_eq!(script.last(), "attempt 2 a/m restart left=9");
}

#[test]
fn another_target_does_not_continue_anothers_text() {
    let mut script = Script::start(continuing(2));
    script.open();
    script.text("The sky");
    script.fail(provider(Class::Auth));
    assert_eq!(
        script.told()[3..],
        ["reset 1 auth", "attempt 2 b/m restart left=9 fallback"]
    );
    let mut script = cut_off(continuing(2), "The sky");
    script.sent();
    script.fail(reset());
    assert_eq!(
        script.told()[5..],
        ["reset 1 transport", "attempt 3 b/m restart left=8 fallback"],
        "two tries, then the next"
    );
}

#[test]
fn a_target_that_became_unusable_meanwhile_gives_its_text_up() {
    let commons = commons();
    let mut script = Script::start_at(at(0), continuing(2), &commons);
    script.open();
    script.text("The sky");
    script.fail(reset());
    shut_the_first_target(&commons);
    script.next_send();
    assert_eq!(
        script.told()[3..],
        [
            "waiting backoff 1s",
            "reset 1 transport",
            "attempt 2 b/m restart left=9 fallback",
        ]
    );
}

#[test]
fn a_permanent_verdict_continues_nothing() {
    for class in [
        Class::InvalidRequest,
        Class::ContentFiltered,
        Class::Unclassified,
    ] {
        let mut script = Script::start(continuing(2));
        script.open();
        script.text("The sky");
        script.fail(provider(class));
        let told = script.last();
        assert!(told.ends_with("by not_retryable"), "{told}");
    }
}

#[test]
fn where_replay_is_disabled_nothing_is_continued() {
    let mut params = continuing(1);
    params.policy.replay = redrive::recovery::settings::Replay::None;
    let mut script = Script::start(params);
    script.open();
    script.text("The sky");
    script.fail(reset());
    assert_eq!(script.last(), "failed transport by replay_disabled");
}

#[test]
fn usage_is_the_sum_of_what_the_message_is_made_of() {
    let mut script = Script::start(continuing(1));
    script.open();
    script.usage(5);
    script.text("The sky");
    script.fail(reset());
    script.next_send();
    script.open();
    script.usage(70);
    script.text(" held back, then lost");
    script.fail(reset());
    script.next_send();
    script.open();
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    let usage = script.frames.last().and_then(|frame| match &frame.frame {
        Some(redrive::proto::generate_response::Frame::Committed(last)) => last.usage,
        _ => None,
    });
    assert_eq!(usage.unwrap().output_tokens, 5 + 3);
    let ledger = script.ledger();
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 5 + 70 + 3);
    assert_eq!(ledger.void_output_tokens, 70);
}

#[test]
fn usage_that_is_estimated_for_a_part_is_estimated_for_the_whole() {
    let mut script = Script::start(continuing(1));
    script.open();
    script.text("12345678");
    script.fail(reset());
    script.next_send();
    script.open();
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    let told = script.last();
    assert!(told.ends_with("FLAG_USAGE_ESTIMATED"), "{told}");
    let ledger = script.ledger();
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 2 + 3);
    assert_eq!(ledger.void_output_tokens, 0);
}

#[test]
fn a_final_text_is_not_void_where_it_fails_in_the_end() {
    let mut script = cut_off(continuing(1), "12345678");
    script.open();
    script.text(MORE);
    script.usage(40);
    script.fail(provider(Class::InvalidRequest));
    assert_eq!(script.last(), "failed invalid_request by not_retryable");
    let ledger = script.ledger();
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 2 + 40);
    assert_eq!(ledger.void_output_tokens, 40);
}

#[test]
fn an_ended_attempt_has_nothing_more_to_say_to_its_continuation() {
    use redrive::recovery::Upstream;
    let mut script = cut_off(continuing(1), "The sky");
    let event = redrive::protocol::Event::Delta(Delta::Text(" was"));
    script.upstream_of(1, Upstream::Decoded(event));
    script.open();
    script.text(" is blue.");
    complete(&mut script, FinishReason::Stop);
    assert_eq!(script.last(), "committed stop \"The sky is blue.\"");
}

#[test]
fn events_of_the_providers_own_are_held_back_too() {
    let native = |script: &mut Script, data: &[u8]| {
        script.decoded(redrive::protocol::Event::Native { data });
    };
    let mut script = cut_off(continuing(1), "The sky");
    script.open();
    native(&mut script, b"1");
    script.text(" is blue.");
    assert_eq!(script.last(), "attempt 2 a/m continue left=9");
    script.fail(reset());
    script.next_send();
    script.open();
    native(&mut script, b"2");
    script.text(MORE);
    assert_eq!(
        script.told()[7..],
        [
            "confirmed through 7".to_owned(),
            "delta 3.1 NativeEvent(b\"2\")".into(),
            format!("delta 3.1 {MORE:?}"),
        ]
    );
}

#[test]
fn a_cancel_ends_a_continuation_at_once() {
    let mut script = cut_off(continuing(1), "The sky");
    script.open();
    script.text(" is");
    script.cancel();
    assert_eq!(script.last(), "failed cancelled by cancel");
}

#[test]
fn a_long_message_of_several_attempts_is_one_text_in_its_parts_too() {
    let first = "a".repeat(700 << 10);
    let second = "b".repeat(700 << 10);
    let mut script = cut_off(continuing(1), &first);
    script.open();
    script.text(&second);
    complete(&mut script, FinishReason::Stop);
    let parts: Vec<_> = script
        .frames
        .iter()
        .filter_map(|frame| match &frame.frame {
            Some(redrive::proto::generate_response::Frame::Committed(c)) if c.part > 0 => Some(c),
            _ => None,
        })
        .collect();
    assert_eq!(parts.len(), 2);
    let mut whole = String::new();
    for part in parts {
        assert_eq!(part.message.len(), 1, "one text in each frame");
        match part.message[0].part.as_ref().unwrap() {
            redrive::proto::part::Part::Text(text) => whole.push_str(text),
            other => panic!("{other:?}"),
        }
    }
    assert!(whole == first + &second);
}
