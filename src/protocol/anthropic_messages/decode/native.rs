//! Blocks of the provider's own: kept as the JSON they began with, given out whole at their end.

use serde_json::value::RawValue;

use crate::protocol::json::{
    edit::{Edit, Wanted, splice},
    raw::{self, Object, quoted},
};

/// A block that has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct Native {
    /// Its JSON, as it began.
    block: String,
    /// The fragments of its `input`.
    input: String,
    /// The pieces of a compaction's `content`.
    content: String,
    /// A compaction's `encrypted_content`, as JSON.
    encrypted: String,
}

impl Native {
    pub(super) fn new(block: &RawValue) -> Self {
        Self {
            block: block.get().to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn add_input(&mut self, fragment: &str) {
        self.input.push_str(fragment);
    }

    pub(super) fn add_content(&mut self, piece: &str) {
        self.content.push_str(piece);
    }

    pub(super) fn set_encrypted(&mut self, json: &RawValue) {
        json.get().clone_into(&mut self.encrypted);
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.block.len() + self.input.len() + self.content.len() + self.encrypted.len()
    }

    /// The whole block: what came since its beginning is put in the place of what it began with, every
    /// other byte stays. `None` if its input was cut off: such a block cannot be sent back.
    pub(super) fn whole(self) -> Option<String> {
        let mut members = [
            ("input", self.input.as_str().trim().to_owned()),
            ("content", self.content),
            ("encrypted_content", self.encrypted),
        ];
        if let [_, (_, content), _] = &mut members
            && !content.is_empty()
        {
            *content = quoted(content);
        }
        if members.iter().all(|(_, json)| json.is_empty()) {
            return Some(self.block);
        }
        let mut wanted = members.each_ref().map(|(name, _)| Wanted::new(name));
        let object = Object::parse(self.block.as_bytes(), |name, value| {
            if let Some(wanted) = wanted.iter_mut().find(|wanted| wanted.name == name) {
                wanted.see(value);
            }
        })
        .ok()?;
        let mut edits = Vec::new();
        for (wanted, (name, json)) in wanted.into_iter().zip(&members) {
            if json.is_empty() {
                continue;
            }
            if *name == "input" {
                raw::object(json.as_bytes()).ok()?;
            }
            edits.push(match wanted.once().ok()? {
                Some(value) => Edit::Replace(object.range(value), json.clone()),
                None => Edit::Insert(format!("\"{name}\":{json}")),
            });
        }
        let whole = splice(self.block.as_bytes(), &object, edits);
        String::from_utf8(whole.into()).ok()
    }
}
