//! Server-Sent Events on bytes, after the WHATWG grammar
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), bounded, without a clock.
//!
//! Lines are split before UTF-8 is looked at, so neither a character nor a CRLF that is cut by two
//! reads matters. An event that lies wholly inside one read is borrowed from it; only what spans
//! reads is copied, into buffers that are used again for the next event.
//!
//! It departs from a browser where model servers do:
//! - an unterminated last event counts after a clean end, if its data is complete JSON or `[DONE]`;
//! - an unknown field whose value looks like JSON is handed out ([`Item::Field`]): llama.cpp and
//!   GPUStack write `error: {…}`;
//! - JSON outside any field is handed out ([`Item::Json`]): gateways and Google report errors so;
//! - white space before the first line is dropped (gateways pad JSON while they wait);
//! - a body that does not begin like a stream is refused at once ([`DecodeError::NotAStream`]),
//!   whatever its content type said.

mod line;
mod nesting;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;

use std::mem;

use memchr::memchr2;
use serde::de::IgnoredAny;

use self::{
    line::{Kind, Line, begins_field, opens_json, opens_stream, resumes_events},
    nesting::Nesting,
};
use super::{DecodeError, MAX_EVENT_BYTES};

/// What a stream consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A dispatched event. One that has a name or a data field but no data is handed out too: it
    /// proves life.
    Event {
        /// The `event` field, empty if there was none.
        name: &'a [u8],
        /// The `data` fields, joined with `\n`.
        data: &'a [u8],
    },
    /// A comment line.
    Comment,
    /// A field that is not in the grammar, with a value that may tell of an error.
    Field {
        /// Its name.
        name: &'a [u8],
        /// Its value: begins like a JSON object, or is not empty and the name is `error`.
        value: &'a [u8],
    },
    /// JSON that stands outside any field, over one line or many. Its brackets match; whether it is
    /// valid is for the reader to see.
    Json(&'a [u8]),
}

/// Splits a body into [`Item`]s. Pull all items of a read with [`next`](Self::next), and after the
/// last read those of [`end`](Self::end).
///
/// Holds at most one event (`MAX_EVENT_BYTES`) and one line beside it.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    opening: Opening,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The last line that spanned reads, kept while an item borrows from it.
    whole: Vec<u8>,
    /// The event that is being collected.
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The event was handed out: its buffers are cleared before anything else.
    handed_out: bool,
    /// JSON outside any field that runs over several lines.
    json: Vec<u8>,
    nesting: Nesting,
}

/// How far the beginning of the body was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Opening {
    /// Before everything.
    #[default]
    Start,
    /// Inside a byte order mark: so many of its bytes have come.
    Mark(usize),
    /// Behind the mark, in white space; whether a line has begun with some.
    White { indented: bool },
    /// In the first line, which shows whether this is a stream.
    FirstLine,
    /// In a stream.
    Stream,
    /// After a fault: nothing is read any more.
    Dead,
}

/// What [`Splitter::step`] found: in the read, or, where `None`, in the splitter's buffers.
enum Found<'i> {
    Event(Option<&'i [u8]>),
    Comment,
    Field(Option<&'i [u8]>, Line),
    Json(Option<&'i [u8]>),
    LongJson,
}

const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Buffers that grew beyond this for one large event are given back after it.
const KEEP_BYTES: usize = 64 << 10;

impl Splitter {
    /// Takes the next item from `input`, and the bytes that it used. `None`: all of `input` is used.
    ///
    /// After an `Err` the splitter is dead and answers `None`.
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Option<Result<Item<'a>, DecodeError>> {
        if self.opening == Opening::Dead {
            *input = &[];
            return None;
        }
        match self.step(input) {
            Ok(found) => found.map(|found| Ok(self.item(found))),
            Err(error) => Some(Err(self.die(error))),
        }
    }

    /// The body ended: takes what an unterminated line or event still holds. To be called until it
    /// answers `None`. Nothing unterminated counts unless the end was `clean`.
    pub fn end(&mut self, clean: bool) -> Option<Result<Item<'_>, DecodeError>> {
        self.release();
        let unopened = self.opening == Opening::FirstLine && begins_field(&self.line);
        if !clean || unopened || self.opening == Opening::Dead {
            return None;
        }
        if !self.line.is_empty() {
            match self.step(&mut b"\n".as_slice()) {
                Ok(None) => {}
                Ok(Some(Found::Field(_, line))) if !complete(line.value(&self.whole)) => {}
                Ok(Some(found)) => return Some(Ok(self.item(found))),
                Err(error) => return Some(Err(self.die(error))),
            }
        }
        if self.has_data && (complete(&self.data) || self.data.starts_with(b"[DONE]")) {
            self.handed_out = true;
            return Some(Ok(self.item(Found::Event(None))));
        }
        None
    }

    /// The bytes held in buffers.
    #[cfg(test)]
    fn held_bytes(&self) -> usize {
        [&self.line, &self.whole, &self.name, &self.data, &self.json]
            .iter()
            .map(|buffer| buffer.capacity())
            .sum()
    }

    fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Found<'i>>, DecodeError> {
        self.release();
        if self.opening != Opening::Stream && !self.open(input)? {
            return Ok(None);
        }
        // The data of the pending event, as long as it is one line inside this read.
        let mut first: Option<&'i [u8]> = None;
        while let Some(here) = self.whole_line(input)? {
            let text = here.unwrap_or(&self.whole);
            if self.nesting.is_open() || opens_json(text) {
                if let Some(found) = self.json_line(here)? {
                    self.hold(first)?;
                    return Ok(Some(found));
                }
                continue;
            }
            let line = Line::of(text);
            match line.kind {
                Kind::Blank if first.is_some() || self.has_data || !self.name.is_empty() => {
                    self.handed_out = true;
                    return Ok(Some(Found::Event(first)));
                }
                Kind::Blank | Kind::Ignored => {}
                Kind::Data if here.is_some() && first.is_none() && !self.has_data => {
                    first = here.map(|piece| line.value(piece));
                }
                Kind::Data => {
                    self.hold(first.take())?;
                    let value = line.value(here.unwrap_or(&self.whole));
                    append(&mut self.data, &mut self.has_data, value)?;
                }
                Kind::Name => {
                    self.name.clear();
                    push(&mut self.name, line.value(text));
                }
                Kind::Comment => {
                    self.hold(first)?;
                    return Ok(Some(Found::Comment));
                }
                Kind::Unknown => {
                    self.hold(first)?;
                    return Ok(Some(Found::Field(here, line)));
                }
            }
        }
        self.hold(first)?;
        Ok(None)
    }

    /// Takes the next line whose end has come: `Some(Some(_))` where it lies inside the read,
    /// `Some(None)` where it spans reads and is now in `whole`.
    fn whole_line<'i>(
        &mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Option<&'i [u8]>>, DecodeError> {
        if self.after_cr
            && let Some((byte, rest)) = input.split_first()
        {
            self.after_cr = false;
            if *byte == b'\n' {
                *input = rest;
            }
        }
        let end = memchr2(b'\n', b'\r', input).unwrap_or(input.len());
        let (piece, rest) = input.split_at(end);
        if self.line.len() + piece.len() > MAX_EVENT_BYTES {
            return Err(DecodeError::TooLarge);
        }
        let Some((byte, rest)) = rest.split_first() else {
            *input = rest;
            push(&mut self.line, piece);
            return Ok(None);
        };
        *input = rest;
        self.after_cr = *byte == b'\r';
        if self.line.is_empty() {
            return Ok(Some(Some(piece)));
        }
        push(&mut self.line, piece);
        mem::swap(&mut self.line, &mut self.whole);
        recycle(&mut self.line);
        Ok(Some(None))
    }

    /// Reads the beginning of the body. `false`: more bytes are needed.
    fn open(&mut self, input: &mut &[u8]) -> Result<bool, DecodeError> {
        while let (Opening::Start | Opening::Mark(_), Some((byte, rest))) =
            (self.opening, input.split_first())
        {
            let seen = match self.opening {
                Opening::Mark(seen) => seen,
                _ => 0,
            };
            if MARK.get(seen) == Some(byte) {
                *input = rest;
                let seen = seen + 1;
                self.opening = if seen == MARK.len() {
                    Opening::White { indented: false }
                } else {
                    Opening::Mark(seen)
                };
            } else {
                self.line.extend(MARK.iter().take(seen));
                self.opening = if seen == 0 {
                    Opening::White { indented: false }
                } else {
                    Opening::FirstLine
                };
            }
        }
        if let Opening::White { mut indented } = self.opening {
            let text = input.trim_ascii_start();
            if let Some(white) = input.strip_suffix(text).and_then(<[u8]>::last) {
                indented = !matches!(white, b'\n' | b'\r');
            }
            *input = text;
            self.opening = match text.first() {
                None => Opening::White { indented },
                Some(byte) => {
                    // An indented field is not the field, whatever is dropped before JSON.
                    if indented && !matches!(byte, b'{' | b'[') {
                        self.line.push(b' ');
                    }
                    Opening::FirstLine
                }
            };
        }
        if self.opening != Opening::FirstLine {
            return Ok(false);
        }
        match opens_stream(self.line.iter().chain(input.iter()).copied()) {
            Some(true) => {
                self.opening = Opening::Stream;
                Ok(true)
            }
            Some(false) => Err(DecodeError::NotAStream),
            // Undecided only at the end of the read.
            None => {
                push(&mut self.line, input);
                *input = &[];
                Ok(false)
            }
        }
    }

    /// Adds a line to JSON that stands outside any field; `here` as in [`Found`].
    fn json_line<'i>(&mut self, here: Option<&'i [u8]>) -> Result<Option<Found<'i>>, DecodeError> {
        let text = here.unwrap_or(&self.whole);
        let continued = self.nesting.is_open();
        if (continued && resumes_events(text)) || !self.nesting.scan(text) {
            return Err(DecodeError::Json);
        }
        if !continued {
            recycle(&mut self.json);
            if !self.nesting.is_open() {
                return Ok(Some(Found::Json(here)));
            }
        }
        if self.json.len() + text.len() + 1 > MAX_EVENT_BYTES {
            return Err(DecodeError::TooLarge);
        }
        push(&mut self.json, text);
        push(&mut self.json, b"\n");
        Ok((!self.nesting.is_open()).then_some(Found::LongJson))
    }

    /// Copies the pending event's first line out of the read that it was borrowed from.
    fn hold(&mut self, first: Option<&[u8]>) -> Result<(), DecodeError> {
        match first {
            Some(value) => append(&mut self.data, &mut self.has_data, value),
            None => Ok(()),
        }
    }

    fn item<'a>(&'a self, found: Found<'a>) -> Item<'a> {
        match found {
            Found::Event(data) => Item::Event {
                name: &self.name,
                data: data.unwrap_or(&self.data),
            },
            Found::Comment => Item::Comment,
            Found::Field(here, line) => {
                let text = here.unwrap_or(&self.whole);
                Item::Field {
                    name: line.name(text),
                    value: line.value(text),
                }
            }
            Found::Json(here) => Item::Json(here.unwrap_or(&self.whole)),
            Found::LongJson => Item::Json(&self.json),
        }
    }

    fn release(&mut self) {
        if mem::take(&mut self.handed_out) {
            recycle(&mut self.name);
            recycle(&mut self.data);
            self.has_data = false;
        }
    }

    fn die(&mut self, error: DecodeError) -> DecodeError {
        *self = Self {
            opening: Opening::Dead,
            ..Self::default()
        };
        error
    }
}

/// Adds a data line to an event.
fn append(data: &mut Vec<u8>, has_data: &mut bool, value: &[u8]) -> Result<(), DecodeError> {
    if data.len() + value.len() + 1 > MAX_EVENT_BYTES {
        return Err(DecodeError::TooLarge);
    }
    if mem::replace(has_data, true) {
        push(data, b"\n");
    }
    push(data, value);
    Ok(())
}

/// Appends without letting the buffer's growth run past the largest event.
fn push(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let needed = buffer.len() + bytes.len();
    if needed > buffer.capacity() {
        let goal = (buffer.capacity() * 2).min(MAX_EVENT_BYTES).max(needed);
        buffer.reserve_exact(goal - buffer.len());
    }
    buffer.extend_from_slice(bytes);
}

/// Empties a buffer, and gives its memory back if it is large.
fn recycle(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEEP_BYTES {
        *buffer = Vec::new();
    }
}

/// `true` if `data` is one complete JSON value.
fn complete(data: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(data).is_ok()
}
