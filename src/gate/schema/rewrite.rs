//! The expressions of a schema, written for a bounded engine.
//!
//! The engine builds automata of most expressions, and one can take a quarter of a second and a megabyte, for an
//! expression of twenty characters. It builds none of one that looks ahead: so each is made to.

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

/// The same expression, which looks ahead for nothing.
fn ahead(text: &str) -> String {
    format!("(?=)(?:{text})")
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
            "pattern": "(?=)(?:a|b)",
            "patternProperties": {"(?=)(?:^x)": {"pattern": "(?=)(?:c)", "const": {"pattern": "d"}}},
            "properties": {"pattern": {"pattern": 7}, "a": {"pattern": "e"}},
        });
        assert_eq!(schema, expected);
    }
}
