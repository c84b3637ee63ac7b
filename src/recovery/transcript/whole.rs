//! What a provider says again as a whole, against what there is of it.

use super::{Block, Kind, Transcript};
use crate::protocol::Delta;

/// What a block holds, against what its provider says it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared<'t> {
    /// The same.
    Same,
    /// Nothing yet.
    Missing,
    /// Something else.
    Differs {
        /// The block's place in the message.
        block: usize,
        /// What it should hold; `None` if that is of another kind, which a block cannot become.
        text: Option<&'t str>,
    },
}

impl Transcript {
    /// Compares the whole content of the protocol's block `number` with what there is of it. Of what comes
    /// whole and once it matters only whether it is there.
    pub fn compare<'t>(&self, number: u32, whole: &Delta<'t>) -> Compared<'t> {
        let index = self.numbered.get(&number).copied();
        let found = index.and_then(|index| Some((index, self.blocks.get(index)?)));
        let Some((index, block)) = found else {
            return Compared::Missing;
        };
        let (same_kind, text) = match *whole {
            Delta::ReasoningSignature(_) if block.signature.is_some() => return Compared::Same,
            Delta::ReasoningSignature(_) => return Compared::Missing,
            Delta::NativeBlock(_) | Delta::RedactedReasoning(_) | Delta::ToolCallStart { .. } => {
                return Compared::Same;
            }
            Delta::Text(text) => (block.kind == Kind::Text, text),
            Delta::Reasoning(text) => (block.kind == Kind::Reasoning, text),
            Delta::Refusal(text) => (block.kind == Kind::Refusal, text),
            Delta::ToolArguments { fragment, .. } => {
                (matches!(block.kind, Kind::ToolCall { .. }), fragment)
            }
        };
        if !same_kind {
            return Compared::Differs {
                block: index,
                text: None,
            };
        }
        match block.text.as_str() {
            streamed if streamed == text => Compared::Same,
            "" => Compared::Missing,
            _ => Compared::Differs {
                block: index,
                text: Some(text),
            },
        }
    }

    /// A block by its place in the message.
    pub fn block_mut(&mut self, index: usize) -> Option<&mut Block> {
        self.blocks.get_mut(index)
    }

    /// The block holds `text` instead, and is given again from its beginning if it was given at all.
    pub fn replace(&mut self, index: usize, text: &str) {
        let Some(block) = self.blocks.get_mut(index) else {
            return;
        };
        self.bytes = self.bytes - block.text.len() + text.len();
        if block.is_shown() {
            block.delivered = 0;
            block.announced = false;
        }
        text.clone_into(&mut block.text);
        self.list(index);
    }

    /// The block of a call that has begun already.
    pub(super) fn known_call(&self, call: u32, id: &str, name: &str) -> Option<usize> {
        let index = *self.numbered.get(&call)?;
        let same = |kind: &Kind| match kind {
            Kind::ToolCall { id: i, name: n } => i == id && n == name,
            _ => false,
        };
        let block = self.blocks.get(index)?;
        same(&block.kind).then_some(index)
    }
}

impl Block {
    /// Whether a client has seen text of it.
    pub fn is_shown(&self) -> bool {
        self.delivered > 0
    }
}
