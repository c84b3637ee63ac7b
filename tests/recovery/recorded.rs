//! What servers really made of an answer that was begun for them: recordings of requests that ended
//! with a message of the assistant, spoken as a stream, decoded, and judged by the core.
//!
//! The recordings are no part of the package. They are looked for in `REDRIVE_RECORDINGS`, else
//! beside the package; without them the test says so and passes.

use std::{env, fs, path::PathBuf};

use redrive::{
    protocol::{Decoder as _, Dialect, Protocol, Terminal, adapter, openai_chat::Decoder},
    recovery::Upstream,
};
use serde_json::{Value, json};

use crate::support::*;

/// Whose recording it is, in the order of the manifest, and whether the answer goes on in the core's
/// judgement. OpenAI always begins a new turn; one of the three does not open like the text before, and
/// no rule about texts can tell it. That is why the configuration refuses to continue there.
const EXPECTED: [(&str, bool); 10] = [
    ("anthropic", true),
    ("anthropic", true),
    ("anthropic", true),
    ("bedrock", true),
    ("bedrock", true),
    ("bedrock", true),
    ("openai", true),
    ("openai", true),
    ("openai", false),
    ("openrouter", true),
];

fn recordings() -> Option<PathBuf> {
    let folder = env::var_os("REDRIVE_RECORDINGS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures")),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "SKIPPED: no recordings at {}; set REDRIVE_RECORDINGS",
        folder.display()
    );
    None
}

/// The text of a message's content in any of the recorded forms.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        other => panic!("no content: {other}"),
    }
}

/// The end of what was sent to be continued; the manifest keeps no more of a long one.
fn sent(entry: &Value) -> String {
    let told = entry["request"]["last_message_content"].as_str().unwrap();
    match told.strip_prefix('…') {
        Some(end) => serde_json::from_str(&format!("\"{end}")).unwrap(),
        None => text_of(&serde_json::from_str(told).unwrap()),
    }
}

/// What came back.
fn answer(body: &str) -> String {
    if body.starts_with("event:") {
        let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let texts = events.filter_map(|event| Some(event["delta"]["text"].as_str()?.to_owned()));
        return texts.collect();
    }
    let body: Value = serde_json::from_str(body).unwrap();
    let forms = [
        "/content",
        "/output/message/content",
        "/choices/0/message/content",
    ];
    text_of(
        forms
            .into_iter()
            .find_map(|form| body.pointer(form))
            .unwrap(),
    )
}

/// The same as a stream, in pieces of a few characters.
fn spoken(text: &str) -> String {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters
        .chunks(5)
        .map(|piece| piece.iter().collect::<String>());
    let mut stream: String = pieces
        .map(|piece| chunk(json!({"content": piece}), None))
        .collect();
    stream += &chunk(json!({}), Some("stop"));
    stream + "data: [DONE]\n\n"
}

#[test]
fn recorded_answers_go_on_or_begin_anew_as_they_did() {
    let Some(folder) = recordings() else { return };
    let manifest = fs::read_to_string(folder.join("MANIFEST.jsonl")).unwrap();
    let entries = manifest
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let entries: Vec<Value> = entries
        .filter(|entry| entry["protocol"] == "continuation")
        .collect();
    let providers: Vec<&str> = entries
        .iter()
        .map(|entry| entry["provider"].as_str().unwrap())
        .collect();
    assert_eq!(providers, EXPECTED.map(|(provider, _)| provider));
    for (entry, (_, goes_on)) in entries.iter().zip(EXPECTED) {
        let file = entry["file"].as_str().unwrap();
        let body = fs::read_to_string(folder.join(file)).unwrap();
        let (sent, answer) = (sent(entry), answer(body.trim()));
        let mut script = Script::start(params_with(1, |params| {
            change_targets(params, |target| target.continues = true);
        }));
        script.open();
        script.text(&sent);
        script.usage(1);
        script.fail(reset());
        script.next_send();
        script.open();
        let mut decoder = Decoder::new(Terminal::FinishReason);
        decoder.feed(spoken(&answer).as_bytes(), &mut |event| {
            script.upstream_of(2, Upstream::Decoded(event));
        });
        script.upstream_of(2, Upstream::End);
        let told = script.last();
        if goes_on {
            let whole = format!("committed stop {:?}", format!("{sent}{answer}"));
            assert!(told.starts_with(&whole), "{file}: {told}");
        } else {
            assert_eq!(told, "attempt 3 a/m restart left=8", "{file}");
        }
    }
}

#[test]
fn where_a_new_turn_was_recorded_continuing_cannot_be_configured() {
    for dialect in Dialect::ALL {
        let begins_anew = [
            Dialect::Openai,
            Dialect::Generic,
            Dialect::Azure,
            Dialect::Groq,
            Dialect::Xai,
            Dialect::Snowflake,
        ];
        assert_eq!(
            adapter::continues(Protocol::OpenaiChat, dialect),
            !begins_anew.contains(&dialect),
            "{dialect:?}"
        );
    }
    let anthropic = Protocol::AnthropicMessages;
    assert!(adapter::continues(anthropic, Dialect::default()));
}
