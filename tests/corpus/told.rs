//! What the decoder told, kept.

use redrive::protocol::{Delta, Event};

/// Usage in the order of [`Outcome::usage`]: input, output, cache reads, cache writes, reasoning.
pub type Counts = [u64; 5];

/// An [`Event`] that owns its text.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Started(Option<String>, Option<String>),
    Text(String),
    Reasoning(String),
    Refusal(String),
    ToolCallStart(u32, String, String),
    ToolArguments(u32, String),
    Signature(String),
    Redacted(String),
    NativeBlock(String),
    Block(u32, String),
    BlockEnd(u32),
    Snapshot(u32, String),
    Cursor(u64),
    Unknown,
    Keepalive(bool),
    Usage(Counts),
    Finishing,
    Finish(String, String),
    BadFinish(String),
    End(bool),
    Error(Vec<u8>),
    Undecodable(String),
}

impl From<Event<'_>> for Told {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Started { response_id, model } => {
                Self::Started(response_id.map(str::to_owned), model.map(str::to_owned))
            }
            Event::Delta(Delta::Text(text)) => Self::Text(text.to_owned()),
            Event::Delta(Delta::Reasoning(text)) => Self::Reasoning(text.to_owned()),
            Event::Delta(Delta::Refusal(text)) => Self::Refusal(text.to_owned()),
            Event::Delta(Delta::ToolCallStart { call, id, name }) => {
                Self::ToolCallStart(call, id.to_owned(), name.to_owned())
            }
            Event::Delta(Delta::ToolArguments { call, fragment }) => {
                Self::ToolArguments(call, fragment.to_owned())
            }
            Event::Delta(Delta::ReasoningSignature(text)) => Self::Signature(text.to_owned()),
            Event::Delta(Delta::RedactedReasoning(data)) => Self::Redacted(data.to_owned()),
            Event::Delta(Delta::NativeBlock(json)) => Self::NativeBlock(json.to_owned()),
            Event::Block { block, kind } => Self::Block(block, format!("{kind:?}")),
            Event::BlockEnd { block } => Self::BlockEnd(block),
            Event::Snapshot { block, whole } => Self::Snapshot(
                block,
                match whole {
                    Delta::Text(text)
                    | Delta::Reasoning(text)
                    | Delta::Refusal(text)
                    | Delta::ToolArguments { fragment: text, .. }
                    | Delta::ReasoningSignature(text) => text.to_owned(),
                    Delta::NativeBlock(json) => {
                        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
                        value.to_string()
                    }
                    other => unreachable!("no snapshot is {other:?}"),
                },
            ),
            Event::Cursor { sequence } => Self::Cursor(sequence),
            Event::Unknown => Self::Unknown,
            Event::Keepalive { content } => Self::Keepalive(content),
            Event::Usage(usage) => Self::Usage([
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_write_input_tokens,
                usage.reasoning_output_tokens,
            ]),
            Event::Finishing => Self::Finishing,
            Event::Finish { reason, native } => {
                Self::Finish(format!("{reason:?}"), native.to_owned())
            }
            Event::BadFinish { native } => Self::BadFinish(native.to_owned()),
            Event::End { completes } => Self::End(completes),
            Event::Error { json } => Self::Error(json.to_owned()),
            Event::Native { .. } => unreachable!("native events were not asked for"),
            Event::Undecodable(error) => Self::Undecodable(format!("{error:?}")),
        }
    }
}

impl Told {
    /// The finish reasons, as the provider spelled them.
    pub fn finishes(told: &[Self]) -> Vec<String> {
        let native = |told: &Self| match told {
            Self::Finish(_, native) => Some(native.clone()),
            _ => None,
        };
        told.iter().filter_map(native).collect()
    }
}

/// What a response amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub text: String,
    pub reasoning: String,
    pub refusal: String,
    pub calls: Vec<Call>,
    /// The blocks that the protocol numbers, in order of appearance.
    pub blocks: Vec<Block>,
    /// The place in `blocks` of the one that text belongs to.
    pub current: Option<usize>,
    pub unknown: usize,
    pub cursor: Option<u64>,
    pub finish: Option<String>,
    pub usage: Option<Counts>,
    pub id: Option<String>,
    pub model: Option<String>,
    pub error: Option<Vec<u8>>,
    pub done: bool,
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub number: u32,
    /// Empty if the provider gave none.
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// A block that the protocol numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub number: u32,
    pub kind: String,
    /// Text, reasoning, refusal, arguments, hidden reasoning or native JSON.
    pub content: String,
    pub signature: String,
    pub snapshot: Option<String>,
    pub ended: bool,
}

impl Outcome {
    /// Adds what was told.
    pub fn add(&mut self, told: &Told) {
        match told {
            Told::Started(id, model) => {
                self.id = self.id.take().or(id.clone());
                self.model = self.model.take().or(model.clone());
            }
            Told::Text(text) => {
                self.text += text;
                self.add_content(text);
            }
            Told::Reasoning(text) => {
                self.reasoning += text;
                self.add_content(text);
            }
            Told::Refusal(text) => {
                self.refusal += text;
                self.add_content(text);
            }
            Told::Signature(text) => self.current().expect("a block").signature += text,
            Told::Redacted(text) => self.add_content(text),
            // Its JSON is compared as what it means.
            Told::NativeBlock(json) => {
                let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
                self.add_content(&value.to_string());
            }
            Told::ToolCallStart(number, id, name) => {
                assert!(!id.is_empty());
                let id = if id.starts_with("call_redrive_") {
                    ""
                } else {
                    id
                };
                self.calls.push(Call {
                    number: *number,
                    id: id.to_owned(),
                    name: name.clone(),
                    arguments: String::new(),
                });
            }
            Told::ToolArguments(number, fragment) => {
                let call = self.calls.iter_mut().find(|call| call.number == *number);
                call.expect("a call").arguments += fragment;
                if let Some(block) = self.block(*number) {
                    block.content += fragment;
                }
            }
            Told::Block(number, kind) => self.open(*number, kind),
            Told::BlockEnd(number) => self.block(*number).expect("a block").ended = true,
            Told::Snapshot(number, whole) => self.repeat(*number, whole),
            Told::Cursor(sequence) => self.cursor = Some(*sequence),
            Told::Unknown => self.unknown += 1,
            Told::Keepalive(_) | Told::Finishing => {}
            Told::Usage(usage) => self.usage = Some(*usage),
            Told::Finish(_, native) | Told::BadFinish(native) => self.finish = Some(native.clone()),
            Told::End(_) => self.done = true,
            Told::Error(json) => self.error = Some(json.clone()),
            Told::Undecodable(error) => self.error = Some(error.clone().into_bytes()),
        }
    }

    /// Begins a block, or goes back to it.
    pub fn open(&mut self, number: u32, kind: &str) {
        let known = self.blocks.iter().position(|block| block.number == number);
        self.current = known.or_else(|| {
            self.blocks.push(Block {
                number,
                kind: kind.to_owned(),
                ..Block::default()
            });
            Some(self.blocks.len() - 1)
        });
    }

    /// Notes the whole content of a block, which need not have begun.
    pub fn repeat(&mut self, number: u32, whole: &str) {
        let current = self.current;
        if self.block(number).is_none() {
            self.open(number, "");
            self.current = current;
        }
        if let Some(block) = self.block(number) {
            block.snapshot = Some(whole.to_owned());
        }
    }

    /// A block by its number.
    pub fn block(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks.iter_mut().find(|block| block.number == number)
    }

    fn current(&mut self) -> Option<&mut Block> {
        self.blocks.get_mut(self.current?)
    }

    fn add_content(&mut self, text: &str) {
        if let Some(block) = self.current() {
            block.content += text;
        }
    }
}
