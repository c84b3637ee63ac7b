//! What the provider has said in the attempt in flight, kept apart from the core's own account.

use redrive::{
    proto::{FinishReason, Part, Usage, part},
    protocol::{DecodeError, Delta, Event},
};

use super::op::Says;

/// One block, as the contract defines it: a change of kind opens a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub kind: &'static str,
    pub text: String,
}

/// The stream of one attempt.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub blocks: Vec<Block>,
    calls: Vec<(u32, usize)>,
    /// There is terminal evidence.
    pub complete: bool,
    pub finish: Option<FinishReason>,
    /// There was an error object.
    pub broken: bool,
    /// The index of the block that was last added to.
    pub newest: usize,
}

impl Stream {
    /// Notes what is said, as far as it counts.
    pub fn note(&mut self, says: Says) {
        match says {
            Says::Text(text) => self.append("text", text),
            Says::Reasoning(text) => self.append("reasoning", text),
            Says::Refusal(text) => self.append("refusal", text),
            Says::Call(call) => self.open_call(call, "call"),
            Says::Arguments(call, fragment) => {
                let known = self.calls.iter().rev().find(|(known, _)| *known == call);
                let index = match known {
                    Some((_, index)) => *index,
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
            Says::Keepalive(_) | Says::Usage(_) | Says::Started => {}
            Says::Error(_) => self.broken = true,
            Says::Garbage => {}
        }
    }

    fn append(&mut self, kind: &'static str, text: &str) {
        match self.blocks.last_mut() {
            Some(block) if block.kind == kind => block.text.push_str(text),
            _ => self.blocks.push(Block {
                kind,
                text: text.into(),
            }),
        }
        self.newest = self.blocks.len() - 1;
    }

    fn open_call(&mut self, call: u32, kind: &'static str) {
        self.calls.push((call, self.blocks.len()));
        self.blocks.push(Block {
            kind,
            text: String::new(),
        });
        self.newest = self.blocks.len() - 1;
    }

    /// The message that may be committed: every block, less the calls that are withheld.
    pub fn message(&self) -> Vec<Block> {
        let refused = [FinishReason::ContentFilter, FinishReason::Refusal];
        let filtered = self.finish.is_some_and(|reason| refused.contains(&reason));
        self.blocks
            .iter()
            .filter(|block| block.kind != "call" || (!filtered && is_whole(&block.text)))
            .filter(|block| block.kind != "nameless call")
            .map(|block| match block {
                Block { kind: "call", text } if text.is_empty() => Block {
                    kind: "call",
                    text: "{}".into(),
                },
                block => block.clone(),
            })
            .collect()
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
                Block {
                    kind: "call",
                    text: call.arguments_json,
                }
            }
            other => panic!("never said: {other:?}"),
        })
        .collect()
}

/// As the adapter would decode it.
pub fn decoded(says: Says) -> Event<'static> {
    match says {
        Says::Text(text) => Event::Delta(Delta::Text(text)),
        Says::Reasoning(text) => Event::Delta(Delta::Reasoning(text)),
        Says::Call(call) => Event::Delta(Delta::ToolCallStart {
            call,
            id: "id",
            name: "f",
        }),
        Says::Arguments(call, fragment) => Event::Delta(Delta::ToolArguments { call, fragment }),
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
