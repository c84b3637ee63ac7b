//! The shape of a chunk.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::protocol::json::shape::{Shape, object, of_any_other_type};

object! {
    /// The data of one event.
    Chunk {
        id: Option<&'a RawValue>,
        model: Option<&'a RawValue>,
        object: Option<&'a RawValue>,
        choices: Choices<'a>,
        usage: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
        x_groq: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
        detail: Option<&'a RawValue>,
    }
}

object! {
    /// One of `choices`.
    Choice {
        index: Option<&'a RawValue>,
        delta: Delta<'a>,
        message: Option<&'a RawValue>,
        finish_reason: Option<&'a RawValue>,
        usage: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
    }
}

object! {
    /// `choices[].delta`.
    Delta {
        content: Option<&'a RawValue>,
        reasoning_content: Option<&'a RawValue>,
        reasoning: Option<&'a RawValue>,
        reasoning_details: Option<&'a RawValue>,
        refusal: Option<&'a RawValue>,
        tool_calls: Option<&'a RawValue>,
        function_call: Option<&'a RawValue>,
    }
}

object! {
    /// A fragment of a tool call.
    ToolCall {
        index: Option<&'a RawValue>,
        id: Option<&'a RawValue>,
        function: Function<'a>,
    }
}

object! {
    /// The function of a tool call, or the old `function_call`.
    Function {
        name: Option<&'a RawValue>,
        arguments: Option<&'a RawValue>,
    }
}

object! {
    /// A part of a content list: Mistral's `text` and `thinking`, OpenRouter's `reasoning_details`.
    Part {
        text: Option<&'a RawValue>,
        thinking: Option<&'a RawValue>,
        summary: Option<&'a RawValue>,
    }
}

object! {
    /// Groq's extension of a chunk.
    Groq {
        usage: Option<&'a RawValue>,
        error: Option<&'a RawValue>,
    }
}

object! {
    /// Token counts, in every spelling.
    UsageFields {
        prompt_tokens: Option<&'a RawValue>,
        completion_tokens: Option<&'a RawValue>,
        prompt_tokens_details: TokenDetails<'a>,
        completion_tokens_details: TokenDetails<'a>,
        prompt_cache_hit_tokens: Option<&'a RawValue>,
        cache_read_input_tokens: Option<&'a RawValue>,
        cache_creation_input_tokens: Option<&'a RawValue>,
        reasoning_tokens: Option<&'a RawValue>,
    }
}

object! {
    /// The details of a count.
    TokenDetails {
        cached_tokens: Option<&'a RawValue>,
        cache_write_tokens: Option<&'a RawValue>,
        reasoning_tokens: Option<&'a RawValue>,
    }
}

/// `choices`: the first one with index 0 or none, which is the only one that is decoded.
#[derive(Debug, Default)]
pub(super) struct Choices<'a> {
    pub(super) shape: Shape,
    pub(super) first: Option<Choice<'a>>,
}

impl Choices<'_> {
    fn wrong() -> Self {
        Self {
            shape: Shape::Wrong,
            first: None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChoicesVisitor;

        impl<'de> Visitor<'de> for ChoicesVisitor {
            type Value = Choices<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut choices = Choices {
                    shape: Shape::Right,
                    first: None,
                };
                while let Some(choice) = items.next_element::<Choice<'de>>()? {
                    if choice.shape == Shape::Wrong {
                        choices.shape = Shape::Wrong;
                    } else if choices.first.is_none()
                        && choice.index.is_none_or(|index| index.get() == "0")
                    {
                        choices.first = Some(choice);
                    }
                }
                Ok(choices)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Choices::wrong())
            }

            of_any_other_type!();
        }

        deserializer.deserialize_any(ChoicesVisitor)
    }
}
