//! A provider's final snapshot of a block, against what it streamed.

use redrive::{
    proto::{Delivery, FinishReason, generate_response::Frame, part},
    protocol::{BlockKind, Delta, Event},
};

use crate::support::*;

fn block(script: &mut Script, block: u32, kind: BlockKind) {
    script.decoded(Event::Block { block, kind });
}

fn whole(script: &mut Script, block: u32, whole: Delta<'_>) {
    script.decoded(Event::Snapshot { block, whole });
}

fn finish(script: &mut Script) {
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
}

/// A client that wants `delivery`; block 7 of the provider has streamed "Hallo", and 9 "!".
fn streamed(delivery: Delivery) -> Script {
    let mut script = Script::start(params_with(1, |params| params.delivery = delivery));
    script.open();
    block(&mut script, 7, BlockKind::Text);
    script.text("Hal");
    script.text("lo");
    block(&mut script, 9, BlockKind::Text);
    script.text("!");
    script
}

#[test]
fn one_that_agrees_changes_nothing() {
    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 7, Delta::Text("Hallo"));
    whole(&mut script, 9, Delta::Text("!"));
    finish(&mut script);
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hal\"",
            "delta 1.0 \"lo\"",
            "delta 1.1 \"!\"",
            "committed stop \"Hallo\" \"!\"",
        ]
    );
}

#[test]
fn one_of_a_block_that_streamed_nothing_fills_it_like_a_delta() {
    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 8, Delta::Reasoning("hm"));
    whole(&mut script, 8, Delta::Reasoning("hm"));
    // Output goes on where it went before.
    script.text("!");
    finish(&mut script);
    assert_eq!(
        script.told()[5..],
        [
            "delta 1.2 reasoning \"hm\"",
            "delta 1.1 \"!\"",
            "committed stop \"Hallo\" \"!!\" reasoning \"hm\"",
        ]
    );
}

#[test]
fn one_that_differs_wins_and_its_block_alone_is_reset_and_given_again() {
    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 7, Delta::Text("Hello"));
    finish(&mut script);
    assert_eq!(
        script.told()[4..],
        [
            "delta 1.1 \"!\"",
            "reset 1.0 corrupt",
            "delta 1.0 \"Hello\"",
            "committed stop \"Hello\" \"!\" FLAG_SNAPSHOT_MISMATCH",
        ]
    );
}

#[test]
fn what_was_not_delivered_is_replaced_in_silence() {
    let mut script = Script::start(params(1));
    script.open();
    script.reads = false;
    block(&mut script, 7, BlockKind::Text);
    script.text("Hallo");
    whole(&mut script, 7, Delta::Text("Hello"));
    script.read();
    finish(&mut script);
    script.read();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hello\"",
            "committed stop \"Hello\" FLAG_SNAPSHOT_MISMATCH"
        ]
    );

    let mut script = streamed(Delivery::CommittedOnly);
    whole(&mut script, 7, Delta::Text("Hello"));
    finish(&mut script);
    assert_eq!(
        script.told()[2..],
        ["committed stop \"Hello\" \"!\" FLAG_SNAPSHOT_MISMATCH"]
    );
}

#[test]
fn a_block_that_was_delivered_in_part_is_reset() {
    let mut script = Script::start(params(1));
    script.open();
    block(&mut script, 7, BlockKind::Text);
    script.text("Hal");
    script.reads = false;
    script.text("lo");
    whole(&mut script, 7, Delta::Text("Hello"));
    script.read();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hal\"",
            "reset 1.0 corrupt",
            "delta 1.0 \"Hello\""
        ]
    );
}

#[test]
fn without_a_reset_protocol_the_deltas_stand() {
    let mut script = streamed(Delivery::PreviewNoReset);
    whole(&mut script, 7, Delta::Text("Hello"));
    finish(&mut script);
    assert_eq!(
        script.last(),
        "committed stop \"Hallo\" \"!\" FLAG_SNAPSHOT_MISMATCH"
    );
    assert!(!script.told().iter().any(|line| line.starts_with("reset")));
}

#[test]
fn without_a_reset_protocol_what_was_not_delivered_is_replaced() {
    let mut script = Script::start(params_with(1, |params| {
        params.delivery = Delivery::PreviewNoReset;
    }));
    script.open();
    script.reads = false;
    block(&mut script, 7, BlockKind::Text);
    script.text("Hallo");
    whole(&mut script, 7, Delta::Text("Hello"));
    finish(&mut script);
    script.read();
    assert_eq!(
        script.last(),
        "committed stop \"Hello\" FLAG_SNAPSHOT_MISMATCH"
    );
}

#[test]
fn after_effects_the_deltas_stand_also_for_another_client() {
    let mut script = streamed(Delivery::Preview);
    let seen = script.sequence();
    script.effects(seen);
    script.attach(Delivery::Preview);
    whole(&mut script, 7, Delta::Text("Hello"));
    finish(&mut script);
    assert_eq!(
        script.last(),
        "committed stop \"Hallo\" \"!\" FLAG_SNAPSHOT_MISMATCH"
    );
}

#[test]
fn the_arguments_of_a_call_are_compared_and_its_start_is_given_again() {
    let mut script = Script::start(params(1));
    script.open();
    script.tool_call(3, "f", "{\"a\":");
    whole(
        &mut script,
        3,
        Delta::ToolArguments {
            call: 3,
            fragment: "{\"a\":1}",
        },
    );
    finish(&mut script);
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 call id3 f",
            "delta 1.0 arguments \"{\\\"a\\\":\"",
            "reset 1.0 corrupt",
            "delta 1.0 call id3 f",
            "delta 1.0 arguments \"{\\\"a\\\":1}\"",
            "committed tool_calls call id3 f \"{\\\"a\\\":1}\" FLAG_SNAPSHOT_MISMATCH",
        ]
    );
}

#[test]
fn a_call_that_streamed_no_arguments_is_filled_and_one_that_is_told_again_is_the_same() {
    let mut script = Script::start(params(1));
    script.open();
    script.tool_call(3, "f", "");
    script.tool_call(3, "f", "");
    whole(
        &mut script,
        3,
        Delta::ToolArguments {
            call: 3,
            fragment: "{}",
        },
    );
    finish(&mut script);
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 call id3 f",
            "delta 1.0 arguments \"{}\"",
            "committed tool_calls call id3 f \"{}\"",
        ]
    );
}

#[test]
fn of_what_comes_whole_only_its_absence_matters() {
    let mut script = Script::start(params(1));
    script.open();
    block(&mut script, 1, BlockKind::Native);
    script.delta(Delta::NativeBlock("{\"a\":1}"));
    whole(&mut script, 1, Delta::NativeBlock("{\"b\":1}"));
    whole(&mut script, 2, Delta::NativeBlock("{\"c\":1}"));
    whole(&mut script, 3, Delta::Reasoning("hm"));
    whole(&mut script, 3, Delta::ReasoningSignature("one"));
    whole(&mut script, 3, Delta::ReasoningSignature("two"));
    finish(&mut script);
    let last = script.last();
    assert!(!last.contains("MISMATCH"), "{last}");
    let Some(Frame::Committed(committed)) = &script.frames.last().unwrap().frame else {
        panic!("{last}");
    };
    let signatures: Vec<_> = committed
        .message
        .iter()
        .filter_map(|part| match &part.part {
            Some(part::Part::Reasoning(reasoning)) => Some(reasoning.signature.as_slice()),
            _ => None,
        })
        .collect();
    assert_eq!(signatures, [b"one"]);
    assert_eq!(script.told().len(), 6, "{:?}", script.told());
}

#[test]
fn one_of_another_kind_cannot_be_given_and_is_flagged() {
    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 7, Delta::Refusal("no"));
    finish(&mut script);
    assert_eq!(
        script.last(),
        "committed stop \"Hallo\" \"!\" FLAG_SNAPSHOT_MISMATCH"
    );
}

#[test]
fn effects_on_a_block_that_is_void_end_the_generation() {
    // Frame 3 is the block's first delta; the client acts on it before it has seen the reset.
    let mut script = streamed(Delivery::Preview);
    script.reads = false;
    whole(&mut script, 7, Delta::Text("Hello"));
    script.effects(3);
    script.read();
    assert_eq!(script.last(), "failed cancelled by effects unsafe");

    // The same, when the reset was given in the meantime.
    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 7, Delta::Text("Hello"));
    script.effects(4);
    assert_eq!(script.last(), "failed cancelled by effects unsafe");
}

#[test]
fn effects_on_what_stayed_or_after_the_reset_was_seen_are_confirmed() {
    // Frame 5 is the other block, but it comes after the void ones.
    let mut script = Script::start(params(1));
    script.open();
    block(&mut script, 9, BlockKind::Text);
    script.text("!");
    let before = script.sequence();
    block(&mut script, 7, BlockKind::Text);
    script.text("Hallo");
    whole(&mut script, 7, Delta::Text("Hello"));
    script.effects(before);
    assert_eq!(script.last(), format!("confirmed through {before}"));

    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 7, Delta::Text("Hello"));
    let seen = script.sequence();
    script.effects(seen);
    assert_eq!(script.last(), format!("confirmed through {seen}"));
}

#[test]
fn a_failure_after_a_block_was_reset_voids_the_attempt() {
    let mut script = streamed(Delivery::Preview);
    whole(&mut script, 7, Delta::Text("Hello"));
    script.fail(reset());
    script.next_send();
    script.answer("new");
    assert_eq!(
        script.told()[5..],
        [
            "reset 1.0 corrupt",
            "delta 1.0 \"Hello\"",
            "reset 1 transport wait=1s",
            "waiting backoff 1s",
            "attempt 2 a/m restart left=9",
            "delta 2.0 \"new\"",
            "committed stop \"new\"",
        ]
    );
}

#[test]
fn a_block_of_an_attempt_that_is_void_already_is_not_reset_again() {
    let mut script = streamed(Delivery::Preview);
    script.fail(reset());
    script.next_send();
    script.open();
    block(&mut script, 7, BlockKind::Text);
    script.text("Hallo");
    let before = script.frames.len();
    whole(&mut script, 7, Delta::Text("Hello"));
    assert_eq!(
        script.told()[before..],
        ["reset 2.0 corrupt", "delta 2.0 \"Hello\""]
    );
}

#[test]
fn an_attempt_of_which_nothing_is_left_is_not_reset() {
    let mut script = Script::start(params(1));
    script.open();
    block(&mut script, 7, BlockKind::Text);
    script.text("Hallo");
    script.reads = false;
    whole(&mut script, 7, Delta::Text("Hello"));
    script.fail(reset());
    script.read();
    assert_eq!(
        script.told()[2..],
        [
            "delta 1.0 \"Hallo\"",
            "reset 1.0 corrupt",
            "waiting backoff 1s"
        ]
    );
    // What the client acts on now, it knows to be void.
    let seen = script.sequence();
    script.effects(seen);
    script.read();
    assert_eq!(script.last(), format!("confirmed through {seen}"));
}

#[test]
fn a_block_that_two_attempts_previewed_is_reset_in_both() {
    let mut script = Script::start(params_with(1, |params| {
        change_targets(params, |target| target.resumes = true);
    }));
    script.open();
    script.decoded(Event::Started {
        response_id: Some("r"),
        model: None,
    });
    block(&mut script, 7, BlockKind::Text);
    script.text("Hal");
    script.decoded(Event::Cursor { sequence: 4 });
    script.fail(reset());
    script.next_send();
    script.open();
    block(&mut script, 7, BlockKind::Text);
    script.text("lo");
    whole(&mut script, 7, Delta::Text("Hello"));
    let told = script.told();
    let resets: Vec<_> = told
        .iter()
        .filter(|line| line.starts_with("reset"))
        .collect();
    assert_eq!(
        resets,
        ["reset 1.0 corrupt", "reset 2.0 corrupt"],
        "{told:?}"
    );
}

#[test]
fn a_large_snapshot_is_bounded_like_any_output() {
    let mut script = Script::start(params_with(1, |params| params.max_message_bytes = 1000));
    script.open();
    block(&mut script, 7, BlockKind::Text);
    script.text("a");
    whole(&mut script, 7, Delta::Text(&"b".repeat(1000)));
    assert!(
        script.last().starts_with("failed too_large"),
        "{}",
        script.last()
    );
}
