//! Simple schemas at random, against a second opinion.

use proptest::{collection::vec, prelude::*, sample::select};
use redrive::gate::{Misfit, Schema};
use serde_json::{Map, Value, json};

/// Names of members: few, so that schemas and arguments meet.
const NAMES: [&str; 4] = ["a", "b", "c/d", "~"];

fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(str::to_owned)
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        select(vec![json!(0.5), json!(1.0), json!("x"), json!("")]),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let types = vec(
        select(
            &[
                "null", "boolean", "integer", "number", "string", "array", "object",
            ][..],
        ),
        1..4,
    );
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        types.prop_map(|types| json!({ "type": types })),
        vec(value(), 1..4).prop_map(|values| json!({ "enum": values })),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            (
                vec((name(), inner.clone()), 0..4),
                vec(name(), 0..3),
                proptest::option::of(inner.clone())
            )
                .prop_map(|(members, required, rest)| {
                    let members: Map<_, _> = members.into_iter().collect();
                    let mut schema = json!({"properties": members, "required": required});
                    if let Some(rest) = rest {
                        schema["additionalProperties"] = rest;
                    }
                    schema
                }),
            inner.clone().prop_map(|items| json!({ "items": items })),
            (
                select(&["allOf", "anyOf", "oneOf"][..]),
                vec(inner.clone(), 1..3)
            )
                .prop_map(|(keyword, branches)| json!({ keyword: branches })),
            inner.prop_map(|inner| json!({ "not": inner })),
        ]
    })
}

/// The second opinion.
fn fits(schema: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema == &json!(true);
    };
    keywords.iter().all(|(keyword, asked)| {
        let list = asked.as_array();
        let fitting = || list.unwrap().iter().filter(|one| fits(one, value)).count();
        match keyword.as_str() {
            "type" => list
                .unwrap()
                .iter()
                .any(|name| is_a(value, name.as_str().unwrap())),
            "enum" => list.unwrap().iter().any(|one| same(one, value)),
            "properties" => value.as_object().is_none_or(|members| {
                let asked = asked.as_object().unwrap();
                members
                    .iter()
                    .all(|(name, value)| asked.get(name).is_none_or(|asked| fits(asked, value)))
            }),
            "additionalProperties" => value.as_object().is_none_or(|members| {
                let known = keywords["properties"].as_object().unwrap();
                let mut others = members
                    .iter()
                    .filter(|(name, _)| !known.contains_key(*name));
                others.all(|(_, value)| fits(asked, value))
            }),
            "required" => value.as_object().is_none_or(|members| {
                let mut names = list.unwrap().iter();
                names.all(|name| members.contains_key(name.as_str().unwrap()))
            }),
            "items" => value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| fits(asked, item))),
            "allOf" => fitting() == list.unwrap().len(),
            "anyOf" => fitting() > 0,
            "oneOf" => fitting() == 1,
            "not" => !fits(asked, value),
            other => panic!("{other}"),
        }
    })
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other = |(name, value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

/// Bytes that look like JSON Schema.
fn nearly_a_schema() -> impl Strategy<Value = String> {
    let words = select(
        &[
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"type\"",
            "\"object\"",
            "\"$ref\"",
            "\"#\"",
            "\"#/a\"",
            "\"properties\"",
            "\"a\"",
            "\"pattern\"",
            "\"(a*)*\"",
            "\"anyOf\"",
            "\"items\"",
            "\"enum\"",
            "\"$schema\"",
            "\"http://json-schema.org/draft-04/schema#\"",
            "\"uniqueItems\"",
            "true",
            "-1",
            "1e999",
            "null",
            "\"multipleOf\"",
            "\"required\"",
            "\"$id\"",
            "\"not\"",
        ][..],
    );
    vec(words, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn both_say_the_same_of_simple_schemas(
        inner in schema(),
        arguments in vec((name(), value()), 0..4),
    ) {
        let schema = json!({"allOf": [inner]});
        let arguments = Value::from(arguments.into_iter().collect::<Map<_, _>>());
        let read = Schema::read(schema.to_string().as_bytes());
        prop_assert!(read.is_looked_at());
        let found = read.validate(&arguments.to_string());
        prop_assert_eq!(found.is_ok(), fits(&schema, &arguments), "{:?}", found);
        if let Err(misfit) = found {
            let Misfit::Faults(faults) = misfit else {
                panic!("an object");
            };
            prop_assert!(faults.len() <= 16);
            prop_assert!(faults.iter().all(|fault| fault.chars().count() <= 64));
        }
    }

    #[test]
    fn any_schema_and_any_arguments_have_an_answer(
        schema in prop_oneof![nearly_a_schema(), schema().prop_map(|schema| schema.to_string())],
        more in "\\PC{0,20}",
        arguments in "[{}\\[\\]\":, \\\\ud8a-c0-9]{0,40}",
    ) {
        for schema in [&schema, &more, &(schema.clone() + &more)] {
            let found = Schema::read(schema.as_bytes()).validate(&arguments);
            let is_object = arguments.is_empty()
                || serde_json::from_str::<Map<_, _>>(&arguments).is_ok();
            prop_assert!(is_object || found.is_err());
            prop_assert!(!is_object || found != Err(Misfit::NoObject));
        }
    }
}
