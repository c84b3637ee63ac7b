//! What the decoder told, kept.

use redrive::protocol::{Delta, Event};

/// An [`Event`] that owns its text.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Started(Option<String>, Option<String>),
    Text(String),
    Reasoning(String),
    Refusal(String),
    ToolCallStart(u32, String, String),
    ToolArguments(u32, String),
    Keepalive(bool),
    Usage([u64; 5]),
    Finish(String, String),
    BadFinish(String),
    End(bool),
    Error(Vec<u8>),
    Undecodable(String),
}

impl From<Event<'_>> for Told {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Started { response_id, model } => {
                Self::Started(response_id.map(str::to_owned), model.map(str::to_owned))
            }
            Event::Delta(Delta::Text(text)) => Self::Text(text.to_owned()),
            Event::Delta(Delta::Reasoning(text)) => Self::Reasoning(text.to_owned()),
            Event::Delta(Delta::Refusal(text)) => Self::Refusal(text.to_owned()),
            Event::Delta(Delta::ToolCallStart { call, id, name }) => {
                Self::ToolCallStart(call, id.to_owned(), name.to_owned())
            }
            Event::Delta(Delta::ToolArguments { call, fragment }) => {
                Self::ToolArguments(call, fragment.to_owned())
            }
            Event::Keepalive { content } => Self::Keepalive(content),
            Event::Usage(usage) => Self::Usage([
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_write_input_tokens,
                usage.reasoning_output_tokens,
            ]),
            Event::Finish { reason, native } => {
                Self::Finish(format!("{reason:?}"), native.to_owned())
            }
            Event::BadFinish { native } => Self::BadFinish(native.to_owned()),
            Event::End { completes } => Self::End(completes),
            Event::Error { json } => Self::Error(json.to_owned()),
            Event::Native { .. } => unreachable!("native events were not asked for"),
            Event::Undecodable(error) => Self::Undecodable(format!("{error:?}")),
            other => unreachable!("Chat Completions does not tell {other:?}"),
        }
    }
}

/// What a response amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub text: String,
    pub reasoning: String,
    pub refusal: String,
    /// Id, name and arguments; an id that the provider did not give is empty.
    pub calls: Vec<(String, String, String)>,
    pub finish: Option<String>,
    pub usage: Option<[u64; 5]>,
    pub id: Option<String>,
    pub model: Option<String>,
    pub error: Option<Vec<u8>>,
    pub done: bool,
}

impl Outcome {
    /// Adds what was told.
    pub fn add(&mut self, told: &Told) {
        match told {
            Told::Started(id, model) => {
                self.id = self.id.take().or(id.clone());
                self.model = self.model.take().or(model.clone());
            }
            Told::Text(text) => self.text += text,
            Told::Reasoning(text) => self.reasoning += text,
            Told::Refusal(text) => self.refusal += text,
            Told::ToolCallStart(call, id, name) => {
                assert_eq!(*call as usize, self.calls.len(), "calls begin in order");
                assert!(!id.is_empty());
                let id = if id.starts_with("call_redrive_") {
                    ""
                } else {
                    id
                };
                self.calls
                    .push((id.to_owned(), name.clone(), String::new()));
            }
            Told::ToolArguments(call, fragment) => self.calls[*call as usize].2 += fragment,
            Told::Keepalive(_) => {}
            Told::Usage(usage) => self.usage = Some(*usage),
            Told::Finish(_, native) | Told::BadFinish(native) => self.finish = Some(native.clone()),
            Told::End(_) => self.done = true,
            Told::Error(json) => self.error = Some(json.clone()),
            Told::Undecodable(error) => panic!("undecodable: {error}"),
        }
    }
}
