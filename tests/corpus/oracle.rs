//! What a recording means, computed in the plainest way: lines, then JSON trees. Slow, complete only
//! for what the recordings hold, and without a line of the decoder in it.

use serde_json::Value;

use crate::told::Outcome;

/// One item of a stream and where it stands.
pub struct Item {
    /// The first byte of its first line.
    pub start: usize,
    /// So many bytes show its content in full.
    pub content_end: usize,
    /// So many bytes complete it: the line that ends it has begun to end.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
}

/// Kinds of item.
pub enum Kind {
    Comment,
    /// An event: its name and its data.
    Event(String, String),
    /// A field that the grammar does not know, with a JSON object in it.
    Field(String),
}

/// Cuts a recording into its items. An event without its blank line is included if its data is whole.
pub fn items(bytes: &[u8]) -> Vec<Item> {
    let text = std::str::from_utf8(bytes).expect("a recording is UTF-8");
    let mut items = Vec::new();
    let mut name = String::new();
    let mut data: Vec<&str> = Vec::new();
    let (mut first, mut content_end) = (None, 0);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = rest.find(['\r', '\n']).unwrap_or(rest.len());
        let line = &rest[..length];
        let line_end = at + length;
        let next = line_end
            + if rest[length..].starts_with("\r\n") {
                2
            } else {
                usize::from(line_end < text.len())
            };
        if line.is_empty() {
            if let Some(start) = first.take() {
                let kind = Kind::Event(std::mem::take(&mut name), data.join("\n"));
                items.push(Item {
                    start,
                    content_end,
                    end: line_end + 1,
                    kind,
                });
                data.clear();
            }
            at = next;
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let item = |kind| Item {
            start: at,
            content_end: line_end,
            end: line_end + 1,
            kind,
        };
        match field {
            "" => items.push(item(Kind::Comment)),
            "data" => {
                first.get_or_insert(at);
                content_end = line_end;
                data.push(value);
            }
            "event" => {
                first.get_or_insert(at);
                name = value.to_owned();
            }
            _ if value.starts_with('{') && field == "error" => {
                items.push(item(Kind::Field(value.to_owned())));
            }
            _ => {}
        }
        at = next;
    }
    if let Some(start) = first {
        assert_eq!(
            data,
            ["[DONE]"],
            "the only unterminated event of the recordings"
        );
        let end = usize::MAX;
        items.push(Item {
            start,
            content_end,
            end,
            kind: Kind::Event(name, data.join("\n")),
        });
    }
    items
}

/// `true` once the outcome may be taken as complete.
pub fn is_complete(outcome: &Outcome, done_completes: bool) -> bool {
    outcome.error.is_none() && (outcome.finish.is_some() || (done_completes && outcome.done))
}

/// Adds an item to what came before it.
pub fn add(outcome: &mut Outcome, item: &Item) {
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
    let known = outcome.calls.last().is_some_and(|last| last.0 == id);
    if !id.is_empty() && !known {
        outcome
            .calls
            .push((id.to_owned(), name.to_owned(), arguments.to_owned()));
    } else {
        outcome
            .calls
            .last_mut()
            .expect("the first fragment has an id")
            .2 += arguments;
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
