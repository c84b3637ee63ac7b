//! The bound of a prompt's tokens.

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};
use proptest::prelude::*;
use redrive::limits::tokens::input;
use serde_json::{Value, json};

const PROSE: &str = "A lease takes of every budget that matches, or of none. While it waits, it holds \
    nothing that others could use, and what it reserved too much it gives back as soon as the provider \
    has told what the answer really took. ";

fn bound(model: &str, body: &Value, bytes_per_token: u32) -> u64 {
    input(model, body.to_string().as_bytes(), bytes_per_token)
}

fn chat(model: &str, messages: &[(&str, &str)]) -> Value {
    let messages = messages
        .iter()
        .map(|(role, content)| json!({"role": role, "content": content}));
    json!({"model": model, "stream": true, "messages": messages.collect::<Vec<_>>()})
}

/// What OpenAI's own rule for counting chat messages gives: three tokens for each message, its role, its
/// content, and three for the answer's beginning.
fn counted(tokenizer: &Tokenizer, messages: &[(&str, &str)]) -> u64 {
    let each = messages
        .iter()
        .map(|(role, content)| 3 + tokenizer.count(*role) + tokenizer.count(*content));
    each.sum::<usize>() as u64 + 3
}

#[test]
fn an_openai_prompt_is_bounded_closely() {
    let long = PROSE.repeat(100);
    let conversations: &[&[(&str, &str)]] = &[
        &[("user", "hi")],
        &[
            ("system", "Answer briefly."),
            ("user", "What is the capital of Peru?"),
        ],
        &[("user", &long)],
        &[
            ("user", "你好，世界。"),
            ("assistant", "Καλημέρα κόσμε"),
            ("user", "👩‍👩‍👧‍👦 naïve \"quotes\"\n\n\ttabs"),
        ],
        &[
            ("user", "{\"a\":[1,2,3],\"b\":{\"c\":null}}"),
            ("assistant", "fn main() {\n    println!(\"hi\");\n}"),
        ],
    ];
    for (model, tokenizer) in [("gpt-4o", o200k_base()), ("gpt-4-turbo", cl100k_base())] {
        for conversation in conversations {
            let bound = bound(model, &chat(model, conversation), 1);
            let counted = counted(tokenizer, conversation);
            assert!(
                bound * 10 >= counted * 11,
                "{model}: {bound} of {counted}: {conversation:?}"
            );
            // A tenth and the framing of a short request, no more.
            assert!(
                bound <= counted * 11 / 10 + 100,
                "{model}: {bound} of {counted}: {conversation:?}"
            );
        }
    }
}

#[test]
fn the_name_of_a_model_tells_how_it_is_counted() {
    // Old and new tokenizers differ most where the old one knew few words.
    let messages = [("user", "ありがとうございます。".repeat(200))];
    let messages: Vec<(&str, &str)> = messages
        .iter()
        .map(|(role, text)| (*role, text.as_str()))
        .collect();
    let body = chat("any", &messages);
    let new = bound("gpt-4o", &body, 1);
    let old = bound("gpt-4", &body, 1);
    let bytes = body.to_string().len() as u64 + 32;
    assert!(new < old && old < bytes / 2, "{new} {old} {bytes}");
    for model in [
        "gpt-4o-2024-11-20",
        "gpt-4.1-nano",
        "gpt-4.5-preview",
        "gpt-5",
        "gpt-5.2-codex",
        "gpt-6",
        "GPT-4o",
        "o1",
        "o3-mini",
        "o4-mini-2025-04-16",
        "chatgpt-4o-latest",
        "openai/gpt-4o",
        "openrouter/openai/gpt-5-mini",
        "ft:gpt-4o-mini-2024-07-18:acme::x",
        "gpt-4o-mini",
    ] {
        assert_eq!(bound(model, &body, 1), new, "{model}");
    }
    for model in [
        "gpt-4",
        "gpt-4-0613",
        "gpt-4-turbo",
        "gpt-4-32k",
        "gpt-3.5-turbo",
        "gpt-35-turbo-16k",
    ] {
        assert_eq!(bound(model, &body, 1), old, "{model}");
    }
    for model in [
        "openai/gpt-oss-120b",
        "openai.gpt-oss-20b-1:0",
        "gpt-oss:20b",
    ] {
        assert_eq!(bound(model, &body, 1), new + 128, "{model}");
    }
    for model in [
        "claude-opus-4-7",
        "gemini-3-pro",
        "mistral-large",
        "my-deployment",
        "gpt-j-6b",
        "gpt2",
        "gpt4all",
        "olmo-2",
        "o",
        "omni",
        "",
        "qwen3",
        "opus-o1x",
        "openai/whisper",
    ] {
        assert_eq!(bound(model, &body, 1), bytes, "{model}");
    }
}

#[test]
fn other_models_count_by_bytes() {
    let body = chat("claude-haiku-4-5", &[("user", PROSE)]);
    let bytes = body.to_string().len() as u64;
    assert_eq!(bound("claude-haiku-4-5", &body, 1), bytes + 32);
    assert_eq!(bound("claude-haiku-4-5", &body, 4), bytes.div_ceil(4) + 32);
    assert_eq!(bound("claude-haiku-4-5", &body, 0), bytes + 32);
    assert_eq!(bound("claude-haiku-4-5", &body, u32::MAX), 1 + 32);
}

#[test]
fn tools_cost_what_explains_them() {
    let mut body = chat("m", &[("user", "hi")]);
    let plain = bound("claude-opus-4-7", &body, 1);
    body["tools"] = json!([]);
    let added = ",\"tools\":[]".len() as u64;
    assert_eq!(bound("claude-opus-4-7", &body, 1), plain + added);
    body["tools"] = json!([{"name": "f", "input_schema": {"type": "bash_20250124"}}, {"type": "custom", "name": "g"}]);
    let size = body["tools"].to_string().len() as u64 - 2;
    assert_eq!(
        bound("claude-opus-4-7", &body, 1),
        plain + added + size + 600
    );
    body["tools"] = json!([{"type": "bash_20250124", "name": "bash"}, {"type": "web_search_20250305", "name": "web_search"}]);
    let size = body["tools"].to_string().len() as u64 - 2;
    assert_eq!(
        bound("claude-opus-4-7", &body, 1),
        plain + added + size + 600 + 2 * 800
    );
}

/// A schema that stands in the prompt as JSON costs its braces and quotes too.
#[test]
fn json_in_a_prompt_is_bounded_as_text() {
    let schema = json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
        "a": {"type": "string", "enum": ["x", "y", "z"], "description": PROSE},
        "b": {"type": "array", "items": {"type": "number", "minimum": 0.25, "maximum": 1_000_000_007}},
        "c": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/deep"}, {"const": -17}]},
    }});
    for (model, tokenizer) in [("gpt-4o", o200k_base()), ("gpt-4", cl100k_base())] {
        let text = tokenizer.count(schema.to_string().as_str()) as u64;
        let bound = bound(model, &schema, 1);
        assert!(bound >= text, "{model}: {bound} < {text}");
        assert!(bound <= text * 2, "{model}: {bound} of {text}");
    }
}

/// Where names and values are short, its marks are most of it.
#[test]
fn the_marks_of_json_are_bounded_too() {
    let members = (0..100).map(|n| (format!("k{n}"), json!("v")));
    let object = Value::Object(members.collect());
    // As Python writes it, and providers with it.
    let spaced = object.to_string().replace(':', ": ").replace(',', ", ");
    for (model, tokenizer) in [("gpt-4o", o200k_base()), ("gpt-4", cl100k_base())] {
        let text = tokenizer.count(spaced.as_str()) as u64;
        let bound = bound(model, &object, 1);
        assert!(bound >= text, "{model}: {bound} < {text}");
    }
}

#[test]
fn beyond_a_mebibyte_text_counts_by_bytes() {
    let text = PROSE.repeat(4_096);
    let half = &text[..1 << 19];
    let tokens = |parts: &[&str]| {
        let messages: Vec<_> = parts.iter().map(|part| ("user", *part)).collect();
        bound("gpt-4o", &chat("gpt-4o", &messages), 1)
    };
    let one = tokens(&[half]);
    assert!(one < (1 << 19) / 3, "{one}");
    let three = tokens(&[half, half, half]);
    // The names and roles of the request take of the mebibyte, so that the second half goes beyond it.
    assert!(three > 2 << 19 && three < (2 << 19) * 13 / 10, "{three}");
}

#[test]
fn what_is_no_json_counts_by_its_bytes() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let lone = r#"{"content":"\ud800"}"#;
    for body in [
        deep.as_bytes(),
        lone.as_bytes(),
        b"",
        b"not json",
        b"{\"a\":",
        b"{} {}",
        &[0xff, 0xfe],
    ] {
        for model in ["gpt-4o", "claude-opus-4-7"] {
            let bound = input(model, body, 1);
            assert!(
                bound >= body.len() as u64,
                "{bound} for {} bytes",
                body.len()
            );
            assert!(
                bound < body.len() as u64 + 1_000,
                "{bound} for {} bytes",
                body.len()
            );
        }
    }
}

/// Any JSON, of some depth.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        "[A-Za-z0-9+/]{16,60}={0,2}".prop_map(Value::from),
        Just(json!("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA")),
        Just(json!("https://example.com/cat.png")),
    ];
    let name = prop_oneof![
        "[a-z_]{1,10}",
        prop::sample::select(vec![
            "type",
            "tools",
            "input",
            "source",
            "data",
            "url",
            "image_url",
            "file_data",
            "images",
            "file_id",
            "arguments",
            "content",
            "messages",
            "text",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..300), bytes_per_token in any::<u32>()) {
        input("gpt-4o", &body, bytes_per_token);
        input("llama", &body, bytes_per_token);
    }

    #[test]
    fn a_prompt_is_never_bounded_below_its_text(text in "\\PC{0,400}", role in "[a-z]{1,9}") {
        let messages = [(role.as_str(), text.as_str())];
        for (model, tokenizer) in [("gpt-4o", o200k_base()), ("gpt-4", cl100k_base())] {
            let bound = bound(model, &chat(model, &messages), 1);
            prop_assert!(bound >= counted(tokenizer, &messages));
        }
        prop_assert!(bound("claude", &chat("claude", &messages), 1) >= text.len() as u64);
    }

    #[test]
    fn any_json_is_bounded_at_least_as_its_words_are(body in any_json()) {
        fn words(value: &Value) -> u64 {
            match value {
                Value::Object(members) => members.iter().map(|(name, value)| o200k_base().count(name.as_str()) as u64 + words(value)).sum(),
                Value::Array(elements) => elements.iter().map(words).sum(),
                Value::String(text) if text.starts_with("data:") || text.len() >= 16 => 0,
                Value::String(text) => o200k_base().count(text.as_str()) as u64,
                _ => 1,
            }
        }
        prop_assert!(bound("gpt-4o", &body, 1) >= words(&body));
    }

    /// One more message, and one more byte of text, never makes it less.
    #[test]
    fn more_is_never_less(messages in prop::collection::vec("\\PC{0,60}", 1..6), more in "[a-z ]{1,30}") {
        let of = |texts: &[String]| texts.iter().map(|text| ("user", text.clone())).collect::<Vec<_>>();
        let body = |texts: &[(&str, String)]| {
            let texts: Vec<_> = texts.iter().map(|(role, text)| (*role, text.as_str())).collect();
            chat("m", &texts)
        };
        let fewer = body(&of(&messages));
        let longer = body(&of(&[&messages[..], &[more]].concat()));
        for model in ["gpt-4o", "gpt-4", "claude-opus-4-7", "llama-3"] {
            prop_assert!(bound(model, &longer, 1) > bound(model, &fewer, 1));
            prop_assert!(bound(model, &longer, 4) >= bound(model, &fewer, 4));
        }
    }
}
