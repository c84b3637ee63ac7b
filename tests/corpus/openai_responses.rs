//! OpenAI Responses: what its recordings mean, from JSON trees.

use std::collections::BTreeSet;

use redrive::protocol::{DecoderOptions, openai_responses::Decoder};
use serde_json::{Value, json};

use crate::{
    items::{Item, Kind, items},
    protocol::Protocol,
    recording::Recording,
    told::{Call, Outcome, Told},
};

/// OpenAI Responses, of whichever server.
pub struct OpenaiResponses;

/// What the oracle remembers.
#[derive(Default)]
pub struct Oracle {
    outcome: Outcome,
    /// The number of the next event; none if they have none.
    next: Option<u64>,
    begun: bool,
    over: bool,
    /// The provider keeps no items.
    not_kept: bool,
    /// Items in order of appearance: place, type, id, and whether they were closed.
    items: Vec<(u64, String, String, bool)>,
    /// Calls that were done without having begun.
    held: Vec<(u64, Value)>,
    /// Every block that was mentioned.
    seen: BTreeSet<u32>,
    /// Calls that have begun.
    called: BTreeSet<u64>,
    /// The block that output goes to.
    current: Option<u32>,
}

const TEXT: u64 = 0;
const REASONING: u64 = 1;
const SUMMARY: u64 = 2;

impl Protocol for OpenaiResponses {
    const NAME: &'static str = "openai-responses";
    const AT_LEAST: usize = 70;
    type Decoder = Decoder;
    type Oracle = Oracle;

    /// A body begins where a response is created.
    fn bodies(recording: Recording) -> Vec<Recording> {
        let types: Vec<(usize, String)> = items(&recording.bytes)
            .into_iter()
            .map(|item| (item.start, kind_of(&item)))
            .collect();
        let created = types.iter().filter(|(_, kind)| kind == "response.created");
        let mut starts: Vec<usize> = created.map(|(start, _)| *start).collect();
        if starts.len() < 2 {
            return vec![recording];
        }
        starts[0] = 0;
        let ends = starts[1..].iter().copied().chain([recording.bytes.len()]);
        let body = |(number, (start, end)): (usize, (usize, usize))| {
            let bytes = recording.bytes[start..end].to_vec();
            Recording {
                file: format!("{} ({number})", recording.file),
                finish_reasons: vec!["response.completed".to_owned()],
                done_sentinel: None,
                events: items(&bytes).len(),
                bytes,
            }
        };
        starts
            .iter()
            .copied()
            .zip(ends)
            .enumerate()
            .map(body)
            .collect()
    }

    fn options(recording: &Recording) -> DecoderOptions {
        // The one that was asked for from a number on.
        let resumed = recording.file.contains("starting-after");
        DecoderOptions {
            after: resumed.then_some(0),
            ..DecoderOptions::default()
        }
    }

    fn decoder(options: DecoderOptions) -> Decoder {
        Decoder::new(options)
    }

    fn add(oracle: &mut Oracle, item: &Item) {
        if !oracle.over {
            oracle.add(item);
        }
    }

    fn outcome(oracle: &Oracle) -> &Outcome {
        &oracle.outcome
    }

    fn word(native: &str) -> Option<&'static str> {
        match native {
            "completed" => Some("Stop"),
            "max_output_tokens" => Some("Length"),
            _ => None,
        }
    }

    fn against_the_manifest(recording: &Recording, whole: &[Told], _: bool) {
        let file = &recording.file;
        let finishes = Told::finishes(whole);
        // A recorder left events out; there are no others with gaps.
        if whole.last() == Some(&Told::Undecodable("Gap".to_owned())) {
            return assert!(file.contains("openai-phase-1"), "{file}");
        }
        match recording.finish_reasons.as_slice() {
            [reason] if reason == "response.completed" => assert_eq!(finishes, ["completed"]),
            [reason] if reason.starts_with("response.failed") => {
                assert!(matches!(whole.last(), Some(Told::Error(_))), "{file}");
            }
            [reason] => {
                let (_, why) = reason.split_once(':').expect("a reason");
                assert_eq!(finishes, [why], "{file}");
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}

fn kind_of(item: &Item) -> String {
    match &item.kind {
        Kind::Event(_, data) => serde_json::from_str::<Value>(data)
            .ok()
            .and_then(|event| event["type"].as_str().map(str::to_owned))
            .unwrap_or_default(),
        _ => String::new(),
    }
}

/// A block's number: the item, the list in it, the place in that.
fn block(item: u64, list: u64, part: u64) -> u32 {
    u32::try_from(item * 65_536 + list * 16_384 + part).unwrap()
}

impl Oracle {
    fn add(&mut self, item: &Item) {
        let Kind::Event(_, data) = &item.kind else {
            return;
        };
        if data == "[DONE]" {
            self.outcome.done = true;
            self.over = true;
            return;
        }
        let event: Value = serde_json::from_str(data).expect("an event is JSON");
        let kind = event["type"].as_str().expect("a type").to_owned();
        if kind == "error" {
            return self.fail(data.as_bytes());
        }
        if !self.follows(event["sequence_number"].as_u64()) {
            return self.fail(b"Gap");
        }
        let response = &event["response"];
        match kind.as_str() {
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.name(response);
                self.usage(&response["usage"]);
                if kind == "response.failed" {
                    return self.fail(data.as_bytes());
                }
                self.end(response);
            }
            _ if response.is_object() => {
                self.name(response);
                self.not_kept |= response["store"] == json!(false);
            }
            _ => self.output(&kind, &event),
        }
    }

    fn fail(&mut self, why: &[u8]) {
        self.outcome.error = Some(why.to_owned());
        self.over = true;
    }

    fn follows(&mut self, number: Option<u64>) -> bool {
        if !std::mem::replace(&mut self.begun, true) {
            // The resumed recording begins with 1, a stream of its own with 0.
            self.next = number;
        }
        let Some(next) = self.next else { return true };
        self.next = Some(next + 1);
        number == Some(next)
    }

    fn name(&mut self, response: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.outcome.id = self.outcome.id.take().or(text(&response["id"]));
        self.outcome.model = self.outcome.model.take().or(text(&response["model"]));
    }

    fn usage(&mut self, usage: &Value) {
        if usage.is_object() {
            let count = |value: &Value| value.as_u64().unwrap_or(0);
            self.outcome.usage = Some([
                count(&usage["input_tokens"]),
                count(&usage["output_tokens"]),
                count(&usage["input_tokens_details"]["cached_tokens"]),
                count(&usage["input_tokens_details"]["cache_write_tokens"]),
                count(&usage["output_tokens_details"]["reasoning_tokens"]),
            ]);
        }
    }

    fn output(&mut self, kind: &str, event: &Value) {
        let newest = self.items.last().map_or(0, |item| item.0);
        let item = event["output_index"].as_u64().unwrap_or(newest);
        let index = |name: &str| event[name].as_u64().unwrap_or(0);
        let (content, summary) = (index("content_index"), index("summary_index"));
        let delta = event["delta"].as_str().unwrap_or("");
        match kind {
            "response.output_text.delta" => {
                self.outcome.text += delta;
                self.say(block(item, TEXT, content), "Text", delta);
            }
            "response.refusal.delta" => {
                self.outcome.refusal += delta;
                self.say(block(item, TEXT, content), "Text", delta);
            }
            "response.reasoning_text.delta" => {
                self.outcome.reasoning += delta;
                self.say(block(item, REASONING, content), "Reasoning", delta);
            }
            "response.reasoning_summary_text.delta" => {
                self.outcome.reasoning += delta;
                self.say(block(item, SUMMARY, summary), "Reasoning", delta);
            }
            "response.function_call_arguments.delta" => {
                let number = block(item, TEXT, 0);
                self.say(number, "ToolCall", delta);
                let call = self
                    .outcome
                    .calls
                    .iter_mut()
                    .find(|call| call.number == number);
                call.expect("a call").arguments += delta;
            }
            "response.output_text.done" => self.whole(block(item, TEXT, content), &event["text"]),
            "response.refusal.done" => self.whole(block(item, TEXT, content), &event["refusal"]),
            "response.reasoning_text.done" => {
                self.whole(block(item, REASONING, content), &event["text"]);
            }
            "response.reasoning_summary_text.done" => {
                self.whole(block(item, SUMMARY, summary), &event["text"]);
            }
            "response.function_call_arguments.done" => {
                self.whole(block(item, TEXT, 0), &event["arguments"]);
            }
            // DeepSeek begins the parts of reasoning as parts of content.
            "response.content_part.added" if event["part"]["type"] == "reasoning_text" => {
                self.open(block(item, REASONING, content), "Reasoning");
            }
            "response.content_part.done" if event["part"]["type"] == "reasoning_text" => {
                self.whole_part(block(item, REASONING, content), &event["part"]);
            }
            "response.content_part.added" => self.open(block(item, TEXT, content), "Text"),
            "response.reasoning_part.added" => {
                self.open(block(item, REASONING, content), "Reasoning");
            }
            "response.reasoning_summary_part.added" => {
                self.open(block(item, SUMMARY, summary), "Reasoning");
            }
            "response.content_part.done" => {
                self.whole_part(block(item, TEXT, content), &event["part"]);
            }
            "response.reasoning_part.done" => {
                self.whole_part(block(item, REASONING, content), &event["part"]);
            }
            "response.reasoning_summary_part.done" => {
                self.whole_part(block(item, SUMMARY, summary), &event["part"]);
            }
            "response.output_item.added" => self.added(item, &event["item"]),
            "response.output_item.done" => self.done(item, &event["item"]),
            _ if kind.contains("_call")
                && (!delta.is_empty() || kind.ends_with("partial_image")) =>
            {
                self.open(block(item, TEXT, 0), "Native");
            }
            _ => {}
        }
    }

    fn open(&mut self, number: u32, kind: &str) {
        self.seen.insert(number);
        self.current = Some(number);
        self.outcome.open(number, kind);
    }

    fn say(&mut self, number: u32, kind: &str, text: &str) {
        if !text.is_empty() {
            self.open(number, kind);
            self.outcome.block(number).unwrap().content += text;
        }
    }

    fn whole(&mut self, number: u32, whole: &Value) {
        let whole = whole.as_str().unwrap_or("");
        if !whole.is_empty() {
            self.seen.insert(number);
            self.outcome.repeat(number, whole);
        }
    }

    fn whole_part(&mut self, number: u32, part: &Value) {
        match part["type"] == "refusal" {
            true => self.whole(number, &part["refusal"]),
            false => self.whole(number, &part["text"]),
        }
    }

    fn see(&mut self, place: u64, item: &Value) -> String {
        let kind = item["type"].as_str().unwrap().to_owned();
        if !self.items.iter().any(|known| known.0 == place) {
            let id = item["id"].as_str().unwrap_or("").to_owned();
            self.items.push((place, kind.clone(), id, false));
        }
        kind
    }

    fn call(&mut self, place: u64, item: &Value) {
        if self.called.insert(place) {
            self.outcome.calls.push(Call {
                number: block(place, TEXT, 0),
                id: item["call_id"].as_str().unwrap().to_owned(),
                name: item["name"].as_str().unwrap().to_owned(),
                arguments: String::new(),
            });
        }
    }

    fn added(&mut self, place: u64, item: &Value) {
        match self.see(place, item).as_str() {
            "message" => {}
            "reasoning" => self.open(block(place, SUMMARY, 0), "Reasoning"),
            "function_call" => {
                self.open(block(place, TEXT, 0), "ToolCall");
                self.call(place, item);
            }
            _ => self.open(block(place, TEXT, 0), "Native"),
        }
    }

    fn done(&mut self, place: u64, item: &Value) {
        let kind = self.see(place, item);
        if kind == "function_call" && !self.called.contains(&place) {
            self.held.push((place, item.clone()));
        } else {
            self.whole_item(place, item, true);
        }
        if let Some(open) = self
            .current
            .filter(|open| u64::from(open / 65_536) == place)
        {
            self.current = None;
            self.outcome.block(open).unwrap().ended = true;
        }
    }

    /// A whole item. What has no deltas is told as one where the item is done.
    fn whole_item(&mut self, place: u64, item: &Value, done: bool) {
        let number = block(place, TEXT, 0);
        let first = |items: &mut Vec<(u64, String, String, bool)>| {
            let known = items.iter_mut().find(|known| known.0 == place).unwrap();
            !std::mem::replace(&mut known.3, true)
        };
        match self.see(place, item).as_str() {
            "message" => {
                self.parts(place, TEXT, &item["content"]);
            }
            "function_call" => {
                self.call(place, item);
                self.whole(number, &item["arguments"]);
            }
            "reasoning" => {
                let content = self.parts(place, REASONING, &item["content"]);
                let summary = self.parts(place, SUMMARY, &item["summary"]);
                let mut signature = json!({});
                if content.is_some() && summary.is_none() {
                    signature["content"] = "reasoning_text".into();
                }
                match item["encrypted_content"].as_str().unwrap_or("") {
                    "" if self.not_kept => {
                        first(&mut self.items);
                        return;
                    }
                    "" => {}
                    secret => signature["encrypted_content"] = secret.into(),
                }
                signature["id"] = item["id"].clone();
                if first(&mut self.items) {
                    assert!(done, "no recording lists reasoning that was not done");
                    let at = summary.or(content).unwrap_or(block(place, SUMMARY, 0));
                    self.open(at, "Reasoning");
                    self.outcome.block(at).unwrap().signature = signature.to_string();
                }
            }
            _ => {
                // One recording lists results of which it never told that they were done.
                match first(&mut self.items) {
                    true if done => self.say(number, "Native", &item.to_string()),
                    true => self.outcome.repeat(number, &item.to_string()),
                    false => {}
                }
            }
        }
    }

    fn parts(&mut self, place: u64, list: u64, parts: &Value) -> Option<u32> {
        let parts = parts.as_array().cloned().unwrap_or_default();
        let of_list = |number: &&u32| *number / 16_384 == block(place, list, 0) / 16_384;
        let seen: Vec<u32> = self.seen.iter().filter(of_list).copied().collect();
        let numbers: Vec<u32> = match seen.len() == parts.len() {
            true => seen,
            false => (0..parts.len() as u64)
                .map(|part| block(place, list, part))
                .collect(),
        };
        for (part, number) in parts.iter().zip(&numbers) {
            self.whole_part(*number, part);
        }
        numbers.last().copied()
    }

    fn end(&mut self, response: &Value) {
        for (place, item) in std::mem::take(&mut self.held) {
            self.whole_item(place, &item, false);
        }
        let listed = response["output"].as_array().cloned().unwrap_or_default();
        for (position, item) in listed.iter().enumerate() {
            let id = item["id"].as_str().unwrap_or("");
            let by_id = self
                .items
                .iter()
                .find(|known| !id.is_empty() && known.2 == id);
            let in_order = || {
                self.items
                    .get(position)
                    .filter(|_| self.items.len() == listed.len())
            };
            match by_id.or_else(in_order) {
                Some(known) if item["type"] == known.1.as_str() => {
                    self.whole_item(known.0, item, false);
                }
                Some(_) => {}
                None if self.items.iter().any(|known| known.0 == position as u64) => {}
                None => self.whole_item(position as u64, item, false),
            }
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        self.outcome.finish = Some(reason.unwrap_or("completed").to_owned());
        self.outcome.done = true;
        self.over = true;
    }
}
