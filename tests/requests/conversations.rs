//! One conversation for each theme; what is sent for it is a golden file.

use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use redrive::{
    proto::{
        Conversation, ResponseFormat, Role, Sampling, Tool, ToolChoice, part::Part as Kind,
        tool_choice::Mode,
    },
    protocol::{
        Dialect,
        adapter::{RequestInput, Source},
    },
};

use super::{
    parts::{call, conversation, data, message, question, reasoning, result, text, uri},
    sent,
};

/// Compares what is sent with a golden file.
fn golden(name: &str, dialect: Dialect, conversation: Conversation) {
    super::golden::compare(name, &sent(&conversation, dialect).unwrap());
}

fn tool(name: &str, description: &str, parameters: &str, strict: bool) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters_json: parameters.as_bytes().to_vec(),
        strict,
    }
}

#[test]
fn a_question() {
    golden("question", Dialect::Openai, question());
}

#[test]
fn a_system_prompt_and_several_turns() {
    let turns = conversation([
        message(Role::User, [text("Hello")]),
        message(Role::Assistant, [text("Hello! How can I help?")]),
        message(Role::User, [text("")]),
    ]);
    let system = "Be brief.\nSay \"no\" with a \\ and a \u{1F30D}.".to_owned();
    golden("turns", Dialect::Openai, Conversation { system, ..turns });
}

#[test]
fn several_texts_in_one_message_stay_apart() {
    let texts = [text("one"), text("two\u{0}\u{2028}")];
    golden(
        "texts",
        Dialect::Openai,
        conversation([
            message(Role::User, texts.clone()),
            message(Role::Assistant, texts),
        ]),
    );
}

#[test]
fn images_by_value_and_by_address() {
    golden(
        "images",
        Dialect::Openai,
        conversation([message(
            Role::User,
            [
                text("What differs?"),
                data("image/png", b"\x89PNG\r\n"),
                uri("image/jpeg", "https://example.com/a.jpg?x=1&y=\"2\""),
                data("image/svg+xml", b"<svg/>"),
            ],
        )]),
    );
}

#[test]
fn audio_by_value() {
    golden(
        "audio",
        Dialect::Openai,
        conversation([message(
            Role::User,
            [data("audio/wav", b"RIFF"), data("audio/mpeg", b"ID3\x03")],
        )]),
    );
}

#[test]
fn audio_where_the_server_has_its_own_form() {
    let spoken = || data("audio/wav", b"RIFF");
    golden(
        "audio-mistral",
        Dialect::Mistral,
        conversation([message(Role::User, [spoken()])]),
    );
    let by_address = uri("audio/mpeg", "https://example.com/a.mp3");
    golden(
        "audio-qwen",
        Dialect::Qwen,
        conversation([message(Role::User, [spoken(), by_address])]),
    );
}

#[test]
fn a_pdf_by_value_and_on_some_by_address() {
    let by_value = || [data("application/pdf", b"%PDF-1.7")];
    let by_address = [uri("application/pdf", "https://example.com/a.pdf")];
    golden(
        "pdf",
        Dialect::Openai,
        conversation([message(Role::User, by_value())]),
    );
    for dialect in [Dialect::Openrouter, Dialect::Mistral] {
        golden(
            &format!("pdf-{}", dialect.name()),
            dialect,
            conversation([
                message(Role::User, by_value()),
                message(Role::User, by_address.clone()),
            ]),
        );
    }
}

#[test]
fn tools_with_parameters_as_they_were_written() {
    let tools = vec![
        tool(
            "get_weather",
            "The weather of a place.",
            " {\"type\": \"object\",\n \"properties\": {\"z\": {\"type\":\"string\"}, \"a\": {\"maximum\": 12345678901234567890.10}}} ",
            true,
        ),
        tool("now", "", "", false),
    ];
    let asked = Conversation {
        tools,
        ..question()
    };
    golden("tools", Dialect::Openai, asked);
}

#[test]
fn every_tool_choice() {
    for (name, mode, tool) in [
        ("tool-choice-auto", Mode::Auto, ""),
        ("tool-choice-none", Mode::None, ""),
        ("tool-choice-required", Mode::Required, ""),
        ("tool-choice-tool", Mode::Tool, "now"),
    ] {
        let choice = ToolChoice {
            mode: mode as i32,
            name: tool.to_owned(),
        };
        golden(
            name,
            Dialect::Openai,
            Conversation {
                tools: vec![self::tool("now", "", "{}", false)],
                tool_choice: Some(choice),
                ..question()
            },
        );
    }
}

#[test]
fn an_unspecified_tool_choice_is_not_sent() {
    let asked = Conversation {
        tool_choice: Some(ToolChoice::default()),
        response_format: Some(ResponseFormat::default()),
        sampling: Some(Sampling::default()),
        ..question()
    };
    golden("question", Dialect::Openai, asked);
}

#[test]
fn tool_calls_and_their_results() {
    golden(
        "tool-calls",
        Dialect::Openai,
        conversation([
            message(Role::User, [text("The weather in Oslo and Rome?")]),
            message(
                Role::Assistant,
                [
                    text("I look it up."),
                    call("call_1", "get_weather", r#"{"place": "Oslo", "n": 1.0}"#),
                    call("call_2", "get_weather", "{\"place\":\"Ro"),
                ],
            ),
            message(
                Role::Tool,
                [
                    result("call_1", false, [text("-3 °C")]),
                    result("call_2", false, [text("12 °C"), text("sunny")]),
                ],
            ),
            message(Role::Assistant, [call("call_3", "now", "")]),
            message(Role::Tool, [result("call_3", false, [])]),
        ]),
    );
}

#[test]
fn a_failed_tool_is_told_in_its_text() {
    golden(
        "tool-failed",
        Dialect::Openai,
        conversation([
            message(
                Role::Assistant,
                [
                    call("1", "a", "{}"),
                    call("2", "b", "{}"),
                    call("3", "c", "{}"),
                ],
            ),
            message(
                Role::Tool,
                [
                    result("1", true, [text("no such place")]),
                    result("2", true, []),
                    result(
                        "3",
                        true,
                        [Kind::NativeJson(br#"{"type":"text","text":"x"}"#.to_vec())],
                    ),
                ],
            ),
        ]),
    );
}

#[test]
fn a_refusal_goes_back_in_its_own_field() {
    golden(
        "refusal",
        Dialect::Openai,
        conversation([
            message(Role::User, [text("How do I …?")]),
            message(
                Role::Assistant,
                [
                    text("Well."),
                    Kind::Refusal("I cannot help ".to_owned()),
                    Kind::Refusal("with that.".to_owned()),
                ],
            ),
            message(Role::User, [text("Why not?")]),
        ]),
    );
}

#[test]
fn reasoning_goes_back_where_the_server_reads_it() {
    for dialect in [
        Dialect::Openrouter,
        Dialect::Mistral,
        Dialect::Deepseek,
        Dialect::Groq,
        Dialect::Moonshot,
        Dialect::Qwen,
        Dialect::Vllm,
        Dialect::Sglang,
        Dialect::Llamacpp,
        Dialect::Ollama,
    ] {
        golden(
            &format!("reasoning-{}", dialect.name()),
            dialect,
            conversation([
                message(Role::User, [text("2+2?")]),
                message(
                    Role::Assistant,
                    [reasoning("Two and "), reasoning("two."), text("4")],
                ),
                message(Role::User, [text("Sure?")]),
            ]),
        );
    }
}

#[test]
fn a_native_block_is_passed_through_as_a_part() {
    golden(
        "native-block",
        Dialect::Vllm,
        conversation([message(
            Role::User,
            [
                text("What happens here?"),
                Kind::NativeJson(
                    b"\t{\"type\":\"video_url\", \"video_url\":{\"url\":\"https://example.com/v\\u0065.mp4\"}, \"fps\": 2.50}\n"
                        .to_vec(),
                ),
            ],
        )]),
    );
}

#[test]
fn sampling_in_every_dialect() {
    let sampling = Sampling {
        max_output_tokens: Some(u32::MAX),
        temperature: Some(0.1),
        top_p: Some(1.0),
        stop: vec!["\n\n".to_owned(), "END".to_owned()],
        seed: Some(i64::MIN),
    };
    for dialect in Dialect::ALL {
        let asked = Conversation {
            sampling: Some(sampling.clone()),
            ..question()
        };
        golden(&format!("sampling-{}", dialect.name()), dialect, asked);
    }
}

#[test]
fn zero_is_not_the_same_as_unset() {
    let asked = Conversation {
        sampling: Some(Sampling {
            temperature: Some(0.0),
            top_p: Some(0.0),
            seed: Some(0),
            ..Default::default()
        }),
        ..question()
    };
    golden("sampling-zero", Dialect::Openai, asked);
}

#[test]
fn response_formats() {
    let schema = "{ \"type\":\"object\",\n\"required\":[\"b\",\"a\"] }";
    for (name, format) in [
        (
            "format-json",
            ResponseFormat {
                json: true,
                ..Default::default()
            },
        ),
        (
            "format-schema",
            ResponseFormat {
                json: true,
                schema_json: schema.into(),
                name: "weather".to_owned(),
            },
        ),
        (
            "format-schema-unnamed",
            ResponseFormat {
                schema_json: schema.into(),
                ..Default::default()
            },
        ),
    ] {
        let asked = Conversation {
            response_format: Some(format),
            ..question()
        };
        golden(name, Dialect::Openai, asked);
    }
}

#[test]
fn reasoning_effort_as_the_provider_names_it() {
    let asked = Conversation {
        reasoning_effort: "xhigh".to_owned(),
        ..question()
    };
    golden("reasoning-effort", Dialect::Openai, asked);
}

#[test]
fn provider_options_are_merged_as_they_were_written() {
    let asked = Conversation {
        sampling: Some(Sampling {
            temperature: Some(0.5),
            top_p: Some(0.9),
            ..Default::default()
        }),
        provider_options_json: br#" {"temperature": 1.0e0, "metadata":{"b":1,"a":2}, "logit_bias":{"50256":-100}, "m\u0061x_price":1.10} "#
            .to_vec(),
        ..question()
    };
    golden("options", Dialect::Openai, asked);
}

#[test]
fn stream_options_are_kept_and_usage_is_asked_for() {
    for (name, options) in [
        (
            "options-stream",
            r#"{"stream_options": {"include_obfuscation": false}, "user":"u"}"#,
        ),
        ("options-stream-null", r#"{"stream_options":null}"#),
        (
            "options-stream-right",
            r#"{"stream_options":{ "include_usage":true}}"#,
        ),
    ] {
        let asked = Conversation {
            provider_options_json: options.into(),
            ..question()
        };
        golden(name, Dialect::Openai, asked);
    }
}

#[test]
fn usage_is_asked_for_only_where_the_server_can_be_asked() {
    let asked = Conversation {
        provider_options_json: br#"{"stream_options":{"x":1},"safe_prompt":true}"#.to_vec(),
        ..question()
    };
    golden("options-mistral", Dialect::Mistral, asked);
}

#[test]
fn the_request_around_the_body() {
    let request = super::openai_chat()
        .request(RequestInput {
            source: Source::Conversation(&question()),
            model: "the-model",
            dialect: Dialect::Openai,
            stored: false,
        })
        .unwrap();
    assert_eq!(request.path, "/chat/completions");
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("text/event-stream")),
    ]);
    assert_eq!(request.headers, headers);
}
