//! What the provider has said in the attempt in flight, kept apart from the core's own account.

use std::collections::BTreeSet;

use redrive::{
    proto::{FinishReason, Part, ToolCall, Usage, part},
    protocol::{DecodeError, Delta, Event},
};

use super::op::Says;

/// One block, as the contract defines it: a change of kind opens a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub kind: &'static str,
    pub text: String,
}

impl Block {
    /// Whether it is a tool call, of whatever tool.
    pub fn is_call(&self) -> bool {
        matches!(self.kind, "call" | "stray call" | "nameless call")
    }
}

/// How much of a continuation is held back, in characters.
const HELD: usize = 64;

/// A continuation of which nothing may be shown yet.
#[derive(Clone, Debug)]
struct Hidden {
    /// What was sent to be continued, and the white space behind it that was not.
    sent: String,
    space: String,
    /// What came, less an echo.
    text: String,
    has_begun: bool,
}

/// What was said and is not void, of one attempt or of several that go on with each other.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The attempt that speaks.
    pub attempt: u32,
    pub blocks: Vec<Block>,
    /// The attempt that each block is of.
    pub of: Vec<u32>,
    /// Text of attempts below this one is final.
    pub fixed_below: u32,
    hidden: Option<Hidden>,
    /// Its words are other words than the first attempt's.
    goes_on: bool,
    calls: Vec<(u32, usize)>,
    /// There is terminal evidence.
    pub complete: bool,
    pub finish: Option<FinishReason>,
    /// There was an error object.
    pub broken: bool,
    /// The index of the block that was last added to.
    pub newest: usize,
    /// The last event of a stored response.
    pub cursor: u64,
    /// Blocks of which the final snapshot was another.
    pub differs: BTreeSet<usize>,
    /// The last snapshot was of a call that had streamed nothing.
    pub filled: bool,
    /// Calls that the turn gate has left out of the message.
    pub left_out: BTreeSet<usize>,
}

impl Stream {
    /// An attempt that begins from nothing.
    pub fn first(attempt: u32) -> Self {
        Self {
            attempt,
            ..Self::default()
        }
    }

    /// An answer that is known as a whole.
    pub fn whole(blocks: Vec<Block>, finish: Option<FinishReason>) -> Self {
        Self {
            attempt: 1,
            of: vec![1; blocks.len()],
            blocks,
            finish,
            ..Self::default()
        }
    }

    /// Nothing of the attempt may be shown yet.
    pub fn is_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// `attempt` goes on with the text; what is not text is void, from the returned attempt on.
    pub fn continued_by(&mut self, attempt: u32) -> Option<u32> {
        let is_text = self.blocks.iter().all(|block| block.kind == "text");
        let void_from = (!is_text).then_some(self.fixed_below);
        if !is_text {
            assert!(self.fixed_below > 0, "what is not text is continued");
            let kept = self.of.iter().filter(|&&of| of < self.fixed_below).count();
            self.blocks.truncate(kept);
            self.of.truncate(kept);
        }
        let text: String = self.blocks.iter().map(|block| &*block.text).collect();
        let sent = text.trim_end().to_owned();
        let hidden = Hidden {
            space: text[sent.len()..].to_owned(),
            sent,
            text: String::new(),
            has_begun: false,
        };
        *self = Self {
            attempt,
            blocks: std::mem::take(&mut self.blocks),
            of: std::mem::take(&mut self.of),
            fixed_below: self.fixed_below,
            hidden: Some(hidden),
            goes_on: true,
            ..Self::default()
        };
        self.newest = self.blocks.len();
        void_from
    }

    /// What the provider was asked to continue.
    pub fn sent(&self) -> &str {
        self.hidden.as_ref().map_or("", |hidden| &hidden.sent)
    }

    /// `attempt` reads on what is stored.
    pub fn resumed_by(&mut self, attempt: u32) {
        self.attempt = attempt;
        self.of.fill(attempt);
        self.complete = false;
        self.finish = None;
    }

    /// The words in which it is said; none if it cannot be said now.
    pub fn words(&self, says: Says) -> Option<String> {
        let beginning = self.hidden.as_ref().filter(|hidden| !hidden.has_begun);
        match says {
            Says::Text(text) if self.goes_on && !text.trim().is_empty() => {
                Some(format!("{}{}", self.attempt, text.to_uppercase()))
            }
            Says::Text(text) => Some(text.to_owned()),
            Says::Echo => Some(beginning?.sent.clone()),
            Says::Anew => {
                let sent = &beginning?.sent;
                let letters = sent.chars().count();
                let same: String = sent.chars().take(8.min(letters - 1)).collect();
                let enough = (letters / 2).clamp(2, 8);
                let tells =
                    same.chars().count() >= enough && !sent.starts_with(char::is_whitespace);
                tells.then(|| same + "#")
            }
            _ => Some(String::new()),
        }
    }

    /// Notes what is said, as far as it counts. `true` if the answer is begun anew.
    pub fn note(&mut self, says: Says, words: &str) -> bool {
        match (says, &mut self.hidden) {
            (Says::Anew, _) => return true,
            (Says::Reasoning(_) | Says::Refusal(_), Some(_)) => return true,
            (Says::Echo, Some(hidden)) => hidden.has_begun = true,
            (Says::Text(_), Some(hidden)) => {
                hidden.has_begun = true;
                hidden.text.push_str(words);
                if hidden.text.chars().count() >= HELD {
                    self.show();
                }
            }
            (
                Says::Call(_)
                | Says::Stray(_)
                | Says::Arguments(..)
                | Says::Finish(_)
                | Says::Done(true),
                Some(_),
            ) => {
                self.show();
                self.note_plainly(says, words);
            }
            (_, Some(_)) => self.broken |= matches!(says, Says::Error(_)),
            (_, None) => self.note_plainly(says, words),
        }
        false
    }

    /// It is a continuation: the text before is final, and white space at the seam stands once.
    fn show(&mut self) {
        let Some(hidden) = self.hidden.take() else {
            return;
        };
        self.fixed_below = self.attempt;
        let Hidden { space, text, .. } = hidden;
        let own = text.len() - text.trim_start().len();
        let longest = (0..=own)
            .rev()
            .filter(|&length| text.is_char_boundary(length));
        let repeated = longest.into_iter().find(|&length| {
            space.starts_with(&text[..length]) || (length == own && space.ends_with(&text[..own]))
        });
        let text = &text[repeated.unwrap_or(0)..];
        if !text.is_empty() {
            self.append("text", text);
        }
    }

    fn note_plainly(&mut self, says: Says, words: &str) {
        match says {
            Says::Text(_) => self.append("text", words),
            Says::Reasoning(text) => self.append("reasoning", text),
            Says::Refusal(text) => self.append("refusal", text),
            Says::Call(call) => self.call_of(call, "call"),
            Says::Stray(call) => self.call_of(call, "stray call"),
            Says::Arguments(call, fragment) => {
                let index = match self.call(call) {
                    Some(index) => index,
                    None => {
                        self.open_call(call, "nameless call");
                        self.blocks.len() - 1
                    }
                };
                self.blocks[index].text.push_str(fragment);
                self.newest = index;
            }
            Says::Finish(reason) => {
                self.complete = true;
                self.finish.get_or_insert(reason);
            }
            Says::Done(completes) => {
                if completes {
                    self.complete = true;
                    self.finish.get_or_insert(FinishReason::Stop);
                }
            }
            Says::Error(_) => self.broken = true,
            Says::Keepalive(_) | Says::Usage(_) | Says::Started => {}
            Says::Garbage | Says::Echo | Says::Anew | Says::Whole(..) => {}
        }
    }

    fn append(&mut self, kind: &'static str, text: &str) {
        let own = self.of.last() == Some(&self.attempt);
        match self.blocks.last_mut() {
            Some(block) if block.kind == kind && own => block.text.push_str(text),
            _ => self.open(kind, text),
        }
        self.newest = self.blocks.len() - 1;
    }

    fn open(&mut self, kind: &'static str, text: &str) {
        self.of.push(self.attempt);
        self.blocks.push(Block {
            kind,
            text: text.into(),
        });
    }

    /// The block of a call.
    pub fn call(&self, call: u32) -> Option<usize> {
        let known = self.calls.iter().rev().find(|(known, _)| *known == call);
        known.map(|(_, index)| *index)
    }

    /// A call of a tool begins, unless it has.
    fn call_of(&mut self, call: u32, kind: &'static str) {
        match self.call(call) {
            Some(index) if self.blocks[index].kind == kind => self.newest = index,
            _ => self.open_call(call, kind),
        }
    }

    fn open_call(&mut self, call: u32, kind: &'static str) {
        self.calls.push((call, self.blocks.len()));
        self.open(kind, "");
        self.newest = self.blocks.len() - 1;
    }

    /// The message that may be committed: every block, less the calls that are withheld. What one
    /// attempt wrote and another continued is one text.
    pub fn message(&self) -> Vec<Block> {
        let mut message: Vec<Block> = Vec::new();
        let mut before = ("", 0);
        for (index, (block, of)) in self.blocks.iter().zip(&self.of).enumerate() {
            let seam = before.0 == "text" && block.kind == "text" && before.1 != *of;
            before = (block.kind, *of);
            match block {
                Block { text, .. } if seam => message.last_mut().unwrap().text.push_str(text),
                block if block.is_call() && !self.hands_out(index) => {}
                Block { kind, text } if block.is_call() && text.is_empty() => message.push(Block {
                    kind,
                    text: "{}".into(),
                }),
                block => message.push(block.clone()),
            }
        }
        message
    }

    /// The calls that the message is without, in order.
    pub fn withheld(&self) -> Vec<Block> {
        let blocks = self.blocks.iter().enumerate();
        let withheld = blocks.filter(|(index, block)| block.is_call() && !self.hands_out(*index));
        withheld.map(|(_, block)| block.clone()).collect()
    }

    /// Whether the client may run the call.
    fn hands_out(&self, index: usize) -> bool {
        let Block { kind, text } = &self.blocks[index];
        let is_newest = index + 1 == self.blocks.len();
        let is_cut = self.finish == Some(FinishReason::Length) && is_newest && text.is_empty();
        let is_left_out = self.left_out.contains(&index) || self.is_filtered() || is_cut;
        *kind != "nameless call" && is_whole(text) && !is_left_out
    }

    /// What the attempt that speaks has said itself.
    pub fn own_blocks(&self) -> impl DoubleEndedIterator<Item = &Block> + Clone {
        let blocks = self.blocks.iter().zip(&self.of);
        let own = blocks.filter(|(_, of)| **of == self.attempt);
        own.map(|(block, _)| block)
    }

    /// Whether it can be no message, because of a call that nobody may leave out.
    pub fn is_malformed(&self) -> bool {
        let is_broken = |block: &Block| block.kind == "nameless call" || !is_whole(&block.text);
        let mut calls = self.blocks.iter().filter(|block| block.is_call());
        let may_be = self.is_filtered() || self.finish == Some(FinishReason::Length);
        !may_be && calls.any(is_broken)
    }

    fn is_filtered(&self) -> bool {
        let refused = [FinishReason::ContentFilter, FinishReason::Refusal];
        self.finish.is_some_and(|reason| refused.contains(&reason))
    }
}

/// Empty or one JSON value.
pub fn is_whole(arguments: &str) -> bool {
    arguments.is_empty() || serde_json::from_str::<serde_json::Value>(arguments).is_ok()
}

/// The same, of a committed message.
pub fn blocks_of(message: &[Part]) -> Vec<Block> {
    message
        .iter()
        .map(|part| match part.part.clone().unwrap() {
            part::Part::Text(text) => Block { kind: "text", text },
            part::Part::Reasoning(reasoning) => Block {
                kind: "reasoning",
                text: reasoning.text,
            },
            part::Part::Refusal(text) => Block {
                kind: "refusal",
                text,
            },
            part::Part::ToolCall(call) => {
                assert!(
                    !call.name.is_empty() && is_whole(&call.arguments_json),
                    "promise 5"
                );
                called(&call)
            }
            other => panic!("never said: {other:?}"),
        })
        .collect()
}

/// The block of a call.
pub fn called(call: &ToolCall) -> Block {
    Block {
        kind: match &*call.name {
            "f" => "call",
            "g" => "stray call",
            _ => "nameless call",
        },
        text: call.arguments_json.clone(),
    }
}

/// As the adapter would decode it; text in these words.
pub fn decoded(says: Says, words: &str) -> Event<'_> {
    match says {
        Says::Text(_) | Says::Echo | Says::Anew => Event::Delta(Delta::Text(words)),
        Says::Reasoning(text) => Event::Delta(Delta::Reasoning(text)),
        Says::Call(call) | Says::Stray(call) => Event::Delta(Delta::ToolCallStart {
            call,
            id: "id",
            name: match says {
                Says::Call(_) => "f",
                _ => "g",
            },
        }),
        Says::Arguments(call, fragment) => Event::Delta(Delta::ToolArguments { call, fragment }),
        Says::Whole(call, fragment) => Event::Snapshot {
            block: call,
            whole: Delta::ToolArguments { call, fragment },
        },
        Says::Keepalive(content) => Event::Keepalive { content },
        Says::Usage(output_tokens) => Event::Usage(Usage {
            output_tokens,
            ..Usage::default()
        }),
        Says::Started => Event::Started {
            response_id: Some("r"),
            model: Some("m"),
        },
        Says::Finish(reason) => Event::Finish {
            reason,
            native: "native",
        },
        Says::Refusal(text) => Event::Delta(Delta::Refusal(text)),
        Says::Done(completes) => Event::End { completes },
        Says::Error(true) => Event::Error {
            json: br#"{"error":{"message":"m","type":"server_error"}}"#,
        },
        Says::Error(false) => Event::Error {
            json: br#"{"error":{"message":"m","code":"invalid_api_key"}}"#,
        },
        Says::Garbage => Event::Undecodable(DecodeError::Json),
    }
}
