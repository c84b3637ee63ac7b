//! Anthropic Messages: what its recordings mean, from JSON trees.

use redrive::protocol::{DecoderOptions, anthropic_messages::Decoder};
use serde_json::{Value, json};

use crate::{
    items::{Item, Kind, items},
    protocol::Protocol,
    recording::Recording,
    told::{Call, Outcome, Told},
};

/// Anthropic Messages, also as Vertex AI and OpenRouter serve it.
pub struct AnthropicMessages;

/// What the oracle remembers.
#[derive(Default)]
pub struct Oracle {
    outcome: Outcome,
    /// The last stop reason, which counts with the stop of the message.
    stop_reason: Option<String>,
    /// Input, output, cache reads, cache writes, thinking, as the provider counts them.
    counts: [u64; 5],
    /// Each block as a whole, by its number, put together like the vendor's libraries do.
    blocks: Vec<Value>,
    /// The pieces of each block's input.
    inputs: Vec<String>,
}

impl Protocol for AnthropicMessages {
    const NAME: &'static str = "anthropic";
    const AT_LEAST: usize = 80;
    type Decoder = Decoder;
    type Oracle = Oracle;

    /// A body ends with the stop of its message. What is behind the last one is `[DONE]`.
    fn bodies(recording: Recording) -> Vec<Recording> {
        const STOP: &[u8] = b"{\"type\":\"message_stop\"}\n\n";
        let bytes = recording.bytes.as_slice();
        let mut ends: Vec<usize> = bytes
            .windows(STOP.len())
            .enumerate()
            .filter(|(_, window)| *window == STOP)
            .map(|(at, _)| at + STOP.len())
            .collect();
        if ends.len() < 2 {
            return vec![recording];
        }
        assert_eq!(ends.pop(), Some(bytes.len()), "{}", recording.file);
        ends.push(bytes.len());
        let starts = [0].into_iter().chain(ends.clone());
        let body = |(number, (start, end)): (usize, (usize, usize))| {
            let bytes = bytes[start..end].to_vec();
            let reasons = items(&bytes)
                .into_iter()
                .filter_map(|item| match item.kind {
                    Kind::Event(_, data) => {
                        let event: Value = serde_json::from_str(&data).unwrap();
                        let reason = |place: &str| text(&event[place]["stop_reason"]);
                        reason("message").or(reason("delta"))
                    }
                    _ => None,
                });
            Recording {
                file: format!("{} ({number})", recording.file),
                finish_reasons: reasons.collect(),
                done_sentinel: recording.done_sentinel,
                events: items(&bytes).len(),
                bytes,
            }
        };
        starts.zip(ends).enumerate().map(body).collect()
    }

    fn options(_: &Recording) -> DecoderOptions {
        DecoderOptions::default()
    }

    fn decoder(options: DecoderOptions) -> Decoder {
        Decoder::new(options)
    }

    fn add(oracle: &mut Oracle, item: &Item) {
        if oracle.outcome.done || oracle.outcome.error.is_some() {
            return;
        }
        match &item.kind {
            Kind::Comment => {}
            Kind::Field(json) => oracle.outcome.error = Some(json.clone().into_bytes()),
            Kind::Event(_, data) if data.starts_with("[DONE]") => oracle.outcome.done = true,
            Kind::Event(name, data) => {
                let event: Value = serde_json::from_str(data).expect("an event is JSON");
                assert!(
                    ["", "message"].contains(&name.as_str()) || event["type"] == *name,
                    "an event has the name of its type"
                );
                oracle.event(&event);
            }
        }
    }

    fn outcome(oracle: &Oracle) -> &Outcome {
        &oracle.outcome
    }

    fn word(native: &str) -> Option<&'static str> {
        match native {
            "end_turn" | "stop_sequence" => Some("Stop"),
            "max_tokens" => Some("Length"),
            "tool_use" => Some("ToolCalls"),
            "pause_turn" => Some("Pause"),
            _ => None,
        }
    }

    fn against_the_manifest(recording: &Recording, whole: &[Told], _: bool) {
        let file = &recording.file;
        assert_eq!(Told::finishes(whole), recording.finish_reasons, "{file}");
        assert_eq!(whole.last(), Some(&Told::End(false)), "{file}");
    }
}

impl Oracle {
    fn event(&mut self, event: &Value) {
        let number = event["index"].as_u64().unwrap_or(0) as u32;
        match event["type"].as_str().expect("an event has a type") {
            "message_start" => {
                let message = &event["message"];
                self.outcome.id = text(&message["id"]);
                self.outcome.model = text(&message["model"]);
                self.usage(&message["usage"]);
                for (number, block) in message["content"].as_array().unwrap().iter().enumerate() {
                    self.start(number as u32, block);
                    self.stop(number as u32);
                }
                self.stop_reason = text(&message["stop_reason"]);
            }
            "content_block_start" => self.start(number, &event["content_block"]),
            "content_block_delta" => self.delta(number, &event["delta"]),
            "content_block_stop" => self.stop(number),
            "message_delta" => {
                self.stop_reason = text(&event["delta"]["stop_reason"]);
                self.usage(&event["usage"]);
            }
            "message_stop" => {
                self.outcome.finish = self.stop_reason.take();
                self.outcome.done = true;
            }
            "ping" => {}
            other => panic!("the recordings have no {other}"),
        }
    }

    fn start(&mut self, number: u32, block: &Value) {
        assert_eq!(
            number as usize,
            self.blocks.len(),
            "blocks are not interleaved"
        );
        self.blocks.push(block.clone());
        self.inputs.push(String::new());
        let kind = match block["type"].as_str().unwrap() {
            "text" => "Text",
            "thinking" | "redacted_thinking" => "Reasoning",
            "tool_use" => "ToolCall",
            _ => "Native",
        };
        self.outcome.open(number, kind);
        if let Some(data) = block["data"].as_str() {
            self.content(number).push_str(data);
        }
        if kind == "ToolCall" {
            self.outcome.calls.push(Call {
                number,
                id: text(&block["id"]).unwrap(),
                name: text(&block["name"]).unwrap(),
                arguments: String::new(),
            });
        }
        for streamed in ["text", "thinking", "signature"] {
            assert!(matches!(block[streamed].as_str(), None | Some("")));
        }
    }

    fn delta(&mut self, number: u32, delta: &Value) {
        let piece = |name: &str| delta[name].as_str().unwrap().to_owned();
        match delta["type"].as_str().unwrap() {
            "text_delta" => {
                self.outcome.text += &piece("text");
                *self.content(number) += &piece("text");
            }
            "thinking_delta" => {
                self.outcome.reasoning += &piece("thinking");
                *self.content(number) += &piece("thinking");
            }
            // Told with the end of its block.
            "signature_delta" => {
                self.blocks[number as usize]["signature"] = delta["signature"].clone();
            }
            "input_json_delta" => {
                self.inputs[number as usize] += &piece("partial_json");
                if self.is(number, "ToolCall") {
                    *self.content(number) += &piece("partial_json");
                    self.outcome.calls.last_mut().unwrap().arguments += &piece("partial_json");
                }
            }
            "compaction_delta" => {
                self.blocks[number as usize]["content"] = delta["content"].clone();
            }
            "citations_delta" => {}
            other => panic!("the recordings have no {other}"),
        }
    }

    fn stop(&mut self, number: u32) {
        let mut block = self.blocks[number as usize].clone();
        let input = self.inputs[number as usize].clone();
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).expect("an input is whole");
        }
        // A call of a server tool's program has its input in its start.
        if self.is(number, "ToolCall") && input.is_empty() && block["input"] != json!({}) {
            let arguments = block["input"].to_string();
            self.content(number).clone_from(&arguments);
            self.outcome.calls.last_mut().unwrap().arguments = arguments;
        }
        if self.is(number, "Native") {
            *self.content(number) = block.to_string();
        }
        let open = self.outcome.block(number).expect("an open block");
        open.signature = text(&block["signature"]).unwrap_or_default();
        open.ended = true;
    }

    fn is(&mut self, number: u32, kind: &str) -> bool {
        self.outcome
            .block(number)
            .is_some_and(|block| block.kind == kind)
    }

    fn content(&mut self, number: u32) -> &mut String {
        &mut self.outcome.block(number).expect("a block").content
    }

    /// Of the counts the last ones stand; cached input is input.
    fn usage(&mut self, usage: &Value) {
        let fields = [
            &usage["input_tokens"],
            &usage["output_tokens"],
            &usage["cache_read_input_tokens"],
            &usage["cache_creation_input_tokens"],
            &usage["output_tokens_details"]["thinking_tokens"],
        ];
        for (count, field) in self.counts.iter_mut().zip(fields) {
            *count = field.as_u64().unwrap_or(*count);
        }
        let [input, output, read, written, thinking] = self.counts;
        self.outcome.usage = Some([input + read + written, output, read, written, thinking]);
    }
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
