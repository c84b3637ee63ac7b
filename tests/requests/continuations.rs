//! Asking for the rest of an answer: in each dialect its own way, everything else as it was sent.

use bytes::Bytes;
use proptest::prelude::*;
use redrive::{
    proto::{Conversation, Sampling},
    protocol::Dialect,
};
use serde_json::{Map, Value, json};

use super::{golden, openai_chat, parts::question, sent};

const PARTIAL: &str = "Because \"blue\" light\nis \\ scattered ";

/// Dialects of servers that continue a message.
const CONTINUED: [Dialect; 9] = [
    Dialect::Openrouter,
    Dialect::Mistral,
    Dialect::Deepseek,
    Dialect::Moonshot,
    Dialect::Qwen,
    Dialect::Vllm,
    Dialect::Sglang,
    Dialect::Llamacpp,
    Dialect::Ollama,
];

fn continued(dialect: Dialect, body: &str, partial: &str) -> Option<String> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let continued = openai_chat().continuation(dialect, &body, partial)?;
    Some(String::from_utf8(continued.to_vec()).unwrap())
}

/// A body with one message and these members.
fn with(members: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"hi"}}],{members}}}"#)
}

#[test]
fn each_dialect_is_asked_in_its_own_way() {
    let asked = Conversation {
        sampling: Some(Sampling {
            max_output_tokens: Some(1000),
            ..Default::default()
        }),
        ..question()
    };
    for dialect in CONTINUED {
        let body = Bytes::from(sent(&asked, dialect).unwrap());
        let continued = openai_chat().continuation(dialect, &body, PARTIAL).unwrap();
        golden::compare(&format!("continuation-{}", dialect.name()), &continued);
    }
}

#[test]
fn servers_that_would_begin_anew_are_not_asked() {
    for dialect in Dialect::ALL {
        let asked = continued(dialect, &with(r#""model":"m""#), PARTIAL).is_some();
        assert_eq!(asked, CONTINUED.contains(&dialect), "{dialect:?}");
    }
}

#[test]
fn flags_of_the_client_are_set_in_place() {
    let message = r#"{"role":"assistant","content":"x"}"#;
    let user = r#"{"role":"user","content":"hi"}"#;
    for (given, expected) in [
        (
            format!(
                r#"{{ "add_generation_prompt" : true, "messages":[{user} ] ,"continue_final_message":false }}"#
            ),
            format!(
                r#"{{ "add_generation_prompt" : false, "messages":[{user},{message} ] ,"continue_final_message":true }}"#
            ),
        ),
        (
            format!(
                r#"{{"continue_final_message":true,"messages":[ {user}],"add_generation_prompt":false}}"#
            ),
            format!(
                r#"{{"continue_final_message":true,"messages":[ {user},{message}],"add_generation_prompt":false}}"#
            ),
        ),
    ] {
        assert_eq!(continued(Dialect::Vllm, &given, "x"), Some(expected));
    }
}

#[test]
fn white_space_at_the_end_is_kept_from_models_that_refuse_it() {
    let asked = |dialect| continued(dialect, &with(r#""model":"m""#), "a b \n").unwrap();
    assert!(asked(Dialect::Openrouter).contains(r#"{"role":"assistant","content":"a b"}"#));
    assert!(asked(Dialect::Ollama).contains(r#"{"role":"assistant","content":"a b \n"}"#));
    assert_eq!(
        continued(Dialect::Openrouter, &with(r#""model":"m""#), " \n"),
        None
    );
}

#[test]
fn nothing_is_asked_for_where_nothing_was_received() {
    assert_eq!(
        continued(Dialect::Mistral, &with(r#""model":"m""#), ""),
        None
    );
}

#[test]
fn the_bound_on_tokens_is_lowered_by_what_was_received() {
    let partial = "x".repeat(403);
    let asked = |members: &str| {
        let body = continued(Dialect::Llamacpp, &with(members), &partial).unwrap();
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let lowered = asked(r#""max_tokens":1000,"max_completion_tokens":50,"n_predict":101"#);
    assert_eq!(lowered["max_tokens"], 900);
    assert_eq!(lowered["max_completion_tokens"], 1);
    assert_eq!(lowered["n_predict"], 1);
    let unbounded = asked(r#""max_tokens":null,"n_predict":-1"#);
    assert_eq!(unbounded["max_tokens"], Value::Null);
    assert_eq!(unbounded["n_predict"], -1);
}

#[test]
fn output_that_is_constrained_is_not_continued() {
    for members in [
        r#""response_format":{"type":"json_object"}"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}}"#,
        r#""response_format":{"type":"structural_tag"}"#,
        r#""response_format":{}"#,
        r#""response_format":"json""#,
        r#""response_format":{"type":"text","type":"json_object"}"#,
        r#""response_for\u006dat":{"type":"json_object"}"#,
        r#""tool_choice":"required""#,
        r#""tool_choice":"any""#,
        r#""tool_choice":{"type":"function","function":{"name":"f"}}"#,
        r#""function_call":{"name":"f"}"#,
        r#""guided_json":{"type":"object"}"#,
        r#""guided_regex":"a+""#,
        r#""guided_choice":["a","b"]"#,
        r#""guided_grammar":"root ::= \"a\"""#,
        r#""structured_outputs":{"choice":["a"]}"#,
        r#""structural_tag":"{}""#,
        r#""regex":"a+""#,
        r#""ebnf":"root ::= \"a\"""#,
        r#""grammar":"root ::= \"a\"""#,
        r#""json_schema":{"type":"object"}"#,
    ] {
        for dialect in CONTINUED {
            assert_eq!(
                continued(dialect, &with(members), PARTIAL),
                None,
                "{members}"
            );
        }
    }
}

#[test]
fn thoughts_are_not_mixed_with_text() {
    for members in [
        r#""enable_thinking":true"#,
        r#""thinking":{"type":"enabled","budget_tokens":100}"#,
        r#""thinking":{}"#,
        r#""prompt_mode":"reasoning""#,
        r#""reasoning_effort":"low""#,
        r#""reasoning":{"effort":"high","exclude":true}"#,
        r#""reasoning":{"max_tokens":2000}"#,
        r#""reasoning":{"enabled":true}"#,
        r#""chat_template_kwargs":{"enable_thinking":true}"#,
        r#""chat_template_kwargs":{"x":1,"thinking":true}"#,
    ] {
        for dialect in CONTINUED {
            assert_eq!(
                continued(dialect, &with(members), PARTIAL),
                None,
                "{members}"
            );
        }
    }
}

#[test]
fn several_choices_are_not_continued() {
    assert_eq!(continued(Dialect::Vllm, &with(r#""n":2"#), PARTIAL), None);
}

#[test]
fn an_answer_that_the_client_has_begun_is_not_continued() {
    let body =
        r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"{"}]}"#;
    for dialect in CONTINUED {
        assert_eq!(continued(dialect, body, PARTIAL), None);
    }
}

#[test]
fn a_body_that_says_it_twice_or_not_at_all_is_not_continued() {
    let user = r#"{"role":"user","content":"hi"}"#;
    for body in [
        "{}".to_owned(),
        "[]".to_owned(),
        String::new(),
        r#"{"messages":[]}"#.to_owned(),
        r#"{"messages":{}}"#.to_owned(),
        r#"{"messages":["hi"]}"#.to_owned(),
        format!(r#"{{"messages":[{user}],"messages":[{user}]}}"#),
        format!(r#"{{"messages":[{user}],"m\u0065ssages":[{user}]}}"#),
        format!(r#"{{"messages":[{user}],"max_tokens":5,"max_tokens":7}}"#),
        format!(
            r#"{{"messages":[{user}],"continue_final_message":true,"continue_final_message":false}}"#
        ),
    ] {
        assert_eq!(continued(Dialect::Vllm, &body, PARTIAL), None, "{body}");
    }
}

#[test]
fn what_does_not_constrain_the_answer_does_not_hinder() {
    for members in [
        r#""response_format":{"type":"text"}"#,
        r#""response_format":null"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto""#,
        r#""tool_choice":"none""#,
        r#""function_call":"auto""#,
        r#""n":1"#,
        r#""guided_json":null"#,
        r#""enable_thinking":false"#,
        r#""thinking":{"type":"disabled"}"#,
        r#""reasoning_effort":"none""#,
        r#""reasoning":{"effort":"none"}"#,
        r#""reasoning":{"enabled":false}"#,
        r#""reasoning":null"#,
        r#""chat_template_kwargs":{"enable_thinking":false,"x":1}"#,
        r#""chat_template_kwargs":{}"#,
        r#""metadata":{"response_format":{"type":"json_object"}}"#,
    ] {
        for dialect in CONTINUED {
            assert!(
                continued(dialect, &with(members), PARTIAL).is_some(),
                "{members}"
            );
        }
    }
}

/// JSON values of every kind.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..3)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(CONTINUED.to_vec())
}

proptest! {
    #[test]
    fn all_else_stays_as_it_was_sent(
        dialect in dialect(),
        front in prop::collection::vec(("x[a-z]{0,4}", value()), 0..3),
        back in prop::collection::vec(("y[a-z]{0,4}", value()), 0..3),
        earlier in prop::collection::vec(value(), 0..3),
        space in "[ \t\r\n]{0,2}",
        partial in "[^ ].{0,40}[^ \\s]",
    ) {
        let list = |members: &[(String, Value)]| {
            let members = members.iter().map(|(name, value)| {
                format!("{}{space}:{value}{space}", Value::from(name.as_str()))
            });
            members.collect::<Vec<_>>()
        };
        let mut messages = earlier.iter().map(Value::to_string).collect::<Vec<_>>();
        messages.push(r#"{"role":"user","content":"hi"}"#.to_owned());
        let around = |messages: &[String], flags: &str| {
            let mut members = list(&front);
            let messages = messages.join(&format!("{space},{space}"));
            members.push(format!("\"messages\"{space}:{space}[{space}{messages}@{space}]"));
            members.extend(list(&back));
            format!("{space}{{{flags}{}{space}}}{space}", members.join(","))
        };

        let body = around(&messages, "").replace('@', "");
        prop_assume!(!around(&messages, "").replacen('@', "", 1).contains('@') && !partial.contains('@'));
        let continued = continued(dialect, &body, &partial).unwrap();

        let content = Value::from(partial.as_str());
        let flag = match dialect {
            Dialect::Mistral | Dialect::Deepseek => r#","prefix":true"#,
            Dialect::Moonshot | Dialect::Qwen => r#","partial":true"#,
            _ => "",
        };
        let flags = match dialect {
            Dialect::Vllm => r#""continue_final_message":true,"add_generation_prompt":false,"#,
            Dialect::Sglang => r#""continue_final_message":true,"#,
            _ => "",
        };
        let message = format!(r#",{{"role":"assistant","content":{content}{flag}}}"#);
        let expected = around(&messages, flags).replacen('@', &message, 1);
        prop_assert_eq!(&continued, &expected);

        let read: Value = serde_json::from_str(&continued).unwrap();
        let last = read["messages"].as_array().unwrap().last().unwrap();
        prop_assert_eq!(&last["content"], &json!(partial));
    }

    #[test]
    fn what_comes_out_is_json(
        dialect in dialect(),
        body in "[{}\\[\\]:,\"\\\\messagrol1 ]{0,60}",
        partial in any::<String>(),
    ) {
        if let Some(continued) = continued(dialect, &body, &partial) {
            prop_assert!(serde_json::from_str::<Value>(&continued).is_ok());
        }
    }
}
