//! Decodes a Messages stream.
//!
//! What an event is, its data's `type` says: OpenRouter and Bedrock send no `event:` lines. Only where
//! the data has no type, the name of the event does.
//!
//! The response is complete when a stop reason *and* `message_stop` have come, so the finish is told
//! with the latter, and with the former that it is near; `[DONE]`, which OpenRouter adds, means nothing. Nothing is read after
//! `message_stop`.

mod blocks;
mod finish;
mod native;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
mod usage;
mod wire;

use std::{ops::ControlFlow, str};

use serde_json::value::RawValue;

use self::{
    blocks::Blocks,
    finish::finish,
    usage::Usage,
    wire::{Data, Message},
};
use crate::protocol::{
    DecodeError, Decoder as Decode, DecoderOptions, Event, Sink,
    json::{
        error::is_error_body,
        shape::{Shape, each},
        text::{non_empty, string, truthy},
    },
    sse::{Item, Splitter},
};

/// Decodes the body of one Messages response.
#[derive(Clone, Debug)]
pub struct Decoder {
    splitter: Splitter,
    response: Response,
    over: bool,
}

/// What has to be remembered from event to event.
#[derive(Clone, Debug, Default)]
struct Response {
    native_events: bool,
    /// `message_start` has come, with this id.
    started: Option<String>,
    blocks: Blocks,
    usage: Usage,
    /// The last stop reason, empty until there is one.
    stop_reason: String,
    scratch: [String; 2],
}

/// `Break`: the response is over.
type Flow = ControlFlow<()>;

impl Decoder {
    /// A decoder for one response. What completes it is the protocol's to say.
    pub fn new(options: DecoderOptions) -> Self {
        Self {
            splitter: Splitter::default(),
            response: Response {
                native_events: options.native_events,
                ..Response::default()
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

/// Kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    MessageStart,
    BlockStart,
    BlockDelta,
    BlockStop,
    MessageDelta,
    MessageStop,
    Ping,
    Error,
    /// A message that was not streamed.
    Message,
    /// Of a later version of the protocol.
    Unknown,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "message_start" => Self::MessageStart,
            "content_block_start" => Self::BlockStart,
            "content_block_delta" => Self::BlockDelta,
            "content_block_stop" => Self::BlockStop,
            "message_delta" => Self::MessageDelta,
            "message_stop" => Self::MessageStop,
            "ping" => Self::Ping,
            "error" => Self::Error,
            "message" => Self::Message,
            _ => Self::Unknown,
        }
    }
}

impl Response {
    fn take(&mut self, item: Result<Item<'_>, DecodeError>, sink: &mut Sink<'_>) -> Flow {
        match item {
            Ok(Item::Event { name, data }) => self.event(name, data, sink),
            Ok(Item::Comment) => {
                sink(Event::Keepalive { content: false });
                Flow::Continue(())
            }
            Ok(Item::Field { name, value }) => {
                if name == b"error" || is_error_body(value) {
                    return error(value, sink);
                }
                Flow::Continue(())
            }
            Ok(Item::Json(json)) => bare_json(json, sink),
            Err(reason) => undecodable(reason, sink),
        }
    }

    fn event(&mut self, name: &[u8], data: &[u8], sink: &mut Sink<'_>) -> Flow {
        if self.native_events && !data.is_empty() {
            sink(Event::Native { data });
        }
        if name == b"error" {
            return error(data, sink);
        }
        let trimmed = data.trim_ascii();
        if trimmed.is_empty() {
            sink(Event::Keepalive { content: true });
            return Flow::Continue(());
        }
        if trimmed.starts_with(b"[DONE]") {
            sink(Event::End { completes: false });
            return Flow::Break(());
        }
        let Ok(text) = str::from_utf8(trimmed) else {
            return undecodable(DecodeError::Utf8, sink);
        };
        let read = match serde_json::from_str::<Data<'_>>(text) {
            Ok(read) if read.shape == Shape::Right => read,
            _ => return undecodable(DecodeError::Json, sink),
        };
        let [scratch, _] = &mut self.scratch;
        let kind = match non_empty(read.kind, scratch) {
            Some(kind) => Kind::of(kind),
            None if is_error_body(trimmed) => Kind::Error,
            None => Kind::of(str::from_utf8(name).unwrap_or_default()),
        };
        if kind == Kind::Error || truthy(read.error) {
            return error(data, sink);
        }
        match self.known(kind, &read, sink) {
            Ok(flow) => flow,
            Err(reason) => undecodable(reason, sink),
        }
    }

    fn known(
        &mut self,
        kind: Kind,
        data: &Data<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, DecodeError> {
        match kind {
            Kind::BlockDelta => self.blocks.delta(data.index, &data.delta, sink)?,
            Kind::BlockStart => self.blocks.start(data.index, data.content_block, sink)?,
            Kind::BlockStop => {
                if !self.blocks.end(data.index, sink)? {
                    sink(Event::Keepalive { content: true });
                }
            }
            Kind::MessageStart => self.message_start(data, sink)?,
            Kind::MessageDelta => {
                let stopping = self.stop_reason(data.delta.stop_reason, sink);
                if !self.usage(data.usage, sink) && !stopping {
                    sink(Event::Keepalive { content: true });
                }
            }
            Kind::MessageStop => {
                self.message_stop(sink);
                return Ok(Flow::Break(()));
            }
            Kind::Message => return Err(DecodeError::WholeCompletion),
            Kind::Ping | Kind::Error => sink(Event::Keepalive { content: true }),
            Kind::Unknown => sink(Event::Unknown),
        }
        Ok(Flow::Continue(()))
    }

    /// Proxies repeat it; with another id the response behind them began again.
    fn message_start(&mut self, data: &Data<'_>, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        let message = data.message.ok_or(DecodeError::Json)?;
        let message: Message<'_> =
            serde_json::from_str(message.get()).map_err(|_| DecodeError::Json)?;
        if message.shape != Shape::Right {
            return Err(DecodeError::Json);
        }
        let [id_scratch, model_scratch] = &mut self.scratch;
        let response_id = non_empty(message.id, id_scratch);
        if let Some(started) = &self.started {
            if response_id.is_some_and(|id| id != started) {
                return Err(DecodeError::Restarted);
            }
            sink(Event::Keepalive { content: true });
            return Ok(());
        }
        self.started = Some(response_id.unwrap_or_default().to_owned());
        sink(Event::Started {
            response_id,
            model: non_empty(message.model, model_scratch),
        });
        self.usage(message.usage, sink);
        // Where a server tool calls one of the client's, the message begins with that call, whole, and
        // ends at once.
        if let Some(content) = message.content.filter(|content| truthy(Some(content))) {
            let mut blocks = Vec::new();
            each(content, |block: &RawValue| blocks.push(block)).map_err(|_| DecodeError::Json)?;
            self.blocks.whole(blocks, sink)?;
        }
        self.stop_reason(message.stop_reason, sink);
        Ok(())
    }

    fn message_stop(&mut self, sink: &mut Sink<'_>) {
        self.blocks.finish(sink);
        if !self.stop_reason.is_empty() {
            sink(Event::Finish {
                reason: finish(&self.stop_reason),
                native: &self.stop_reason,
            });
        }
        sink(Event::End { completes: false });
    }

    /// Keeps a stop reason; the first one is told as the beginning of the end. Returns whether it was.
    fn stop_reason(&mut self, reason: Option<&RawValue>, sink: &mut Sink<'_>) -> bool {
        let [scratch, _] = &mut self.scratch;
        let Some(reason) = non_empty(reason, scratch) else {
            return false;
        };
        let first = self.stop_reason.is_empty();
        reason.clone_into(&mut self.stop_reason);
        if first {
            sink(Event::Finishing);
        }
        first
    }

    fn usage(&mut self, usage: Option<&RawValue>, sink: &mut Sink<'_>) -> bool {
        let any = usage.is_some_and(|usage| self.usage.merge(usage));
        if any {
            sink(Event::Usage(self.usage.to_proto()));
        }
        any
    }
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
    let mut scratch = String::new();
    let reason = match str::from_utf8(json).map(serde_json::from_str::<Data<'_>>) {
        Err(_) => DecodeError::Utf8,
        Ok(Ok(data)) => match data.kind.and_then(|kind| string(kind, &mut scratch)) {
            Some("message") if !truthy(data.error) => DecodeError::WholeCompletion,
            _ if truthy(data.error) || is_error_body(json) => return error(json, sink),
            _ => DecodeError::NotAStream,
        },
        Ok(Err(_)) => DecodeError::Json,
    };
    undecodable(reason, sink)
}
