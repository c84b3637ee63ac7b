//! The presets, and each field of a policy by itself.

use redrive::{
    gate::{ControlKind, Policy, Preset, Reason, decide},
    proto::FinishReason,
};

use crate::{attempt, bent, calls, one_call, retry, stop, unknown_tool};

#[test]
fn agent_is_the_strict_column_and_lenient_the_other() {
    let strict = Policy {
        prose_with_tools: false,
        accept_bare_final: false,
        tool_errors_before_required: true,
        tool_errors_veto_with_calls: true,
    };
    let lenient = Policy {
        prose_with_tools: true,
        accept_bare_final: true,
        tool_errors_before_required: false,
        tool_errors_veto_with_calls: false,
    };
    assert_eq!(Preset::Agent.policy(), strict);
    assert_eq!(Preset::Lenient.policy(), lenient);
}

#[test]
fn presets_have_the_names_of_the_contract_and_off_is_none() {
    assert_eq!(Preset::named("agent"), Some(Preset::Agent));
    assert_eq!(Preset::named("lenient"), Some(Preset::Lenient));
    for name in ["off", "", "Agent"] {
        assert_eq!(Preset::named(name), None, "{name}");
    }
}

#[test]
fn reasons_have_the_names_of_the_contract() {
    assert_eq!(
        Reason::ALL.map(Reason::as_str),
        [
            "empty",
            "bare",
            "invalid_control",
            "required_tool",
            "tool_error",
            "prose_with_tools",
            "intercepted",
            "malformed_protocol",
            "thought_tool_call",
            "missing_tool",
        ]
    );
}

#[test]
fn prose_beside_text_calls_is_decided_by_its_own_field() {
    let policy = |prose_with_tools| Policy {
        prose_with_tools,
        ..Policy::AGENT
    };
    let prose = bent(|s| s.tool_calls = one_call());
    assert_eq!(decide(&prose, &policy(true)), calls());
    assert_eq!(
        decide(&prose, &policy(false)),
        retry(Reason::ProseWithTools)
    );
}

#[test]
fn calls_without_prose_need_a_wrapper_that_says_so() {
    let silent = |control_kind| {
        bent(|s| {
            s.tool_calls = one_call();
            s.visible_text = " \n".into();
            s.control_kind = control_kind;
        })
    };
    let empty = silent(Some(ControlKind::Empty));
    assert_eq!(decide(&empty, &Policy::AGENT), calls());
    let rejected = retry(Reason::ProseWithTools);
    assert_eq!(decide(&silent(None), &Policy::AGENT), rejected);
    let wrapped = silent(Some(ControlKind::Final));
    assert_eq!(decide(&wrapped, &Policy::AGENT), rejected);
    let prose = bent(|s| {
        s.tool_calls = one_call();
        s.control_kind = Some(ControlKind::Empty);
    });
    assert_eq!(decide(&prose, &Policy::AGENT), rejected);
}

#[test]
fn a_cut_text_without_prose_has_nothing_to_suppress() {
    let blank = bent(|s| {
        s.text_channel_cut = true;
        s.tool_calls = one_call();
        s.visible_text = " \n".into();
    });
    assert_eq!(decide(&blank, &Policy::AGENT), calls());
}

#[test]
fn what_the_provider_explained_needs_no_text_and_anything_else_does() {
    use FinishReason::*;
    for (finish_reason, explained) in [
        (Length, true),
        (ContentFilter, true),
        (Refusal, true),
        (Pause, true),
        (Stop, false),
        (ToolCalls, false),
        (Other, false),
        (Unspecified, false),
    ] {
        let blank = bent(|s| {
            s.finish_reason = finish_reason;
            s.visible_text = "".into();
        });
        let expected = match explained {
            true => stop(),
            false => retry(Reason::Empty),
        };
        for policy in [Policy::AGENT, Policy::LENIENT] {
            assert_eq!(decide(&blank, &policy), expected, "{finish_reason:?}");
        }
    }
}

#[test]
fn a_bare_answer_is_decided_by_its_own_field() {
    let policy = |accept_bare_final| Policy {
        accept_bare_final,
        ..Policy::AGENT
    };
    for control_kind in [None, Some(ControlKind::Bare)] {
        let bare = bent(|s| s.control_kind = control_kind);
        assert_eq!(decide(&bare, &policy(true)), stop());
        assert_eq!(decide(&bare, &policy(false)), retry(Reason::Bare));
    }
    let blank_but_bare = bent(|s| {
        s.control_kind = Some(ControlKind::Bare);
        s.visible_text = "".into();
    });
    assert_eq!(decide(&blank_but_bare, &policy(true)), stop());
}

#[test]
fn an_error_or_a_demand_comes_first_by_its_own_field() {
    let policy = |tool_errors_before_required| Policy {
        tool_errors_before_required,
        ..Policy::AGENT
    };
    let both = bent(|s| {
        s.requires_tool_call = true;
        s.tool_errors = unknown_tool();
    });
    assert_eq!(decide(&both, &policy(true)), retry(Reason::ToolError));
    assert_eq!(decide(&both, &policy(false)), retry(Reason::RequiredTool));
}

#[test]
fn the_veto_over_a_good_call_has_its_own_field() {
    let policy = |tool_errors_veto_with_calls| Policy {
        tool_errors_veto_with_calls,
        ..Policy::LENIENT
    };
    let beside = bent(|s| {
        s.tool_calls = one_call();
        s.tool_errors = unknown_tool();
    });
    assert_eq!(decide(&beside, &policy(true)), retry(Reason::ToolError));
    assert_eq!(decide(&beside, &policy(false)), calls());
}

#[test]
fn a_snapshot_that_says_nothing_is_of_a_request_with_tools() {
    assert!(attempt().has_tools);
    assert!(!attempt().requires_tool_call);
}
