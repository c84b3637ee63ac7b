//! What native bodies say of tools.

use redrive::{
    gate::{Choice, Schema, Tools},
    proto::Protocol,
};

const CHAT: Protocol = Protocol::OpenaiChat;
const RESPONSES: Protocol = Protocol::OpenaiResponses;
const MESSAGES: Protocol = Protocol::AnthropicMessages;

/// The tool `read`, whose `path` is required, and `list`.
fn read_and_list(choice: Choice) -> Tools {
    let read = Schema::read(br#"{"required":["path"]}"#);
    Tools {
        names: Some(vec!["read".into(), "list".into()]),
        schemas: [("read".to_owned(), read)].into(),
        choice,
    }
}

#[test]
fn each_protocol_says_it_in_its_own_way() {
    let named = || Choice::Named("read".into());
    for (protocol, tools, choices) in [
        (
            CHAT,
            r#"[{"type":"function","function":{"name":"read","parameters":{"required":["path"]}}},
                {"type":"function","function":{"name":"list"}}]"#,
            [
                (r#""auto""#, Choice::Free),
                (r#""none""#, Choice::Forbidden),
                (r#""required""#, Choice::Required),
                (r#"{"type":"function","function":{"name":"read"}}"#, named()),
            ],
        ),
        (
            RESPONSES,
            r#"[{"type":"function","name":"read","parameters":{"required":["path"]}},
                {"type":"function","name":"list"}]"#,
            [
                (r#""auto""#, Choice::Free),
                (r#""none""#, Choice::Forbidden),
                (r#""required""#, Choice::Required),
                (r#"{"type":"function","name":"read"}"#, named()),
            ],
        ),
        (
            MESSAGES,
            r#"[{"name":"read","input_schema":{"required":["path"]}},
                {"type":"custom_20260101","name":"list"}]"#,
            [
                (r#"{"type":"auto"}"#, Choice::Free),
                (r#"{"type":"none"}"#, Choice::Forbidden),
                (r#"{"type":"any"}"#, Choice::Required),
                (r#"{"type":"tool","name":"read"}"#, named()),
            ],
        ),
    ] {
        for (choice, expected) in choices {
            let body = format!(r#"{{"x":[1],"tools":{tools},"tool_choice":{choice}}}"#);
            let tools = Tools::of_native(protocol, body.as_bytes());
            assert_eq!(tools, read_and_list(expected), "{body}");
        }
    }
}

#[test]
fn a_body_without_tools_offers_none() {
    let none = Tools {
        names: Some(Vec::new()),
        ..Tools::default()
    };
    for protocol in [CHAT, RESPONSES, MESSAGES] {
        for body in [r#"{"messages":[]}"#, r#"{"tools":[]}"#, r#"{"tools":null}"#] {
            assert_eq!(Tools::of_native(protocol, body.as_bytes()), none);
        }
    }
}

#[test]
fn what_is_not_certain_is_not_known() {
    for (protocol, body) in [
        (CHAT, r#"{"functions":[{"name":"read"}]}"#),
        (
            CHAT,
            r#"{"tools":[{"type":"custom","custom":{"name":"run"}}]}"#,
        ),
        (CHAT, r#"{"tools":[{"type":"function","function":{}}]}"#),
        (
            CHAT,
            r#"{"tools":[{"type":"function","function":{"name":7}}]}"#,
        ),
        (CHAT, r#"{"tools":[{"type":"function","name":"read"}]}"#),
        (CHAT, r#"{"tools":{}}"#),
        (CHAT, "no JSON"),
        (RESPONSES, r#"{"tools":[{"type":"web_search"}]}"#),
        (RESPONSES, r#"{"prompt":{"id":"p"}}"#),
        (MESSAGES, r#"{"tools":[{"type":"toolset"}]}"#),
        (
            MESSAGES,
            r#"{"tools":[],"tool_choice":{"type":"some"},"functions":1}"#,
        ),
        (Protocol::Gemini, r#"{"tools":[]}"#),
    ] {
        let tools = Tools::of_native(protocol, body.as_bytes());
        assert_eq!(tools, Tools::default(), "{body}");
    }
}
