//! The turn gate in the core: what stands in the way of asking again, and what a rejection leaves behind.

use redrive::{
    gate::{Choice, Policy},
    proto::FinishReason,
    protocol::Delta,
    recovery::Params,
    verdict::Class,
};

use crate::{
    gating::{calls, gated},
    support::*,
};

#[test]
fn a_deadline_that_another_generation_of_the_scope_tightened_counts() {
    let scoped = |deadline| {
        gated(|params: &mut Params, _| {
            params.scope = Some(("tcp".into(), "turn".into()));
            params.policy.deadline = deadline;
        })
    };
    let shared = commons();
    let mut script = Script::start_at(at(0), scoped(s(600)), &shared);
    script.open();
    script.pass(s(6));
    let _tighter = Script::start_at(at(6), scoped(s(0)), &shared);
    // What is delivered where nothing can be tried again is not taken back first.
    script.text("I'll run it.");
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed stop \"I'll run it.\"");
}

#[test]
fn a_target_that_returns_too_late_is_not_waited_for() {
    let gated = || gated(|params, _| change_targets(params, |target| target.credentials = 1));
    let shared = commons();
    let mut script = Script::start_at(at(0), gated(), &shared);
    let mut other = Script::start_at(at(0), gated(), &shared);
    other.sent();
    other.fail(provider(Class::QuotaExhausted));
    script.answer("");
    assert_eq!(script.last(), "failed gate_rejected/empty by deadline");
}

#[test]
fn a_call_without_arguments_is_whole() {
    let mut script = Script::start(gated(|_, _| {}));
    calls(&mut script, &[("read", "")]);
    assert_eq!(script.last(), "committed tool_calls call id0 read \"{}\"");
}

#[test]
fn a_demand_that_is_not_met_fails_as_that_whatever_the_calls_were() {
    let mut script = Script::start(gated(|params, gate| {
        params.policy.max_attempts = 1;
        gate.policy = Policy::LENIENT;
        gate.tools.choice = Choice::Required;
    }));
    calls(&mut script, &[("read", "{\"path")]);
    assert_eq!(
        script.last(),
        "failed gate_rejected/required_tool by allowance"
    );
}

#[test]
fn a_stall_before_a_rejection_and_one_after_it_are_not_in_a_row() {
    let mut script = Script::start(gated(|_, _| {}));
    let stall = |script: &mut Script| {
        script.open();
        script.text("a");
        script.next_send();
    };
    stall(&mut script);
    script.answer("");
    stall(&mut script);
    stall(&mut script);
    // Two in a row would have doubled the window of the last.
    assert_eq!(script.sent_at(), [0, 46, 46, 95, 140]);
}

#[test]
fn a_refusal_in_words_or_a_block_of_the_provider_is_something_to_read() {
    for (delta, told) in [
        (Delta::Refusal("I must not."), "refusal \"I must not.\""),
        (Delta::NativeBlock("{}"), "NativeJson([123, 125])"),
    ] {
        // Neither is asked again for the call that was demanded.
        let mut script = Script::start(gated(|_, gate| gate.tools.choice = Choice::Required));
        script.open();
        script.delta(delta);
        script.finish(FinishReason::Stop);
        script.usage(1);
        script.done();
        assert_eq!(script.last(), format!("committed stop {told}"));
    }
}

#[test]
fn a_rejection_says_why() {
    let mut script = Script::start(gated(|params, _| params.policy.max_attempts = 1));
    script.answer("");
    assert_eq!(
        script.failed().verdict.unwrap().message,
        "the turn gate rejected the answer: empty"
    );
}
