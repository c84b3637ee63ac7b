//! Where a schema is not looked at: any JSON object will do then. And what is a JSON object.

use redrive::gate::{Misfit, Schema};
use serde_json::{Value, json};

/// Nothing that a call could be refused for, whatever it says.
fn assert_any_object_will_do(json: &str) {
    let schema = Schema::read(json.as_bytes());
    let shown: String = json.chars().take(200).collect();
    assert!(!schema.is_looked_at(), "{shown}");
    for arguments in ["", "{}", r#"{"a":{"a":[1,"x"]},"b":1}"#] {
        assert_eq!(schema.validate(arguments), Ok(()), "{shown}");
    }
    assert_eq!(schema.validate("[]"), Err(Misfit::NoObject), "{shown}");
}

/// Refuses everything, if it is looked at.
fn refusing(more: Value) -> Value {
    let mut schema = json!({"required": ["x"], "additionalProperties": false});
    for (name, value) in more.as_object().unwrap() {
        schema[name] = value.clone();
    }
    schema
}

fn nested(open: &str, close: &str, times: usize) -> String {
    format!("{}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn what_is_no_schema_asks_for_nothing() {
    for json in [
        "",
        "not JSON",
        "[]",
        "null",
        "true",
        "false",
        "7",
        "\"object\"",
        "{\"required\":[\"a\"]",
    ] {
        assert_any_object_will_do(json);
    }
    for more in [
        json!({"required": true}),
        json!({"required": [7]}),
        json!({"type": "file"}),
        json!({"type": []}),
        json!({"type": "string"}),
        json!({"type": ["null", "array"]}),
        json!({"properties": []}),
        json!({"properties": {"a": "string"}}),
        json!({"properties": {"a": {"enum": []}}}),
        json!({"properties": {"a": {"minimum": "1"}}}),
        json!({"properties": {"a": {"exclusiveMinimum": true}}}),
        json!({"properties": {"a": {"minLength": -1}}}),
        json!({"properties": {"a": {"minLength": 1.5}}}),
        json!({"properties": {"a": {"multipleOf": 0}}}),
        json!({"properties": {"a": {"items": [{}]}}}),
        json!({"properties": {"a": {"uniqueItems": "yes"}}}),
        json!({"properties": {"a": {"pattern": "("}}}),
        json!({"properties": {"a": {"pattern": "a**"}}}),
        json!({"anyOf": []}),
        json!({"anyOf": {}}),
        json!({"not": null}),
        json!({"dependentRequired": {"a": "b"}}),
        json!({"$ref": 7}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"$ref": "#/required"}),
        json!({"$ref": "#/%zz"}),
    ] {
        assert_any_object_will_do(&refusing(more).to_string());
    }
    assert!(Schema::read(refusing(json!({})).to_string().as_bytes()).is_looked_at());
}

#[test]
fn what_leads_elsewhere_is_not_looked_at() {
    for more in [
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$ref": "other.json#/a"}),
        json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}}),
        json!({"$dynamicRef": "#a", "$dynamicAnchor": "a"}),
        json!({"properties": {"a": {"$id": "https://example.com/a", "$ref": "#/$defs/b"}}}),
        json!({"$defs": {"unused": {"$id": "https://example.com/a"}}}),
        json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#"}}}),
        json!({"$schema": "https://example.com/dialect"}),
        json!({"$schema": 7}),
        json!({"properties": {"a": {"type": "string", "nullable": true}}}),
    ] {
        assert_any_object_will_do(&refusing(more).to_string());
    }
    let named = refusing(
        json!({"$id": "https://example.com/tool", "$ref": "#/$defs/a", "$defs": {"a": {}}}),
    );
    assert!(Schema::read(named.to_string().as_bytes()).is_looked_at());
}

#[test]
fn what_refers_to_itself_without_end_is_not_looked_at() {
    let chain = |links: usize| {
        let link = |n: usize| {
            (
                format!("d{n}"),
                json!({"$ref": format!("#/$defs/d{}", n + 1)}),
            )
        };
        let mut defs: serde_json::Map<_, _> = (0..links).map(link).collect();
        defs.insert(format!("d{links}"), json!({}));
        refusing(json!({"$ref": "#/$defs/d0", "$defs": defs}))
    };
    for more in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"type": "object"}, {"$ref": "#/$defs/a"}],
               "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}}}),
    ] {
        assert_any_object_will_do(&refusing(more).to_string());
    }
    assert_any_object_will_do(&chain(64).to_string());
    assert_any_object_will_do(&chain(4_000).to_string());
    assert!(Schema::read(chain(40).to_string().as_bytes()).is_looked_at());
}

#[test]
fn schemas_have_a_size_and_a_depth() {
    let of_size = |bytes: usize| {
        let mut schema = refusing(json!({"description": ""}));
        let rest = bytes - schema.to_string().len();
        schema["description"] = "d".repeat(rest).into();
        schema.to_string()
    };
    assert!(Schema::read(of_size(256 << 10).as_bytes()).is_looked_at());
    assert_any_object_will_do(&of_size((256 << 10) + 1));

    let of_depth = |depth: usize| {
        let inner = nested(r#"{"items":"#, "}", depth - 1).replace(":}", ":{}}");
        format!(r#"{{"required":["x"],"items":{inner}}}"#)
    };
    assert!(Schema::read(of_depth(100).as_bytes()).is_looked_at());
    assert_any_object_will_do(&of_depth(128));
    assert_any_object_will_do(&of_depth(20_000));
}

#[test]
fn schemas_in_a_schema_are_counted() {
    let of = |count: usize| {
        let mut schema = refusing(json!({"properties": {}}));
        schema["properties"]["a"] = json!({"prefixItems": vec![json!({}); count]});
        schema.to_string()
    };
    // The root and the member are two.
    let all = 4_096 - 3;
    assert!(Schema::read(of(all).as_bytes()).is_looked_at());
    assert_any_object_will_do(&of(all + 1));
}

#[test]
fn what_would_take_long_to_compile_is_not_looked_at() {
    let names = |count: usize| (0..count).map(|n| format!("m{n}")).collect::<Vec<_>>();
    let values = |count: usize| json!({"properties": {"a": {"enum": names(count)}}});
    // Compared each with each: required names, and what branches tell apart.
    let required = refusing(json!({"required": names(20_000)}));
    let branches = refusing(json!({"anyOf": [values(4_000), values(4_000)]}));
    // A place of 60 kB, repeated for each of a thousand values below it.
    let place =
        refusing(json!({"properties": {"k".repeat(60_000): {"anyOf": vec![json!(true); 1_000]}}}));
    // Two branches, of which each has two, and so on.
    let two = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        (format!("d{n}"), json!({"allOf": [next.clone(), next]}))
    };
    let mut defs: serde_json::Map<_, _> = (0..40).map(two).collect();
    defs.insert("d40".to_owned(), json!({}));
    let doubled = refusing(json!({"$ref": "#/$defs/d0", "$defs": defs}));
    // One expression for each name of many.
    let expressions: serde_json::Map<_, _> = (0..30)
        .map(|n| (format!("^([a-z]{{1,200}}-)*{n}$"), json!({})))
        .collect();
    let members: serde_json::Map<_, _> = names(3_000).into_iter().map(|n| (n, json!({}))).collect();
    let matched = refusing(json!({"patternProperties": expressions, "properties": members}));
    for schema in [required, branches, place, doubled, matched] {
        assert!(schema.to_string().len() < 256 << 10);
        assert_any_object_will_do(&schema.to_string());
    }
}

/// A schema that is looked at, and refuses arguments like `short` but lets pass what would take too long.
fn assert_given_up(schema: &Value, short: &str, long: &str) {
    let read = Schema::read(schema.to_string().as_bytes());
    assert!(read.is_looked_at(), "{schema}");
    assert!(
        matches!(read.validate(short), Err(Misfit::Faults(_))),
        "{schema} {short}"
    );
    let shown: String = long.chars().take(100).collect();
    assert_eq!(read.validate(long), Ok(()), "{schema} {shown}");
}

#[test]
fn what_would_take_long_to_check_is_not_checked() {
    let tree = json!({
        "anyOf": [
            {"properties": {"a": {"$ref": "#"}}, "required": ["x"]},
            {"properties": {"a": {"$ref": "#"}}, "required": ["y"]},
        ],
    });
    // Each level is gone through twice as often as the one above it.
    assert_given_up(
        &tree,
        r#"{"a":{}}"#,
        &nested(r#"{"a":"#, "}", 40).replace(":}", ":{}}"),
    );

    let list = |items: Value| json!({"properties": {"v": items}});
    let of = |items: &str, count: usize| format!(r#"{{"v":[{}]}}"#, vec![items; count].join(","));
    let unique = list(json!({"uniqueItems": true}));
    assert_given_up(&unique, &of("1", 100), &of("1", 2_000));
    // Their hashes are the same, as that of an object does not look at names.
    let objects: Vec<_> = (0..2_000).map(|n| format!(r#"{{"{n}":1}}"#)).collect();
    assert_given_up(&unique, &of("1", 2), &of(&objects.join(","), 1));
    let numbers = list(json!({"items": {"type": "string"}}));
    assert_given_up(&numbers, &of("1", 10_000), &of("1", 300_000));
    let listed = list(json!({"items": {"enum": (0..1_000).collect::<Vec<_>>()}}));
    assert_given_up(&listed, &of("1001", 100), &of("1001", 1_000));

    let text = |keywords: Value| json!({"properties": {"v": keywords}});
    let of = |length: usize| format!(r#"{{"v":"{}b"}}"#, "a".repeat(length));
    assert_given_up(&text(json!({"maxLength": 9})), &of(100_000), &of(9_000_000));
    assert_given_up(&text(json!({"pattern": "^(a+)+$"})), &of(500), &of(5_000));
    assert_given_up(
        &text(json!({"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"})),
        &of(200),
        &of(5_000),
    );
}

#[test]
fn expressions_that_the_engine_does_not_bound_are_not_run() {
    for pattern in [
        r"^(?:(a+)\1*)+$",
        "a(?=b)",
        "(?:a?){100}",
        "(((a*)*)*)*",
        "[a-z]{1000}[a-z]{1000}[a-z]{1000}",
    ] {
        let member = json!({"properties": {"a": {"pattern": pattern}}});
        assert_any_object_will_do(&refusing(member).to_string());
        let name = json!({"patternProperties": {pattern: {}}});
        assert_any_object_will_do(&refusing(name).to_string());
    }
    let many: serde_json::Map<_, _> = (0..33).map(|n| (format!("^{n}"), json!({}))).collect();
    assert_any_object_will_do(&refusing(json!({ "patternProperties": many })).to_string());
}

#[test]
fn numbers_are_compared_as_they_are_written_or_not_at_all() {
    let below = json!({"properties": {"v": {"exclusiveMaximum": 1e30}}, "required": ["x"]});
    let schema = Schema::read(below.to_string().as_bytes());
    let checked = |number: &str| schema.validate(&format!(r#"{{"v":{number}}}"#)).is_err();
    for number in [
        "1",
        "-9223372036854775808",
        "18446744073709551615",
        "0.1",
        "1e18",
        "1E-400",
    ] {
        assert!(checked(number), "{number}");
    }
    for number in [
        "18446744073709551616",
        "-9223372036854775809",
        "1e30",
        "-1e300",
        "1e400",
    ] {
        assert!(!checked(number), "{number}");
    }
    for divisor in ["5e-324", "1e308", "0.1", "3"] {
        let schema = format!(r#"{{"properties":{{"v":{{"multipleOf":{divisor}}}}}}}"#);
        let schema = Schema::read(schema.as_bytes());
        assert!(schema.is_looked_at());
        for number in ["1e-320", "0", "9007199254740993", "1.7e308"] {
            let _ = schema.validate(&format!(r#"{{"v":{number}}}"#));
        }
        let zero = schema.validate(r#"{"v":0}"#);
        assert_eq!(zero, Ok(()), "{divisor}");
    }
}

#[test]
fn arguments_are_one_json_object_as_clients_read_it() {
    let anything = Schema::read(b"{}");
    let asks = Schema::read(br#"{"required":["x"]}"#);
    for arguments in [
        "[]",
        "1",
        "null",
        "\"{}\"",
        "{",
        "{} {}",
        "{}x",
        "nothing",
        " ",
        "\u{feff}{}",
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":01}"#,
        r#"{"a":1,}"#,
        r#"{'a':1}"#,
        r#"{"a":"\x"}"#,
        "{\"a\":\"\n\"}",
        "{a:1}",
        "\u{a0}{}",
    ] {
        assert_eq!(
            anything.validate(arguments),
            Err(Misfit::NoObject),
            "{arguments}"
        );
        assert_eq!(
            asks.validate(arguments),
            Err(Misfit::NoObject),
            "{arguments}"
        );
    }
    let deep = format!(r#"{{"a":{}}}"#, nested("[", "]", 100_000));
    let just_deep = format!(r#"{{"a":{}}}"#, nested("[", "]", 127));
    // Read by clients, and not by the validator.
    for arguments in [
        r#"{"a":"\ud800"}"#,
        r#"{"\udc00":1}"#,
        r#"{"a":1e400}"#,
        &deep,
        &just_deep,
    ] {
        assert_eq!(anything.validate(arguments), Ok(()), "{arguments:.40}");
        assert_eq!(asks.validate(arguments), Ok(()), "{arguments:.40}");
    }
    for arguments in ["", " {\"a\" : 1}\r\n\t", r#"{"a":"\ud83d\ude00"}"#] {
        assert_eq!(anything.validate(arguments), Ok(()), "{arguments}");
        assert!(asks.validate(arguments).is_err(), "{arguments}");
    }
}

#[test]
fn of_members_with_one_name_the_last_counts() {
    let schema = Schema::read(br#"{"properties":{"a":{"type":"string"}}}"#);
    assert_eq!(schema.validate(r#"{"a":1,"a":"b"}"#), Ok(()));
    assert!(schema.validate(r#"{"a":"b","a":1}"#).is_err());
    let private = r#"{"$serde_json::private::RawValue":"[1]"}"#;
    assert_eq!(
        Schema::read(br#"{"type":"object"}"#).validate(private),
        Ok(())
    );
}

#[test]
fn what_is_as_deep_as_is_looked_at_fits_a_small_stack() {
    // Per level of the arguments as many schemas inside of each other as there may be.
    let narrow = json!({"properties": {"a": {"$ref": "#"}}, "required": ["a"]});
    let branches = json!({"$ref": "#/$defs/d", "$defs": {"d": {"oneOf": [{"allOf": [{"anyOf": [{
        "properties": {"a": {"$ref": "#"}, "b": {"type": "array"}}, "unevaluatedProperties": false,
    }]}]}]}}});
    let tower =
        |floors, last: &str| format!("{}{last}{}", r#"{"a":"#.repeat(floors), "}".repeat(floors));
    for (schema, floors, last) in [(narrow, 125, "{}"), (branches, 40, r#"{"b":1}"#)] {
        let schema = Schema::read(schema.to_string().as_bytes());
        let arguments = tower(floors, last);
        let check = move || schema.validate(&arguments);
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        let found = thread.spawn(check).unwrap().join().unwrap();
        assert!(
            matches!(found, Err(Misfit::Faults(_))),
            "{floors}: {found:?}"
        );
    }
}
