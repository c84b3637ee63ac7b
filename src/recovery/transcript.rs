//! The message a generation accumulates, and what a client has been given of it.
//!
//! Each block belongs to one attempt, so that an attempt can become void while the ones that it
//! continued stay; an attempt that reads a stored response on takes over what is there.
//!
//! Delivery is a cursor, not a queue: each block knows how much of it was delivered, and a short list
//! says which blocks have more. A client that keeps up is given one token at a time; one that lags is
//! given what has come since, as one delta. A reset drops what was not delivered.

#[cfg(test)]
mod tests;
mod whole;

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

pub use self::whole::Compared;
use crate::{
    proto::{ToolCallStart, delta},
    protocol::Delta,
};

/// The largest piece of text in one delta, in bytes; frames stay under 1 MiB.
pub const MAX_DELTA_BYTES: usize = 512 << 10;

/// What a block costs beside its text, so that a flood of tiny blocks is bounded too.
const BLOCK_OVERHEAD: usize = 128;

/// What a block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text of the answer.
    Text,
    /// Reasoning.
    Reasoning,
    /// A refusal.
    Refusal,
    /// A tool call; the block's text is its arguments.
    ToolCall {
        /// The provider's id, or a made-up one.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// Reasoning that the provider keeps hidden; the block's text is its opaque data. Never previewed.
    Redacted,
    /// A block of the provider's own; the block's text is its JSON.
    Native,
}

/// One block of the message.
#[derive(Clone, Debug)]
pub struct Block {
    /// What it holds.
    pub kind: Kind,
    /// Its text, exactly as streamed.
    pub text: String,
    /// Of a reasoning block, where the provider signed it.
    pub signature: Option<Box<str>>,
    /// The attempt that its deltas are of.
    pub attempt: u32,
    /// Its text goes on with that of the block before it, which another attempt left.
    pub joins: bool,
    /// The provider's final snapshot of it was another.
    pub differs: bool,
    /// How much of the text was delivered.
    delivered: usize,
    /// Whether a tool call's start was delivered.
    announced: bool,
    /// Whether the block stands in the list of blocks with more to deliver.
    listed: bool,
}

/// One of the provider's own events.
#[derive(Debug)]
struct Native {
    attempt: u32,
    /// The block that was the newest when it came.
    block: usize,
    data: Bytes,
}

/// The message, as far as it is not void.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The attempt that what comes now is of.
    attempt: u32,
    blocks: Vec<Block>,
    bytes: usize,
    pending: VecDeque<usize>,
    /// The provider's own events.
    native: Vec<Native>,
    /// How many of them were delivered.
    native_delivered: usize,
    /// The events from here on are not shown yet: their attempt may not be what it seems.
    native_held: Option<u32>,
    /// The block of each tool call, and of each block that the protocol numbers.
    numbered: HashMap<u32, usize>,
    /// The protocol's number of the block that text belongs to, where it numbers its blocks.
    current: Option<u32>,
}

impl Transcript {
    /// What comes now is of `attempt`, whose blocks are its own. With `held`, events of the provider's own
    /// are not shown before [`Self::release`].
    pub fn begin(&mut self, attempt: u32, held: bool) {
        self.attempt = attempt;
        self.numbered.clear();
        self.current = None;
        self.native_held = held.then_some(self.native.len() as u32);
    }

    /// `attempt` reads on the same response: what is there is its own from now on.
    pub fn take_over(&mut self, attempt: u32) {
        self.attempt = attempt;
        for block in &mut self.blocks {
            block.attempt = attempt;
        }
        for event in &mut self.native {
            event.attempt = attempt;
        }
    }

    /// Shows what was held back.
    pub fn release(&mut self) {
        self.native_held = None;
    }

    /// Drops what was held back, and everything of `attempt` and later ones, delivered or not.
    pub fn void_from(&mut self, attempt: u32) {
        if let Some(held) = self.native_held.take() {
            self.native.truncate(held as usize);
        }
        self.native.retain(|event| event.attempt < attempt);
        self.native_delivered = self.native_delivered.min(self.native.len());
        self.blocks.retain(|block| block.attempt < attempt);
        self.pending.retain(|&index| index < self.blocks.len());
        self.numbered.clear();
        self.current = None;
        let blocks = self.blocks.iter().map(Block::bytes);
        let native = self.native.iter().map(Native::bytes);
        self.bytes = blocks.chain(native).sum();
    }

    /// All of its text, if it is text and nothing else.
    pub fn text_only(&self) -> Option<String> {
        let is_text = |block: &Block| block.kind == Kind::Text;
        let text = || self.blocks.iter().map(|block| &*block.text).collect();
        self.blocks.iter().all(is_text).then(text)
    }

    /// Appends a piece of output; the index of its block.
    pub fn append(&mut self, delta: &Delta<'_>) -> usize {
        match *delta {
            Delta::Text(text) => self.append_text(&Kind::Text, text),
            Delta::Reasoning(text) => self.append_text(&Kind::Reasoning, text),
            Delta::Refusal(text) => self.append_text(&Kind::Refusal, text),
            Delta::ToolCallStart { call, id, name } => {
                // A stream that is read on may tell again of a call that it has begun.
                if let Some(index) = self.known_call(call, id, name) {
                    return index;
                }
                self.bytes += id.len() + name.len();
                let kind = Kind::ToolCall {
                    id: id.to_owned(),
                    name: name.to_owned(),
                };
                let index = self.open(kind);
                self.numbered.insert(call, index);
                self.list(index);
                index
            }
            Delta::ToolArguments { call, fragment } => {
                let index = self.numbered.get(&call).copied().unwrap_or_else(|| {
                    self.open(Kind::ToolCall {
                        id: String::new(),
                        name: String::new(),
                    })
                });
                self.numbered.insert(call, index);
                self.push(index, fragment);
                index
            }
            Delta::ReasoningSignature(signature) => self.sign(signature),
            Delta::RedactedReasoning(data) => self.append_whole(Kind::Redacted, data),
            Delta::NativeBlock(json) => self.append_whole(Kind::Native, json),
        }
    }

    /// What follows belongs to the protocol's block `number`, which may be new; where it went before.
    pub fn select(&mut self, number: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut self.current, number)
    }

    /// Appends one of the provider's own events.
    pub fn append_native(&mut self, block: usize, data: &[u8]) {
        let event = Native {
            attempt: self.attempt,
            block,
            data: Bytes::copy_from_slice(data),
        };
        self.bytes += event.bytes();
        self.native.push(event);
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops everything, delivered or not.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Sets the cursor back to the start.
    pub fn rewind(&mut self) {
        self.pending.clear();
        self.native_delivered = 0;
        for (index, block) in self.blocks.iter_mut().enumerate() {
            block.delivered = 0;
            block.announced = false;
            block.listed = true;
            self.pending.push_back(index);
        }
    }

    /// `true` if the cursor is not at the end.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.next_native().is_some()
    }

    /// The attempt of the next delta, if there is one: of an earlier one before a later one.
    pub fn next_attempt(&self) -> Option<u32> {
        let native = self.next_native().map(|event| event.attempt);
        let block = self
            .pending
            .front()
            .and_then(|&index| self.blocks.get(index));
        native
            .into_iter()
            .chain(block.map(|block| block.attempt))
            .min()
    }

    fn next_native(&self) -> Option<&Native> {
        let shown = self
            .native_held
            .map_or(self.native.len(), |held| held as usize);
        self.native
            .get(self.native_delivered)
            .filter(|_| self.native_delivered < shown)
    }

    /// What lies between the cursor and the end, as far as one delta can hold it: the attempt, the
    /// block's index and its content.
    pub fn next_delta(&mut self) -> Option<(u32, u32, delta::Content)> {
        let attempt = self.next_attempt()?;
        if let Some(event) = self.next_native().filter(|event| event.attempt == attempt) {
            let content = delta::Content::NativeEvent(event.data.clone());
            let block = event.block as u32;
            self.native_delivered += 1;
            return Some((attempt, block, content));
        }
        loop {
            let index = *self.pending.front()?;
            let Some(block) = self.blocks.get_mut(index) else {
                self.pending.pop_front();
                continue;
            };
            let (attempt, content) = (block.attempt, block.next_content());
            if block.is_delivered() {
                block.listed = false;
                self.pending.pop_front();
            }
            if let Some(content) = content {
                return Some((attempt, index as u32, content));
            }
        }
    }

    fn append_text(&mut self, kind: &Kind, text: &str) -> usize {
        let index = self.find_or_open(kind);
        self.push(index, text);
        index
    }

    /// The block that text of `kind` belongs to: the protocol's current one, else the newest.
    fn find_or_open(&mut self, kind: &Kind) -> usize {
        let found = match self.current {
            Some(number) => self.numbered.get(&number).copied(),
            None => self.blocks.len().checked_sub(1),
        };
        let open = |block: &Block| {
            block.kind == *kind && block.signature.is_none() && block.attempt == self.attempt
        };
        match found.filter(|&index| self.blocks.get(index).is_some_and(open)) {
            Some(index) => index,
            None => self.open_numbered(kind.clone()),
        }
    }

    fn append_whole(&mut self, kind: Kind, text: &str) -> usize {
        let index = self.open_numbered(kind);
        self.push(index, text);
        index
    }

    fn sign(&mut self, signature: &str) -> usize {
        let index = self.find_or_open(&Kind::Reasoning);
        if let Some(block) = self.blocks.get_mut(index) {
            block.signature = Some(signature.into());
            self.bytes += signature.len();
        }
        index
    }

    fn open_numbered(&mut self, kind: Kind) -> usize {
        let index = self.open(kind);
        if let Some(number) = self.current {
            self.numbered.insert(number, index);
        }
        index
    }

    fn open(&mut self, kind: Kind) -> usize {
        self.bytes += BLOCK_OVERHEAD;
        let joins = kind == Kind::Text
            && self
                .blocks
                .last()
                .is_some_and(|last| last.kind == Kind::Text && last.attempt != self.attempt);
        self.blocks.push(Block {
            kind,
            text: String::new(),
            signature: None,
            attempt: self.attempt,
            joins,
            differs: false,
            delivered: 0,
            announced: false,
            listed: false,
        });
        self.blocks.len() - 1
    }

    fn push(&mut self, index: usize, text: &str) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.text.push_str(text);
            self.bytes += text.len();
        }
        self.list(index);
    }

    fn list(&mut self, index: usize) {
        if let Some(block) = self.blocks.get_mut(index)
            && !block.listed
        {
            block.listed = true;
            self.pending.push_back(index);
        }
    }
}

impl Native {
    fn bytes(&self) -> usize {
        self.data.len() + BLOCK_OVERHEAD
    }
}

impl Block {
    fn bytes(&self) -> usize {
        let signature = self
            .signature
            .as_ref()
            .map_or(0, |signature| signature.len());
        let call = match &self.kind {
            Kind::ToolCall { id, name } => id.len() + name.len(),
            _ => 0,
        };
        self.text.len() + signature + call + BLOCK_OVERHEAD
    }

    fn is_delivered(&self) -> bool {
        if self.kind == Kind::Redacted {
            return true;
        }
        let start_due = matches!(self.kind, Kind::ToolCall { .. }) && !self.announced;
        !start_due && self.delivered == self.text.len()
    }

    fn next_content(&mut self) -> Option<delta::Content> {
        if let Kind::ToolCall { id, name, .. } = &self.kind
            && !self.announced
        {
            self.announced = true;
            let start = ToolCallStart {
                id: id.clone(),
                name: name.clone(),
            };
            return Some(delta::Content::ToolCall(start));
        }
        let rest = self.text.get(self.delivered..).unwrap_or_default();
        if rest.is_empty() {
            return None;
        }
        if self.kind == Kind::Native {
            self.delivered = self.text.len();
            let json = self.text.as_bytes().to_vec();
            return Some(delta::Content::NativeBlock(json));
        }
        if self.kind == Kind::Redacted {
            return None;
        }
        let piece = split_at_most(rest, MAX_DELTA_BYTES).to_owned();
        self.delivered += piece.len();
        Some(match self.kind {
            Kind::Text => delta::Content::Text(piece),
            Kind::Reasoning => delta::Content::Reasoning(piece),
            Kind::Refusal => delta::Content::Refusal(piece),
            Kind::ToolCall { .. } => delta::Content::ToolArguments(piece),
            Kind::Redacted | Kind::Native => return None,
        })
    }
}

/// The longest prefix of `text` of at most `max` bytes that ends at a character boundary.
pub fn split_at_most(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}
