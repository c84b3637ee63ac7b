//! One line of a stream: which field it is, and whether a body begins like a stream at all.

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ends an event.
    Blank,
    /// Begins with a colon.
    Comment,
    /// The field `data`.
    Data,
    /// The field `event`.
    Name,
    /// Another field whose value may tell of an error.
    Unknown,
    /// `id`, `retry` (no provider resumes by them) and everything else.
    Ignored,
}

/// Where a line's field has its name and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) kind: Kind,
    name_end: usize,
    value_start: usize,
}

impl Line {
    /// Reads a line, given without its end.
    pub(super) fn of(text: &[u8]) -> Self {
        let name_end = match text {
            // The fields of nearly every line, without a search through long data.
            [b'd', b'a', b't', b'a', b':', ..] => 4,
            [b'e', b'v', b'e', b'n', b't', b':', ..] => 5,
            _ => memchr::memchr(b':', text).unwrap_or(text.len()),
        };
        let space = text.get(name_end + 1) == Some(&b' ');
        let value_start = (name_end + 1 + usize::from(space)).min(text.len());
        let mut line = Self {
            kind: Kind::Ignored,
            name_end,
            value_start,
        };
        line.kind = match line.name(text) {
            b"" if text.is_empty() => Kind::Blank,
            b"" => Kind::Comment,
            b"data" => Kind::Data,
            b"event" => Kind::Name,
            b"id" | b"retry" => Kind::Ignored,
            name if tells_of_an_error(name, line.value(text)) => Kind::Unknown,
            _ => Kind::Ignored,
        };
        line
    }

    /// The field's name.
    pub(super) fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(..self.name_end).unwrap_or_default()
    }

    /// The field's value.
    pub(super) fn value<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.value_start..).unwrap_or_default()
    }
}

/// `true` if a line begins JSON that stands outside any field: an object, or an array of objects.
pub(super) fn opens_json(text: &[u8]) -> bool {
    match text.trim_ascii_start().split_first() {
        Some((b'{', _)) => true,
        Some((b'[', rest)) => matches!(rest.trim_ascii_start().first(), None | Some(b'{' | b']')),
        _ => false,
    }
}

/// `true` if a line cannot be part of JSON, because the events go on.
pub(super) fn resumes_events(text: &[u8]) -> bool {
    text.starts_with(b"data:") || text.starts_with(b"event:")
}

/// The fields of the grammar.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// `true` if a body that ends with these bytes was cut inside the name of its first field.
pub(super) fn begins_field(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    FIELDS.iter().any(|field| field.starts_with(text))
}

/// The longest field name that a stream may begin with.
const MAX_NAME_BYTES: usize = 64;

/// Whether a body, of which the first bytes are given, begins like a stream: with a comment, a field
/// or JSON. `None`: too few bytes to tell.
pub(super) fn opens_stream(bytes: impl Iterator<Item = u8>) -> Option<bool> {
    let mut name = [0; MAX_NAME_BYTES];
    let mut length = 0;
    for byte in bytes.skip_while(|byte| *byte == b' ') {
        match byte {
            b':' => return Some(true),
            b'{' | b'[' => return Some(length == 0),
            b'\n' | b'\r' => {
                return Some(FIELDS.contains(&name.get(..length).unwrap_or_default()));
            }
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => {
                let Some(slot) = name.get_mut(length) else {
                    return Some(false);
                };
                *slot = byte;
                length += 1;
            }
            _ => return Some(false),
        }
    }
    None
}

fn tells_of_an_error(name: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    value.starts_with(b"{") || (name == b"error" && !value.is_empty())
}
