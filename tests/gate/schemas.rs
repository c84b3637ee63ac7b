//! What of a tool's schema is looked at, and what is told of arguments that do not fit.

use redrive::{
    gate::{Choice, Fault, Misfit, Piece, Schema, Snapshot, Tools},
    proto::{Conversation, FinishReason, Tool},
};
use serde_json::{Value, json};

use crate::{error, mismatch, names, one_call};

/// The faults of `arguments`; `None` if they fit.
fn faults(schema: &Value, arguments: &str) -> Option<Vec<String>> {
    let read = Schema::read(schema.to_string().as_bytes());
    assert!(read.is_looked_at(), "{schema}");
    match read.validate(arguments) {
        Ok(()) => None,
        Err(Misfit::Faults(faults)) => Some(faults),
        Err(Misfit::NoObject) => panic!("{arguments} is no object"),
    }
}

/// Each row: arguments, and the faults that are told of them; none if they fit.
fn check(schema: &Value, rows: &[(&str, &[&str])]) {
    for (arguments, expected) in rows {
        let expected = (!expected.is_empty()).then(|| names(expected));
        assert_eq!(faults(schema, arguments), expected, "{schema} {arguments}");
    }
}

/// A schema of one member `v`.
fn of(v: Value) -> Value {
    json!({"type": "object", "properties": {"v": v}})
}

#[test]
fn types_are_looked_at_wherever_they_stand() {
    check(
        &of(json!({"type": "string"})),
        &[
            (r#"{"v":"a"}"#, &[]),
            ("{}", &[]),
            ("", &[]),
            (r#"{"w":1}"#, &[]),
            (r#"{"v":1}"#, &["/v (type)"]),
            (r#"{"v":null}"#, &["/v (type)"]),
        ],
    );
    check(
        &of(json!({"type": ["integer", "null"]})),
        &[
            (r#"{"v":1}"#, &[]),
            (r#"{"v":1.0}"#, &[]),
            (r#"{"v":null}"#, &[]),
            (r#"{"v":1.5}"#, &["/v (type)"]),
            (r#"{"v":"1"}"#, &["/v (type)"]),
        ],
    );
    check(
        &of(
            json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}}),
        ),
        &[
            (r#"{"v":[{"n":1},{}]}"#, &[]),
            (
                r#"{"v":[{"n":1},{"n":"1"},7]}"#,
                &["/v/1/n (type)", "/v/2 (type)"],
            ),
        ],
    );
}

#[test]
fn required_members_must_be_there_at_every_depth() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "range": {"type": "object", "required": ["from"]},
        },
        "required": ["path", "mode"],
    });
    check(
        &schema,
        &[
            (r#"{"path":"a","mode":null,"x":1}"#, &[]),
            (r#"{"path":"a"}"#, &["/mode (required)"]),
            ("", &["/path (required)", "/mode (required)"]),
            (
                r#"{"path":"a","mode":1,"range":{"to":1}}"#,
                &["/range/from (required)"],
            ),
        ],
    );
}

#[test]
fn values_are_compared_with_what_the_schema_lists() {
    check(
        &of(json!({"enum": ["r", "w", 7, null, {"a": 1.0}]})),
        &[
            (r#"{"v":"r"}"#, &[]),
            (r#"{"v":7.0}"#, &[]),
            (r#"{"v":{"a":1}}"#, &[]),
            (r#"{"v":"R"}"#, &["/v (enum)"]),
        ],
    );
    check(
        &of(json!({"const": 0.1})),
        &[(r#"{"v":0.10}"#, &[]), (r#"{"v":0.2}"#, &["/v (const)"])],
    );
    check(
        &of(json!({"minimum": 1, "exclusiveMaximum": 9, "multipleOf": 0.5})),
        &[
            (r#"{"v":8.5}"#, &[]),
            (r#"{"v":9}"#, &["/v (exclusiveMaximum)"]),
            (r#"{"v":0.7}"#, &["/v (minimum)", "/v (multipleOf)"]),
        ],
    );
    check(
        &of(json!({"minLength": 2, "maxLength": 3, "pattern": "^[a-zé]*$"})),
        &[
            (r#"{"v":"éé"}"#, &[]),
            (r#"{"v":"a"}"#, &["/v (minLength)"]),
            (r#"{"v":"aBcd"}"#, &["/v (maxLength)", "/v (pattern)"]),
        ],
    );
    check(
        &of(json!({"minItems": 1, "maxItems": 2, "uniqueItems": true})),
        &[
            (r#"{"v":[1,2]}"#, &[]),
            (r#"{"v":[]}"#, &["/v (minItems)"]),
            (r#"{"v":[1,1,1.0]}"#, &["/v (maxItems)", "/v (uniqueItems)"]),
        ],
    );
}

#[test]
fn members_that_are_not_named_can_be_refused() {
    let closed = json!({
        "type": "object",
        "properties": {"a": true, "no": false},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": false,
        "propertyNames": {"maxLength": 4},
    });
    check(
        &closed,
        &[
            (r#"{"a":1,"x-b":"c"}"#, &[]),
            (r#"{"b":1}"#, &["/b (additionalProperties)"]),
            (r#"{"no":1}"#, &["/no (false)"]),
            (r#"{"x-b":1}"#, &["/x-b (type)"]),
        ],
    );
    check(
        &json!({"additionalProperties": {"type": "string"}}),
        &[(r#"{"b":"1"}"#, &[]), (r#"{"b":1}"#, &["/b (type)"])],
    );
    check(
        &json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}),
        &[
            (r#"{"a":1}"#, &[]),
            (
                r#"{"b":1}"#,
                &["/ (unevaluatedProperties)", "/b (unevaluatedProperties)"],
            ),
        ],
    );
}

#[test]
fn references_within_the_schema_are_followed() {
    let node = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/node%20of%20a~1tree",
        "definitions": {"node of a/tree": {
            "type": "object",
            "properties": {
                "name": {"$ref": "#/definitions/name"},
                "next": {"$ref": "#/definitions/node%20of%20a~1tree"},
            },
            "required": ["name"],
        }, "name": {"type": "string"}},
    });
    check(
        &node,
        &[
            (r#"{"name":"a","next":{"name":"b"}}"#, &[]),
            (
                r#"{"name":"a","next":{"name":"b","next":{"name":1}}}"#,
                &["/next/next/name (type)"],
            ),
            (r#"{"name":"a","next":{}}"#, &["/next/name (required)"]),
        ],
    );
    let itself = json!({"properties": {"in": {"$ref": "#"}}, "additionalProperties": false});
    check(
        &itself,
        &[
            (r#"{"in":{"in":{}}}"#, &[]),
            (
                r#"{"in":{"in":{"out":1}}}"#,
                &["/in/in/out (additionalProperties)"],
            ),
        ],
    );
}

#[test]
fn branches_are_looked_at_and_told_as_one() {
    let action = |name: &str, member: &str| {
        json!({
            "properties": {"action": {"const": name}, member: {"type": "integer"}},
            "required": ["action", member],
        })
    };
    let one = json!({"type": "object", "oneOf": [action("move", "by"), action("turn", "to")]});
    check(
        &one,
        &[
            (r#"{"action":"move","by":1}"#, &[]),
            (r#"{"action":"turn","by":1}"#, &["/ (oneOf)"]),
            (r#"{"action":"turn","to":"1"}"#, &["/ (oneOf)"]),
        ],
    );
    let all = json!({"allOf": [{"required": ["a"]}, {"properties": {"b": {"type": "null"}}}]});
    check(&all, &[(r#"{"b":1}"#, &["/a (required)", "/b (type)"])]);
    check(
        &of(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        &[(r#"{"v":null}"#, &[]), (r#"{"v":1}"#, &["/v (anyOf)"])],
    );
    check(
        &of(json!({"not": {"type": "string"}})),
        &[(r#"{"v":null}"#, &[]), (r#"{"v":"a"}"#, &["/v (not)"])],
    );
    let depends = json!({
        "if": {"required": ["a"]}, "then": {"required": ["b"]},
        "dependentRequired": {"c": ["d"]},
    });
    check(
        &depends,
        &[
            ("{}", &[]),
            (r#"{"a":1,"c":1,"d":1}"#, &["/b (required)"]),
            (r#"{"c":1}"#, &["/d (dependentRequired)"]),
        ],
    );
}

#[test]
fn each_draft_is_read_as_it_is_spelled() {
    let draft = |uri: &str, v: Value| {
        let mut schema = of(v);
        schema["$schema"] = uri.into();
        schema
    };
    let fourth = "http://json-schema.org/draft-04/schema#";
    let seventh = "http://json-schema.org/draft-07/schema#";
    let exclusive = json!({"maximum": 9, "exclusiveMaximum": true});
    check(
        &draft(fourth, exclusive),
        &[
            (r#"{"v":8}"#, &[]),
            (r#"{"v":9}"#, &["/v (exclusiveMaximum)"]),
        ],
    );
    let tuple = json!({"items": [{"type": "string"}], "additionalItems": false});
    for uri in [
        fourth,
        seventh,
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        check(
            &draft(uri, tuple.clone()),
            &[
                (r#"{"v":["a"]}"#, &[]),
                (r#"{"v":[1]}"#, &["/v/0 (type)"]),
                (r#"{"v":["a",1]}"#, &["/v/1 (additionalItems)"]),
            ],
        );
    }
    let newest = json!({"prefixItems": [{"type": "string"}], "items": false});
    let newest = [
        of(newest.clone()),
        draft("https://json-schema.org/draft/2020-12/schema", newest),
    ];
    for schema in newest {
        check(
            &schema,
            &[
                (r#"{"v":["a"]}"#, &[]),
                (r#"{"v":[1]}"#, &["/v/0 (type)"]),
                (r#"{"v":["a",1]}"#, &["/v/1 (items)"]),
            ],
        );
    }
}

#[test]
fn what_only_describes_is_not_asserted() {
    let described = json!({
        "type": "string", "format": "date-time", "contentEncoding": "base64", "title": 7,
        "contentMediaType": "application/json", "default": 1, "examples": [{"id": "1"}],
        "deprecated": true, "x-order": 1, "example": {}, "discriminator": {"propertyName": "a"},
        "nullable": false,
    });
    check(
        &of(described.clone()),
        &[(r#"{"v":"soon"}"#, &[]), (r#"{"v":1}"#, &["/v (type)"])],
    );
    let mut older = of(described);
    older["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    check(&older, &[(r#"{"v":"soon"}"#, &[])]);
    let mut strict = of(json!({"type": "string"}));
    strict["strict"] = true.into();
    check(&strict, &[(r#"{"v":1}"#, &["/v (type)"])]);
}

#[test]
fn what_is_told_is_bounded_and_holds_nothing_of_what_members_hold() {
    let required: Vec<String> = (0..1_000).map(|n| format!("m{n}")).collect();
    let told = faults(&json!({ "required": required }), "{}").unwrap();
    assert_eq!(told.len(), 16);
    assert_eq!(told.last().unwrap(), "/m15 (required)");

    let secret = r#"{"v":"a secret","also a secret":"x"}"#;
    let mut schema = of(json!({"enum": ["a"], "pattern": "^b", "maxLength": 1, "const": "c"}));
    schema["maxProperties"] = 1.into();
    let told = faults(&schema, secret).unwrap();
    let expected = [
        "/v (const)",
        "/v (enum)",
        "/v (maxLength)",
        "/v (pattern)",
        "/ (maxProperties)",
    ];
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    assert_eq!(sorted(told), sorted(names(&expected)));

    let made_up = format!(r#"{{"{}\n\"~/":1}}"#, "é".repeat(50));
    let told = faults(&json!({"additionalProperties": false}), &made_up).unwrap();
    let expected = format!("/{}… (additionalProperties)", "é".repeat(40));
    assert_eq!(told, [expected]);
    let told = faults(
        &json!({"additionalProperties": false}),
        r#"{"a\nb\"~/c":1}"#,
    )
    .unwrap();
    assert_eq!(told, [r#"/a\nb\"~0~1c (additionalProperties)"#]);
}

#[test]
fn a_call_that_does_not_fit_its_schema_cannot_be_handed_out() {
    let tool = |name: &str, schema: &str| Tool {
        name: name.to_owned(),
        parameters_json: schema.as_bytes().to_vec(),
        ..Tool::default()
    };
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    let tools = Tools::of(&Conversation {
        tools: vec![tool("Read", schema), tool("Bash", "")],
        ..Conversation::default()
    });
    assert_eq!(tools.names, Some(names(&["Read", "Bash"])));
    assert_eq!(tools.choice, Choice::Free);
    let call = |name, arguments| Piece::Call { name, arguments };
    let read = [
        call("Read", r#"{"path":1}"#),
        call("Read", ""),
        call("Read", "{"),
        call("Bash", ""),
    ];
    let snapshot = Snapshot::of(read, FinishReason::ToolCalls, &tools);
    assert_eq!(snapshot.tool_calls, one_call());
    let expected = [
        mismatch("Read", &["/path (type)"]),
        mismatch("Read", &["/path (required)"]),
        error("Read", Fault::InvalidArguments),
    ];
    assert_eq!(snapshot.tool_errors, expected);
}

#[test]
fn schemas_are_compared_by_their_text_and_not_shown() {
    let schema = || Schema::read(br#"{"description":"a secret"}"#);
    assert_eq!(schema(), schema());
    assert_eq!(schema(), schema().clone());
    assert_ne!(schema(), Schema::read(b"{}"));
    assert_ne!(schema(), Schema::default());
    assert_eq!(Schema::read(b""), Schema::default());
    assert_eq!(format!("{:?}", schema()), "Schema(26 bytes)");
}
