//! What holds for any attempt under any policy.

use proptest::{collection::vec, option, prelude::*, sample::select};
use redrive::{
    gate::{
        Attempts, Choice, ControlKind, Decision, Fault, Finish, Judgement, Policy, Reason,
        Snapshot, ToolError, Tools, Turn, decide, hint,
    },
    proto::FinishReason,
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_attempt_is_accepted_with_a_finish_or_retried_with_a_reason(
        snapshot in snapshot(),
        policy in policy(),
    ) {
        match decide(&snapshot, &policy) {
            Decision::Accept { finish: Finish::ToolCalls, .. } => prop_assert!(
                snapshot.calls_delivered
                    || !snapshot.native_tool_calls.is_empty()
                    || !snapshot.tool_calls.is_empty(),
                "calls are accepted where there are some",
            ),
            Decision::Accept { finish: Finish::Stop, suppress_text } => {
                prop_assert!(!suppress_text, "an answer is its text");
                prop_assert!(!snapshot.calls_delivered);
                prop_assert!(snapshot.native_tool_calls.is_empty());
                prop_assert!(snapshot.tool_calls.is_empty() || is_terminal(snapshot.finish_reason));
            }
            Decision::Retry { reason } => {
                prop_assert!(Reason::ALL.contains(&reason));
                prop_assert!(!snapshot.calls_delivered, "what was delivered is not taken back");
                prop_assert!(snapshot.native_tool_calls.is_empty());
            }
        }
    }

    #[test]
    fn a_reason_has_its_evidence(snapshot in snapshot(), policy in policy()) {
        let Decision::Retry { reason } = decide(&snapshot, &policy) else {
            return Ok(());
        };
        let s = &snapshot;
        let blank = s.visible_text.trim().is_empty();
        let evidence = match reason {
            Reason::Empty => blank || s.control_kind == Some(ControlKind::Empty),
            Reason::Bare => {
                !policy.accept_bare_final && matches!(s.control_kind, None | Some(ControlKind::Bare))
            }
            Reason::InvalidControl => s.control_kind == Some(ControlKind::InvalidControl),
            Reason::RequiredTool => s.has_tools && s.requires_tool_call && s.tool_calls.is_empty(),
            Reason::ToolError => !s.tool_errors.is_empty() || !s.text_tool_errors.is_empty(),
            Reason::ProseWithTools => !policy.prose_with_tools && !s.tool_calls.is_empty(),
            Reason::Intercepted => s.has_tools && !s.intercepted_tool_names.is_empty(),
            Reason::MalformedProtocol => s.has_tools && s.orphan_residue && !s.protocol_recovery_spent,
            Reason::ThoughtToolCall => s.has_tools && s.think_evidence,
            Reason::MissingTool => s.has_tools && s.control_kind.is_none() && !blank,
        };
        prop_assert!(evidence, "{reason:?}");
    }

    #[test]
    fn what_the_provider_cut_off_is_only_retried_for_calls(
        snapshot in snapshot(),
        policy in policy(),
    ) {
        if is_terminal(snapshot.finish_reason)
            && let Decision::Retry { reason } = decide(&snapshot, &policy)
        {
            prop_assert!(matches!(reason, Reason::ToolError | Reason::RequiredTool));
            let demanded = reason == Reason::RequiredTool;
            prop_assert!(demanded || !snapshot.text_tool_errors.is_empty());
            prop_assert!(!demanded || snapshot.finish_reason == FinishReason::Length);
        }
    }

    #[test]
    fn without_tools_no_call_is_missed(mut snapshot in snapshot(), policy in policy()) {
        snapshot.has_tools = false;
        if let Decision::Retry { reason } = decide(&snapshot, &policy) {
            prop_assert!(!reason.is_protocol_recovery());
            prop_assert!(!matches!(reason, Reason::RequiredTool | Reason::MissingTool));
        }
    }

    #[test]
    fn text_is_suppressed_only_with_a_cause(snapshot in snapshot(), policy in policy()) {
        if let Decision::Accept { suppress_text: true, .. } = decide(&snapshot, &policy) {
            let prose = snapshot.text_channel_cut && !policy.prose_with_tools;
            let cut_errors = snapshot.text_channel_cut && !snapshot.tool_errors.is_empty();
            let cause = snapshot.orphan_residue || !snapshot.text_tool_errors.is_empty();
            prop_assert!(cause || prose || cut_errors);
            prop_assert!(!snapshot.calls_delivered);
        }
    }

    #[test]
    fn a_spent_recovery_takes_one_reason_away_and_nothing_else(
        mut snapshot in snapshot(),
        policy in policy(),
    ) {
        snapshot.protocol_recovery_spent = false;
        let before = decide(&snapshot, &policy);
        snapshot.protocol_recovery_spent = true;
        let after = decide(&snapshot, &policy);
        let malformed = Decision::Retry { reason: Reason::MalformedProtocol };
        prop_assert!(after != malformed);
        prop_assert!(before == after || before == malformed);
    }

    #[test]
    fn a_turn_ends_within_its_attempts_and_recovers_once(
        snapshots in vec(snapshot(), 8),
        policy in policy(),
        attempts in 1..=6_u32,
    ) {
        let mut turn = Turn::new(policy, Attempts::resolve(Some(attempts.into()), 3.0));
        let mut recovered = 0;
        for mut snapshot in snapshots {
            snapshot.protocol_recovery_spent = false;
            let decision = decide(&snapshot, &policy);
            let accepted = matches!(decision, Decision::Accept { .. });
            match turn.judge(snapshot) {
                Judgement::Retry(reason) => {
                    prop_assert!(turn.judged() < attempts);
                    recovered += u32::from(reason.is_protocol_recovery());
                    prop_assert!(recovered <= 1, "one recovery in a generation");
                    prop_assert!(!accepted);
                }
                Judgement::Accept { .. } => return Ok(()),
                Judgement::Deliver(_) | Judgement::Exhausted(_) => {
                    prop_assert!(!accepted, "what is accepted is never exhausted");
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "eight attempts were judged");
    }

    #[test]
    fn a_hint_is_a_text_of_bounded_size_that_does_not_change(
        snapshot in snapshot(),
        names in option::of(vec("[a-z]{1,9}", 0..4)),
        reason in select(Reason::ALL.to_vec()),
    ) {
        let tools = Tools { names, choice: Choice::Required, ..Tools::default() };
        let text = hint(reason, &snapshot, &tools);
        prop_assert!(!text.trim().is_empty());
        prop_assert!(text.len() < 16 << 10);
        prop_assert_eq!(hint(reason, &snapshot, &tools), text);
    }
}

fn is_terminal(reason: FinishReason) -> bool {
    use FinishReason::*;
    matches!(reason, Length | ContentFilter | Refusal | Pause)
}

fn policy() -> impl Strategy<Value = Policy> {
    any::<[bool; 4]>().prop_map(|[prose, bare, before, veto]| Policy {
        prose_with_tools: prose,
        accept_bare_final: bare,
        tool_errors_before_required: before,
        tool_errors_veto_with_calls: veto,
    })
}

/// Any attempt whatever: parts that never come together are tried as well.
fn snapshot() -> impl Strategy<Value = Snapshot<'static>> {
    (
        finish_reason(),
        text(),
        option::of(control_kind()),
        (calls(), errors(), errors(), calls(), calls()),
        any::<[bool; 7]>(),
    )
        .prop_map(|(finish_reason, text, control_kind, found, flags)| {
            let (tool_calls, tool_errors, text_tool_errors, native_tool_calls, intercepted) = found;
            let [think, delivered, cut, residue, has_tools, requires, spent] = flags;
            Snapshot {
                finish_reason,
                visible_text: text.into(),
                control_kind,
                tool_calls,
                tool_errors,
                text_tool_errors,
                native_tool_calls,
                intercepted_tool_names: intercepted,
                think_evidence: think,
                calls_delivered: delivered,
                text_channel_cut: cut,
                orphan_residue: residue,
                has_tools,
                requires_tool_call: requires,
                protocol_recovery_spent: spent,
            }
        })
}

fn finish_reason() -> impl Strategy<Value = FinishReason> {
    use FinishReason::*;
    select(vec![
        Unspecified,
        Stop,
        Length,
        ToolCalls,
        ContentFilter,
        Refusal,
        Pause,
        Other,
    ])
}

fn control_kind() -> impl Strategy<Value = ControlKind> {
    use ControlKind::*;
    select(vec![Final, Blocked, Empty, InvalidControl, Bare])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" \n\t".to_owned()),
        Just("Let me run it.".to_owned()),
        Just("我将运行".to_owned()),
        name(),
    ]
}

fn name() -> impl Strategy<Value = String> {
    let names = [
        "",
        "Bash",
        "read_file",
        "a b",
        "\n",
        "名",
        "`,\u{1b}[2J",
        "I'll",
    ];
    select(names.map(str::to_owned).to_vec())
}

/// Mostly none, so that the later rules are reached.
fn calls() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![4 => Just(Vec::new()), 1 => vec(name(), 1..3)]
}

fn errors() -> impl Strategy<Value = Vec<ToolError>> {
    use Fault::*;
    let fault = select(vec![UnknownTool, InvalidArguments, SchemaMismatch, Unnamed]);
    let error = (name(), fault).prop_map(|(name, fault)| crate::error(&name, fault));
    prop_oneof![4 => Just(Vec::new()), 1 => vec(error, 1..3)]
}
