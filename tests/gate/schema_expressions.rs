//! What the expressions of a schema refuse: only what every engine would.

use redrive::gate::Schema;
use serde_json::json;

/// Whether a text that has to match `pattern` may be `text`, and one that is a name.
fn fits(pattern: &str, text: &str) -> bool {
    let schema = json!({"properties": {"v": {"pattern": pattern}}});
    let value = read(&schema, &json!({ "v": text }));
    let schema = json!({"patternProperties": {pattern: {}}, "additionalProperties": false});
    let mut named = serde_json::Map::new();
    named.insert(text.to_owned(), json!(1));
    let name = read(&schema, &named.into());
    assert_eq!(value, name, "{pattern} {text}");
    value
}

fn read(schema: &serde_json::Value, arguments: &serde_json::Value) -> bool {
    let schema = Schema::read(schema.to_string().as_bytes());
    schema.validate(&arguments.to_string()).is_ok()
}

#[test]
fn expressions_of_other_engines_refuse_nothing() {
    for (pattern, text) in [
        (r"\A\d{4}\z", "2024"),
        (r"\A\d+\Z", "1"),
        (r"^\pL+$", "a"),
        (r"^[\p{L}']+$\z", "a"),
        (r"^[\p{L}\!x\y]+$", "José"),
        (r"^\p{Punct}$", "!"),
        (r"^\p{IsGreek}$", "α"),
        (r"^[[:alpha:]]+$", "abc"),
        (r"^[a-z&&[^b]]+$", "ac"),
        (r"^\h$", " "),
        (r"^\x{41}$", "A"),
        (r"^\Qa.b\E$", "a.b"),
        (r"^[^\y]{1,3}$", "😀😀"),
        (r"^[\w-.]+$", "a.b"),
        (r"(?i)^a$", "A"),
    ] {
        assert!(fits(pattern, text), "{pattern} {text}");
        assert!(fits(pattern, "\u{1}?"), "{pattern}");
    }
}

#[test]
fn needless_escapes_are_read_as_all_engines_read_them() {
    for (pattern, good, bad) in [
        (r"^\d{4}\-\d{2}\:\_$", "2024-02:_", "2024-02:x"),
        (r"^[\w\-\.]+\@[a-z\ ]+\'$", "a-b.c@d e'", "a-b.c@d e"),
        (r"^[\p{L}\_\- ]+$", "José", "José!"),
        (r"^[^\:]{1,3}$", "😀😀", "a:b"),
        (r"^.\-$", "😀-", "😀_"),
        (r"^\<b\>?\/\,\~$", r"\", "x"),
    ] {
        let refuses = !fits(pattern, bad);
        // The last one has an escape that is left as it is.
        assert_eq!(refuses, !pattern.contains(r"\>"), "{pattern} {bad}");
        assert!(fits(pattern, good), "{pattern} {good}");
    }
}

#[test]
fn a_class_that_other_engines_read_wider_is_only_asked_about_ascii() {
    for pattern in [r"^\w+$", r"^\d+$|^a\b", r"^[\w]+$"] {
        assert!(!fits(pattern, "!"), "{pattern}");
        assert!(fits(pattern, "é!"), "{pattern}");
    }
    assert!(!fits(r"^[a-z\s]+$", "é"));
}
