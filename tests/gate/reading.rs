//! From an attempt's output to its snapshot.

use std::borrow::Cow;

use redrive::{
    gate::{Choice, Fault, Piece, Policy, Reason, Snapshot, Tools, decide},
    proto::{Conversation, FinishReason, Tool, ToolChoice, tool_choice::Mode},
};

use crate::{error, names, offered, one_call, retry, stop};

fn read<'a>(pieces: &[Piece<'a>]) -> Snapshot<'a> {
    Snapshot::of(pieces.iter().copied(), FinishReason::Stop, &offered())
}

fn call<'a>(name: &'a str, arguments: &'a str) -> Piece<'a> {
    Piece::Call { name, arguments }
}

#[test]
fn an_attempt_without_output_is_a_snapshot_that_says_nothing() {
    assert_eq!(read(&[]), Snapshot::default());
    assert_eq!(read(&[Piece::Reasoning]), Snapshot::default());
}

#[test]
fn one_text_is_borrowed_and_several_are_joined_in_order() {
    let one = read(&[Piece::Text("answer")]);
    assert!(matches!(one.visible_text, Cow::Borrowed("answer")));
    let two = read(&[Piece::Text("an"), call("Bash", "{}"), Piece::Text("swer")]);
    assert_eq!(two.visible_text, "answer");
}

#[test]
fn a_block_of_the_provider_is_not_nothing() {
    let picture = read(&[Piece::Native]);
    assert_eq!(decide(&picture, &Policy::LENIENT), stop());
}

#[test]
fn what_the_provider_did_itself_was_not_only_announced() {
    let announced = [Piece::Text("I'll search for that."), Piece::Native];
    assert_eq!(decide(&read(&announced), &Policy::LENIENT), stop());
    let [text, native] = announced;
    let reported = read(&[text, native, Piece::Text("It is 42.")]);
    assert_eq!(reported.visible_text, "\u{fffc}It is 42.");
    assert_eq!(
        decide(&read(&[text]), &Policy::LENIENT),
        retry(Reason::MissingTool)
    );
}

#[test]
fn what_the_provider_did_itself_meets_the_demand_for_any_call() {
    let demanding = |choice| Tools {
        choice,
        ..offered()
    };
    let native = |choice| Snapshot::of([Piece::Native], FinishReason::Stop, &demanding(choice));
    assert!(!native(Choice::Required).requires_tool_call);
    assert!(native(Choice::Named("Bash".into())).requires_tool_call);
    let broken = [Piece::Native, call("Bsh", "{}")];
    let snapshot = Snapshot::of(broken, FinishReason::Stop, &demanding(Choice::Required));
    assert_eq!(
        decide(&snapshot, &Policy::LENIENT),
        retry(Reason::ToolError)
    );
}

#[test]
fn a_refusal_is_one_whatever_the_provider_calls_its_end() {
    let snapshot = read(&[Piece::Refusal("I cannot.")]);
    assert_eq!(snapshot.finish_reason, FinishReason::Refusal);
    assert_eq!(snapshot.visible_text, "I cannot.");
    let cut = Snapshot::of([Piece::Refusal("I can")], FinishReason::Length, &offered());
    assert_eq!(cut.finish_reason, FinishReason::Length);
}

#[test]
fn where_no_tools_are_offered_a_call_is_handed_out_and_nothing_is_missed() {
    let none = Tools {
        names: Some(Vec::new()),
        ..Tools::default()
    };
    let snapshot = Snapshot::of([call("Bash", "{}")], FinishReason::ToolCalls, &none);
    assert_eq!(snapshot.tool_calls, one_call());
    assert!(!snapshot.has_tools);
}

#[test]
fn a_whole_call_of_a_tool_that_is_offered_can_be_handed_out() {
    for arguments in ["", "{}", r#" {"a":[1]} "#] {
        let snapshot = read(&[call("Bash", arguments)]);
        let expected = Snapshot {
            tool_calls: one_call(),
            native_tool_calls: one_call(),
            ..Snapshot::default()
        };
        assert_eq!(snapshot, expected, "{arguments}");
    }
}

#[test]
fn what_is_wrong_with_a_call_is_told_by_its_first_fault() {
    use Fault::*;
    for (name, arguments, fault) in [
        ("", "{", Unnamed),
        ("Bsh", "{", UnknownTool),
        ("bash", "{}", UnknownTool),
        ("Bash", "{", InvalidArguments),
        ("Bash", r#"{"a":1"#, InvalidArguments),
        ("Bash", "{} {}", InvalidArguments),
        ("Bash", "[]", InvalidArguments),
        ("Bash", "null", InvalidArguments),
        ("Bash", "\"{}\"", InvalidArguments),
    ] {
        let expected = Snapshot {
            tool_errors: vec![error(name, fault)],
            ..Snapshot::default()
        };
        assert_eq!(
            read(&[call(name, arguments)]),
            expected,
            "{name} {arguments}"
        );
    }
}

#[test]
fn good_and_broken_calls_stand_apart() {
    let both = read(&[call("Read", "{}"), call("Bsh", "{}"), call("Bash", "")]);
    assert_eq!(both.tool_calls, names(&["Read", "Bash"]));
    assert_eq!(both.native_tool_calls, both.tool_calls);
    assert_eq!(both.tool_errors, vec![error("Bsh", Fault::UnknownTool)]);
    assert!(both.text_tool_errors.is_empty());
}

#[test]
fn empty_arguments_at_a_cut_are_no_proof_that_there_were_none() {
    let cut = |pieces: &[Piece<'static>]| {
        Snapshot::of(pieces.to_vec(), FinishReason::Length, &offered()).tool_calls
    };
    assert_eq!(cut(&[call("Bash", "")]), names(&[]));
    for more in [Piece::Text("a"), Piece::Reasoning, Piece::Native] {
        assert_eq!(cut(&[call("Bash", ""), more]), one_call());
    }
    assert_eq!(cut(&[call("Bash", "{}")]), one_call());
}

#[test]
fn without_known_names_every_name_is_one() {
    let unknown = Tools::default();
    let snapshot = Snapshot::of([call("Bsh", "{}")], FinishReason::Stop, &unknown);
    assert_eq!(snapshot.tool_calls, names(&["Bsh"]));
    assert!(snapshot.has_tools);
}

#[test]
fn a_conversation_says_which_tools_there_are_and_whether_one_is_demanded() {
    let conversation = |mode, name: &str| Conversation {
        tools: vec![Tool {
            name: "Bash".to_owned(),
            ..Tool::default()
        }],
        tool_choice: Some(ToolChoice {
            mode: mode as i32,
            name: name.to_owned(),
        }),
        ..Conversation::default()
    };
    for (mode, name, choice, has_tools, requires) in [
        (Mode::Unspecified, "", Choice::Free, true, false),
        (Mode::Auto, "", Choice::Free, true, false),
        (Mode::None, "", Choice::Forbidden, false, false),
        (Mode::Required, "", Choice::Required, true, true),
        (Mode::Tool, "Bash", Choice::Named("Bash".into()), true, true),
    ] {
        let tools = Tools::of(&conversation(mode, name));
        assert_eq!(tools.names, Some(one_call()), "{mode:?}");
        assert_eq!(tools.choice, choice, "{mode:?}");
        let snapshot = Snapshot::of([], FinishReason::Stop, &tools);
        let found = (snapshot.has_tools, snapshot.requires_tool_call);
        assert_eq!(found, (has_tools, requires), "{mode:?}");
    }
    let none = Tools::of(&Conversation::default());
    assert_eq!(none.names, Some(Vec::new()));
    assert!(!Snapshot::of([], FinishReason::Stop, &none).has_tools);
}

#[test]
fn what_the_provider_options_say_instead_is_not_known() {
    let conversation = Conversation {
        provider_options_json: br#"{"tools":[],"tool_choice":"auto"}"#.to_vec(),
        tool_choice: Some(ToolChoice {
            mode: Mode::Required as i32,
            name: String::new(),
        }),
        ..Conversation::default()
    };
    assert_eq!(Tools::of(&conversation), Tools::default());
    for options in [r#"{"functions":[]}"#, r#"{"prompt":{"id":"p"}}"#] {
        let conversation = Conversation {
            provider_options_json: options.into(),
            ..Conversation::default()
        };
        assert_eq!(Tools::of(&conversation), Tools::default(), "{options}");
    }
    let other = Conversation {
        provider_options_json: br#"{"top_k":1}"#.to_vec(),
        ..conversation
    };
    let expected = Tools {
        names: Some(Vec::new()),
        choice: Choice::Required,
        ..Tools::default()
    };
    assert_eq!(Tools::of(&other), expected);
}
