//! Decodes a Chat Completions stream.
//!
//! Wire facts are from OpenAI's `openai.yaml` (`CreateChatCompletionStreamResponse`) and its Python
//! library's `_streaming.py`, from the sources and documentation of the servers named beside each
//! tolerance, and from recordings of some forty of them. What one server does is tolerated from all:
//! a base URL does not tell which server is behind it, and gateways mix them.
//!
//! Order within one chunk: name, output, usage, finish. Where a chunk holds an error object, the
//! error is all that is told of it.

mod chunk;
mod content;
mod finish;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
mod tools;
mod usage;

use std::{ops::ControlFlow, str};

use serde_json::value::RawValue;

use self::{
    chunk::{Choice, Chunk, Groq},
    content::Content,
    finish::{Finish, finish},
};
use super::super::{
    DecodeError, Decoder as Decode, Event, Sink, Terminal,
    json::{
        shape::{Shape, each},
        text::{non_empty, truthy},
    },
    sse::{Item, Splitter},
};
use crate::proto::Usage;

/// Decodes the body of one Chat Completions response.
#[derive(Clone, Debug)]
pub struct Decoder {
    splitter: Splitter,
    response: Response,
    over: bool,
}

/// What has to be remembered from chunk to chunk.
#[derive(Clone, Debug)]
struct Response {
    terminal: Terminal,
    native_events: bool,
    id_known: bool,
    model_known: bool,
    /// A chunk with a `delta` has come: this is a stream, whatever else its chunks hold.
    streams: bool,
    content: Content,
    usage: Usage,
    /// The finish reason that was told last.
    finish: String,
    scratch: [String; 2],
}

/// `Break`: the response is over.
type Flow = ControlFlow<()>;

impl Decoder {
    /// A decoder for one response. `terminal` says what completes it.
    pub fn new(terminal: Terminal) -> Self {
        Self {
            splitter: Splitter::default(),
            response: Response {
                terminal,
                native_events: false,
                id_known: false,
                model_known: false,
                streams: false,
                content: Content::default(),
                usage: Usage::default(),
                finish: String::new(),
                scratch: Default::default(),
            },
            over: false,
        }
    }

    /// Whether the provider's own events are emitted too, each before what was made of it.
    #[must_use]
    pub fn with_native_events(mut self, native_events: bool) -> Self {
        self.response.native_events = native_events;
        self
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
        if clean && !self.over {
            self.response.content.finish(sink);
        }
        self.over = true;
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
        // Groq and LM Studio name their error events.
        if name == b"error" {
            return error(data, sink);
        }
        let data = data.trim_ascii();
        if data.is_empty() || matches!(name, b"ping" | b"keepalive") {
            sink(Event::Keepalive { content: true });
            return Flow::Continue(());
        }
        if data.starts_with(b"[DONE]") {
            self.content.finish(sink);
            sink(Event::End {
                completes: self.terminal == Terminal::DoneSentinel,
            });
            return Flow::Break(());
        }
        let Ok(text) = str::from_utf8(data) else {
            return undecodable(DecodeError::Utf8, sink);
        };
        match serde_json::from_str::<Chunk<'_>>(text) {
            Ok(chunk) if is_error(&chunk) => error(data, sink),
            Ok(chunk) => match self.chunk(&chunk, sink) {
                Ok(()) => Flow::Continue(()),
                Err(reason) => undecodable(reason, sink),
            },
            Err(_) => undecodable(DecodeError::Json, sink),
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        let choice = chunk.choices.first.as_ref();
        let delta = choice.map_or(Shape::Absent, |choice| choice.delta.shape);
        if chunk.shape != Shape::Right
            || chunk.choices.shape == Shape::Wrong
            || delta == Shape::Wrong
        {
            return Err(DecodeError::Json);
        }
        // Perplexity and Writer send a cumulative `message` beside the `delta`; a message where there
        // never was a delta is an answer that was not streamed.
        self.streams |= delta == Shape::Right;
        if !self.streams && choice.is_some_and(holds_message) {
            return Err(DecodeError::WholeCompletion);
        }

        self.name(chunk, sink);
        let mut told = false;
        if let Some(choice) = choice {
            told |= self.content.take(&choice.delta, sink)?;
        }
        told |= self.usage(chunk, choice, sink);
        told |= self.finish(choice.and_then(|choice| choice.finish_reason), sink);
        if !told {
            sink(Event::Keepalive { content: true });
        }
        Ok(())
    }

    /// Tells the response's id and model, each as soon as it is known: Azure's first chunk has both
    /// empty.
    fn name(&mut self, chunk: &Chunk<'_>, sink: &mut Sink<'_>) {
        let [id_scratch, model_scratch] = &mut self.scratch;
        let response_id = if self.id_known {
            None
        } else {
            non_empty(chunk.id, id_scratch)
        };
        let model = if self.model_known {
            None
        } else {
            non_empty(chunk.model, model_scratch)
        };
        if response_id.is_some() || model.is_some() {
            self.id_known |= response_id.is_some();
            self.model_known |= model.is_some();
            sink(Event::Started { response_id, model });
        }
    }

    /// Tells token counts wherever they stand: OpenAI sends them in a chunk of their own, many beside
    /// the finish reason, Perplexity and Databricks in every chunk (cumulative), Groq also in
    /// `x_groq`, Moonshot in the choice.
    fn usage(
        &mut self,
        chunk: &Chunk<'_>,
        choice: Option<&Choice<'_>>,
        sink: &mut Sink<'_>,
    ) -> bool {
        let places = [
            groq(chunk).usage,
            choice.and_then(|choice| choice.usage),
            chunk.usage,
        ];
        let mut any = false;
        for usage in places.into_iter().flatten() {
            any |= usage::merge(&mut self.usage, usage);
        }
        if any {
            sink(Event::Usage(self.usage));
        }
        any
    }

    /// Tells a finish reason that differs from the last one. Some servers repeat it, some send `null`
    /// after it.
    fn finish(&mut self, reason: Option<&RawValue>, sink: &mut Sink<'_>) -> bool {
        let [scratch, _] = &mut self.scratch;
        let Some(native) = non_empty(reason, scratch) else {
            return false;
        };
        if native == "null" || native == self.finish {
            return false;
        }
        self.finish.clear();
        self.finish.push_str(native);
        self.content.finish(sink);
        sink(match finish(native) {
            Finish::Complete(reason) => Event::Finish { reason, native },
            Finish::Failed => Event::BadFinish { native },
        });
        true
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
    if is_error_body(json) {
        return error(json, sink);
    }
    undecodable(
        match str::from_utf8(json).map(serde_json::from_str::<Chunk<'_>>) {
            Err(_) => DecodeError::Utf8,
            Ok(Err(_)) => DecodeError::Json,
            Ok(Ok(chunk)) if chunk.choices.first.as_ref().is_some_and(holds_message) => {
                DecodeError::WholeCompletion
            }
            Ok(Ok(_)) => DecodeError::NotAStream,
        },
        sink,
    )
}

/// `true` if a chunk holds an error: OpenAI and nearly all (`error`), OpenRouter (in the choice),
/// Groq (`x_groq.error`), older vLLM and Mistral (`"object": "error"`).
fn is_error(chunk: &Chunk<'_>) -> bool {
    truthy(chunk.error)
        || chunk
            .choices
            .first
            .as_ref()
            .is_some_and(|choice| truthy(choice.error))
        || truthy(groq(chunk).error)
        || chunk
            .object
            .is_some_and(|object| object.get() == "\"error\"")
}

/// `true` if JSON outside the events tells of an error, in any of the shapes that error bodies have:
/// an object as in [`is_error`], one with a `message` or `detail`, or a list of one such.
fn is_error_body(json: &[u8]) -> bool {
    let tells = |chunk: &Chunk<'_>| {
        is_error(chunk)
            || (chunk.choices.shape == Shape::Absent
                && (truthy(chunk.message) || truthy(chunk.detail)))
    };
    let Ok(value) = serde_json::from_slice::<&RawValue>(json) else {
        return false;
    };
    if value.get().starts_with('[') {
        let mut any = false;
        let read = each(value, |chunk: Chunk<'_>| any |= tells(&chunk));
        return read.is_ok() && any;
    }
    serde_json::from_str(value.get()).is_ok_and(|chunk| tells(&chunk))
}

fn groq<'a>(chunk: &Chunk<'a>) -> Groq<'a> {
    chunk
        .x_groq
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

fn holds_message(choice: &Choice<'_>) -> bool {
    choice.delta.shape == Shape::Absent
        && choice
            .message
            .is_some_and(|message| message.get().starts_with('{'))
}
