//! JSON that is looked at but never rewritten: members of an object as slices of its text.

use std::{borrow::Cow, fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Nesting that is accepted, the outermost object included. Common JSON readers stop at about this
/// depth, and some crash beyond it: a deeper body is refused here, before anything is sent.
pub(in crate::protocol) const MAX_DEPTH: usize = 128;

/// Why bytes are not a JSON object that may be sent. Carries no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::protocol) enum JsonError {
    #[error("is not UTF-8 at byte {0}")]
    Utf8(usize),
    #[error("is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("is not a JSON object")]
    NotAnObject,
    #[error("is not valid JSON at line {line}, column {column}")]
    Syntax { line: usize, column: usize },
}

/// The text of a valid JSON object, white space around it included.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Object<'a> {
    text: &'a str,
    /// Just behind the opening brace.
    pub(in crate::protocol) front: usize,
    /// Whether it has no member.
    pub(in crate::protocol) empty: bool,
}

impl<'a> Object<'a> {
    /// Checks the whole of `json` and shows every member to `each`, names unescaped, in order.
    pub(in crate::protocol) fn parse(
        json: &'a [u8],
        mut each: impl FnMut(Cow<'a, str>, &'a RawValue),
    ) -> Result<Self, JsonError> {
        let text =
            std::str::from_utf8(json).map_err(|error| JsonError::Utf8(error.valid_up_to()))?;
        let brace = text
            .bytes()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
            .filter(|&first| text.as_bytes().get(first) == Some(&b'{'))
            .ok_or(JsonError::NotAnObject)?;
        if is_too_deep(json) {
            return Err(JsonError::TooDeep);
        }
        let mut empty = true;
        let mut reader = serde_json::Deserializer::from_str(text);
        reader
            .deserialize_map(Members(|name, value| {
                empty = false;
                each(name, value);
            }))
            .and_then(|()| reader.end())
            .map_err(|error| JsonError::Syntax {
                line: error.line(),
                column: error.column(),
            })?;
        Ok(Self {
            text,
            front: brace + 1,
            empty,
        })
    }

    /// Where `value`, a slice of this object's text, stands in it.
    pub(in crate::protocol) fn range(&self, value: &'a RawValue) -> Range<usize> {
        let start = (value.get().as_ptr().addr()).saturating_sub(self.text.as_ptr().addr());
        start..start + value.get().len()
    }
}

/// A JSON object as it was written, white space around it removed.
pub(in crate::protocol) fn object(json: &[u8]) -> Result<&RawValue, JsonError> {
    Object::parse(json, |_, _| {})?;
    serde_json::from_slice(json).map_err(|error| JsonError::Syntax {
        line: error.line(),
        column: error.column(),
    })
}

/// The last item of a JSON list, as a slice of its text. `None` if it is empty or no list.
pub(in crate::protocol) fn last_item(list: &RawValue) -> Option<&RawValue> {
    struct LastVisitor;

    impl<'de> Visitor<'de> for LastVisitor {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut last = None;
            while let Some(item) = items.next_element()? {
                last = Some(item);
            }
            Ok(last)
        }
    }

    serde_json::Deserializer::from_str(list.get())
        .deserialize_seq(LastVisitor)
        .ok()
        .flatten()
}

/// `text` as a JSON string.
pub(in crate::protocol) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `serde_json` skips unread values without recursion, so it would take any depth.
fn is_too_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Streams the members of an object: nothing is kept of those that nobody asks for.
struct Members<F>(F);

impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            (self.0)(name, value);
        }
        Ok(())
    }
}
