//! What Chat Completions cannot say is refused by name, before anything is sent.

use redrive::{
    proto::{
        Conversation, Media, Message, Part, Reasoning, ResponseFormat, Role, Sampling, Tool,
        ToolChoice, media::Source as MediaSource, part::Part as Kind, tool_choice::Mode,
    },
    protocol::{Dialect, adapter::RequestErrorKind},
};

use super::{
    parts::{call, conversation, data, message, question, reasoning, result, text, uri},
    sent,
};

#[track_caller]
fn refused_by(dialect: Dialect, conversation: Conversation, expected: &str) {
    let error = sent(&conversation, dialect).unwrap_err();
    assert_eq!(error.kind, RequestErrorKind::Invalid);
    assert_eq!(error.to_string(), expected);
}

#[track_caller]
fn refused(conversation: Conversation, expected: &str) {
    refused_by(Dialect::Openai, conversation, expected);
}

/// A good message, then one of `role` whose second part is `kind`.
fn second_part(role: Role, kind: Kind) -> Conversation {
    let first = match role {
        Role::Tool => result("1", false, [text("ok")]),
        _ => text("ok"),
    };
    conversation([
        message(Role::User, [text("ok")]),
        message(role, [first, kind]),
    ])
}

fn native(json: &str) -> Kind {
    Kind::NativeJson(json.into())
}

#[test]
fn a_conversation_without_messages() {
    refused(
        Conversation::default(),
        "conversation.messages: must not be empty",
    );
}

#[test]
fn a_message_without_parts_or_role() {
    let with = |role: i32, parts| conversation([Message { role, parts }]);
    let parts = message(Role::User, [text("x")]).parts;
    refused(
        with(Role::User as i32, vec![]),
        "conversation.messages[0].parts: must not be empty",
    );
    refused(
        with(0, parts.clone()),
        "conversation.messages[0].role: must be set",
    );
    refused(
        with(77, parts),
        "conversation.messages[0].role: is not a role of this contract",
    );
    refused(
        with(Role::Assistant as i32, vec![Part { part: None }]),
        "conversation.messages[0].parts[0].part: must be set",
    );
}

#[test]
fn a_part_that_has_no_place_in_its_message() {
    let refusal = || Kind::Refusal("no".to_owned());
    let image = || data("image/png", b"x");
    for (role, place, kind, field) in [
        (
            Role::User,
            "a user message",
            call("1", "f", "{}"),
            "tool_call",
        ),
        (
            Role::User,
            "a user message",
            result("1", false, []),
            "tool_result",
        ),
        (Role::User, "a user message", reasoning("x"), "reasoning"),
        (Role::User, "a user message", refusal(), "refusal"),
        (Role::Assistant, "an assistant message", image(), "media"),
        (
            Role::Assistant,
            "an assistant message",
            result("1", false, []),
            "tool_result",
        ),
        (Role::Tool, "a tool message", text("x"), "text"),
        (Role::Tool, "a tool message", native("{}"), "native_json"),
        (
            Role::Tool,
            "a tool message",
            call("1", "f", "{}"),
            "tool_call",
        ),
    ] {
        refused(
            second_part(role, kind),
            &format!(
                "conversation.messages[1].parts[1].{field}: has no form in {place} of OpenAI Chat Completions"
            ),
        );
    }
    refused(
        second_part(Role::Tool, result("1", false, [text("x"), image()])),
        "conversation.messages[1].parts[1].tool_result.parts[1].media: has no form in a tool result of OpenAI Chat Completions",
    );
}

#[test]
fn reasoning_where_the_server_does_not_read_it() {
    for dialect in [
        Dialect::Openai,
        Dialect::Generic,
        Dialect::Azure,
        Dialect::Xai,
        Dialect::Snowflake,
    ] {
        refused_by(
            dialect,
            second_part(Role::Assistant, reasoning("hm")),
            "conversation.messages[1].parts[1].reasoning.text: has no form in OpenAI Chat Completions: leave it out",
        );
    }
}

#[test]
fn signed_or_redacted_reasoning_in_every_dialect() {
    let signed = Reasoning {
        text: "hm".to_owned(),
        signature: b"s".to_vec(),
        ..Default::default()
    };
    let redacted = Reasoning {
        redacted: b"r".to_vec(),
        ..Default::default()
    };
    for dialect in Dialect::ALL {
        for (reasoning, field) in [(&signed, "signature"), (&redacted, "redacted")] {
            refused_by(
                dialect,
                second_part(Role::Assistant, Kind::Reasoning(reasoning.clone())),
                &format!(
                    "conversation.messages[1].parts[1].reasoning.{field}: has no form in OpenAI Chat Completions: leave it out"
                ),
            );
        }
    }
}

#[test]
fn media_without_a_form() {
    let no_source = Kind::Media(Media {
        mime_type: "image/png".to_owned(),
        source: None,
    });
    let empty = |source| {
        Kind::Media(Media {
            mime_type: "image/png".to_owned(),
            source: Some(source),
        })
    };
    let no_form = "mime_type: has no form in OpenAI Chat Completions";
    for (kind, expected) in [
        (no_source, "source: must be set"),
        (empty(MediaSource::Data(vec![])), "data: must not be empty"),
        (
            empty(MediaSource::Uri(String::new())),
            "uri: must not be empty",
        ),
        (data("", b"x"), "mime_type: must be set"),
        (data("video/mp4", b"x"), no_form),
        (data("audio/ogg", b"x"), no_form),
        (data("image/", b"x"), no_form),
        (data("image/png;base64,AAAA", b"x"), no_form),
        (data("text/plain", b"x"), no_form),
        (
            uri("audio/wav", "https://example.com/a.wav"),
            "uri: has no form for audio in OpenAI Chat Completions: send the data",
        ),
        (
            uri("application/pdf", "https://example.com/a.pdf"),
            "uri: has no form for files in OpenAI Chat Completions: send the data",
        ),
    ] {
        refused(
            second_part(Role::User, kind),
            &format!("conversation.messages[1].parts[1].media.{expected}"),
        );
    }
    for (dialect, mime_type) in [
        (Dialect::Vllm, "application/pdf"),
        (Dialect::Deepseek, "application/pdf"),
        (Dialect::Deepseek, "audio/wav"),
        (Dialect::Groq, "audio/mp3"),
    ] {
        refused_by(
            dialect,
            second_part(Role::User, data(mime_type, b"x")),
            "conversation.messages[1].parts[1].media.mime_type: has no form in this dialect of OpenAI Chat Completions",
        );
    }
    refused_by(
        Dialect::Mistral,
        second_part(Role::User, uri("audio/wav", "https://example.com/a.wav")),
        "conversation.messages[1].parts[1].media.uri: has no form for audio in OpenAI Chat Completions: send the data",
    );
}

#[test]
fn a_member_that_mistral_does_not_know() {
    refused_by(
        Dialect::Mistral,
        second_part(Role::Assistant, Kind::Refusal("no".to_owned())),
        "conversation.messages[1].parts[1].refusal: has no form in this dialect of OpenAI Chat Completions: send it as text",
    );
}

#[test]
fn what_a_server_would_silently_take_for_something_else() {
    let named = Conversation {
        tool_choice: Some(ToolChoice {
            mode: Mode::Tool as i32,
            name: "f".to_owned(),
        }),
        ..question()
    };
    refused_by(
        Dialect::Llamacpp,
        named,
        "conversation.tool_choice.mode: MODE_TOOL has no form in this dialect of OpenAI Chat Completions: use MODE_REQUIRED",
    );
    let schema = Conversation {
        response_format: Some(ResponseFormat {
            schema_json: b"{}".to_vec(),
            ..Default::default()
        }),
        ..question()
    };
    refused_by(
        Dialect::Deepseek,
        schema,
        "conversation.response_format.schema_json: has no form in this dialect of OpenAI Chat Completions: ask for json",
    );
}

#[test]
fn a_native_block_that_is_no_json_object() {
    for (json, reason) in [
        ("", "is not a JSON object"),
        ("[1]", "is not a JSON object"),
        ("{\"a\":1}}", "is not valid JSON at line 1, column 8"),
    ] {
        refused(
            second_part(Role::User, native(json)),
            &format!("conversation.messages[1].parts[1].native_json: {reason}"),
        );
    }
    refused(
        second_part(Role::User, Kind::NativeJson(b"{\"a\":\"\xff\"}".to_vec())),
        "conversation.messages[1].parts[1].native_json: is not UTF-8 at byte 6",
    );
}

#[test]
fn tool_calls_and_results_without_id_or_name() {
    let at = "conversation.messages[1].parts[1]";
    for (role, kind, field) in [
        (Role::Assistant, call("", "f", "{}"), "tool_call.id"),
        (Role::Assistant, call("1", "", "{}"), "tool_call.name"),
        (
            Role::Tool,
            result("", false, []),
            "tool_result.tool_call_id",
        ),
    ] {
        refused(
            second_part(role, kind),
            &format!("{at}.{field}: must be set"),
        );
    }
}

#[test]
fn tools_without_a_name_or_with_parameters_that_are_no_object() {
    let with = |name: &str, parameters: &str| Conversation {
        tools: vec![
            Tool {
                name: "ok".to_owned(),
                ..Default::default()
            },
            Tool {
                name: name.to_owned(),
                parameters_json: parameters.into(),
                ..Default::default()
            },
        ],
        ..question()
    };
    refused(with("", ""), "conversation.tools[1].name: must be set");
    for (parameters, reason) in [
        ("true", "is not a JSON object"),
        ("{\"type\":}", "is not valid JSON at line 1, column 9"),
        (
            &format!("{}{}", "{\"a\":".repeat(200), "}".repeat(200)),
            "is nested more than 128 levels deep",
        ),
    ] {
        refused(
            with("f", parameters),
            &format!("conversation.tools[1].parameters_json: {reason}"),
        );
    }
}

#[test]
fn a_tool_choice_that_contradicts_itself() {
    let with = |mode: i32, name: &str| Conversation {
        tool_choice: Some(ToolChoice {
            mode,
            name: name.to_owned(),
        }),
        ..question()
    };
    refused(
        with(Mode::Tool as i32, ""),
        "conversation.tool_choice.name: must be set with MODE_TOOL",
    );
    for mode in [Mode::Unspecified, Mode::Auto, Mode::None, Mode::Required] {
        refused(
            with(mode as i32, "f"),
            "conversation.tool_choice.name: may be set with MODE_TOOL only",
        );
    }
    refused(
        with(9, ""),
        "conversation.tool_choice.mode: is not a mode of this contract",
    );
}

#[test]
fn numbers_that_json_does_not_have() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let temperature = Sampling {
            temperature: Some(bad),
            ..Default::default()
        };
        let top_p = Sampling {
            top_p: Some(bad),
            ..Default::default()
        };
        for (sampling, field) in [(temperature, "temperature"), (top_p, "top_p")] {
            refused(
                Conversation {
                    sampling: Some(sampling),
                    ..question()
                },
                &format!("conversation.sampling.{field}: must be a finite number"),
            );
        }
    }
}

#[test]
fn an_answer_of_no_tokens() {
    let sampling = Sampling {
        max_output_tokens: Some(0),
        ..Default::default()
    };
    refused(
        Conversation {
            sampling: Some(sampling),
            ..question()
        },
        "conversation.sampling.max_output_tokens: must be at least 1",
    );
}

#[test]
fn a_response_format_that_contradicts_itself() {
    let with = |json, schema: &str, name: &str| Conversation {
        response_format: Some(ResponseFormat {
            json,
            schema_json: schema.into(),
            name: name.to_owned(),
        }),
        ..question()
    };
    let name = "conversation.response_format.name: may be set with schema_json only";
    refused(with(true, "", "x"), name);
    refused(with(false, "", "x"), name);
    refused(
        with(true, "[]", "x"),
        "conversation.response_format.schema_json: is not a JSON object",
    );
}

#[test]
fn provider_options_that_are_not_the_clients_to_choose() {
    let with = |json: &str| Conversation {
        provider_options_json: json.into(),
        ..question()
    };
    let at = "conversation.provider_options_json";
    for name in ["model", "messages", "stream", "n"] {
        let reason = format!("{at}.{name}: must not be set here");
        refused(with(&format!(r#"{{"user":"u","{name}":null}}"#)), &reason);
    }
    refused(
        with(r#"{"\u006eodel":1,"\u006d\u006fdel":1}"#),
        &format!("{at}.model: must not be set here"),
    );
    refused(
        with(r#"{"a\n":1,"a\u000a":2}"#),
        &format!("{at}.a\\n: must not be repeated"),
    );
    refused(
        with(r#"{"stream_options":7}"#),
        &format!("{at}.stream_options: is not a JSON object"),
    );
    refused(
        with(r#"{"stream_options":{"include_usage":1,"include_usage":1}}"#),
        &format!("{at}.stream_options.include_usage: must not be repeated"),
    );
    refused(with("1"), &format!("{at}: is not a JSON object"));
    let many = (0..257)
        .map(|index| format!("\"o{index}\":1"))
        .collect::<Vec<_>>();
    refused(
        with(&format!("{{{}}}", many.join(","))),
        &format!("{at}: has more than 256 members"),
    );
}
