//! What a model is told: whole texts. T35 to T37 of the truth table.

use redrive::gate::{Choice, ControlKind, Fault, Reason, Snapshot, Tools, hint};

use crate::{attempt, bent, error, mismatch, offered, one_call};

const EMPTY: &str = "Your last answer had no visible text and no tool call. Go on with the task now: call \
    a tool at once if work remains, and answer only if the task is done. Do not repeat your reasoning.";
const BARE: &str =
    "Your last answer was plain text: it neither called a tool nor declared the task finished.";
const INVALID_CONTROL: &str = "The completion wrapper of your last answer was unbalanced or there \
    twice. Use exactly one pair: the opening mark, your answer, the closing mark.";
const REQUIRED: &str =
    "Your last answer did not call a tool, which this request demands. Call a tool now.";
const TOOL_ERROR: &str = "A tool call of your last answer was invalid, cut off, or of a tool that does \
    not exist. It was not run. Write the whole call again, and nothing beside it.";
const INTERCEPTED: &str = "The tool call of your last answer never reached the client and was not run. \
    Repeat it now, first of all, in the canonical format.";
const MALFORMED: &str = "The tool call of your last answer was malformed and was not run. Write it \
    again: the opening mark, the payload, the closing mark, and nothing else.";
const THOUGHT: &str = "The tool call of your last answer stood in your hidden reasoning and was never \
    run. Repeat it now as the first visible content of your answer.";
const MISSING: &str = "Your last answer announced an action and did not do it. Do it now: call the tool \
    at once. Do not announce it again, and claim no result that no tool has returned.";
const TAIL: &str = "The task is still the same: check its criteria again against the newest tool result. \
    If work remains, answer with valid tool calls only. Give a final answer only if you have verified \
    that the task is done; if you need something of the user, ask for it.";
const WRAPPER_TAIL: &str = "The task is still the same: check its criteria again against the newest tool \
    result. If work remains, answer with valid tool calls only. Use the final wrapper only if you have \
    verified that the task is done, and the blocked wrapper if you need something of the user.";

fn texts(tail: &str) -> [(Reason, String); 10] {
    let with_tail = |text: &str| format!("{text} {tail}");
    [
        (Reason::Empty, EMPTY.to_owned()),
        (Reason::Bare, with_tail(BARE)),
        (Reason::InvalidControl, with_tail(INVALID_CONTROL)),
        (Reason::RequiredTool, REQUIRED.to_owned()),
        (Reason::ToolError, with_tail(TOOL_ERROR)),
        (Reason::ProseWithTools, with_tail(TOOL_ERROR)),
        (Reason::Intercepted, with_tail(INTERCEPTED)),
        (Reason::MalformedProtocol, with_tail(MALFORMED)),
        (Reason::ThoughtToolCall, with_tail(THOUGHT)),
        (Reason::MissingTool, MISSING.to_owned()),
    ]
}

fn said(reason: Reason, bend: impl FnOnce(&mut Snapshot<'static>)) -> String {
    hint(reason, &bent(bend), &offered())
}

#[test]
fn t35_every_reason_has_its_text() {
    assert_eq!(texts(TAIL).map(|(reason, _)| reason), Reason::ALL);
    for (reason, text) in texts(TAIL) {
        assert_eq!(hint(reason, &attempt(), &offered()), text, "{reason:?}");
    }
}

#[test]
fn t35_a_model_with_a_wrapper_is_told_how_to_use_it() {
    for (reason, text) in texts(WRAPPER_TAIL) {
        let wrapped = |s: &mut Snapshot<'_>| s.control_kind = Some(ControlKind::Bare);
        assert_eq!(said(reason, wrapped), text, "{reason:?}");
    }
}

#[test]
fn a_demanded_tool_is_named() {
    let tools = Tools {
        choice: Choice::Named("Read".to_owned()),
        ..offered()
    };
    assert_eq!(
        hint(Reason::RequiredTool, &attempt(), &tools),
        "Your last answer did not call a tool, which this request demands. Call the tool `Read` now."
    );
}

#[test]
fn t36_a_missing_call_is_told_with_the_interception_that_it_hides() {
    for (reason, base) in [
        (Reason::RequiredTool, REQUIRED),
        (Reason::MissingTool, MISSING),
    ] {
        assert_eq!(
            said(reason, |s| s.intercepted_tool_names = one_call()),
            format!("{base}\n{INTERCEPTED} {TAIL}")
        );
    }
}

#[test]
fn t37_a_broken_or_missing_call_is_told_with_the_thought_that_it_hides() {
    let tool_error = format!("{TOOL_ERROR} {TAIL}");
    for (reason, base) in [
        (Reason::RequiredTool, REQUIRED),
        (Reason::ToolError, tool_error.as_str()),
    ] {
        assert_eq!(
            said(reason, |s| s.think_evidence = true),
            format!("{base}\n{THOUGHT} {TAIL}")
        );
    }
}

#[test]
fn a_demanded_call_may_hide_both() {
    let both = said(Reason::RequiredTool, |s| {
        s.intercepted_tool_names = one_call();
        s.think_evidence = true;
    });
    assert_eq!(
        both,
        format!("{REQUIRED}\n{INTERCEPTED} {TAIL}\n{THOUGHT} {TAIL}")
    );
}

#[test]
fn no_other_reason_has_these_appendices() {
    for (reason, text) in texts(TAIL) {
        if reason != Reason::RequiredTool && reason != Reason::MissingTool {
            let found = said(reason, |s| s.intercepted_tool_names = one_call());
            assert_eq!(found, text, "{reason:?}");
        }
        if reason != Reason::RequiredTool && reason != Reason::ToolError {
            let found = said(reason, |s| s.think_evidence = true);
            assert_eq!(found, text, "{reason:?}");
        }
    }
}

#[test]
fn unknown_tools_are_told_with_the_names_that_exist() {
    let found = said(Reason::ToolError, |s| {
        s.tool_errors = vec![
            error("Bsh", Fault::UnknownTool),
            error("Raed", Fault::UnknownTool),
            error("Bsh", Fault::UnknownTool),
            error("", Fault::Unnamed),
        ];
    });
    assert_eq!(
        found,
        format!(
            "{TOOL_ERROR} {TAIL}\nThere is no tool of this name: Bsh, Raed. \
             Use only these exact names: Bash, Read."
        )
    );
}

#[test]
fn wrong_arguments_are_told_with_the_name_of_the_tool() {
    let found = said(Reason::ToolError, |s| {
        s.tool_errors = vec![
            error("Read", Fault::SchemaMismatch),
            error("Bash", Fault::InvalidArguments),
            error("Bash", Fault::InvalidArguments),
        ];
    });
    assert_eq!(
        found,
        format!(
            "{TOOL_ERROR} {TAIL}\nThe arguments for Read, Bash were not one complete JSON object that \
             fits the tool's schema. Write the call again with one that does."
        )
    );
}

#[test]
fn members_that_the_schema_does_not_permit_are_told_with_their_tool() {
    let found = said(Reason::ToolError, |s| {
        s.tool_errors = vec![
            mismatch("Read", &["/path (type)", "/mode (required)"]),
            mismatch("Bash", &["/command (type)"]),
            mismatch("Read", &["/path (type)", "/x (enum)", "/y (enum)"]),
        ];
    });
    assert_eq!(
        found,
        format!(
            "{TOOL_ERROR} {TAIL}\nThe arguments for Read, Bash were not one complete JSON object that \
             fits the tool's schema. Write the call again with one that does.\n\
             Wrong by the schema of Read: /path (type), /mode (required), /x (enum).\n\
             Wrong by the schema of Bash: /command (type)."
        )
    );
}

#[test]
fn of_thousands_of_wrong_members_few_are_told_and_clipped() {
    let long = "x".repeat(1_000);
    let base = said(Reason::ToolError, |_| {}).len();
    let found = said(Reason::ToolError, |s| {
        s.tool_errors = (0..1_000)
            .map(|n| mismatch(&format!("{long}{n}"), &[&long, "b", "c", "d"]))
            .collect();
    });
    assert!(
        found.len() - base < 16 * 64 + 8 * (64 + 40) + 200,
        "{}",
        found.len()
    );
    assert!(found.contains(&format!(": {}, b, c.\n", "x".repeat(64))));
}

#[test]
fn both_kinds_of_broken_calls_and_a_thought_are_told_in_order() {
    let found = said(Reason::ToolError, |s| {
        s.tool_errors = vec![
            error("Read", Fault::SchemaMismatch),
            error("Bsh", Fault::UnknownTool),
        ];
        s.think_evidence = true;
    });
    assert_eq!(
        found,
        format!(
            "{TOOL_ERROR} {TAIL}\nThere is no tool of this name: Bsh. \
             Use only these exact names: Bash, Read.\nThe arguments for Read were not one complete JSON \
             object that fits the tool's schema. Write the call again with one that does.\n\
             {THOUGHT} {TAIL}"
        )
    );
}

#[test]
fn without_known_names_an_unknown_one_is_not_told() {
    for names in [None, Some(Vec::new())] {
        let tools = Tools {
            names,
            choice: Choice::Free,
            ..Tools::default()
        };
        let snapshot = bent(|s| s.tool_errors = vec![error("Bsh", Fault::UnknownTool)]);
        assert_eq!(
            hint(Reason::ToolError, &snapshot, &tools),
            format!("{TOOL_ERROR} {TAIL}")
        );
    }
}

#[test]
fn prose_beside_calls_names_nothing() {
    let found = said(Reason::ProseWithTools, |s| {
        s.tool_errors = vec![error("Bsh", Fault::UnknownTool)];
    });
    assert_eq!(found, format!("{TOOL_ERROR} {TAIL}"));
}

#[test]
fn what_a_model_invented_is_clipped_and_escaped() {
    let found = said(Reason::ToolError, |s| {
        let long = format!("a\n{}", "x".repeat(100_000));
        s.tool_errors = (0..1_000)
            .map(|n| error(&format!("t{n}"), Fault::UnknownTool))
            .collect();
        s.tool_errors.insert(0, error(&long, Fault::UnknownTool));
    });
    let first = format!("a\\n{}", "x".repeat(61));
    assert_eq!(
        found,
        format!(
            "{TOOL_ERROR} {TAIL}\nThere is no tool of this name: {first}, t0, t1, t2, t3, t4, t5, t6. \
             Use only these exact names: Bash, Read."
        )
    );
}

#[test]
fn a_request_with_thousands_of_tools_lists_as_many_as_fit() {
    let tools = Tools {
        names: Some((0..10_000).map(|n| format!("tool_{n:04}")).collect()),
        ..Tools::default()
    };
    let snapshot = bent(|s| s.tool_errors = vec![error("Bsh", Fault::UnknownTool)]);
    let found = hint(Reason::ToolError, &snapshot, &tools);
    assert!(found.len() < 10_000, "{}", found.len());
    // Nine bytes each, and two between them, in 8 KiB.
    assert!(
        found.ends_with(", tool_0743, tool_0744 and 9255 more."),
        "{found}"
    );
}

#[test]
fn a_hint_holds_nothing_of_the_text_of_an_attempt() {
    for reason in Reason::ALL {
        let found = said(reason, |s| s.visible_text = "a secret".into());
        assert!(!found.contains("secret"), "{reason:?}");
    }
}
