//! The attempts of one generation: the loop table, as far as it is the gate's.
//!
//! Not the gate's: which request may carry a number of its own (L4), that text of an earlier attempt is
//! kept (L7) or was already final (L9), what an exhausted generation looks like on a wire (L10, L12), what
//! is stripped of a delivered text (L11), the provider's conversation (L13), and the corpus of whole
//! streams (L14).

use redrive::gate::{Attempts, ControlKind, Finish, Judgement, Policy, Reason, Snapshot, Turn};

use crate::{attempt, bent, one_call, unknown_tool};

fn turn(policy: Policy, attempts: f64) -> Turn {
    Turn::new(policy, Attempts::resolve(Some(attempts), 3.0))
}

fn intercepted() -> Snapshot<'static> {
    bent(|s| s.intercepted_tool_names = one_call())
}

fn empty() -> Snapshot<'static> {
    bent(|s| s.visible_text = "".into())
}

fn called() -> Snapshot<'static> {
    bent(|s| s.native_tool_calls = one_call())
}

const CALLS: Judgement = Judgement::Accept {
    finish: Finish::ToolCalls,
    suppress_text: false,
};

const ANSWER: Judgement = Judgement::Accept {
    finish: Finish::Stop,
    suppress_text: false,
};

/// How many attempts it takes until there is no retry, if all are `snapshot`.
fn generations(attempts: Attempts, snapshot: &Snapshot<'static>) -> u32 {
    let mut turn = Turn::new(Policy::AGENT, attempts);
    while let Judgement::Retry(_) = turn.judge(snapshot.clone()) {}
    turn.judged()
}

#[test]
fn l1_l2_l3_a_budget_is_that_many_generations() {
    for (requested, expected) in [(1.0, 1), (2.0, 2), (99.0, 6), (-1.0, 3), (f64::INFINITY, 3)] {
        let attempts = Attempts::resolve(Some(requested), 3.0);
        assert_eq!(generations(attempts, &attempt()), expected, "{requested}");
    }
}

#[test]
fn l4_a_number_that_is_not_asked_for_leaves_the_configured_one() {
    assert_eq!(generations(Attempts::resolve(None, 2.0), &attempt()), 2);
}

#[test]
fn l5_the_second_interception_is_delivered() {
    // Also where it is the last attempt.
    for attempts in [2.0, 6.0] {
        let mut turn = turn(Policy::AGENT, attempts);
        assert_eq!(
            turn.judge(intercepted()),
            Judgement::Retry(Reason::Intercepted)
        );
        assert_eq!(
            turn.judge(intercepted()),
            Judgement::Deliver(Reason::Intercepted)
        );
    }
}

#[test]
fn l6_and_l7_an_interception_then_empty_are_two_retries() {
    let mut turn = turn(Policy::LENIENT, 3.0);
    assert_eq!(
        turn.judge(intercepted()),
        Judgement::Retry(Reason::Intercepted)
    );
    assert_eq!(turn.judge(empty()), Judgement::Retry(Reason::Empty));
    let mut without_more = turn.clone();
    assert_eq!(turn.judge(called()), CALLS);
    assert_eq!(turn.judged(), 3);
    assert_eq!(
        without_more.judge(empty()),
        Judgement::Exhausted(Reason::Empty)
    );
}

#[test]
fn l8_drops_beside_a_call_or_without_tools_are_no_retry() {
    let beside = bent(|s| {
        s.tool_calls = one_call();
        s.intercepted_tool_names = one_call();
    });
    assert_eq!(turn(Policy::LENIENT, 3.0).judge(beside), CALLS);
    let without_tools = bent(|s| {
        s.has_tools = false;
        s.intercepted_tool_names = one_call();
    });
    assert_eq!(turn(Policy::LENIENT, 3.0).judge(without_tools), ANSWER);
}

#[test]
fn l10_and_l12_bare_and_empty_end_exhausted() {
    let bare = turn(Policy::AGENT, 1.0).judge(attempt());
    assert_eq!(bare, Judgement::Exhausted(Reason::Bare));
    let empty = turn(Policy::AGENT, 1.0).judge(empty());
    assert_eq!(empty, Judgement::Exhausted(Reason::Empty));
}

#[test]
fn l11_a_broken_wrapper_is_delivered_in_the_end_if_it_holds_text() {
    let mut invalid = bent(|s| s.control_kind = Some(ControlKind::InvalidControl));
    let mut last = turn(Policy::AGENT, 2.0);
    assert_eq!(
        last.judge(invalid.clone()),
        Judgement::Retry(Reason::InvalidControl)
    );
    assert_eq!(
        last.judge(invalid.clone()),
        Judgement::Deliver(Reason::InvalidControl)
    );
    invalid.visible_text = " ".into();
    assert_eq!(
        turn(Policy::AGENT, 1.0).judge(invalid),
        Judgement::Exhausted(Reason::InvalidControl)
    );
}

#[test]
fn the_last_attempt_is_delivered_or_exhausted_by_its_reason() {
    use Reason::*;
    for (reason, delivered) in [
        (Empty, false),
        (Bare, false),
        (InvalidControl, true),
        (RequiredTool, false),
        (ToolError, false),
        (ProseWithTools, false),
        (Intercepted, false),
        (MalformedProtocol, false),
        (ThoughtToolCall, true),
        (MissingTool, true),
    ] {
        let expected = match delivered {
            true => Judgement::Deliver(reason),
            false => Judgement::Exhausted(reason),
        };
        let judged = turn(Policy::AGENT, 1.0).judge(rejected_for(reason));
        assert_eq!(judged, expected, "{reason:?}");
    }
}

#[test]
fn a_rejected_attempt_is_retried_while_there_are_attempts() {
    for reason in Reason::ALL {
        let judged = turn(Policy::AGENT, 2.0).judge(rejected_for(reason));
        assert_eq!(judged, Judgement::Retry(reason));
    }
}

#[test]
fn three_reasons_share_one_recovery() {
    use Reason::*;
    let lost = [Intercepted, MalformedProtocol, ThoughtToolCall];
    for reason in Reason::ALL {
        let is_lost = lost.contains(&reason);
        assert_eq!(reason.is_protocol_recovery(), is_lost, "{reason:?}");
    }
    for first in lost {
        for second in [Intercepted, ThoughtToolCall] {
            let mut turn = turn(Policy::LENIENT, 6.0);
            assert_eq!(turn.judge(rejected_for(first)), Judgement::Retry(first));
            let judged = turn.judge(rejected_for(second));
            assert_eq!(judged, Judgement::Deliver(second), "after {first:?}");
        }
        let mut turn = turn(Policy::LENIENT, 6.0);
        assert_eq!(turn.judge(rejected_for(first)), Judgement::Retry(first));
        assert_eq!(turn.judge(rejected_for(MalformedProtocol)), ANSWER);
    }
}

#[test]
fn other_reasons_leave_the_recovery_alone_and_go_on_after_it() {
    let mut turn = turn(Policy::LENIENT, 6.0);
    for reason in [Reason::Empty, Reason::ToolError, Reason::Intercepted] {
        assert_eq!(turn.judge(rejected_for(reason)), Judgement::Retry(reason));
    }
    for reason in [Reason::RequiredTool, Reason::MissingTool] {
        assert_eq!(turn.judge(rejected_for(reason)), Judgement::Retry(reason));
    }
}

#[test]
fn a_recovery_that_the_snapshot_calls_spent_is_spent() {
    let spent = bent(|s| {
        s.intercepted_tool_names = one_call();
        s.protocol_recovery_spent = true;
    });
    assert_eq!(
        turn(Policy::AGENT, 6.0).judge(spent),
        Judgement::Deliver(Reason::Intercepted)
    );
}

#[test]
fn what_is_suppressed_of_an_accepted_attempt_is_told() {
    let debris = bent(|s| {
        s.native_tool_calls = one_call();
        s.orphan_residue = true;
    });
    let expected = Judgement::Accept {
        finish: Finish::ToolCalls,
        suppress_text: true,
    };
    assert_eq!(turn(Policy::AGENT, 3.0).judge(debris), expected);
}

/// An attempt that the strict policy rejects for `reason`, as the lenient one does where it knows the
/// reason.
fn rejected_for(reason: Reason) -> Snapshot<'static> {
    bent(|s| match reason {
        Reason::Empty => s.visible_text = "".into(),
        Reason::Bare => s.control_kind = Some(ControlKind::Bare),
        Reason::InvalidControl => s.control_kind = Some(ControlKind::InvalidControl),
        Reason::RequiredTool => s.requires_tool_call = true,
        Reason::ToolError => s.tool_errors = unknown_tool(),
        Reason::ProseWithTools => s.tool_calls = one_call(),
        Reason::Intercepted => s.intercepted_tool_names = one_call(),
        Reason::MalformedProtocol => s.orphan_residue = true,
        Reason::ThoughtToolCall => s.think_evidence = true,
        Reason::MissingTool => s.visible_text = "Let me check that.".into(),
    })
}
