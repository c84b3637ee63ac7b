//! The expressions of a schema, written for a bounded engine.
//!
//! The engine builds automata of most expressions, and one can take a quarter of a second and a megabyte, for an
//! expression of twenty characters. It builds none of one that looks ahead: so each is made to.
//!
//! Where an expression is none by the grammar that JSON Schema recommends (ECMA-262 with the flag `u`), the engine
//! takes the older one, in which `\A` is the letter A and `\p{L}` the letter p. Whoever wrote such an expression meant
//! another engine: it is made to be none by both grammars, and then its schema is not looked at.

use std::{collections::BTreeSet, mem, ptr};

use serde_json::Value;

/// Rewrites the expressions of `schema` so that no automaton is built of them. `known`: the addresses of the
/// schemas in it that have some. What only looks like a schema stays as it is.
pub(super) fn without_automata(schema: &mut Value, known: &BTreeSet<usize>) {
    let has_some = known.contains(&ptr::from_ref(schema).addr());
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items
                .iter_mut()
                .for_each(|item| without_automata(item, known));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    // First of all these, which are known by where they are.
    for member in members.values_mut() {
        without_automata(member, known);
    }
    if !has_some {
        return;
    }
    if let Some(Value::String(text)) = members.get_mut("pattern") {
        *text = ahead(text);
    }
    if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
        let all = mem::take(patterns).into_iter();
        *patterns = all.map(|(text, schema)| (ahead(&text), schema)).collect();
    }
}

/// Looks ahead for nothing that has to be there. By the older grammar, which reads UTF-16, its range is upside down.
const AHEAD: &str = "(?=[\u{1f600}-\u{1f601}]|)";

/// What is needlessly escaped in many an expression, as all engines understand it and the flag `u` forbids.
const NEEDLESS: &str = "_@#%&;~`\"' ";

/// Of these, what may mean something else behind a question mark: `(?:`.
const NEEDLESS_BUT_FOR_GROUPS: &str = ":=!<";

/// The same expression, which looks ahead.
fn ahead(text: &str) -> String {
    format!("{AHEAD}(?:{})", without_needless_escapes(text))
}

fn without_needless_escapes(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut in_class = false;
    while let Some(next) = rest.next() {
        match next {
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        let escaped = if next == '\\' { rest.next() } else { None };
        let Some(escaped) = escaped else {
            written.push(next);
            continue;
        };
        let is_needless = NEEDLESS.contains(escaped)
            || (escaped == '-' && !in_class)
            || (NEEDLESS_BUT_FOR_GROUPS.contains(escaped) && !written.ends_with('?'));
        if !is_needless {
            written.push(next);
        }
        written.push(escaped);
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_expressions_of_schemas_are_rewritten() {
        let mut schema = json!({
            "pattern": "a|b", "patternProperties": {"^x": {"pattern": "c", "const": {"pattern": "d"}}},
            "properties": {"pattern": {"pattern": 7}, "a": {"pattern": "e"}},
        });
        let address = |place| ptr::from_ref(schema.pointer(place).unwrap()).addr();
        let known = ["", "/patternProperties/^x", "/properties/pattern"].map(address);
        without_automata(&mut schema, &known.into());
        let expected = json!({
            "pattern": ahead("a|b"),
            "patternProperties": {ahead("^x"): {"pattern": ahead("c"), "const": {"pattern": "d"}}},
            "properties": {"pattern": {"pattern": 7}, "a": {"pattern": "e"}},
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn only_needless_escapes_are_taken_out() {
        for (text, expected) in [
            (r"^\d{4}\-\d{2}\:\_$", r"^\d{4}-\d{2}:_$"),
            (r"[\w\-\_\.\']+\@", r"[\w\-_\.']+@"),
            (r"(?\:a)\\\-\/\,", r"(?\:a)\\-\/\,"),
            (r"\A\p{L}\z\", r"\A\p{L}\z\"),
        ] {
            assert_eq!(without_needless_escapes(text), expected, "{text}");
        }
    }
}
