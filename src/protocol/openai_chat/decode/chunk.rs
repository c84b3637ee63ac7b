//! The shape of a chunk, read without a tree: the objects of a plain delta are walked in one pass,
//! every other value is kept as its raw text or skipped.
//!
//! Nothing here fails because of a value's type: what is not an object where one is expected reads
//! as [`Shape::Wrong`], so that an error object beside it is still found. Of a repeated key the last
//! one counts, as in every server's own JSON library. The walk has a fixed depth, so deep nesting in
//! a chunk costs no stack.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Whether a value was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// Absent, or `null`.
    #[default]
    Absent,
    /// As the protocol has it.
    Right,
    /// Of another type.
    Wrong,
}

/// Visits of every type but the expected one.
macro_rules! of_any_other_type {
    () => {
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(Default::default())
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::wrong())
        }
    };
}

/// An object of the protocol: the keys that are read, and how.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            #[allow(dead_code, reason = "of some objects only the fields matter")]
            pub(super) shape: Shape,
            $(pub(super) $field: $type,)*
        }

        impl $name<'_> {
            fn wrong() -> Self {
                Self { shape: Shape::Wrong, ..Self::default() }
            }
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types)]
                enum Key {
                    $($field,)*
                    Other,
                }

                impl<'de> Deserialize<'de> for Key {
                    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                        struct KeyVisitor;

                        impl Visitor<'_> for KeyVisitor {
                            type Value = Key;

                            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                                f.write_str("a key")
                            }

                            fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
                                Ok(match key {
                                    $(stringify!($field) => Key::$field,)*
                                    _ => Key::Other,
                                })
                            }
                        }

                        d.deserialize_identifier(KeyVisitor)
                    }
                }

                struct ObjectVisitor;

                impl<'de> Visitor<'de> for ObjectVisitor {
                    type Value = $name<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut object = $name { shape: Shape::Right, ..$name::default() };
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$field => object.$field = map.next_value()?,)*
                                Key::Other => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(object)
                    }

                    fn visit_seq<A: SeqAccess<'de>>(
                        self,
                        mut items: A,
                    ) -> Result<Self::Value, A::Error> {
                        while items.next_element::<IgnoredAny>()?.is_some() {}
                        Ok($name::wrong())
                    }

                    of_any_other_type!();
                }

                deserializer.deserialize_any(ObjectVisitor)
            }
        }
    };
}

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

/// Reads the items of a JSON list one after the other, without collecting them. An error if it is no
/// list.
pub(super) fn each<'a, T: Deserialize<'a>>(
    list: &'a RawValue,
    read: impl FnMut(T),
) -> Result<(), serde_json::Error> {
    struct EachVisitor<T, F>(F, PhantomData<T>);

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for EachVisitor<T, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                (self.0)(item);
            }
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(list.get());
    deserializer.deserialize_seq(EachVisitor(read, PhantomData))
}
