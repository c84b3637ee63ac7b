//! The file as a tree of values, each with its position.
//!
//! YAML is parsed once, by a library, within fixed bounds on size, depth and alias expansion. Everything
//! after that works on this tree, so that each error can name line, column and key path, and one error
//! does not hide the next.

use std::{collections::HashSet, fmt};

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{
    error::{Collector, ConfigErrors},
    path::{Path, Step},
};

/// The largest configuration file, in bytes. Fixed.
pub(super) const MAX_FILE_BYTES: usize = 1 << 20;
/// Values in a file at most, aliases expanded. Fixed.
const MAX_NODES: usize = 50_000;
/// Nesting at most. Fixed; the configuration itself is seven deep.
const MAX_DEPTH: usize = 24;

/// Characters of the parser's own message that are told. Fixed; it may repeat what stands in the file.
const MAX_MESSAGE: usize = 200;

/// Line and column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    /// The position of what follows `text`, in characters if it is UTF-8.
    pub(super) fn after(text: &[u8]) -> Position {
        let text = String::from_utf8_lossy(text);
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        Position {
            line: text.matches('\n').count() + 1,
            column: last_line.chars().count() + 1,
        }
    }
}

impl From<serde_saphyr::Location> for Position {
    fn from(at: serde_saphyr::Location) -> Position {
        // Saturates on targets whose usize is below 64 bits; files are far smaller.
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
        Position {
            line: number(at.line()),
            column: number(at.column()),
        }
    }
}

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) value: Value,
    /// An error about it was told: from then on it counts as absent.
    pub(super) refused: bool,
}

/// What YAML knows.
#[derive(Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key, where it stands, and its value.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Position,
    pub(super) node: Node,
}

impl Node {
    /// Parses one YAML document. Nothing but its syntax and its bounds are judged here.
    pub(super) fn parse(text: &str, file: &str) -> Result<Node, ConfigErrors> {
        if text.len() > MAX_FILE_BYTES {
            let message = format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20);
            return Err(ConfigErrors::whole(file, None, message));
        }
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
            let at = error.location().map(Position::from);
            let message = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            // The position stands in front already.
            let message = message
                .split_once(" at line ")
                .map_or(&*message, |(text, _)| text);
            let message: String = message.chars().take(MAX_MESSAGE).collect();
            ConfigErrors::whole(file, at, format!("not readable as YAML: {message}"))
        })
    }

    /// Tells of every key that a map has twice, and lets the first stand.
    pub(super) fn refuse_duplicates(&mut self, path: &Path, errors: &mut Collector) {
        match &mut self.value {
            Value::List(nodes) => {
                for (index, node) in nodes.iter_mut().enumerate() {
                    node.refuse_duplicates(&path.index(index), errors);
                }
            }
            Value::Map(entries) => {
                let mut seen = HashSet::new();
                for entry in entries {
                    let path = path.key(&entry.key);
                    if seen.insert(entry.key.clone()) {
                        entry.node.refuse_duplicates(&path, errors);
                    } else {
                        errors.push(entry.at, &path, "this key stands here twice", Vec::new());
                        entry.node.refused = true;
                    }
                }
            }
            _ => {}
        }
    }

    /// Where the value at `path` stands; if there is none, where the nearest key does.
    pub(super) fn locate(&self, path: &Path) -> Position {
        match self.nearest(path) {
            (true, node, _) if !matches!(node.value, Value::Null) => node.at,
            (_, _, key) => key,
        }
    }

    /// Where the key of `path` stands; if there is none, where the nearest one does.
    pub(super) fn locate_key(&self, path: &Path) -> Position {
        self.nearest(path).2
    }

    /// Whether something stands at `path`; that, or its nearest ancestor; and where its key stands.
    fn nearest(&self, path: &Path) -> (bool, &Node, Position) {
        let (mut node, mut key) = (self, self.at);
        for step in path.steps() {
            match node.child(step) {
                Some((next, at)) => (node, key) = (next, at),
                None => return (false, node, key),
            }
        }
        (true, node, key)
    }

    fn child(&self, step: &Step) -> Option<(&Node, Position)> {
        match (step, &self.value) {
            (Step::Index(index), Value::List(nodes)) => {
                nodes.get(*index).map(|node| (node, node.at))
            }
            (Step::Key(key), Value::Map(entries)) => entries
                .iter()
                .find(|entry| entry.key == *key)
                .map(|entry| (&entry.node, entry.at)),
            _ => None,
        }
    }

    /// The keys of the map at `path`, refused ones included.
    pub(super) fn keys(&self, path: &Path) -> Vec<&str> {
        match self.nearest(path) {
            (true, node, _) => match &node.value {
                Value::Map(entries) => entries.iter().map(|entry| &*entry.key).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Whether an error about the value at `path`, or about one that it stands in, was told.
    pub(super) fn is_refused(&self, path: &Path) -> bool {
        let mut node = self;
        for step in path.steps() {
            match node.child(step) {
                Some((next, _)) if !node.refused => node = next,
                _ => return node.refused,
            }
        }
        node.refused
    }

    /// From here on the value at `path` counts as absent. False if there is none that did not already.
    pub(super) fn refuse(&mut self, path: &Path) -> bool {
        let mut node = self;
        for step in path.steps() {
            let next = match (step, &mut node.value) {
                (Step::Index(index), Value::List(nodes)) => nodes.get_mut(*index),
                (Step::Key(key), Value::Map(entries)) => entries
                    .iter_mut()
                    .find(|entry| entry.key == *key && !entry.node.refused)
                    .map(|entry| &mut entry.node),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return false,
            }
        }
        !std::mem::replace(&mut node.refused, true)
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_depth: MAX_DEPTH,
            max_total_scalar_bytes: 2 * MAX_FILE_BYTES,
        },
        // Told by `refuse_duplicates`, with the key path and without hiding other errors.
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::PassThrough,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: MAX_DEPTH,
        },
        // YAML 1.2: `off` is a word, as in `http2: off`.
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Node {
            at: spanned.referenced.into(),
            value: spanned.value,
            refused: false,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = access.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            entries.push(Entry {
                key: key.value,
                at: key.referenced.into(),
                node: access.next_value()?,
            });
        }
        Ok(Value::Map(entries))
    }
}
