//! Output items: as they begin, when they are whole, and as the whole response lists them.

use serde_json::{json, value::RawValue};

use super::{
    super::super::{BlockKind, DecodeError, Delta, Event, MAX_EVENT_BYTES, Sink},
    blocks::{self, Blocks, ItemKind, Place},
    wire::{self, Item, MAX_LISTED, Part},
};
use crate::protocol::json::text::{non_empty, string};

/// Turns output items into blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    pub(super) blocks: Blocks,
    /// The provider says that it keeps no items: an id alone leads nowhere in the next turn.
    pub(super) not_kept: bool,
    /// Calls that were done without having begun, as they came. They are told once the response is
    /// complete: half a response's calls are worth nothing, and there was nothing to watch.
    held: Vec<(u32, String)>,
    held_bytes: usize,
    /// Strings that are escaped on the wire.
    scratch: [String; 2],
}

impl Items {
    /// An item begins: a call with its id and name, one of the provider's own is output already, and
    /// reasoning may stay hidden for long.
    pub(super) fn added(
        &mut self,
        index: u32,
        raw: &RawValue,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let item: Item<'_> = wire::object(Some(raw));
        let kind = self.see(index, &item)?;
        let block = blocks::number(index, Place::Content, 0)?;
        match kind {
            ItemKind::Message => {
                sink(Event::Keepalive { content: true });
                Ok(())
            }
            ItemKind::Reasoning => {
                let block = blocks::number(index, Place::Summary, 0)?;
                self.blocks.begin(block, BlockKind::Reasoning, sink)
            }
            ItemKind::Call => {
                self.blocks.begin(block, BlockKind::ToolCall, sink)?;
                self.begin_call(index, block, &item, sink)
            }
            ItemKind::Native => self.blocks.begin(block, BlockKind::Native, sink),
        }
    }

    /// An item is whole.
    pub(super) fn done(
        &mut self,
        index: u32,
        raw: &RawValue,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let item: Item<'_> = wire::object(Some(raw));
        let block = blocks::number(index, Place::Content, 0)?;
        let kind = self.see(index, &item)?;
        if kind == ItemKind::Call && !self.blocks.item(index, kind, "")?.begun {
            self.held_bytes += raw.get().len();
            if self.held_bytes > MAX_EVENT_BYTES {
                return Err(DecodeError::TooLarge);
            }
            self.held.push((index, raw.get().to_owned()));
        } else {
            self.whole(index, &item, raw, Told::Done, sink)?;
        }
        self.blocks.end(block, sink);
        Ok(())
    }

    /// The response is complete: what was held back is told.
    pub(super) fn release(&mut self, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        for (index, json) in std::mem::take(&mut self.held) {
            let raw: &RawValue = serde_json::from_str(&json).map_err(|_| DecodeError::Json)?;
            self.whole(index, &wire::object(Some(raw)), raw, Told::Listed, sink)?;
        }
        Ok(())
    }

    /// The response is over and lists its items: what was not streamed is there.
    pub(super) fn listed(
        &mut self,
        output: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        self.release(sink)?;
        let listed = wire::list(output);
        if listed.len() > MAX_LISTED {
            return Err(DecodeError::TooLarge);
        }
        for (position, raw) in listed.iter().enumerate() {
            let item: Item<'_> = wire::object(Some(raw));
            let [scratch, _] = &mut self.scratch;
            let kind = kind_of(&item, scratch);
            let id = non_empty(item.id, scratch).unwrap_or_default();
            let found = self.blocks.listed_item(kind, id, position, listed.len());
            if let Some(index) = found {
                self.whole(index, &item, raw, Told::Listed, sink)?;
            }
        }
        Ok(())
    }

    /// A part of an item begins.
    pub(super) fn part_added(
        &mut self,
        (item, place, part): (u32, Place, u32),
        raw: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let [scratch, _] = &mut self.scratch;
        let kind = PartKind::of(&wire::object(raw), place, scratch);
        let block = blocks::number(item, kind.place(place), part)?;
        let kind = match kind {
            PartKind::Text | PartKind::Refusal => BlockKind::Text,
            PartKind::Reasoning => BlockKind::Reasoning,
            PartKind::Native => BlockKind::Native,
        };
        self.blocks.begin(block, kind, sink)
    }

    /// A part of an item is whole. Returns whether that was told.
    pub(super) fn part_done(
        &mut self,
        (item, place, part): (u32, Place, u32),
        raw: &RawValue,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let [scratch, _] = &mut self.scratch;
        let kind = PartKind::of(&wire::object(Some(raw)), place, scratch);
        let block = blocks::number(item, kind.place(place), part)?;
        self.part_whole(block, place, raw, sink)
    }

    fn part_whole(
        &mut self,
        block: u32,
        place: Place,
        raw: &RawValue,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let part: Part<'_> = wire::object(Some(raw));
        let [scratch, _] = &mut self.scratch;
        let whole = match PartKind::of(&part, place, scratch) {
            PartKind::Text => Delta::Text(non_empty(part.text, scratch).unwrap_or_default()),
            PartKind::Reasoning => {
                Delta::Reasoning(non_empty(part.text, scratch).unwrap_or_default())
            }
            PartKind::Refusal => {
                Delta::Refusal(non_empty(part.refusal, scratch).unwrap_or_default())
            }
            PartKind::Native => Delta::NativeBlock(raw.get()),
        };
        self.blocks.whole(block, whole, sink)
    }

    fn see(&mut self, index: u32, item: &Item<'_>) -> Result<ItemKind, DecodeError> {
        let [scratch, _] = &mut self.scratch;
        let kind = kind_of(item, scratch);
        let id = non_empty(item.id, scratch).unwrap_or_default();
        self.blocks.item(index, kind, id)?;
        Ok(kind)
    }

    fn whole(
        &mut self,
        index: u32,
        item: &Item<'_>,
        raw: &RawValue,
        told: Told,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let block = blocks::number(index, Place::Content, 0)?;
        match self.see(index, item)? {
            ItemKind::Message => {
                self.parts(index, Place::Content, item.content, sink)?;
            }
            ItemKind::Reasoning => {
                let content = self.parts(index, Place::Reasoning, item.content, sink)?;
                let summary = self.parts(index, Place::Summary, item.summary, sink)?;
                if let Some((block, signature)) = self.signature(index, content, summary, item)? {
                    let signature = Delta::ReasoningSignature(&signature);
                    self.close(block, BlockKind::Reasoning, signature, told, sink)?;
                }
            }
            ItemKind::Call => {
                self.begin_call(index, block, item, sink)?;
                let [scratch, _] = &mut self.scratch;
                let arguments = Delta::ToolArguments {
                    call: block,
                    fragment: non_empty(item.arguments, scratch).unwrap_or_default(),
                };
                self.blocks.whole(block, arguments, sink)?;
            }
            ItemKind::Native => {
                if self.closes(index, ItemKind::Native)? {
                    let whole = Delta::NativeBlock(raw.get());
                    self.close(block, BlockKind::Native, whole, told, sink)?;
                }
            }
        }
        Ok(())
    }

    /// The parts of a whole item; the block of the last one.
    fn parts(
        &mut self,
        index: u32,
        place: Place,
        list: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<u32>, DecodeError> {
        let parts = wire::list(list);
        if parts.len() > MAX_LISTED {
            return Err(DecodeError::TooLarge);
        }
        let blocks = self.blocks.listed_parts(index, place, parts.len())?;
        for (part, block) in parts.iter().zip(&blocks) {
            self.part_whole(*block, place, part, sink)?;
        }
        Ok(blocks.last().copied())
    }

    /// What the next turn needs of a reasoning item beside its texts, as one JSON object: its id, its
    /// encrypted content where it was asked for, and whether its texts were content (open models)
    /// rather than a summary. It stands with the last of the texts.
    fn signature(
        &mut self,
        index: u32,
        content: Option<u32>,
        summary: Option<u32>,
        item: &Item<'_>,
    ) -> Result<Option<(u32, String)>, DecodeError> {
        if !self.closes(index, ItemKind::Reasoning)? {
            return Ok(None);
        }
        let [id_scratch, scratch] = &mut self.scratch;
        let Some(id) = non_empty(item.id, id_scratch) else {
            return Ok(None);
        };
        // Members by their names, as signatures have always been spelled.
        let mut signature = json!({});
        if content.is_some() && summary.is_none() {
            signature["content"] = "reasoning_text".into();
        }
        match non_empty(item.encrypted_content, scratch) {
            Some(encrypted) => signature["encrypted_content"] = encrypted.into(),
            None if self.not_kept => return Ok(None),
            None => {}
        }
        signature["id"] = id.into();
        let block = match summary.or(content) {
            Some(block) => block,
            None => blocks::number(index, Place::Summary, 0)?,
        };
        Ok(Some((block, signature.to_string())))
    }

    /// Tells what comes whole and only once. What the response lists at its end may have been told
    /// before a resumption.
    fn close(
        &mut self,
        block: u32,
        kind: BlockKind,
        whole: Delta<'_>,
        told: Told,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        match told {
            Told::Done => {
                self.blocks.select(block, kind, sink)?;
                sink(Event::Delta(whole));
            }
            Told::Listed => sink(Event::Snapshot { block, whole }),
        }
        Ok(())
    }

    /// `true` the first time: what is told of an item once must not change when it is repeated.
    fn closes(&mut self, index: u32, kind: ItemKind) -> Result<bool, DecodeError> {
        let item = self.blocks.item(index, kind, "")?;
        Ok(!std::mem::replace(&mut item.closed, true))
    }

    /// A call begins once in a stream; in a resumed one it may have begun before.
    fn begin_call(
        &mut self,
        index: u32,
        block: u32,
        item: &Item<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let seen = self.blocks.item(index, ItemKind::Call, "")?;
        if std::mem::replace(&mut seen.begun, true) {
            return Ok(());
        }
        let [id_scratch, name_scratch] = &mut self.scratch;
        let made_up;
        let id = match non_empty(item.call_id, id_scratch) {
            Some(id) => id,
            None => {
                made_up = format!("call_redrive_{block}");
                &made_up
            }
        };
        sink(Event::Delta(Delta::ToolCallStart {
            call: block,
            id,
            name: non_empty(item.name, name_scratch).unwrap_or_default(),
        }));
        Ok(())
    }
}

/// Where an item is told whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// When it is done.
    Done,
    /// At the end of the response, which lists all its items.
    Listed,
}

/// What a part of an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Text,
    Refusal,
    Reasoning,
    Native,
}

impl PartKind {
    fn of(part: &Part<'_>, place: Place, scratch: &mut String) -> Self {
        match part.kind.and_then(|kind| string(kind, scratch)) {
            _ if place != Place::Content => Self::Reasoning,
            Some("output_text" | "text") => Self::Text,
            Some("refusal") => Self::Refusal,
            // vLLM begins a reasoning item's part as one of content.
            Some("reasoning_text" | "summary_text") => Self::Reasoning,
            _ => Self::Native,
        }
    }

    /// Where it is numbered.
    fn place(self, listed: Place) -> Place {
        match (self, listed) {
            (Self::Reasoning, Place::Content) => Place::Reasoning,
            (_, listed) => listed,
        }
    }
}

fn kind_of(item: &Item<'_>, scratch: &mut String) -> ItemKind {
    match item.kind.and_then(|kind| string(kind, scratch)) {
        Some("message") => ItemKind::Message,
        Some("reasoning") => ItemKind::Reasoning,
        Some("function_call") => ItemKind::Call,
        _ => ItemKind::Native,
    }
}
