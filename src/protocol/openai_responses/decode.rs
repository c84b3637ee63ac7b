//! Decodes a Responses stream.
//!
//! The type of an event is in its data; its `event` field may be missing (OpenRouter, Bedrock). Text,
//! reasoning, refusals and the arguments of functions are told as they come. Each is repeated whole,
//! up to three times: when its part, its item and the response are done. The first whole one is told,
//! and one that differs from it. What a server never streams (LM Studio's arguments) is told so; a
//! call that never began, at the end of the response.
//!
//! Every other item is the provider's own and told whole when it is done: searches, code, images, MCP
//! and shell calls, and also `custom_tool_call`, whose input is text and no JSON. Annotations and log
//! probabilities are not told; they are in the native events.
//!
//! The response object's end is the end: OpenAI sends nothing after it, some servers `[DONE]`.

mod blocks;
mod ending;
mod items;
mod kind;
mod sequence;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
mod wire;

use std::{ops::ControlFlow, str};

use serde_json::value::RawValue;

use self::{
    blocks::Place,
    ending::Ending,
    items::Items,
    kind::{Kind, Over, Text},
    sequence::{Sequence, Verdict},
    wire::{Body, Data},
};
use super::super::{
    BlockKind, DecodeError, Decoder as Decode, DecoderOptions, Delta, Event, Sink, Terminal,
    sse::{Item as SseItem, Splitter},
};
use super::request::is_id;
use crate::protocol::json::{
    shape::Shape,
    text::{non_empty, string, truthy},
};

/// Events larger than this give only their error object to be read: error objects are small, and a
/// failed response repeats its whole request.
const LARGE_EVENT_BYTES: usize = 256 << 10;

/// Decodes the body of one response.
#[derive(Clone, Debug)]
pub struct Decoder {
    splitter: Splitter,
    response: Response,
    over: bool,
}

/// What has to be remembered from event to event.
#[derive(Clone, Debug)]
struct Response {
    options: DecoderOptions,
    sequence: Sequence,
    /// The provider keeps it: it can be resumed.
    stored: bool,
    /// Its id is none that it could be asked for by, so that no point of it is one to resume from.
    unaskable: bool,
    id: String,
    model_known: bool,
    items: Items,
    /// Strings that are escaped on the wire.
    scratch: [String; 2],
}

/// `Break`: the response is over.
type Flow = ControlFlow<()>;

impl Decoder {
    /// A decoder for one response, or for the rest of one.
    pub fn new(options: DecoderOptions) -> Self {
        Self {
            splitter: Splitter::default(),
            response: Response {
                options,
                sequence: Sequence::new(options.after),
                stored: options.after.is_some(),
                unaskable: false,
                id: String::new(),
                model_known: false,
                items: Items::default(),
                scratch: Default::default(),
            },
            over: false,
        }
    }
}

impl Decode for Decoder {
    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let mut input = bytes;
        while !self.over
            && let Some(item) = self.splitter.next(&mut input)
        {
            self.over = self.response.take(item, sink).is_break();
        }
    }

    fn end(&mut self, clean: bool, sink: &mut Sink<'_>) {
        while !self.over
            && let Some(item) = self.splitter.end(clean)
        {
            self.over = self.response.take(item, sink).is_break();
        }
        self.over = true;
    }
}

impl Response {
    fn take(&mut self, item: Result<SseItem<'_>, DecodeError>, sink: &mut Sink<'_>) -> Flow {
        match item {
            Ok(SseItem::Event { name, data }) => self.event(name, data, sink),
            Ok(SseItem::Comment) => {
                sink(Event::Keepalive { content: false });
                Flow::Continue(())
            }
            Ok(SseItem::Field { name, value }) => {
                if name == b"error" || is_error_body(value) {
                    return error(value, sink);
                }
                Flow::Continue(())
            }
            Ok(SseItem::Json(json)) => bare_json(json, sink),
            Err(reason) => undecodable(reason, sink),
        }
    }

    fn event(&mut self, name: &[u8], data: &[u8], sink: &mut Sink<'_>) -> Flow {
        if name == b"error" {
            self.native(data, sink);
            return error(data, sink);
        }
        let trimmed = data.trim_ascii();
        if trimmed.is_empty() {
            self.native(data, sink);
            sink(Event::Keepalive { content: true });
            return Flow::Continue(());
        }
        if trimmed.starts_with(b"[DONE]") {
            self.native(data, sink);
            let completes = self.options.terminal == Terminal::DoneSentinel;
            if completes && let Err(reason) = self.items.release(sink) {
                return undecodable(reason, sink);
            }
            sink(Event::End { completes });
            return Flow::Break(());
        }
        let Ok(text) = str::from_utf8(trimmed) else {
            return undecodable(DecodeError::Utf8, sink);
        };
        match serde_json::from_str::<Data<'_>>(text) {
            Ok(event) if event.shape == Shape::Right => self
                .data(&event, name, data, sink)
                .unwrap_or_else(|reason| undecodable(reason, sink)),
            _ => undecodable(DecodeError::Json, sink),
        }
    }

    fn data(
        &mut self,
        event: &Data<'_>,
        name: &[u8],
        data: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, DecodeError> {
        let [scratch, _] = &mut self.scratch;
        let kind = match event.kind.and_then(|kind| string(kind, scratch)) {
            Some(kind) => Kind::of(kind),
            None => Kind::of(str::from_utf8(name).unwrap_or_default()),
        };
        if kind == Kind::Error || truthy(event.error) {
            self.native(data, sink);
            return Ok(error(data, sink));
        }
        let number = event.sequence_number;
        let number = number.and_then(|number| number.get().parse().ok());
        let number = match self.sequence.take(number)? {
            Verdict::Take(number) => number,
            Verdict::Known => {
                sink(Event::Keepalive { content: true });
                return Ok(Flow::Continue(()));
            }
        };
        self.native(data, sink);
        if let Kind::Over(over) = kind {
            self.over(over, event.response, data, sink)?;
            return Ok(Flow::Break(()));
        }
        self.output(kind, event, sink)?;
        if let Some(sequence) = number
            && self.options.cursor
            && self.stored
            && !self.unaskable
        {
            sink(Event::Cursor { sequence });
        }
        Ok(Flow::Continue(()))
    }

    /// Gives an event as it came. One that is broken, comes out of turn or was there before is not
    /// given: where the response is read on it comes again, or has come already.
    fn native(&self, data: &[u8], sink: &mut Sink<'_>) {
        if self.options.native_events && !data.is_empty() {
            sink(Event::Native { data });
        }
    }

    /// An event that does not end the response.
    fn output(
        &mut self,
        kind: Kind,
        event: &Data<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let item = blocks::index(event.output_index, self.items.blocks.newest_item())?;
        let told = match kind {
            Kind::Delta(place, text) => self.delta(item, place, text, event, sink)?,
            Kind::ArgumentsDelta => {
                let call = blocks::number(item, Place::Content, 0)?;
                let [scratch, _] = &mut self.scratch;
                match piece(event.delta, scratch)? {
                    Some(fragment) => {
                        self.items.blocks.select(call, BlockKind::ToolCall, sink)?;
                        sink(Event::Delta(Delta::ToolArguments { call, fragment }));
                        true
                    }
                    None => false,
                }
            }
            Kind::NativeDelta => {
                let [scratch, _] = &mut self.scratch;
                let piece = event.delta.or(event.partial_image_b64);
                let substantive = non_empty(piece, scratch).is_some();
                if substantive {
                    let block = blocks::number(item, Place::Content, 0)?;
                    self.items.blocks.begin(block, BlockKind::Native, sink)?;
                }
                substantive
            }
            Kind::Whole(place, text) => self.whole(item, place, text, event, sink)?,
            Kind::ArgumentsWhole => {
                let call = blocks::number(item, Place::Content, 0)?;
                let [scratch, _] = &mut self.scratch;
                let fragment = non_empty(event.arguments, scratch).unwrap_or_default();
                let whole = Delta::ToolArguments { call, fragment };
                self.items.blocks.whole(call, whole, sink)?
            }
            Kind::ItemAdded => {
                let raw = event.item.ok_or(DecodeError::Json)?;
                self.items.added(item, raw, sink)?;
                true
            }
            Kind::ItemDone => {
                let raw = event.item.ok_or(DecodeError::Json)?;
                self.items.done(item, raw, sink)?;
                true
            }
            Kind::PartAdded(place) => {
                let part = part_index(place, event)?;
                let place = (item, place, part);
                self.items.part_added(place, event.part, sink)?;
                true
            }
            Kind::PartDone(place) => match event.part {
                Some(raw) => {
                    let part = part_index(place, event)?;
                    self.items.part_done((item, place, part), raw, sink)?
                }
                None => false,
            },
            Kind::Lifecycle => {
                self.lifecycle(event, sink)?;
                false
            }
            Kind::Unknown => {
                sink(Event::Unknown);
                true
            }
            Kind::Keepalive | Kind::Error | Kind::Over(_) => false,
        };
        if !told {
            sink(Event::Keepalive { content: true });
        }
        Ok(())
    }

    fn delta(
        &mut self,
        item: u32,
        place: Place,
        text: Text,
        event: &Data<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let block = blocks::number(item, place, part_index(place, event)?)?;
        let [scratch, _] = &mut self.scratch;
        let Some(piece) = piece(event.delta, scratch)? else {
            return Ok(false);
        };
        let kind = match text {
            Text::Output | Text::Refusal => BlockKind::Text,
            Text::Reasoning => BlockKind::Reasoning,
        };
        self.items.blocks.select(block, kind, sink)?;
        sink(Event::Delta(delta(text, piece)));
        Ok(true)
    }

    fn whole(
        &mut self,
        item: u32,
        place: Place,
        text: Text,
        event: &Data<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let block = blocks::number(item, place, part_index(place, event)?)?;
        let [scratch, _] = &mut self.scratch;
        let raw = match text {
            Text::Output | Text::Reasoning => event.text,
            Text::Refusal => event.refusal,
        };
        let whole = non_empty(raw, scratch).unwrap_or_default();
        self.items.blocks.whole(block, delta(text, whole), sink)
    }

    fn lifecycle(&mut self, event: &Data<'_>, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        let response: wire::Response<'_> = wire::object(event.response);
        self.stored |= response.background.is_some_and(|raw| raw.get() == "true");
        self.items.not_kept |= response.store.is_some_and(|raw| raw.get() == "false");
        let [scratch, _] = &mut self.scratch;
        let id = non_empty(response.id, scratch).unwrap_or_default();
        // Copilot gives each event another id, but creates a response once.
        let created = event.kind.is_some_and(|kind| kind.get() == CREATED);
        if created && !self.id.is_empty() && !id.is_empty() && self.id != id {
            return Err(DecodeError::Restarted);
        }
        self.name(&response, sink);
        Ok(())
    }

    /// Tells the response's id and model, each when it is first given.
    fn name(&mut self, response: &wire::Response<'_>, sink: &mut Sink<'_>) {
        let [id_scratch, model_scratch] = &mut self.scratch;
        let response_id = match self.id.is_empty() {
            true => non_empty(response.id, id_scratch),
            false => None,
        };
        let model = match self.model_known {
            true => None,
            false => non_empty(response.model, model_scratch),
        };
        if response_id.is_some() || model.is_some() {
            self.model_known |= model.is_some();
            if let Some(id) = response_id {
                self.unaskable = !is_id(id);
                self.id.push_str(id);
            }
            sink(Event::Started { response_id, model });
        }
    }

    /// The response is over.
    fn over(
        &mut self,
        over: Over,
        raw: Option<&RawValue>,
        data: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), DecodeError> {
        let response: wire::Response<'_> = wire::object(raw);
        self.name(&response, sink);
        if let Some(usage) = ending::usage(response.usage) {
            sink(Event::Usage(usage));
        }
        let [scratch, _] = &mut self.scratch;
        match ending::ending(over, &response, scratch) {
            Ending::Finish(reason, native) => {
                self.items.listed(response.output, sink)?;
                sink(Event::Finish { reason, native });
                sink(Event::End { completes: false });
            }
            Ending::Error => {
                let json = match response.error {
                    Some(error) if data.len() > LARGE_EVENT_BYTES => error.get().as_bytes(),
                    _ => data,
                };
                sink(Event::Error { json });
            }
            Ending::Cancelled => sink(Event::BadFinish {
                native: "cancelled",
            }),
        }
        Ok(())
    }
}

/// The type of the event that creates a response, as it stands in JSON.
const CREATED: &str = "\"response.created\"";

fn delta(text: Text, piece: &str) -> Delta<'_> {
    match text {
        Text::Output => Delta::Text(piece),
        Text::Reasoning => Delta::Reasoning(piece),
        Text::Refusal => Delta::Refusal(piece),
    }
}

/// A piece of output; `None` where there is none.
///
/// # Errors
/// [`DecodeError::Json`] where it is no text: passed over, it would be missing from the answer.
fn piece<'t>(
    raw: Option<&'t RawValue>,
    scratch: &'t mut String,
) -> Result<Option<&'t str>, DecodeError> {
    let Some(raw) = raw else { return Ok(None) };
    let text = string(raw, scratch).ok_or(DecodeError::Json)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn part_index(place: Place, event: &Data<'_>) -> Result<u32, DecodeError> {
    let raw = match place {
        Place::Content | Place::Reasoning => event.content_index,
        Place::Summary => event.summary_index,
    };
    blocks::index(raw, 0)
}

fn error(json: &[u8], sink: &mut Sink<'_>) -> Flow {
    sink(Event::Error { json });
    Flow::Break(())
}

fn undecodable(reason: DecodeError, sink: &mut Sink<'_>) -> Flow {
    sink(Event::Undecodable(reason));
    Flow::Break(())
}

/// A JSON text that stands in no event: the body of an error under status 200, or an answer that was
/// not streamed.
fn bare_json(json: &[u8], sink: &mut Sink<'_>) -> Flow {
    if is_error_body(json) {
        return error(json, sink);
    }
    let reason = match str::from_utf8(json) {
        Err(_) => DecodeError::Utf8,
        Ok(text) => match serde_json::from_str::<&RawValue>(text) {
            Err(_) => DecodeError::Json,
            Ok(raw) => {
                let body: Body<'_> = wire::object(Some(raw));
                let whole = body.object.is_some_and(|kind| kind.get() == "\"response\"")
                    && body.output.is_some();
                match whole || body.choices.is_some() {
                    true => DecodeError::WholeCompletion,
                    false => DecodeError::NotAStream,
                }
            }
        },
    };
    undecodable(reason, sink)
}

/// `true` if JSON outside the events tells of an error, in any of the shapes that error bodies have:
/// an `error`, an object that is one, one with a `message` or `detail`, or a list of one such. A
/// response object that failed has an `error` too.
fn is_error_body(json: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<&RawValue>(json) else {
        return false;
    };
    let tells = |raw: &RawValue| {
        let body: Body<'_> = wire::object(Some(raw));
        truthy(body.error)
            || body.object.is_some_and(|kind| kind.get() == "\"error\"")
            || (body.output.is_none() && body.choices.is_none())
                && (truthy(body.message) || truthy(body.detail))
    };
    match value.get().starts_with('[') {
        true => wire::list(Some(value)).into_iter().any(tells),
        false => tells(value),
    }
}
