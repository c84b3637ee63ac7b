//! The output in a chunk: text, reasoning, refusal, tool calls.

use serde_json::value::RawValue;

use super::{
    super::super::{
        DecodeError, Delta as Output, Event, Sink,
        json::{
            shape::{Shape, each},
            text::{non_empty, string},
        },
    },
    chunk::{Delta, Function, Part, ToolCall},
    tools::{Fragment, ToolCalls},
};

/// Turns `delta` objects into output.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    tools: ToolCalls,
    scratch: [String; 3],
}

impl Content {
    /// Tells the output of one chunk. Returns whether there was any.
    pub(super) fn take(
        &mut self,
        delta: &Delta<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        let mut told = self.reasoning(delta, sink);
        if let Some(content) = delta.content {
            told |= self.text(content, sink)?;
        }
        let [scratch, ..] = &mut self.scratch;
        if let Some(refusal) = non_empty(delta.refusal, scratch) {
            sink(Event::Delta(Output::Refusal(refusal)));
            told = true;
        }
        if let Some(calls) = delta.tool_calls {
            told |= self.tool_calls(calls, sink)?;
        }
        if let Some(call) = delta.function_call {
            let function: Function<'_> =
                serde_json::from_str(call.get()).map_err(|_| DecodeError::Json)?;
            let call = ToolCall {
                shape: Shape::Right,
                function,
                ..ToolCall::default()
            };
            told |= self.fragment(&call, false, sink)?;
        }
        Ok(told)
    }

    /// The response is complete: tool calls that wait for an id or a name begin without.
    pub(super) fn finish(&mut self, sink: &mut Sink<'_>) {
        self.tools.finish(sink);
    }

    /// `reasoning_content` (DeepSeek, xAI, Z.ai, older vLLM), `reasoning` (OpenRouter, Groq, Cerebras,
    /// Ollama, vLLM), or `reasoning_details` where it stands alone (Snowflake, MiniMax): the same text
    /// in up to three places, told once.
    fn reasoning(&mut self, delta: &Delta<'_>, sink: &mut Sink<'_>) -> bool {
        let [scratch, ..] = &mut self.scratch;
        for place in [delta.reasoning_content, delta.reasoning] {
            if let Some(text) = non_empty(place, scratch) {
                sink(Event::Delta(Output::Reasoning(text)));
                return true;
            }
        }
        let mut told = false;
        if let Some(details) = delta.reasoning_details {
            // What is not a list of texts (signatures, encrypted blocks) is not shown.
            let _ = each(details, |part: Part<'_>| {
                for place in [part.text, part.summary] {
                    if let Some(text) = non_empty(place, scratch) {
                        sink(Event::Delta(Output::Reasoning(text)));
                        told = true;
                    }
                }
            });
        }
        told
    }

    /// `content`: a string, or a list of parts (Mistral's reasoning models).
    fn text(&mut self, content: &RawValue, sink: &mut Sink<'_>) -> Result<bool, DecodeError> {
        let [scratch, ..] = &mut self.scratch;
        if let Some(text) = string(content, scratch) {
            if text.is_empty() {
                return Ok(false);
            }
            sink(Event::Delta(Output::Text(text)));
            return Ok(true);
        }
        let (mut told, mut wrong) = (false, false);
        each(content, |part: Part<'_>| {
            wrong |= part.shape != Shape::Right;
            if let Some(text) = non_empty(part.text, scratch) {
                sink(Event::Delta(Output::Text(text)));
                told = true;
            }
            if let Some(thinking) = part.thinking {
                told |= think(thinking, scratch, sink);
            }
        })
        .map_err(|_| DecodeError::Json)?;
        if wrong {
            Err(DecodeError::Json)
        } else {
            Ok(told)
        }
    }

    fn tool_calls(&mut self, calls: &RawValue, sink: &mut Sink<'_>) -> Result<bool, DecodeError> {
        let mut told = Ok(false);
        let mut beside_another = false;
        each(calls, |call: ToolCall<'_>| {
            if let Ok(before) = told {
                told = self
                    .fragment(&call, beside_another, sink)
                    .map(|now| before | now);
                beside_another = true;
            }
        })
        .map_err(|_| DecodeError::Json)?;
        told
    }

    fn fragment(
        &mut self,
        call: &ToolCall<'_>,
        beside_another: bool,
        sink: &mut Sink<'_>,
    ) -> Result<bool, DecodeError> {
        if call.shape != Shape::Right || call.function.shape == Shape::Wrong {
            return Err(DecodeError::Json);
        }
        let [id, name, arguments] = &mut self.scratch;
        let fragment = Fragment {
            index: call.index.and_then(|index| index.get().parse().ok()),
            id: non_empty(call.id, id),
            name: non_empty(call.function.name, name),
            arguments: match call.function.arguments {
                None => "",
                // Arguments that were not put into a string are taken as they stand.
                Some(raw) if raw.get().starts_with('{') => raw.get(),
                Some(raw) => string(raw, arguments).ok_or(DecodeError::Json)?,
            },
            beside_another,
        };
        self.tools.take(fragment, sink)
    }
}

/// Mistral's `thinking` part: a list of texts, or one string.
fn think(thinking: &RawValue, scratch: &mut String, sink: &mut Sink<'_>) -> bool {
    if let Some(text) = non_empty(Some(thinking), scratch) {
        sink(Event::Delta(Output::Reasoning(text)));
        return true;
    }
    let mut told = false;
    let _ = each(thinking, |part: Part<'_>| {
        if let Some(text) = non_empty(part.text, scratch) {
            sink(Event::Delta(Output::Reasoning(text)));
            told = true;
        }
    });
    told
}
