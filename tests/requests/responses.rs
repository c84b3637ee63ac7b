//! OpenAI Responses: one conversation for each theme, what has no form, and native bodies.
//!
//! `UPDATE_GOLDEN=1 cargo test --test requests` writes the golden files anew.

use std::{env, fs, path::PathBuf};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use proptest::prelude::*;
use redrive::{
    proto::{
        Conversation, Message, Part, Reasoning, ResponseFormat, Role, Sampling, Tool, ToolChoice,
        part::Part as Kind, tool_choice::Mode,
    },
    protocol::{
        Dialect, Protocol,
        adapter::{
            Adapter, AdapterRequest, RequestError, RequestErrorKind, RequestInput, Source, adapter,
        },
    },
};
use serde_json::{Value, json};

use super::parts::{call, conversation, data, message, question, reasoning, result, text, uri};

fn responses() -> &'static dyn Adapter {
    adapter(Protocol::OpenaiResponses).unwrap()
}

fn request(source: Source<'_>, stored: bool) -> Result<AdapterRequest, RequestError> {
    responses().request(RequestInput {
        source,
        model: "the-model",
        dialect: Dialect::Openai,
        stored,
    })
}

/// Compares what is sent with `tests/golden/openai_responses/{name}.json`, byte for byte.
fn golden(name: &str, conversation: &Conversation) {
    golden_of(name, conversation, false);
}

fn golden_of(name: &str, conversation: &Conversation, stored: bool) {
    let body = request(Source::Conversation(conversation), stored)
        .unwrap()
        .body;
    serde_json::from_slice::<Value>(&body).expect("what is sent is JSON");
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/openai_responses")
        .join(format!("{name}.json"));
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &body).unwrap();
    }
    let expected = fs::read(&file).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&body),
        String::from_utf8_lossy(&expected),
        "{}",
        file.display()
    );
}

#[track_caller]
fn refused(conversation: &Conversation, expected: &str) {
    let error = request(Source::Conversation(conversation), false).unwrap_err();
    assert_eq!(error.kind, RequestErrorKind::Invalid);
    assert_eq!(error.to_string(), expected);
}

fn signed(text: &str, signature: &str) -> Kind {
    Kind::Reasoning(Reasoning {
        text: text.to_owned(),
        signature: signature.into(),
        ..Reasoning::default()
    })
}

fn native(json: &str) -> Kind {
    Kind::NativeJson(json.into())
}

fn tool(name: &str, description: &str, parameters: &str, strict: bool) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters_json: parameters.into(),
        strict,
    }
}

#[test]
fn path_and_headers() {
    let question = question();
    let request = request(Source::Conversation(&question), false).unwrap();
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.path, "/responses");
    let expected = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("text/event-stream")),
    ]);
    assert_eq!(request.headers, expected);
}

#[test]
fn a_question_that_is_not_kept_and_one_that_is() {
    golden("question", &question());
    golden_of("question-stored", &question(), true);
}

#[test]
fn a_system_prompt_and_several_turns() {
    let turns = conversation([
        message(Role::User, [text("Hello"), text("you")]),
        message(Role::Assistant, [text("Hi"), text("there")]),
        message(Role::User, [text("")]),
        message(Role::Assistant, [text("Hello! How can I help?")]),
        message(
            Role::Assistant,
            [text("So?"), Kind::Refusal("No.".to_owned())],
        ),
        message(Role::User, [text("Go on")]),
    ]);
    let system = "Be brief.\nSay \"no\" with a \\ and a \u{1F30D}.".to_owned();
    golden("turns", &Conversation { system, ..turns });
}

#[test]
fn images_and_files_by_value_and_by_address() {
    golden(
        "media",
        &conversation([message(
            Role::User,
            [
                text("What differs?"),
                data("image/png", b"\x89PNG\r\n"),
                uri("image/jpeg", "https://example.com/a.jpg?x=1&y=\"2\""),
                data("application/pdf", b"%PDF-1.7"),
                uri("application/pdf", "https://example.com/a.pdf"),
                native(r#"{ "type": "input_file", "file_id": "file-1" }"#),
            ],
        )]),
    );
}

#[test]
fn calls_and_results_are_items_of_their_own() {
    golden(
        "tools",
        &Conversation {
            tools: vec![
                tool("weather", "The weather.", r#"{ "type": "object" }"#, true),
                tool("now", "", "", false),
            ],
            ..conversation([
                message(Role::User, [text("Weather?")]),
                message(
                    Role::Assistant,
                    [
                        text("Let me see."),
                        call("c1", "weather", "{\"a\": 1}"),
                        call("c2", "now", ""),
                    ],
                ),
                message(
                    Role::Tool,
                    [
                        result("c1", false, [text("sunny")]),
                        result(
                            "c2",
                            true,
                            [text("no"), native(r#"{"type":"input_text","text":"x"}"#)],
                        ),
                        result("c3", true, []),
                    ],
                ),
            ])
        },
    );
}

#[test]
fn reasoning_goes_back_as_it_came() {
    golden(
        "reasoning",
        &conversation([
            message(Role::User, [text("Think")]),
            message(
                Role::Assistant,
                [
                    reasoning("one"),
                    signed("two", r#"{"id":"rs_1","encrypted_content":"gAAA\u0041"}"#),
                    signed("", r#"{"id":"rs_2"}"#),
                    signed("hm", r#"{"id":"rs_3","content":"reasoning_text"}"#),
                    text("Done."),
                    native(r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#),
                    text("More."),
                ],
            ),
            message(Role::User, [text("Go on")]),
        ]),
    );
}

#[test]
fn how_to_answer() {
    golden(
        "sampling",
        &Conversation {
            sampling: Some(Sampling {
                max_output_tokens: Some(100),
                temperature: Some(0.0),
                top_p: Some(0.5),
                ..Sampling::default()
            }),
            reasoning_effort: "low".to_owned(),
            ..question()
        },
    );
    let schema = r#"{ "type": "object" }"#;
    for (name, json, schema_json, of) in [
        ("format-json", true, "", ""),
        ("format-schema", false, schema, "answer"),
        ("format-schema-unnamed", true, schema, ""),
    ] {
        let format = ResponseFormat {
            json,
            schema_json: schema_json.into(),
            name: of.to_owned(),
        };
        let response_format = Some(format);
        golden(
            name,
            &Conversation {
                response_format,
                ..question()
            },
        );
    }
    for (name, mode, tool) in [
        ("tool-choice-auto", Mode::Auto, ""),
        ("tool-choice-none", Mode::None, ""),
        ("tool-choice-required", Mode::Required, ""),
        ("tool-choice-tool", Mode::Tool, "weather"),
    ] {
        let choice = ToolChoice {
            mode: mode.into(),
            name: tool.to_owned(),
        };
        let tool_choice = Some(choice);
        golden(
            name,
            &Conversation {
                tool_choice,
                ..question()
            },
        );
    }
}

#[test]
fn provider_options_take_the_place_of_what_they_name() {
    let options = br#"{ "store" : true, "background":true,"metadata":{"a": "b"}, "include":[] }"#;
    golden(
        "options",
        &Conversation {
            provider_options_json: options.to_vec(),
            reasoning_effort: "high".to_owned(),
            ..question()
        },
    );
    for name in ["model", "input", "stream", "n"] {
        let options = format!(r#"{{"{name}":1}}"#).into_bytes();
        refused(
            &Conversation {
                provider_options_json: options,
                ..question()
            },
            &format!("conversation.provider_options_json.{name}: must not be set here"),
        );
    }
}

#[test]
fn what_has_no_form_is_refused_by_name() {
    const NO_FORM: &str = "has no form in OpenAI Responses: leave it out";
    let sampling = |sampling| Conversation {
        sampling: Some(sampling),
        ..question()
    };
    let stop = vec!["x".to_owned()];
    refused(
        &sampling(Sampling {
            stop,
            ..Sampling::default()
        }),
        &format!("conversation.sampling.stop: {NO_FORM}"),
    );
    refused(
        &sampling(Sampling {
            seed: Some(0),
            ..Sampling::default()
        }),
        &format!("conversation.sampling.seed: {NO_FORM}"),
    );
    refused(
        &sampling(Sampling {
            top_p: Some(f64::NAN),
            ..Sampling::default()
        }),
        "conversation.sampling.top_p: must be a finite number",
    );
    let second = |role, kind| {
        let first = match role {
            Role::Tool => result("1", false, [text("ok")]),
            _ => text("ok"),
        };
        conversation([message(role, [first, kind])])
    };
    for (role, kind, expected) in [
        (
            Role::User,
            call("c", "f", ""),
            "tool_call: has no form in a user message of OpenAI Responses",
        ),
        (
            Role::User,
            data("audio/wav", b"RIFF"),
            "media.mime_type: has no form in OpenAI Responses",
        ),
        (
            Role::User,
            data("image/png", b""),
            "media.data: must not be empty",
        ),
        (
            Role::Assistant,
            data("image/png", b"x"),
            "media: has no form in an assistant message of OpenAI Responses",
        ),
        (
            Role::Assistant,
            call("", "f", ""),
            "tool_call.id: must be set",
        ),
        (
            Role::Assistant,
            call("c", "", ""),
            "tool_call.name: must be set",
        ),
        (
            Role::Assistant,
            native("[]"),
            "native_json: is not a JSON object",
        ),
        (
            Role::Assistant,
            signed("x", "not ours"),
            "reasoning.signature: is not one of OpenAI Responses",
        ),
        (
            Role::Assistant,
            reasoning("x"),
            "reasoning.signature: must be set: without it reasoning has no form in OpenAI Responses",
        ),
        (
            Role::Assistant,
            Kind::Reasoning(Reasoning {
                redacted: b"x".to_vec(),
                ..Reasoning::default()
            }),
            "reasoning.redacted: has no form in OpenAI Responses: leave it out",
        ),
        (
            Role::Tool,
            text("x"),
            "text: has no form in a tool message of OpenAI Responses",
        ),
        (
            Role::Tool,
            result("", false, []),
            "tool_result.tool_call_id: must be set",
        ),
        (
            Role::Tool,
            result("c", false, [data("image/png", b"x")]),
            "tool_result.parts[0].media: has no form in a tool result of OpenAI Responses",
        ),
    ] {
        let expected = format!("conversation.messages[0].parts[1].{expected}");
        refused(&second(role, kind), &expected);
    }
    refused(
        &Conversation::default(),
        "conversation.messages: must not be empty",
    );
    let with = |role, parts| conversation([Message { role, parts }]);
    refused(
        &with(1, vec![]),
        "conversation.messages[0].parts: must not be empty",
    );
    let none = Part { part: None };
    refused(
        &with(1, vec![none]),
        "conversation.messages[0].parts[0].part: must be set",
    );
    let some = || message(Role::User, [text("x")]).parts;
    refused(
        &with(0, some()),
        "conversation.messages[0].role: must be set",
    );
    refused(
        &with(77, some()),
        "conversation.messages[0].role: is not a role of this contract",
    );
}

fn sent_native(json: &str) -> Bytes {
    let body = Bytes::copy_from_slice(json.as_bytes());
    request(Source::Native(&body), true).unwrap().body
}

#[test]
fn a_native_body_is_changed_in_its_model_and_stream_alone() {
    for (given, expected) in [
        (
            r#"{"model":"the-model","stream":true}"#,
            r#"{"model":"the-model","stream":true}"#,
        ),
        ("{}", r#"{"model":"the-model","stream":true}"#),
        (
            " { \"input\" : \"x\",\n\"stream\":false, \"model\" :\"y\",\"store\":false } ",
            " { \"input\" : \"x\",\n\"stream\":true, \"model\" :\"the-model\",\"store\":false } ",
        ),
        (
            r#"{"a":{"model":"x","stream":0},"mod\u0065l":1}"#,
            r#"{"stream":true,"a":{"model":"x","stream":0},"mod\u0065l":"the-model"}"#,
        ),
    ] {
        assert_eq!(sent_native(given), expected.as_bytes());
    }
    let right = Bytes::from_static(br#"{"model":"the-model","stream":true}"#);
    let sent = request(Source::Native(&right), false).unwrap().body;
    assert_eq!(sent.as_ptr(), right.as_ptr(), "keeps its buffer");
}

#[test]
fn a_native_body_that_is_no_object_or_says_a_thing_twice_is_refused() {
    for (json, expected) in [
        ("[]", "native.json: is not a JSON object"),
        (
            r#"{"model":"a","model":"b"}"#,
            "native.json.model: must not be repeated",
        ),
        (
            r#"{"stream":true,"stream":true}"#,
            "native.json.stream: must not be repeated",
        ),
    ] {
        let body = Bytes::copy_from_slice(json.as_bytes());
        let error = request(Source::Native(&body), false).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn no_signature_makes_it_panic_and_none_is_lost(id in ".{1,20}", secret in ".{1,20}", text in ".{1,20}") {
        let signature = json!({"id": id, "encrypted_content": secret}).to_string();
        let conversation = conversation([message(Role::Assistant, [signed(&text, &signature)])]);
        let body = request(Source::Conversation(&conversation), false).unwrap().body;
        let sent: Value = serde_json::from_slice(&body).unwrap();
        let expected = json!([{"type": "reasoning", "id": id, "encrypted_content": secret,
            "summary": [{"type": "summary_text", "text": text}]}]);
        prop_assert_eq!(&sent["input"], &expected);
    }

    #[test]
    fn no_bytes_of_a_signature_make_it_panic(signature in "[{}\\[\\]:,\"\\\\nid1 ]{0,40}") {
        let conversation = conversation([message(Role::Assistant, [signed("x", &signature)])]);
        let _ = request(Source::Conversation(&conversation), false);
    }
}
