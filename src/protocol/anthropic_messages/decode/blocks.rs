//! Content blocks: text, thinking and tool calls as they stream, the provider's own ones whole.
//!
//! - A block is known by its `index`. One whose start was lost opens with its first text or thinking;
//!   argument text without a start is refused, because nobody knows which tool it is for.
//! - A thinking block's signature is told when the block ends; the last one counts. The text may be
//!   empty: the provider can be asked not to show it.
//! - A tool call's `input` that came with its start, instead of in fragments, is told at its end. Its
//!   `caller` (set where a server tool made the call) has no place in the contract.
//! - Citations of a text have no place in the contract either: they keep the stream alive, and reach
//!   clients that ask for native events.
//! - Server tools, their results, MCP, compactions, fallbacks and types that are not known: one JSON
//!   value each ([`Native`]). One whose input was cut off by the token limit is left out.

use serde_json::value::RawValue;

use super::{
    native::Native,
    wire::{Block, Delta},
};
use crate::protocol::{
    BlockKind, DecodeError, Delta as Output, Event, MAX_EVENT_BYTES, Sink,
    json::{
        shape::Shape,
        text::{non_empty, string},
    },
};

/// Blocks that may be open at once. Anthropic opens one after the other.
const MAX_OPEN: usize = 256;

/// The blocks of a response.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    open: Vec<Open>,
    /// How many blocks came with the start of the message; the streamed ones are counted behind them.
    offset: u32,
    /// The block that was told last.
    current: Option<u32>,
    scratch: [String; 2],
}

#[derive(Clone, Debug)]
struct Open {
    index: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Text,
    Thinking {
        signature: String,
    },
    /// Told whole at its start.
    Redacted,
    ToolCall {
        /// The input that came with the start, if it is not empty.
        input: String,
        /// Fragments of it were told.
        streams: bool,
    },
    Native(Native),
}

impl Blocks {
    /// The blocks that a message begins with, whole.
    pub(super) fn whole<'a>(
        &mut self,
        blocks: impl IntoIterator<Item = &'a RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        for block in blocks {
            self.begin(self.offset, block, sink)?;
            self.stop(self.offset, sink);
            self.offset += 1;
        }
        Ok(())
    }

    /// `content_block_start`.
    pub(super) fn start(
        &mut self,
        index: Option<&RawValue>,
        block: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let index = self.index(index)?;
        self.begin(index, block.ok_or(DecodeError::Json)?, sink)
    }

    /// `content_block_delta`.
    pub(super) fn delta(
        &mut self,
        index: Option<&RawValue>,
        delta: &Delta<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let index = self.index(index)?;
        let [scratch, text] = &mut self.scratch;
        let kind = match (delta.shape, delta.kind) {
            (Shape::Right, Some(kind)) => string(kind, scratch).ok_or(DecodeError::Json)?,
            _ => return Err(DecodeError::Json),
        };
        let kind = match kind {
            "text_delta" => Kind::Text,
            "thinking_delta" => Kind::Thinking,
            "signature_delta" => Kind::Signature,
            "input_json_delta" => Kind::Input,
            "compaction_delta" => Kind::Compaction,
            "citations_delta" => {
                sink(Event::Keepalive { content: true });
                return Ok(());
            }
            _ => {
                sink(Event::Unknown);
                return Ok(());
            }
        };
        let value = match kind {
            Kind::Text => delta.text,
            Kind::Thinking => delta.thinking,
            Kind::Signature => delta.signature,
            Kind::Input => delta.partial_json,
            Kind::Compaction => delta.content,
        };
        let value = match value {
            Some(value) if value.get() != "null" => string(value, text).ok_or(DecodeError::Json)?,
            _ => "",
        };
        let place = match self.open.iter().position(|open| open.index == index) {
            Some(place) => place,
            None => {
                let content = match kind {
                    Kind::Text => Content::Text,
                    Kind::Thinking | Kind::Signature => Content::Thinking {
                        signature: String::new(),
                    },
                    Kind::Input | Kind::Compaction => return Err(DecodeError::Json),
                };
                open(&mut self.open, index, content)?
            }
        };
        let Some(open) = self.open.get_mut(place) else {
            return Ok(());
        };
        let (block, fits) = (open.kind(), open.fits(kind));
        if !fits {
            return Err(DecodeError::Json);
        }
        // The beginning of a block of the provider's own is output, and so is every piece of it.
        if self.current != Some(index) || (block == BlockKind::Native && !value.is_empty()) {
            self.current = Some(index);
            sink(Event::Block {
                block: index,
                kind: block,
            });
        }
        let encrypted = delta
            .encrypted_content
            .filter(|json| kind == Kind::Compaction && json.get() != "null");
        if value.is_empty() && encrypted.is_none() {
            sink(Event::Keepalive { content: true });
            return Ok(());
        }
        match &mut open.content {
            Content::Text => sink(Event::Delta(Output::Text(value))),
            Content::Thinking { signature } if kind == Kind::Signature => {
                value.clone_into(signature);
                sink(Event::Keepalive { content: true });
            }
            Content::Thinking { .. } => sink(Event::Delta(Output::Reasoning(value))),
            Content::ToolCall { streams, .. } => {
                *streams = true;
                sink(Event::Delta(Output::ToolArguments {
                    call: index,
                    fragment: value,
                }));
            }
            Content::Native(native) if kind == Kind::Input => native.add_input(value),
            Content::Native(native) => {
                native.add_content(value);
                if let Some(encrypted) = encrypted {
                    native.set_encrypted(encrypted);
                }
            }
            Content::Redacted => {}
        }
        self.bound()
    }

    /// `content_block_stop`. Returns whether such a block was open.
    pub(super) fn end(
        &mut self,
        index: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let index = self.index(index)?;
        Ok(self.stop(index, sink))
    }

    /// The message is complete: ends the blocks whose end was lost.
    pub(super) fn finish(&mut self, sink: &mut Sink<'_>) {
        while let Some(first) = self.open.first() {
            let index = first.index;
            self.stop(index, sink);
        }
    }

    fn begin(
        &mut self,
        index: u32,
        raw: &RawValue,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let block: Block<'_> = serde_json::from_str(raw.get()).map_err(|_| DecodeError::Json)?;
        let [scratch, other] = &mut self.scratch;
        let kind = match (block.shape, block.kind) {
            (Shape::Right, Some(kind)) => string(kind, scratch).ok_or(DecodeError::Json)?,
            _ => return Err(DecodeError::Json),
        };
        let content = match kind {
            "text" => Content::Text,
            "thinking" => Content::Thinking {
                signature: non_empty(block.signature, other)
                    .unwrap_or_default()
                    .to_owned(),
            },
            "redacted_thinking" => Content::Redacted,
            "tool_use" => Content::ToolCall {
                input: block.input.map(input).unwrap_or_default(),
                streams: false,
            },
            other => {
                if !is_known(other) {
                    sink(Event::Unknown);
                }
                Content::Native(Native::new(raw))
            }
        };
        if self.open.iter().any(|open| open.index == index) {
            return Err(DecodeError::Json);
        }
        let place = open(&mut self.open, index, content)?;
        let Some(open) = self.open.get(place) else {
            return Ok(());
        };
        self.current = Some(index);
        sink(Event::Block {
            block: index,
            kind: open.kind(),
        });
        let output = match open.content {
            Content::Text => non_empty(block.text, other).map(Output::Text),
            Content::Thinking { .. } => non_empty(block.thinking, other).map(Output::Reasoning),
            Content::Redacted => non_empty(block.data, other).map(Output::RedactedReasoning),
            Content::ToolCall { .. } => {
                let name = non_empty(block.name, other).unwrap_or_default();
                let made_up;
                let id = match non_empty(block.id, scratch) {
                    Some(id) => id,
                    None => {
                        made_up = format!("call_redrive_{index}");
                        &made_up
                    }
                };
                sink(Event::Delta(Output::ToolCallStart {
                    call: index,
                    id,
                    name,
                }));
                None
            }
            Content::Native(_) => None,
        };
        if let Some(output) = output {
            sink(Event::Delta(output));
        }
        self.bound()
    }

    fn stop(&mut self, index: u32, sink: &mut Sink<'_>) -> bool {
        let Some(place) = self.open.iter().position(|open| open.index == index) else {
            return false;
        };
        let open = self.open.remove(place);
        let kind = open.kind();
        let last = match open.content {
            Content::Thinking { signature } => Some(signature).filter(|text| !text.is_empty()),
            Content::ToolCall { input, streams } => {
                Some(input).filter(|input| !streams && !input.is_empty())
            }
            Content::Native(native) => {
                let whole = native.whole();
                if whole.is_none() {
                    sink(Event::Unknown);
                }
                whole
            }
            Content::Text | Content::Redacted => None,
        };
        if let Some(last) = last {
            if self.current != Some(index) {
                self.current = Some(index);
                sink(Event::Block { block: index, kind });
            }
            sink(Event::Delta(match kind {
                BlockKind::ToolCall => Output::ToolArguments {
                    call: index,
                    fragment: &last,
                },
                BlockKind::Native => Output::NativeBlock(&last),
                BlockKind::Text | BlockKind::Reasoning => Output::ReasoningSignature(&last),
            }));
        }
        sink(Event::BlockEnd { block: index });
        true
    }

    fn index(&self, index: Option<&RawValue>) -> Result<u32, DecodeError> {
        index
            .and_then(|index| index.get().parse::<u32>().ok())
            .and_then(|index| index.checked_add(self.offset))
            .ok_or(DecodeError::Json)
    }

    fn bound(&self) -> Result<(), DecodeError> {
        match self.open.iter().map(Open::held_bytes).sum::<usize>() > MAX_EVENT_BYTES {
            true => Err(DecodeError::TooLarge),
            false => Ok(()),
        }
    }
}

/// Kinds of delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Signature,
    Input,
    Compaction,
}

impl Open {
    fn kind(&self) -> BlockKind {
        match self.content {
            Content::Text => BlockKind::Text,
            Content::Thinking { .. } | Content::Redacted => BlockKind::Reasoning,
            Content::ToolCall { .. } => BlockKind::ToolCall,
            Content::Native(_) => BlockKind::Native,
        }
    }

    /// Whether such a delta belongs into the block: one that does not would be lost.
    fn fits(&self, kind: Kind) -> bool {
        match self.content {
            Content::Text => kind == Kind::Text,
            Content::Thinking { .. } => matches!(kind, Kind::Thinking | Kind::Signature),
            Content::Redacted => false,
            Content::ToolCall { .. } => kind == Kind::Input,
            Content::Native(_) => matches!(kind, Kind::Input | Kind::Compaction),
        }
    }

    fn held_bytes(&self) -> usize {
        match &self.content {
            Content::Text | Content::Redacted => 0,
            Content::Thinking { signature } => signature.len(),
            Content::ToolCall { input, .. } => input.len(),
            Content::Native(native) => native.held_bytes(),
        }
    }
}

fn open(blocks: &mut Vec<Open>, index: u32, content: Content) -> Result<usize, DecodeError> {
    if blocks.len() == MAX_OPEN {
        return Err(DecodeError::TooLarge);
    }
    blocks.push(Open { index, content });
    Ok(blocks.len() - 1)
}

/// An input that says something; nearly all calls begin with an empty object and stream the rest.
fn input(raw: &RawValue) -> String {
    let text = raw.get();
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    match inside.map(str::trim) {
        Some("") => String::new(),
        None if text == "null" => String::new(),
        _ => text.to_owned(),
    }
}

/// The blocks that the beta and the stable API are known to send beside text, thinking and tool calls.
fn is_known(kind: &str) -> bool {
    kind.ends_with("_tool_use")
        || kind.ends_with("_tool_result")
        || matches!(kind, "compaction" | "fallback" | "container_upload")
}
