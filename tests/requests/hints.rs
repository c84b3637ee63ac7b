//! A hint in a copy of the request (T38 of the gate's truth table): where it stands, and that all else
//! stays byte for byte.

use bytes::Bytes;
use redrive::{
    proto::{Conversation, Message, Part, Role, part},
    protocol::{
        Dialect, Protocol,
        adapter::{ADAPTERS, RequestInput, Source, adapter},
    },
};

const HINT: &str = "Call a \"tool\".\nNow.";

/// The hint as it stands in JSON.
const JSON: &str = r#"Call a \"tool\".\nNow."#;

fn hinted(protocol: Protocol, body: &str) -> Option<String> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let before = body.clone();
    let hinted = adapter(protocol).unwrap().hinted(&body, HINT);
    assert_eq!(body, before, "the original is left alone");
    let hinted = hinted.map(|hinted| String::from_utf8(hinted.to_vec()).unwrap());
    if let Some(hinted) = &hinted {
        let valid = serde_json::from_str::<serde_json::Value>(hinted);
        assert!(valid.is_ok(), "{hinted}");
    }
    hinted
}

#[track_caller]
fn assert_hinted(protocol: Protocol, body: &str, expected: &str) {
    let expected = expected.replace("HINT", JSON);
    assert_eq!(hinted(protocol, body), Some(expected));
}

#[test]
fn t38_a_text_is_lengthened_after_a_blank_line() {
    assert_hinted(
        Protocol::OpenaiChat,
        r#" {"n": 1.00, "messages" : [ {"role":"user","content":"a\u00e4\""} ] , "z":1e40} "#,
        r#" {"n": 1.00, "messages" : [ {"role":"user","content":"a\u00e4\"\n\nHINT"} ] , "z":1e40} "#,
    );
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"1","content":""}]}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"1","content":"\n\nHINT"}]}"#,
    );
}

#[test]
fn t38_anthropic_has_a_header_line_where_a_text_is_lengthened_and_only_there() {
    assert_hinted(
        Protocol::AnthropicMessages,
        r#"{"messages":[{"role":"user","content":"a"}]}"#,
        r##"{"messages":[{"role":"user","content":"a\n\n# On your last answer\nHINT"}]}"##,
    );
    assert_hinted(
        Protocol::AnthropicMessages,
        r#"{"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"HINT"},{"type":"image","source":{}}]}]}"#,
    );
}

#[test]
fn t38_the_first_text_part_is_lengthened() {
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user","content":[{"type":"image_url"},{"text":"a","type":"text"},{"type":"text","text":"b"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"image_url"},{"text":"a\n\nHINT","type":"text"},{"type":"text","text":"b"}]}]}"#,
    );
    assert_hinted(
        Protocol::OpenaiResponses,
        r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]}"#,
        r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"a\n\nHINT"}]}]}"#,
    );
}

#[test]
fn a_part_of_another_type_is_not_lengthened_whatever_it_holds() {
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user","content":[{"type":"file","text":"x"},{"type":"text","text":"a"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"file","text":"x"},{"type":"text","text":"a\n\nHINT"}]}]}"#,
    );
}

#[test]
fn t38_without_a_text_part_one_is_put_in_front() {
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user","content":[ {"type":"image_url"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"HINT"}, {"type":"image_url"}]}]}"#,
    );
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user","content":[ ]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"HINT"} ]}]}"#,
    );
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":null}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"HINT"},{"type":"text","text":null}]}]}"#,
    );
}

#[test]
fn results_of_tools_stay_in_front_of_a_text() {
    assert_hinted(
        Protocol::AnthropicMessages,
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"text","text":"HINT"}]}]}"#,
    );
}

#[test]
fn t38_without_messages_there_is_a_new_one_of_the_user() {
    let expected = r#"{"messages":[{"role":"user","content":"HINT"}]}"#;
    for body in [r#"{}"#, r#"{"messages":[]}"#, r#"{"messages":null}"#] {
        assert_hinted(Protocol::OpenaiChat, body, expected);
        assert_hinted(Protocol::AnthropicMessages, body, expected);
    }
    assert_hinted(
        Protocol::OpenaiResponses,
        r#"{"model":"m"}"#,
        r#"{"input":[{"role":"user","content":"HINT"}],"model":"m"}"#,
    );
}

#[test]
fn t38_any_other_content_is_replaced() {
    for content in ["null", "7", "{}"] {
        assert_hinted(
            Protocol::OpenaiChat,
            &format!(r#"{{"messages":[{{"role":"user","content":{content},"name":"n"}}]}}"#),
            r#"{"messages":[{"role":"user","content":"HINT","name":"n"}]}"#,
        );
    }
    assert_hinted(
        Protocol::OpenaiChat,
        r#"{"messages":[{"role":"user"}]}"#,
        r#"{"messages":[{"content":"HINT","role":"user"}]}"#,
    );
}

#[test]
fn what_the_model_said_itself_is_not_lengthened() {
    for protocol in [Protocol::OpenaiChat, Protocol::AnthropicMessages] {
        assert_hinted(
            protocol,
            r#"{"messages":[{"role":"assistant","content":"I"} ]}"#,
            r#"{"messages":[{"role":"assistant","content":"I"},{"role":"user","content":"HINT"} ]}"#,
        );
    }
}

#[test]
fn responses_take_a_text_as_the_whole_input_and_items_that_are_no_messages() {
    assert_hinted(
        Protocol::OpenaiResponses,
        r#"{"input":"a","model":"m"}"#,
        r#"{"input":"a\n\nHINT","model":"m"}"#,
    );
    assert_hinted(
        Protocol::OpenaiResponses,
        r#"{"input":[{"type":"function_call_output","call_id":"1","output":"x"}]}"#,
        r#"{"input":[{"type":"function_call_output","call_id":"1","output":"x"},{"role":"user","content":"HINT"}]}"#,
    );
}

#[test]
fn a_second_hint_takes_the_place_of_the_first() {
    let body = Bytes::from_static(br#"{"messages":[{"role":"user","content":"a"}]}"#);
    let chat = adapter(Protocol::OpenaiChat).unwrap();
    let first = chat.hinted(&body, "one").unwrap();
    let second = chat.hinted(&body, "two").unwrap();
    assert_eq!(
        first,
        &br#"{"messages":[{"role":"user","content":"a\n\none"}]}"#[..]
    );
    assert_eq!(
        second,
        &br#"{"messages":[{"role":"user","content":"a\n\ntwo"}]}"#[..]
    );
}

#[test]
fn a_body_that_is_not_the_protocol_has_no_place_for_a_hint() {
    for body in [
        "[]",
        r#"{"messages":7}"#,
        r#"{"messages":["a"]}"#,
        r#"{"messages":[],"messages":[]}"#,
        r#"{"messages":[{"role":"user","content":"a","content":"b"}]}"#,
        r#"{"messages":[{"role":"user","content":["a"]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"text":"a"}]}]}"#,
    ] {
        assert_eq!(hinted(Protocol::OpenaiChat, body), None, "{body}");
    }
}

/// Every protocol finds the place in what it writes itself.
#[test]
fn every_protocol_has_a_place_for_a_hint_in_its_own_requests() {
    let conversation = Conversation {
        messages: vec![Message {
            role: Role::User.into(),
            parts: vec![Part {
                part: Some(part::Part::Text("Hi.".to_owned())),
            }],
        }],
        ..Conversation::default()
    };
    for (protocol, name, adapter) in ADAPTERS {
        let request = adapter.request(RequestInput {
            source: Source::Conversation(&conversation),
            model: "m",
            dialect: Dialect::Openai,
            stored: false,
        });
        let body = String::from_utf8(request.unwrap().body.to_vec()).unwrap();
        let hinted = hinted(*protocol, &body).unwrap();
        assert!(hinted.contains(&format!("\\n{JSON}\"")), "{name}: {hinted}");
    }
}
