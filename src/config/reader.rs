//! From the tree to the raw form, through serde, so that the raw structs state the format once.
//!
//! A serde deserialiser ends at its first error. To tell them all, the value at fault is marked as
//! refused, counts as absent from then on, and the tree is read again.

use std::fmt;

use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess,
        SeqAccess, Unexpected, Visitor, value::StrDeserializer,
    },
    forward_to_deserialize_any,
};

use super::{
    error::Collector,
    hint,
    path::{Path, Step},
    tree::{Entry, Node, Value},
};

/// Reads a `T`, telling every error; values at fault count as absent in what is returned.
///
/// `None` if even then there is no `T`.
pub(super) fn read<T: DeserializeOwned>(tree: &mut Node, errors: &mut Collector) -> Option<T> {
    while !errors.is_full() {
        let error = match T::deserialize(Reader(tree)) {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let mut steps = error.steps;
        steps.reverse();
        let path = Path::from(steps);
        let at = if error.about_key {
            tree.locate_key(&path)
        } else {
            tree.locate(&path)
        };
        errors.push(at, &path, error.message, error.hints);
        if !tree.refuse(&path) || path.steps().is_empty() {
            return None;
        }
    }
    None
}

/// Why a value is not what its place in the file asks for. Never holds the text of a string.
#[derive(Debug)]
pub(super) struct ReadError {
    message: String,
    hints: Vec<String>,
    /// From the value outwards.
    steps: Vec<Step>,
    /// The key is wrong, not its value.
    about_key: bool,
}

impl ReadError {
    fn new(message: String, hints: Vec<String>) -> ReadError {
        ReadError {
            message,
            hints,
            steps: Vec::new(),
            about_key: false,
        }
    }

    fn inside(mut self, step: Step) -> ReadError {
        self.steps.push(step);
        self
    }
}

impl std::error::Error for ReadError {}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> ReadError {
        ReadError::new(message.to_string(), Vec::new())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> ReadError {
        let (found, quotable) = match found {
            Unexpected::Bool(value) => (format!("`{value}`"), true),
            Unexpected::Unsigned(value) => (format!("the number {value}"), true),
            Unexpected::Signed(value) => (format!("the number {value}"), true),
            Unexpected::Float(value) => (format!("the number {value}"), true),
            Unexpected::Str(_) => ("a string".to_owned(), false),
            Unexpected::Seq => ("a list".to_owned(), false),
            Unexpected::Map => ("a map".to_owned(), false),
            _ => ("nothing".to_owned(), false),
        };
        let expected = match expected.to_string().as_str() {
            "a boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        };
        let mut hints = Vec::new();
        if quotable && expected == "a string" {
            hints.push("put it in quotes".to_owned());
        }
        ReadError::new(format!("expected {expected}, found {found}"), hints)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ReadError {
        ReadError::new(
            "unknown key".to_owned(),
            hint::hints(field, expected, "keys here"),
        )
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ReadError {
        ReadError::new(
            format!("{} is not one of the values here", hint::shown(variant)),
            hint::hints(variant, expected, "known values"),
        )
    }
}

/// Gives serde the value of a node; a placeholder (an empty string, an empty map) for a refused one.
struct Reader<'de>(&'de Node);

impl Reader<'_> {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.0.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Unsigned(value) => Unexpected::Unsigned(*value),
            Value::Signed(value) => Unexpected::Signed(*value),
            Value::Float(value) => Unexpected::Float(*value),
            Value::Text(text) => Unexpected::Str(text),
            Value::List(_) => Unexpected::Seq,
            Value::Map(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.0.refused {
            return visitor.visit_borrowed_str("");
        }
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(nodes) => visitor.visit_seq(Elements::new(nodes)),
            Value::Map(entries) => visitor.visit_map(Entries::new(entries)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::List(nodes) => visitor.visit_seq(Elements::new(nodes)),
            _ => Err(ReadError::invalid_type(self.unexpected(), &"a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.0.value {
            Value::Map(entries) => visitor.visit_map(Entries::new(entries)),
            Value::Null => visitor.visit_map(Entries::new(&[])),
            _ => Err(ReadError::invalid_type(self.unexpected(), &"a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.0.value {
            _ if self.0.refused => visitor.visit_map(Entries::new(&[])),
            Value::Map(entries) => visitor.visit_map(Entries::of_struct(entries, fields)?),
            Value::Null => visitor.visit_map(Entries::new(&[])),
            _ => {
                let mut error = ReadError::invalid_type(self.unexpected(), &"a map");
                error
                    .hints
                    .push(format!("keys here: {}", fields.join(", ")));
                Err(error)
            }
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let word = match &self.0.value {
            Value::Text(text) => text.as_str(),
            // What templates and YAML 1.1 tools make of a bare `off`.
            Value::Bool(false) if variants.contains(&"off") => "off",
            _ => {
                let expected = format!("one of {}", variants.join(", "));
                return Err(ReadError::invalid_type(
                    self.unexpected(),
                    &expected.as_str(),
                ));
            }
        };
        let word: StrDeserializer<'_, ReadError> = word.into_deserializer();
        visitor.visit_enum(word)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The elements of a list. Refused ones are given too, as placeholders, so that the others keep their
/// index.
struct Elements<'de> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> Elements<'de> {
    fn new(nodes: &'de [Node]) -> Elements<'de> {
        Elements {
            rest: nodes.iter().enumerate(),
        }
    }
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        match self.rest.next() {
            Some((index, node)) => seed
                .deserialize(Reader(node))
                .map(Some)
                .map_err(|error| error.inside(Step::Index(index))),
            None => Ok(None),
        }
    }
}

/// The entries of a map that are not refused.
struct Entries<'de> {
    rest: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
    /// A key without a value has its default, as if it were absent.
    skip_null: bool,
}

impl<'de> Entries<'de> {
    fn new(entries: &'de [Entry]) -> Entries<'de> {
        Entries {
            rest: entries.iter(),
            current: None,
            skip_null: false,
        }
    }

    fn of_struct(
        entries: &'de [Entry],
        fields: &'static [&'static str],
    ) -> Result<Entries<'de>, ReadError> {
        let unknown = |entry: &&Entry| !entry.node.refused && !fields.contains(&&*entry.key);
        if let Some(entry) = entries.iter().find(unknown) {
            let mut error = ReadError::unknown_field(&entry.key, fields);
            error.about_key = true;
            return Err(error.inside(Step::Key(entry.key.clone())));
        }
        Ok(Entries {
            skip_null: true,
            ..Entries::new(entries)
        })
    }

    fn counts(&self, entry: &Entry) -> bool {
        let skipped = self.skip_null && matches!(entry.node.value, Value::Null);
        !entry.node.refused && !skipped
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let mut rest = self.rest.clone();
        self.current = rest.find(|entry| self.counts(entry));
        self.rest = rest;
        let Some(entry) = self.current else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut error| {
            error.about_key = true;
            error.inside(Step::Key(entry.key.clone()))
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some(entry) = self.current.take() else {
            return Err(ReadError::custom("a value was asked for before its key"));
        };
        seed.deserialize(Reader(&entry.node))
            .map_err(|error| error.inside(Step::Key(entry.key.clone())))
    }
}
