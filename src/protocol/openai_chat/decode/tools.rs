//! Tool calls, from fragments in every server's fashion to calls in order of appearance.
//!
//! Which call a fragment belongs to:
//! - `index` names it. A non-empty id at a known index that differs from the call's own id is another
//!   call (OpenRouter gives every call of Gemini the index 0); the same id again is the same call.
//! - Without an index (Mistral) the id names it; without either it goes to the last call.
//! - A name that differs from that of a call which has begun is another call: id and name are set,
//!   never appended to.
//!
//! When a call begins ([`Delta::ToolCallStart`]), which is told once and cannot be changed:
//! - at once, when both its id and its name are known;
//! - with its first argument text, when only the name is known: its id is then made up. An id that
//!   comes before any argument text is therefore never lost; one that comes after is taken to be
//!   another name of the same call, whose made-up id stays;
//! - an id without a name waits for the name, and its argument text with it;
//! - what still waits begins as it is when the response ends, a named call already when the next one
//!   appears.
//!
//! Calls are numbered as they begin.

use super::super::super::{DecodeError, Delta, Event, MAX_EVENT_BYTES, Sink};

/// The most tool calls of one response. OpenAI allows 128 tools.
pub(super) const MAX_TOOL_CALLS: usize = 1024;

/// One fragment, as the chunk had it; empty strings are absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fragment<'a> {
    /// The provider's number of the call.
    pub(super) index: Option<u64>,
    /// The provider's id.
    pub(super) id: Option<&'a str>,
    /// The tool.
    pub(super) name: Option<&'a str>,
    /// Argument text.
    pub(super) arguments: &'a str,
    /// Stands in the same list as the fragment before.
    pub(super) beside_another: bool,
}

/// The tool calls of a response.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<Call>,
    /// How many have begun.
    begun: u32,
    /// Bytes of ids, names and waiting arguments in `calls`.
    held_bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Call {
    index: Option<u64>,
    /// The provider's id, empty until it gives one.
    id: String,
    name: String,
    /// The call's number, once it has begun.
    number: Option<u32>,
    /// Argument text that waits for the call to begin.
    waiting: String,
}

impl ToolCalls {
    /// Takes a fragment. Returns whether `sink` was told anything.
    pub(super) fn take(
        &mut self,
        fragment: Fragment<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let mut told = false;
        let place = match self.find(&fragment) {
            Some(place) => place,
            None => {
                told |= self.begin_waiting(|call| !call.name.is_empty(), sink);
                if self.calls.len() == MAX_TOOL_CALLS {
                    return Err(DecodeError::TooLarge);
                }
                self.calls.push(Call {
                    index: fragment.index,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(place) else {
            return Ok(told);
        };
        self.held_bytes -= call.held_bytes();
        call.learn(&fragment);
        if call.is_ready(&fragment) {
            call.begin(&mut self.begun, sink);
            told = true;
        }
        match call.number {
            _ if fragment.arguments.is_empty() => {}
            Some(call) => {
                sink(Event::Delta(Delta::ToolArguments {
                    call,
                    fragment: fragment.arguments,
                }));
                told = true;
            }
            None => call.waiting.push_str(fragment.arguments),
        }
        self.held_bytes += call.held_bytes();
        if self.held_bytes > MAX_EVENT_BYTES {
            return Err(DecodeError::TooLarge);
        }
        Ok(told)
    }

    /// The response is complete: begins the calls that still wait for an id or a name.
    pub(super) fn finish(&mut self, sink: &mut Sink<'_>) {
        self.begin_waiting(|_| true, sink);
    }

    fn begin_waiting(&mut self, which: fn(&Call) -> bool, sink: &mut Sink<'_>) -> bool {
        let mut told = false;
        for call in self
            .calls
            .iter_mut()
            .filter(|call| call.number.is_none() && which(call))
        {
            self.held_bytes -= call.held_bytes();
            call.begin(&mut self.begun, sink);
            self.held_bytes += call.held_bytes();
            told = true;
        }
        told
    }

    /// The call that a fragment continues.
    fn find(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let place = match (fragment.index, fragment.id) {
            // The newest call of an index: an older one has ended.
            (Some(index), _) => self
                .calls
                .iter()
                .rposition(|call| call.index == Some(index))?,
            (None, Some(id)) => match self.calls.iter().rposition(|call| call.id == id) {
                Some(place) => return Some(place),
                None => self.calls.len().checked_sub(1)?,
            },
            (None, None) => self.calls.len().checked_sub(1)?,
        };
        let call = self.calls.get(place)?;
        let other_id = fragment
            .id
            .is_some_and(|id| !call.id.is_empty() && call.id != id);
        let other_name = match fragment.name {
            Some(name) if call.number.is_some() => {
                // Two whole calls to one tool, without anything that tells them apart but the list.
                call.name != name || (fragment.index.is_none() && fragment.beside_another)
            }
            _ => false,
        };
        (!other_id && !other_name).then_some(place)
    }
}

impl Call {
    fn learn(&mut self, fragment: &Fragment<'_>) {
        if let Some(id) = fragment.id
            && self.id.is_empty()
        {
            self.id.push_str(id);
        }
        if let Some(name) = fragment.name
            && self.number.is_none()
        {
            self.name.clear();
            self.name.push_str(name);
        }
    }

    /// Whether the call begins with this fragment.
    fn is_ready(&self, fragment: &Fragment<'_>) -> bool {
        let has_arguments = !fragment.arguments.is_empty() || !self.waiting.is_empty();
        self.number.is_none() && !self.name.is_empty() && (!self.id.is_empty() || has_arguments)
    }

    fn begin(&mut self, begun: &mut u32, sink: &mut Sink<'_>) {
        let call = *begun;
        self.number = Some(call);
        *begun += 1;
        let made_up;
        let id = if self.id.is_empty() {
            made_up = format!("call_redrive_{call}");
            &made_up
        } else {
            &self.id
        };
        sink(Event::Delta(Delta::ToolCallStart {
            call,
            id,
            name: &self.name,
        }));
        if !self.waiting.is_empty() {
            sink(Event::Delta(Delta::ToolArguments {
                call,
                fragment: &self.waiting,
            }));
            self.waiting = String::new();
        }
    }

    fn held_bytes(&self) -> usize {
        self.id.len() + self.name.len() + self.waiting.len()
    }
}
