//! The blocks of a response: their numbers, which follow from the wire alone, and what was seen of
//! them.
//!
//! A block is a part of a message, a part of the reasoning, a function call or an item of the
//! provider's own. Its number is made of the item's place in the output and of the part's place in
//! the item, as the events give them, so the decoder of a resumed stream gives the same numbers.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::value::RawValue;

use super::super::super::{BlockKind, DecodeError, Delta, Event, Sink};

/// Bits of a block's number for the place of a part in its item.
const PART_BITS: u32 = 14;

/// Bits for which of the item's lists the part stands in.
const PLACE_BITS: u32 = 2;

/// The largest place in an item. Far beyond any answer.
const MAX_PART: u32 = (1 << PART_BITS) - 1;

/// The largest place in an output. Far beyond any answer.
const MAX_ITEM: u32 = u32::MAX >> (PART_BITS + PLACE_BITS);

/// Blocks and items of one response at most: lists are searched.
const MAX_SEEN: usize = 4096;

/// Which list of an item a part stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The content of a message; also an item that has no parts.
    Content,
    /// The content of a reasoning item.
    Reasoning,
    /// The summary of a reasoning item.
    Summary,
}

/// What an output item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// A message.
    Message,
    /// Reasoning.
    Reasoning,
    /// A call of one of the client's functions.
    Call,
    /// Anything else: the provider's own, or a call whose arguments are no JSON.
    Native,
}

/// An output item that this stream has shown.
#[derive(Clone, Debug)]
pub(super) struct Item {
    index: u32,
    kind: ItemKind,
    id: String,
    /// Its beginning, where it is a call, was told.
    pub(super) begun: bool,
    /// Its signature or, where it is native, its whole was told.
    pub(super) closed: bool,
}

/// A block that this stream has shown.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: u32,
    /// Of the whole content that was told last.
    whole: Option<u64>,
}

/// What was seen of a response.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    items: Vec<Item>,
    blocks: Vec<Block>,
    /// The block that output goes to.
    current: Option<u32>,
}

impl Blocks {
    /// Notes an item.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] where there are too many.
    pub(super) fn item(
        &mut self,
        index: u32,
        kind: ItemKind,
        id: &str,
    ) -> Result<&mut Item, DecodeError> {
        let known = self.items.iter().position(|item| item.index == index);
        let place = match known {
            Some(place) => place,
            None if self.items.len() == MAX_SEEN => return Err(DecodeError::TooLarge),
            None => {
                self.items.push(Item {
                    index,
                    kind,
                    id: id.to_owned(),
                    begun: false,
                    closed: false,
                });
                self.items.len() - 1
            }
        };
        let item = self.items.get_mut(place).ok_or(DecodeError::TooLarge)?;
        item.kind = kind;
        Ok(item)
    }

    /// The place of the newest item, for servers that leave `output_index` out.
    pub(super) fn newest_item(&self) -> u32 {
        self.items.last().map_or(0, |item| item.index)
    }

    /// Output goes to `block` from here on; told only where it went elsewhere before.
    pub(super) fn select(
        &mut self,
        block: u32,
        kind: BlockKind,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        match self.current == Some(block) {
            true => Ok(()),
            false => self.begin(block, kind, sink),
        }
    }

    /// Output goes to `block`, told in any case.
    pub(super) fn begin(
        &mut self,
        block: u32,
        kind: BlockKind,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        self.whole_of(block)?;
        self.current = Some(block);
        sink(Event::Block { block, kind });
        Ok(())
    }

    /// Nothing more comes of the item whose parts `block` is one of.
    pub(super) fn end(&mut self, block: u32, sink: &mut Sink<'_>) {
        match self.current {
            Some(open) if item_of(open) == item_of(block) => {
                self.current = None;
                sink(Event::BlockEnd { block: open });
            }
            _ => sink(Event::Keepalive { content: true }),
        }
    }

    /// Tells the whole content of a block: once, and again only where it is said to be another. An
    /// empty one tells nothing: servers leave content out of what they repeat. Returns whether it was
    /// told.
    pub(super) fn whole(
        &mut self,
        block: u32,
        whole: Delta<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let text = match whole {
            Delta::ToolCallStart { .. } => "",
            Delta::Text(text)
            | Delta::Reasoning(text)
            | Delta::Refusal(text)
            | Delta::ToolArguments { fragment: text, .. }
            | Delta::ReasoningSignature(text)
            | Delta::RedactedReasoning(text)
            | Delta::NativeBlock(text) => text,
        };
        if text.is_empty() {
            return Ok(false);
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = Some(hasher.finish());
        let told = self.whole_of(block)?;
        if *told == hash {
            return Ok(false);
        }
        *told = hash;
        sink(Event::Snapshot { block, whole });
        Ok(true)
    }

    /// The blocks of `count` parts that a whole item lists. Bedrock and vLLM count the parts of a
    /// message together with the reasoning before it, so a part's place in the list need not be the
    /// one that its events gave.
    pub(super) fn listed_parts(
        &self,
        item: u32,
        place: Place,
        count: usize,
    ) -> Result<Vec<u32>, DecodeError> {
        let first = number(item, place, 0)?;
        let seen = self.blocks.iter().map(|block| block.number);
        let mut seen: Vec<u32> = seen
            .filter(|number| number >> PART_BITS == first >> PART_BITS)
            .collect();
        if seen.len() == count {
            seen.sort_unstable();
            return Ok(seen);
        }
        match u32::try_from(count) {
            Ok(count) if count <= MAX_PART => Ok((first..first + count).collect()),
            _ => Err(DecodeError::TooLarge),
        }
    }

    /// Which item the `position`-th of `count` items is that a whole response lists; `None` where that
    /// cannot be told. The list need not hold every item, and some servers give new ids.
    pub(super) fn listed_item(
        &self,
        kind: ItemKind,
        id: &str,
        position: usize,
        count: usize,
    ) -> Option<u32> {
        let place = u32::try_from(position).ok()?;
        let mut items = self.items.iter();
        let by_id = items.find(|item| !id.is_empty() && item.id == id);
        let found = match by_id {
            Some(item) => item,
            // Items begin in the order of the output.
            None if self.items.len() == count => self.items.get(position)?,
            None if self.items.iter().any(|item| item.index == place) => return None,
            // One that this stream has not shown: it came before a resumption, or came whole.
            None => return Some(place),
        };
        (found.kind == kind).then_some(found.index)
    }

    /// What was told last of a block's whole content, as a hash.
    fn whole_of(&mut self, number: u32) -> Result<&mut Option<u64>, DecodeError> {
        let place = self.blocks.iter().rposition(|block| block.number == number);
        let place = match place {
            Some(place) => place,
            None if self.blocks.len() == MAX_SEEN => return Err(DecodeError::TooLarge),
            None => {
                self.blocks.push(Block {
                    number,
                    whole: None,
                });
                self.blocks.len() - 1
            }
        };
        let block = self.blocks.get_mut(place).ok_or(DecodeError::TooLarge)?;
        Ok(&mut block.whole)
    }
}

/// The number of a block.
///
/// # Errors
/// [`DecodeError::Json`] where a place is beyond anything that the protocol could mean.
pub(super) fn number(item: u32, place: Place, part: u32) -> Result<u32, DecodeError> {
    if item > MAX_ITEM || part > MAX_PART {
        return Err(DecodeError::Json);
    }
    let place = match place {
        Place::Content => 0,
        Place::Reasoning => 1,
        Place::Summary => 2,
    };
    Ok((((item << PLACE_BITS) | place) << PART_BITS) | part)
}

/// A place as an event gives it; absent, the one that is meant where there is but one.
///
/// # Errors
/// [`DecodeError::Json`] where it is no place.
pub(super) fn index(raw: Option<&RawValue>, absent: u32) -> Result<u32, DecodeError> {
    match raw {
        None => Ok(absent),
        Some(raw) => raw.get().parse().map_err(|_| DecodeError::Json),
    }
}

fn item_of(block: u32) -> u32 {
    block >> (PART_BITS + PLACE_BITS)
}
