//! Anthropic Messages: what is sent for a conversation is a golden file, a native body is changed in
//! place, and a continuation adds its beginning of the answer.

use bytes::Bytes;
use redrive::{
    proto::{
        Conversation, Reasoning, ResponseFormat, Role, Sampling, Tool, ToolChoice,
        part::Part as Kind, tool_choice::Mode,
    },
    protocol::{
        Dialect, Protocol,
        adapter::{Adapter, AdapterRequest, RequestError, RequestInput, Source, adapter},
    },
};

use super::{
    golden::compare_in,
    parts::{call, conversation, data, message, question, reasoning, result, text, uri},
};

fn anthropic() -> &'static dyn Adapter {
    adapter(Protocol::AnthropicMessages).unwrap()
}

fn request(source: Source<'_>, model: &str) -> Result<AdapterRequest, RequestError> {
    anthropic().request(RequestInput {
        source,
        model,
        dialect: Dialect::Openai,
        stored: false,
    })
}

/// Compares what is sent with `tests/golden/anthropic_messages/{name}.json`, byte for byte.
fn golden(name: &str, conversation: Conversation) {
    let sent = request(Source::Conversation(&conversation), "the-model").unwrap();
    compare_in("anthropic_messages", name, &sent.body);
}

fn refused(conversation: Conversation) -> String {
    match request(Source::Conversation(&conversation), "the-model") {
        Ok(request) => panic!("{:?} is sent", request.body),
        Err(error) => error.to_string(),
    }
}

fn signed(text: &str, signature: &str) -> Kind {
    Kind::Reasoning(Reasoning {
        text: text.to_owned(),
        signature: signature.as_bytes().to_vec(),
        ..Default::default()
    })
}

fn redacted(data: &str) -> Kind {
    Kind::Reasoning(Reasoning {
        redacted: data.as_bytes().to_vec(),
        ..Default::default()
    })
}

fn asked(part: Kind) -> Conversation {
    conversation([message(Role::User, [part])])
}

fn answered(part: Kind) -> Conversation {
    conversation([
        message(Role::User, [text("Hi")]),
        message(Role::Assistant, [part]),
        message(Role::User, [text("Go on")]),
    ])
}

fn tool(name: &str, description: &str, parameters: &str, strict: bool) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters_json: parameters.as_bytes().to_vec(),
        strict,
    }
}

fn with_choice(mode: Mode, name: &str) -> Conversation {
    Conversation {
        tools: vec![tool("f", "", "", false)],
        tool_choice: Some(ToolChoice {
            mode: mode as i32,
            name: name.to_owned(),
        }),
        ..question()
    }
}

fn sampled(sampling: Sampling) -> Conversation {
    Conversation {
        sampling: Some(sampling),
        ..question()
    }
}

fn formatted(json: bool, schema: &str, name: &str) -> Conversation {
    Conversation {
        response_format: Some(ResponseFormat {
            json,
            schema_json: schema.as_bytes().to_vec(),
            name: name.to_owned(),
        }),
        ..question()
    }
}

#[test]
fn a_question_has_the_default_bound_and_the_version_of_the_api() {
    golden("question", question());
    let sent = request(Source::Conversation(&question()), "m").unwrap();
    assert_eq!(sent.method, http::Method::POST);
    assert_eq!(sent.path, "/messages");
    assert_eq!(sent.headers["anthropic-version"], "2023-06-01");
    assert_eq!(sent.headers["content-type"], "application/json");
    assert_eq!(sent.headers["accept"], "text/event-stream");
    assert_eq!(sent.headers.len(), 3);
}

#[test]
fn a_system_prompt_and_several_turns() {
    let turns = conversation([
        message(Role::User, [text("Hello")]),
        message(Role::Assistant, [text("Hello! How can I help?")]),
        message(Role::User, [text("one"), text("two\u{0}\u{2028}")]),
    ]);
    let system = "Be brief.\nSay \"no\" with a \\ and a \u{1F30D}.".to_owned();
    golden("turns", Conversation { system, ..turns });
}

#[test]
fn images_and_documents_by_value_and_by_address() {
    golden(
        "media",
        conversation([message(
            Role::User,
            [
                text("What is this?"),
                data("image/png", &[0x89, b'P', b'N', b'G']),
                uri("image/svg+xml", "https://example.org/a.svg"),
                data("application/pdf", b"%PDF-1.7"),
                uri("application/pdf", "https://example.org/a.pdf"),
                data("text/plain", "Grüße".as_bytes()),
            ],
        )]),
    );
}

#[test]
fn tools() {
    let schema = r#"{ "type": "object", "properties": {"city": {"type": "string"}} }"#;
    golden(
        "tools",
        Conversation {
            tools: vec![
                tool("weather", "The weather.", schema, true),
                tool("now", "", "", false),
            ],
            ..question()
        },
    );
    golden("tool-choice-auto", with_choice(Mode::Auto, ""));
    golden("tool-choice-any", with_choice(Mode::Required, ""));
    golden("tool-choice-none", with_choice(Mode::None, ""));
    golden("tool-choice-tool", with_choice(Mode::Tool, "f"));
}

#[test]
fn a_turn_with_thinking_calls_and_results_goes_back_as_it_came() {
    golden(
        "tool-results",
        conversation([
            message(Role::User, [text("Weather in Bern and Basel?")]),
            message(
                Role::Assistant,
                [
                    signed("Two calls.", "c2ln"),
                    redacted("eHl6"),
                    text("Let me see."),
                    signed("", "c2lnMg=="),
                    call("toolu_1", "weather", "{\"city\": \"Bern\"}"),
                    call("toolu_2", "now", ""),
                ],
            ),
            message(
                Role::Tool,
                [result(
                    "toolu_1",
                    false,
                    [text("Rain"), data("image/png", b"P")],
                )],
            ),
            message(Role::Tool, [result("toolu_2", true, [text("No clock")])]),
            message(Role::User, [text("And Basel?")]),
            message(Role::Assistant, [call("toolu_3", "now", "{}")]),
            message(Role::Tool, [result("toolu_3", false, [])]),
        ]),
    );
}

#[test]
fn native_blocks_go_through_as_they_are() {
    let native = |json: &str| Kind::NativeJson(json.as_bytes().to_vec());
    golden(
        "native-blocks",
        conversation([
            message(
                Role::User,
                [native(
                    r#"{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}"#,
                )],
            ),
            message(
                Role::Assistant,
                [
                    native(
                        r#" {"type":"server_tool_use","id":"s","name":"web_search","input":{"q": 1.50}} "#,
                    ),
                    native(r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#),
                ],
            ),
        ]),
    );
}

#[test]
fn sampling_format_and_effort() {
    golden(
        "sampling",
        sampled(Sampling {
            max_output_tokens: Some(100),
            temperature: Some(0.0),
            top_p: Some(0.9),
            stop: vec!["END".to_owned()],
            seed: None,
        }),
    );
    golden("format", formatted(true, r#"{"type": "object"}"#, "named"));
    golden(
        "effort",
        Conversation {
            reasoning_effort: "high".to_owned(),
            ..formatted(false, r#"{"type": "object"}"#, "")
        },
    );
}

#[test]
fn options_take_the_place_of_members_of_the_same_name() {
    let options = br#"{"thinking": {"type":"enabled","budget_tokens":2048}, "max_tokens": 9000, "metadata":{"user_id":"u"}}"#;
    golden(
        "options",
        Conversation {
            provider_options_json: options.to_vec(),
            ..question()
        },
    );
}

#[test]
fn what_has_no_form_is_refused_by_name() {
    let native = |json: &str| Kind::NativeJson(json.as_bytes().to_vec());
    let options = |json: &str| Conversation {
        provider_options_json: json.as_bytes().to_vec(),
        ..question()
    };
    let of_result = |part| conversation([message(Role::Tool, [result("t", false, [part])])]);
    let seed = Sampling {
        seed: Some(1),
        ..Default::default()
    };
    let tokens = Sampling {
        max_output_tokens: Some(0),
        ..Default::default()
    };
    let nan = Sampling {
        temperature: Some(f64::NAN),
        ..Default::default()
    };
    for (given, field) in [
        (Conversation::default(), "messages"),
        (conversation([message(Role::User, [])]), "messages[0].parts"),
        (
            conversation([message(Role::Unspecified, [text("x")])]),
            "messages[0].role",
        ),
        (asked(text("")), "messages[0].parts[0].text"),
        (
            asked(call("i", "n", "{}")),
            "messages[0].parts[0].tool_call",
        ),
        (asked(reasoning("x")), "messages[0].parts[0].reasoning"),
        (
            asked(data("audio/wav", b"x")),
            "messages[0].parts[0].media.mime_type",
        ),
        (
            asked(data("image/svg+xml", b"x")),
            "messages[0].parts[0].media.mime_type",
        ),
        (
            asked(data("", b"x")),
            "messages[0].parts[0].media.mime_type",
        ),
        (
            asked(data("image/png", b"")),
            "messages[0].parts[0].media.data",
        ),
        (
            asked(data("text/plain", b"\xff")),
            "messages[0].parts[0].media.data",
        ),
        (
            asked(uri("text/plain", "https://x")),
            "messages[0].parts[0].media.uri",
        ),
        (
            asked(uri("image/png", "")),
            "messages[0].parts[0].media.uri",
        ),
        (asked(native("[]")), "messages[0].parts[0].native_json"),
        (
            answered(Kind::Refusal("no".into())),
            "messages[1].parts[0].refusal",
        ),
        (
            answered(data("image/png", b"x")),
            "messages[1].parts[0].media",
        ),
        (
            answered(reasoning("x")),
            "messages[1].parts[0].reasoning.signature",
        ),
        (
            answered(Kind::Reasoning(Reasoning {
                text: "x".into(),
                signature: vec![],
                redacted: b"y".to_vec(),
            })),
            "messages[1].parts[0].reasoning.redacted",
        ),
        (
            answered(Kind::Reasoning(Reasoning {
                signature: b"\xff".to_vec(),
                ..Default::default()
            })),
            "messages[1].parts[0].reasoning.signature",
        ),
        (
            answered(call("", "n", "{}")),
            "messages[1].parts[0].tool_call.id",
        ),
        (
            answered(call("i", "", "{}")),
            "messages[1].parts[0].tool_call.name",
        ),
        (
            answered(call("i", "n", "[1]")),
            "messages[1].parts[0].tool_call.arguments_json",
        ),
        (
            answered(call("i", "n", "{")),
            "messages[1].parts[0].tool_call.arguments_json",
        ),
        (
            answered(result("i", false, [])),
            "messages[1].parts[0].tool_result",
        ),
        (
            conversation([message(Role::Tool, [result("", false, [])])]),
            "messages[0].parts[0].tool_result.tool_call_id",
        ),
        (
            of_result(call("i", "n", "{}")),
            "messages[0].parts[0].tool_result.parts[0].tool_call",
        ),
        (
            of_result(data("audio/wav", b"x")),
            "messages[0].parts[0].tool_result.parts[0].media.mime_type",
        ),
        (sampled(seed), "sampling.seed"),
        (sampled(tokens), "sampling.max_output_tokens"),
        (sampled(nan), "sampling.temperature"),
        (formatted(true, "", ""), "response_format.json"),
        (formatted(false, "", "n"), "response_format.name"),
        (formatted(false, "[]", ""), "response_format.schema_json"),
        (with_choice(Mode::Tool, ""), "tool_choice.name"),
        (with_choice(Mode::Auto, "f"), "tool_choice.name"),
        (options(r#"{"model":"m"}"#), "provider_options_json.model"),
        (
            options(r#"{"messages":[]}"#),
            "provider_options_json.messages",
        ),
        (
            options(r#"{"stream":false}"#),
            "provider_options_json.stream",
        ),
        (options(r#"{"n":1}"#), "provider_options_json.n"),
        (options("[]"), "provider_options_json"),
    ] {
        let told = refused(given);
        let field = format!("conversation.{field}: ");
        assert!(told.starts_with(&field), "{told:?} instead of {field}");
    }
}

fn native(json: &str) -> Result<Bytes, RequestError> {
    let json = Bytes::copy_from_slice(json.as_bytes());
    request(Source::Native(&json), "m").map(|request| request.body)
}

#[test]
fn a_native_body_that_is_right_keeps_its_buffer() {
    let json = Bytes::from_static(
        b"\n{ \"strea\\u006d\" : true ,\r\n\"model\":\"\\u006d\", \"max_tokens\": 1.0e2, \"n\": 7 }\n",
    );
    let sent = request(Source::Native(&json), "m").unwrap().body;
    assert_eq!(sent, json);
    assert_eq!(sent.as_ptr(), json.as_ptr());
}

#[test]
fn model_and_stream_of_a_native_body_are_changed_in_place() {
    for (given, expected) in [
        ("{}", r#"{"model":"m","stream":true}"#),
        (
            " {\r\n\t\"model\" :\t\"claude\" ,\n \"stream\":  false , \"x\" : 1.50 } \n",
            " {\r\n\t\"model\" :\t\"m\" ,\n \"stream\":  true , \"x\" : 1.50 } \n",
        ),
        (
            r#"{"messages":[],"model":null}"#,
            r#"{"stream":true,"messages":[],"model":"m"}"#,
        ),
    ] {
        assert_eq!(native(given).unwrap(), expected);
    }
}

#[test]
fn a_native_body_that_is_no_object_or_ambiguous_is_refused() {
    for (given, told) in [
        ("[]", "native.json: is not a JSON object"),
        (
            r#"{"model":"a","model":"b"}"#,
            "native.json.model: must not be repeated",
        ),
        (
            r#"{"stream":true,"stream":false}"#,
            "native.json.stream: must not be repeated",
        ),
    ] {
        assert_eq!(native(given).unwrap_err().to_string(), told);
    }
}

fn continued(body: &str, partial: &str) -> Option<String> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let bytes = anthropic().continuation(Dialect::Openai, &body, partial)?;
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

/// A body for a model that takes a prefill, with `more` members.
fn to_haiku(more: &str) -> String {
    format!(
        r#"{{"model":"claude-haiku-4-5","max_tokens":100, "messages" : [ {{"role":"user","content":"Hi"}} ]{more},"stream":true}}"#
    )
}

#[test]
fn a_continuation_ends_with_the_beginning_of_the_answer_and_has_less_room() {
    let expected = r#"{"model":"claude-haiku-4-5","max_tokens":97, "messages" : [ {"role":"user","content":"Hi"},{"role":"assistant","content":"Hello, \"you\""} ],"stream":true}"#;
    assert_eq!(
        continued(&to_haiku(""), "Hello, \"you\"").as_deref(),
        Some(expected)
    );
    let long = continued(&to_haiku(""), &"x".repeat(1000)).unwrap();
    assert!(long.contains(r#""max_tokens":1,"#), "{long}");
}

#[test]
fn white_space_at_the_end_is_never_sent() {
    let trimmed = continued(&to_haiku(""), "Hello");
    assert_eq!(continued(&to_haiku(""), "Hello \n"), trimmed);
    assert_eq!(continued(&to_haiku(""), " \n"), None);
    assert_eq!(continued(&to_haiku(""), ""), None);
}

#[test]
fn what_leaves_the_answer_free_can_be_continued() {
    for more in [
        r#","thinking":{"type":"disabled"}"#,
        r#","thinking":null"#,
        r#","tool_choice":{"type":"auto"}"#,
        r#","tool_choice":{"type":"none"}"#,
        r#","output_config":{"effort":"low"}"#,
        r#","output_config":{"format":null}"#,
    ] {
        assert!(continued(&to_haiku(more), "Hello").is_some(), "{more}");
    }
}

#[test]
fn what_constrains_the_answer_cannot() {
    for more in [
        r#","thinking":{"type":"enabled","budget_tokens":1024}"#,
        r#","thinking":{"type":"adaptive"}"#,
        r#","thinking":true"#,
        r#","tool_choice":{"type":"any"}"#,
        r#","tool_choice":{"type":"tool","name":"f"}"#,
        r#","output_format":{"type":"json_schema","schema":{}}"#,
        r#","output_config":{"format":{"type":"json_schema","schema":{}}}"#,
        r#","model":"claude-haiku-4-5""#,
    ] {
        assert_eq!(continued(&to_haiku(more), "Hello"), None, "{more}");
    }
    for body in [
        to_haiku("").replace("haiku-4-5", "opus-4-6"),
        to_haiku("").replace(r#""role":"user""#, r#""role":"assistant""#),
        to_haiku("").replace(r#"{"role":"user","content":"Hi"}"#, ""),
        "[]".to_owned(),
        "{}".to_owned(),
    ] {
        assert_eq!(continued(&body, "Hello"), None, "{body}");
    }
}
