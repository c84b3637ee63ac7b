//! What of a tool's schema is looked at.

use proptest::prelude::*;
use redrive::{
    gate::{Choice, Fault, Piece, Schema, Snapshot, Tools},
    proto::{Conversation, FinishReason, Tool},
};

use crate::{error, names, one_call};

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"path": {"type": "string"}, "range": {"required": ["from"]}},
    "required": ["path", "mode"]
}"#;

fn validate(schema: &str, arguments: &str) -> Result<(), Vec<String>> {
    Schema::read(schema.as_bytes()).validate(arguments)
}

#[test]
fn required_members_must_be_there() {
    let missing = |names: &[&str]| -> Result<(), Vec<String>> {
        Err(names
            .iter()
            .map(|name| format!("`{name}` is missing"))
            .collect())
    };
    assert_eq!(
        validate(SCHEMA, r#"{"path":"a","mode":null,"x":1}"#),
        Ok(())
    );
    assert_eq!(validate(SCHEMA, r#"{"path":"a"}"#), missing(&["mode"]));
    assert_eq!(validate(SCHEMA, "{}"), missing(&["path", "mode"]));
    assert_eq!(validate(SCHEMA, ""), missing(&["path", "mode"]));
    assert_eq!(
        validate(SCHEMA, r#"{"a":{"path":1,"mode":1}}"#),
        missing(&["path", "mode"])
    );
}

#[test]
fn arguments_are_one_json_object_whatever_the_schema() {
    for arguments in ["[]", "1", "{", "{} {}", "nothing"] {
        let expected = Err(vec!["are not one JSON object".to_owned()]);
        assert_eq!(validate("{}", arguments), expected, "{arguments}");
    }
    assert_eq!(validate("{}", ""), Ok(()));
    assert_eq!(validate("{}", r#" {"a":1} "#), Ok(()));
}

#[test]
fn a_schema_that_says_nothing_of_members_asks_for_nothing() {
    for schema in [
        "",
        "not JSON",
        "[]",
        "true",
        "{}",
        r#"{"required":true}"#,
        r#"{"required":null}"#,
        r#"{"required":[7]}"#,
        r##"{"$ref":"#","allOf":[{"required":["a"]}]}"##,
    ] {
        assert_eq!(validate(schema, "{}"), Ok(()), "{schema}");
    }
}

#[test]
fn what_is_told_is_bounded() {
    let required: Vec<String> = (0..1_000).map(|n| format!("m{n}")).collect();
    let schema = serde_json::json!({ "required": required }).to_string();
    assert_eq!(validate(&schema, "{}").unwrap_err().len(), 16);
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let _ = validate(SCHEMA, &deep);
    let _ = validate(&deep, "{}");
}

#[test]
fn a_call_that_lacks_a_required_member_cannot_be_handed_out() {
    let tool = |name: &str, schema: &str| Tool {
        name: name.to_owned(),
        parameters_json: schema.as_bytes().to_vec(),
        ..Tool::default()
    };
    let tools = Tools::of(&Conversation {
        tools: vec![tool("Read", SCHEMA), tool("Bash", "")],
        ..Conversation::default()
    });
    assert_eq!(tools.names, Some(names(&["Read", "Bash"])));
    assert_eq!(tools.choice, Choice::Free);
    let call = |name, arguments| Piece::Call { name, arguments };
    let read = [
        call("Read", r#"{"path":"a"}"#),
        call("Read", ""),
        call("Read", "{"),
        call("Bash", ""),
    ];
    let snapshot = Snapshot::of(read, FinishReason::ToolCalls, &tools);
    assert_eq!(snapshot.tool_calls, one_call());
    let expected = [
        error("Read", Fault::SchemaMismatch),
        error("Read", Fault::SchemaMismatch),
        error("Read", Fault::InvalidArguments),
    ];
    assert_eq!(snapshot.tool_errors, expected);
}

proptest! {
    #[test]
    fn any_schema_and_any_arguments_have_an_answer(
        schema in "\\PC{0,60}",
        arguments in "[{}\\[\\]\":, a-c0-9]{0,40}",
    ) {
        let found = validate(&schema, &arguments);
        let is_object = arguments.is_empty()
            || serde_json::from_str::<serde_json::Map<_, _>>(&arguments).is_ok();
        prop_assert!(is_object || found.is_err());
    }
}
