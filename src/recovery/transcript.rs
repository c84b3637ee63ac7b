//! The message a generation accumulates, and what a client has been given of it.
//!
//! Delivery is a cursor, not a queue: each block knows how much of it was delivered, and a short list
//! says which blocks have more. A client that keeps up is given one token at a time; one that lags is
//! given what has come since, as one delta. A reset drops what was not delivered.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

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
    /// How much of the text was delivered.
    delivered: usize,
    /// Whether a tool call's start was delivered.
    announced: bool,
    /// Whether the block stands in the list of blocks with more to deliver.
    listed: bool,
}

/// The message of the current attempt.
#[derive(Debug, Default)]
pub struct Transcript {
    blocks: Vec<Block>,
    bytes: usize,
    pending: VecDeque<usize>,
    /// The provider's own events, with the block that was the newest when each came.
    native: Vec<(usize, Bytes)>,
    /// How many of them were delivered.
    native_delivered: usize,
    /// The block of each tool call, and of each block that the protocol numbers.
    numbered: HashMap<u32, usize>,
    /// The protocol's number of the block that text belongs to, where it numbers its blocks.
    current: Option<u32>,
}

impl Transcript {
    /// Appends a piece of output; the index of its block.
    pub fn append(&mut self, delta: &Delta<'_>) -> usize {
        match *delta {
            Delta::Text(text) => self.append_text(&Kind::Text, text),
            Delta::Reasoning(text) => self.append_text(&Kind::Reasoning, text),
            Delta::Refusal(text) => self.append_text(&Kind::Refusal, text),
            Delta::ToolCallStart { call, id, name } => {
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

    /// What follows belongs to the protocol's block `number`, which may be new.
    pub fn select(&mut self, number: u32) {
        self.current = Some(number);
    }

    /// Appends one of the provider's own events.
    pub fn append_native(&mut self, block: usize, data: &[u8]) {
        self.bytes += data.len() + BLOCK_OVERHEAD;
        self.native.push((block, Bytes::copy_from_slice(data)));
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of output, for estimates of tokens.
    pub fn output_bytes(&self) -> usize {
        let shown = |block: &&Block| block.kind != Kind::Redacted;
        let blocks = self.blocks.iter().filter(shown);
        blocks.map(|block| block.text.len()).sum()
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
        !self.pending.is_empty() || self.native_delivered < self.native.len()
    }

    /// What lies between the cursor and the end, as far as one delta can hold it: the block's index
    /// and its content.
    pub fn next_delta(&mut self) -> Option<(u32, delta::Content)> {
        if let Some((block, data)) = self.native.get(self.native_delivered) {
            self.native_delivered += 1;
            return Some((*block as u32, delta::Content::NativeEvent(data.clone())));
        }
        loop {
            let index = *self.pending.front()?;
            let Some(block) = self.blocks.get_mut(index) else {
                self.pending.pop_front();
                continue;
            };
            let content = block.next_content();
            if block.is_delivered() {
                block.listed = false;
                self.pending.pop_front();
            }
            if let Some(content) = content {
                return Some((index as u32, content));
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
        let open = |block: &Block| block.kind == *kind && block.signature.is_none();
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
        self.blocks.push(Block {
            kind,
            text: String::new(),
            signature: None,
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

impl Block {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: Option<(u32, delta::Content)>) -> Option<(u32, String)> {
        match content {
            Some((block, delta::Content::Text(t) | delta::Content::ToolArguments(t))) => {
                Some((block, t))
            }
            _ => None,
        }
    }

    #[test]
    fn a_reader_that_keeps_up_gets_every_piece_and_one_that_lags_gets_them_merged() {
        let mut transcript = Transcript::default();
        transcript.append(&Delta::Text("a"));
        assert_eq!(text(transcript.next_delta()), Some((0, "a".into())));
        assert_eq!(transcript.next_delta(), None);
        transcript.append(&Delta::Text("b"));
        transcript.append(&Delta::Text("c"));
        assert_eq!(text(transcript.next_delta()), Some((0, "bc".into())));
        assert!(!transcript.has_pending());
    }

    #[test]
    fn a_change_of_kind_opens_a_new_block_and_calls_are_kept_apart() {
        let mut transcript = Transcript::default();
        transcript.append(&Delta::Reasoning("r"));
        transcript.append(&Delta::Text("t"));
        transcript.append(&Delta::ToolCallStart {
            call: 0,
            id: "a",
            name: "f",
        });
        transcript.append(&Delta::ToolCallStart {
            call: 1,
            id: "b",
            name: "g",
        });
        transcript.append(&Delta::ToolArguments {
            call: 0,
            fragment: "{}",
        });
        transcript.append(&Delta::ToolArguments {
            call: 1,
            fragment: "[]",
        });
        let texts: Vec<&str> = transcript
            .blocks()
            .iter()
            .map(|b| b.text.as_str())
            .collect();
        assert_eq!(texts, ["r", "t", "{}", "[]"]);
    }

    #[test]
    fn blocks_that_the_protocol_numbers_are_kept_apart_and_found_again() {
        let mut transcript = Transcript::default();
        transcript.select(0);
        transcript.append(&Delta::Text("a"));
        transcript.select(1);
        transcript.append(&Delta::Text("b"));
        transcript.select(0);
        transcript.append(&Delta::Text("c"));
        let blocks: Vec<&str> = transcript.blocks().iter().map(|b| &*b.text).collect();
        assert_eq!(blocks, ["ac", "b"]);
    }

    #[test]
    fn a_signature_ends_its_reasoning_block_and_may_stand_alone() {
        let mut transcript = Transcript::default();
        transcript.append(&Delta::Reasoning("a"));
        transcript.append(&Delta::ReasoningSignature("s"));
        transcript.append(&Delta::Reasoning("b"));
        transcript.append(&Delta::Text("t"));
        transcript.append(&Delta::ReasoningSignature("u"));
        let blocks: Vec<(&str, Option<&str>)> = transcript
            .blocks()
            .iter()
            .map(|b| (&*b.text, b.signature.as_deref()))
            .collect();
        let signed = [("a", Some("s")), ("b", None), ("t", None), ("", Some("u"))];
        assert_eq!(blocks, signed);
    }

    #[test]
    fn native_blocks_are_given_whole_and_hidden_reasoning_is_not_previewed() {
        let mut transcript = Transcript::default();
        transcript.append(&Delta::RedactedReasoning("secret"));
        transcript.append(&Delta::NativeBlock("{}"));
        let block = Some((1, delta::Content::NativeBlock(b"{}".to_vec())));
        assert_eq!(transcript.next_delta(), block);
        assert_eq!(transcript.next_delta(), None);
        assert!(!transcript.has_pending());
        assert_eq!(transcript.output_bytes(), 2);
    }

    #[test]
    fn rewinding_gives_everything_again() {
        let mut transcript = Transcript::default();
        transcript.append(&Delta::Text("abc"));
        transcript.next_delta();
        transcript.rewind();
        assert_eq!(text(transcript.next_delta()), Some((0, "abc".into())));
    }

    #[test]
    fn a_large_backlog_is_cut_at_character_boundaries() {
        let mut transcript = Transcript::default();
        transcript.append(&Delta::Text(&"ä".repeat(MAX_DELTA_BYTES)));
        let mut total = 0;
        while let Some((_, piece)) = text(transcript.next_delta()) {
            assert!(piece.len() <= MAX_DELTA_BYTES);
            total += piece.len();
        }
        assert_eq!(total, 2 * MAX_DELTA_BYTES);
    }

    #[test]
    fn native_events_are_given_once_and_again_after_a_rewind() {
        let mut transcript = Transcript::default();
        transcript.append_native(0, b"{}");
        transcript.append(&Delta::Text("t"));
        let native = Some((0, delta::Content::NativeEvent(Bytes::from_static(b"{}"))));
        assert_eq!(transcript.next_delta(), native);
        assert_eq!(text(transcript.next_delta()), Some((0, "t".into())));
        assert!(!transcript.has_pending());
        transcript.rewind();
        assert_eq!(transcript.next_delta(), native);
    }
}
