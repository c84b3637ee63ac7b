//! OpenAI Chat Completions: what its recordings mean, from JSON trees.

use redrive::protocol::{DecoderOptions, Terminal, openai_chat::Decoder};
use serde_json::Value;

use crate::{
    items::{Item, Kind},
    protocol::Protocol,
    recording::Recording,
    told::{Call, Outcome, Told},
};

/// OpenAI Chat Completions and its dialects.
pub struct OpenaiChat;

impl Protocol for OpenaiChat {
    const NAME: &'static str = "openai-chat";
    const AT_LEAST: usize = 300;
    type Decoder = Decoder;
    type Oracle = Outcome;

    fn options(recording: &Recording) -> DecoderOptions {
        DecoderOptions {
            // Without a finish reason only `[DONE]` can complete (Snowflake).
            terminal: if recording.finish_reasons.is_empty() {
                Terminal::DoneSentinel
            } else {
                Terminal::FinishReason
            },
            ..DecoderOptions::default()
        }
    }

    fn decoder(options: DecoderOptions) -> Decoder {
        Decoder::new(options.terminal)
    }

    fn add(outcome: &mut Outcome, item: &Item) {
        add(outcome, item);
    }

    fn outcome(outcome: &Outcome) -> &Outcome {
        outcome
    }

    fn word(native: &str) -> Option<&'static str> {
        match native {
            "stop" | "eos" => Some("Stop"),
            "length" => Some("Length"),
            "tool_calls" => Some("ToolCalls"),
            _ => None,
        }
    }

    fn against_the_manifest(recording: &Recording, whole: &[Told], unterminated: bool) {
        let file = &recording.file;
        let failed = whole.iter().any(|told| matches!(told, Told::Error(_)));
        let finishes = Told::finishes(whole);
        let expected = &recording.finish_reasons;
        if failed {
            // A finish reason beside the error object is not told.
            assert!(expected.starts_with(&finishes), "{file}: {finishes:?}");
        } else {
            assert_eq!(&finishes, expected, "{file}: finish reasons");
        }
        if let Some(done) = recording.done_sentinel {
            let ended = whole.iter().any(|told| matches!(told, Told::End(_)));
            assert_eq!(ended, (done || unterminated) && !failed, "{file}: [DONE]");
        }
    }
}

/// Adds an item to what came before it.
fn add(outcome: &mut Outcome, item: &Item) {
    if outcome.done || outcome.error.is_some() {
        return;
    }
    let (name, data) = match &item.kind {
        Kind::Comment => return,
        Kind::Field(json) => {
            outcome.error = Some(json.clone().into_bytes());
            return;
        }
        Kind::Event(name, data) => (name.as_str(), data.as_str()),
    };
    if data.starts_with("[DONE]") {
        outcome.done = true;
        return;
    }
    let chunk: Value = serde_json::from_str(data).expect("a chunk is JSON");
    if name == "error" || present(&chunk["error"]) {
        outcome.error = Some(data.as_bytes().to_owned());
        return;
    }
    keep_first(&mut outcome.id, &chunk["id"]);
    keep_first(&mut outcome.model, &chunk["model"]);
    for usage in [&chunk["x_groq"]["usage"], &chunk["usage"]] {
        add_usage(outcome, usage);
    }
    let none = Value::Null;
    let choice = chunk["choices"]
        .as_array()
        .and_then(|choices| {
            choices
                .iter()
                .find(|choice| choice["index"].as_u64().unwrap_or(0) == 0)
        })
        .unwrap_or(&none);
    add_delta(outcome, &choice["delta"]);
    if let Some(reason) = choice["finish_reason"]
        .as_str()
        .filter(|reason| !reason.is_empty())
    {
        outcome.finish = Some(reason.to_owned());
    }
}

fn add_delta(outcome: &mut Outcome, delta: &Value) {
    match &delta["content"] {
        Value::String(text) => outcome.text += text,
        Value::Array(parts) => {
            for part in parts {
                outcome.text += part["text"].as_str().unwrap_or("");
                for thought in part["thinking"].as_array().into_iter().flatten() {
                    outcome.reasoning += thought["text"].as_str().unwrap_or("");
                }
            }
        }
        _ => {}
    }
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .filter_map(|key| delta[*key].as_str())
        .find(|text| !text.is_empty());
    match (reasoning, &delta["reasoning_details"]) {
        (Some(text), _) => outcome.reasoning += text,
        (None, Value::Array(details)) => {
            for detail in details {
                outcome.reasoning += detail["text"].as_str().unwrap_or("");
            }
        }
        _ => {}
    }
    outcome.refusal += delta["refusal"].as_str().unwrap_or("");
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        add_call(outcome, call);
    }
}

/// The recordings need no more than this: an id begins a call unless it is that of the last one, and
/// all other fragments continue the last one (no recording interleaves its calls).
fn add_call(outcome: &mut Outcome, call: &Value) {
    let id = call["id"].as_str().unwrap_or("");
    let name = call["function"]["name"].as_str().unwrap_or("");
    let arguments = call["function"]["arguments"].as_str().unwrap_or("");
    let index = call["index"].as_u64();
    assert!(
        index.is_none_or(|index| index <= outcome.calls.len() as u64),
        "calls are not interleaved"
    );
    let known = outcome.calls.last().is_some_and(|last| last.id == id);
    if !id.is_empty() && !known {
        outcome.calls.push(Call {
            number: outcome.calls.len() as u32,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
    } else {
        outcome
            .calls
            .last_mut()
            .expect("the first fragment has an id")
            .arguments += arguments;
    }
}

fn add_usage(outcome: &mut Outcome, usage: &Value) {
    if !usage.is_object() {
        return;
    }
    let input = &usage["prompt_tokens_details"];
    let output = &usage["completion_tokens_details"];
    let spellings: [&[&Value]; 5] = [
        &[&usage["prompt_tokens"]],
        &[&usage["completion_tokens"]],
        &[
            &input["cached_tokens"],
            &usage["prompt_cache_hit_tokens"],
            &usage["cache_read_input_tokens"],
        ],
        &[
            &input["cache_write_tokens"],
            &usage["cache_creation_input_tokens"],
        ],
        &[&output["reasoning_tokens"], &usage["reasoning_tokens"]],
    ];
    let counts = outcome.usage.get_or_insert_default();
    for (count, spellings) in counts.iter_mut().zip(spellings) {
        if let Some(tokens) = spellings.iter().find_map(|value| value.as_u64()) {
            *count = tokens;
        }
    }
}

fn keep_first(slot: &mut Option<String>, value: &Value) {
    if slot.is_none() {
        *slot = value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned);
    }
}

fn present(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}
