//! A hint for the model in a copy of the request that was sent: at the end of what was said last, so that
//! what a provider has cached of the request still serves. Every other byte stays.
//!
//! What the model said itself is never added to: a hint must not look like a part of it. The result of a
//! tool may be, where a protocol has it in a message of its own: some refuse a user's message behind it.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::json::{
    edit::{Edit, Wanted, splice},
    raw::{self, Object, quoted},
};

/// Where a protocol has its hints.
pub(super) struct Form {
    /// The member that holds what was said.
    pub said: &'static str,
    /// The `type` of a part that is text.
    pub text_type: &'static str,
    /// A line between what was said and the hint.
    pub header: Option<&'static str>,
}

/// `body` with `hint` at its end. `None` if what it holds is not what the protocol says.
pub(super) fn body(body: &Bytes, form: &Form, hint: &str) -> Option<Bytes> {
    let mut said = Wanted::new(form.said);
    let object = Object::parse(body, |name, value| {
        if name == form.said {
            said.see(value);
        }
    })
    .ok()?;
    let hint = Hint { form, hint };
    let edit = match said.once().ok()? {
        None => Edit::Insert(format!("\"{}\":[{}]", form.said, hint.message())),
        Some(said) => hint.add_to(&object, said)?,
    };
    Some(splice(body, &object, vec![edit]))
}

struct Hint<'h> {
    form: &'h Form,
    hint: &'h str,
}

impl<'a> Hint<'_> {
    /// Adds it to all that was said.
    fn add_to(&self, object: &Object<'a>, said: &'a RawValue) -> Option<Edit> {
        let range = object.range(said);
        match said.get().as_bytes().first()? {
            b'"' => return Some(self.lengthen(object, said)),
            b'[' => {}
            b'n' => return Some(Edit::Replace(range, format!("[{}]", self.message()))),
            _ => return None,
        }
        match raw::last_item(said) {
            Some(last) => self.add_to_message(object, last),
            None => Some(Edit::Replace(range, format!("[{}]", self.message()))),
        }
    }

    /// Adds it to the last message, or as a message after it.
    fn add_to_message(&self, object: &Object<'a>, last: &'a RawValue) -> Option<Edit> {
        let range = object.range(last);
        let (message, [role, content]) = members(last, ["role", "content"])?;
        let role: Option<String> = role.and_then(|role| serde_json::from_str(role.get()).ok());
        if role.is_none_or(|role| role == "assistant") {
            let message = format!(",{}", self.message());
            return Some(Edit::Replace(range.end..range.end, message));
        }
        let Some(content) = content else {
            let front = range.start + message.front;
            let member = format!("\"content\":{},", quoted(self.hint));
            return Some(Edit::Replace(front..front, member));
        };
        match content.get().as_bytes().first()? {
            b'"' => Some(self.lengthen(object, content)),
            b'[' => self.add_to_parts(object, content),
            _ => Some(Edit::Replace(object.range(content), quoted(self.hint))),
        }
    }

    /// Adds it to the first part that is text, or as one before all others. The results of tools stay in
    /// front: Anthropic refuses a message in which text comes before them.
    fn add_to_parts(&self, object: &Object<'a>, list: &'a RawValue) -> Option<Edit> {
        let parts: Vec<&'a RawValue> = serde_json::from_str(list.get()).ok()?;
        let mut results = false;
        for part in &parts {
            let (_, [kind, text]) = members(part, ["type", "text"])?;
            let kind: String = serde_json::from_str(kind?.get()).ok()?;
            results |= kind == "tool_result";
            if kind == self.form.text_type
                && let Some(text) = text.filter(|text| text.get().starts_with('"'))
            {
                return Some(self.lengthen(object, text));
            }
        }
        let kind = self.form.text_type;
        let part = format!(r#"{{"type":"{kind}","text":{}}}"#, quoted(self.hint));
        let front = object.range(list).start + 1;
        Some(match parts.last() {
            None => Edit::Replace(front..front, part),
            Some(last) if results => {
                let end = object.range(last).end;
                Edit::Replace(end..end, format!(",{part}"))
            }
            Some(_) => Edit::Replace(front..front, format!("{part},")),
        })
    }

    /// Adds it to a text, after a blank line.
    fn lengthen(&self, object: &Object<'a>, text: &'a RawValue) -> Edit {
        let added = match self.form.header {
            Some(header) => format!("\n\n{header}\n{}", self.hint),
            None => format!("\n\n{}", self.hint),
        };
        let quote = object.range(text).end - 1;
        let added = quoted(&added);
        let inner = added.trim_start_matches('"');
        Edit::Replace(quote..quote + 1, inner.to_owned())
    }

    fn message(&self) -> String {
        format!(r#"{{"role":"user","content":{}}}"#, quoted(self.hint))
    }
}

/// The members of these names of a JSON object, if none is repeated.
fn members<'a>(
    json: &'a RawValue,
    names: [&'static str; 2],
) -> Option<(Object<'a>, [Option<&'a RawValue>; 2])> {
    let mut wanted = names.map(Wanted::new);
    let object = Object::parse(json.get().as_bytes(), |name, value| {
        if let Some(wanted) = wanted.iter_mut().find(|wanted| wanted.name == name) {
            wanted.see(value);
        }
    })
    .ok()?;
    let [first, second] = wanted;
    Some((object, [first.once().ok()?, second.once().ok()?]))
}
