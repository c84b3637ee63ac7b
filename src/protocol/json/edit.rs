//! Changes to JSON text in place: members of an object that are missing or not as they must be. Every
//! other byte stays as it was written.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::raw::Object;
use crate::protocol::adapter::RequestError;

/// A change to the text of an object.
pub(in crate::protocol) enum Edit {
    /// A member that is missing.
    Insert(String),
    /// A value that is not as it must be; an empty range is a place where something is missing.
    Replace(Range<usize>, String),
}

/// Applies `edits` to `json`; insertions go to the front of the object, in their order.
pub(in crate::protocol) fn splice(json: &[u8], object: &Object<'_>, edits: Vec<Edit>) -> Bytes {
    let mut inserted = Vec::new();
    let mut replaced = Vec::new();
    for edit in edits {
        match edit {
            Edit::Insert(member) => inserted.push(member),
            Edit::Replace(range, text) => replaced.push((range, text)),
        }
    }
    let mut front = inserted.join(",");
    if !front.is_empty() && !object.empty {
        front.push(',');
    }
    replaced.push((object.front..object.front, front));
    replaced.sort_by_key(|(range, _)| range.start);

    let added: usize = replaced.iter().map(|(_, text)| text.len()).sum();
    let mut edited = Vec::with_capacity(json.len() + added);
    let mut at = 0;
    for (range, text) in replaced {
        edited.extend_from_slice(json.get(at..range.start).unwrap_or_default());
        edited.extend_from_slice(text.as_bytes());
        at = range.end;
    }
    edited.extend_from_slice(json.get(at..).unwrap_or_default());
    edited.into()
}

/// A member that is looked for. JSON readers differ on which of two equal names counts, so a repeated
/// one could slip another value past us.
pub(in crate::protocol) struct Wanted<'a> {
    /// Its name.
    pub(in crate::protocol) name: &'static str,
    value: Option<&'a RawValue>,
    repeated: bool,
}

impl<'a> Wanted<'a> {
    /// Looks for a member of this name.
    pub(in crate::protocol) fn new(name: &'static str) -> Self {
        Self {
            name,
            value: None,
            repeated: false,
        }
    }

    /// The member was seen.
    pub(in crate::protocol) fn see(&mut self, value: &'a RawValue) {
        self.repeated |= self.value.replace(value).is_some();
    }

    /// Its value, if it was seen once.
    pub(in crate::protocol) fn once(self) -> Result<Option<&'a RawValue>, RequestError> {
        match self.repeated {
            true => Err(RequestError::invalid(self.name, "must not be repeated")),
            false => Ok(self.value),
        }
    }
}
