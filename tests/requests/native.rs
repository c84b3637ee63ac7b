//! A native body is changed in place, and only where it must be.

use bytes::Bytes;
use proptest::prelude::*;
use redrive::protocol::{
    Dialect,
    adapter::{RequestError, RequestErrorKind, RequestInput, Source},
};
use serde_json::{Map, Value, json};

fn sent(json: &str) -> String {
    let request = super::native(&Bytes::copy_from_slice(json.as_bytes())).unwrap();
    String::from_utf8(request.body.to_vec()).unwrap()
}

fn refused(json: impl AsRef<[u8]>) -> RequestError {
    super::native(&Bytes::copy_from_slice(json.as_ref())).unwrap_err()
}

fn reason(json: impl AsRef<[u8]>) -> String {
    let error = refused(json);
    assert_eq!(error.kind, RequestErrorKind::Invalid);
    error.to_string()
}

#[test]
fn a_body_that_is_already_right_keeps_its_bytes_and_its_buffer() {
    for json in [
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        "\n{ \"stream_options\" : {\"x\":1,\t\"include_usage\" :true} ,\r\n\"stream\": true, \"model\":\"m\" }\n",
        r#"{"mod\u0065l":"\u006d","stream":true,"stream_options":{"include_usag\u0065":true},"n":1}"#,
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"big":1.000000000000000000000001e400,"n":null}"#,
    ] {
        let body = Bytes::copy_from_slice(json.as_bytes());
        let request = super::native(&body).unwrap();
        assert_eq!(request.body, body);
        assert_eq!(request.body.as_ptr(), body.as_ptr());
    }
}

#[test]
fn model_stream_and_usage_are_changed_in_place() {
    for (given, expected) in [
        (
            r#"{"model":"other","stream":false,"stream_options":{"include_usage":false}}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"messages":[],"stream":null,"x":1.50,"model":null,"stream_options":null}"#,
            r#"{"messages":[],"stream":true,"x":1.50,"model":"m","stream_options":{"include_usage":true}}"#,
        ),
        (
            " {\r\n\t\"model\" :\t\"gpt\" ,\n \"stream\":  false , \"stream_options\" : { } } \n",
            " {\r\n\t\"model\" :\t\"m\" ,\n \"stream\":  true , \"stream_options\" : {\"include_usage\":true } } \n",
        ),
        (
            r#"{"\u006dodel":"m2","strea\u006D":0,"stream\u005foptions":{"a":{"include_usage":false},"include_usage":0}}"#,
            r#"{"\u006dodel":"m","strea\u006D":true,"stream\u005foptions":{"a":{"include_usage":false},"include_usage":true}}"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}"#,
        ),
    ] {
        assert_eq!(sent(given), expected);
    }
}

#[test]
fn usage_is_asked_for_only_where_the_server_can_be_asked() {
    let asked = |json: &'static str| {
        let request = super::openai_chat()
            .request(RequestInput {
                source: Source::Native(&Bytes::from(json)),
                model: "m",
                dialect: Dialect::Mistral,
                stored: false,
            })
            .unwrap();
        String::from_utf8(request.body.to_vec()).unwrap()
    };
    assert_eq!(
        asked(r#"{"model":"m","x":1}"#),
        r#"{"stream":true,"model":"m","x":1}"#
    );
    let own = r#"{"model":"m","stream":true,"stream_options":{"include_usage":false}}"#;
    assert_eq!(asked(own), own);
}

#[test]
fn what_is_missing_goes_to_the_front() {
    const ALL: &str = r#""model":"m","stream":true,"stream_options":{"include_usage":true}"#;
    assert_eq!(sent("{}"), format!("{{{ALL}}}"));
    assert_eq!(sent(" {\n}\n"), format!(" {{{ALL}\n}}\n"));
    assert_eq!(sent("{ \"a\":1}"), format!("{{{ALL}, \"a\":1}}"));
    assert_eq!(
        sent(r#"{"model":"x","a":1}"#),
        r#"{"stream":true,"stream_options":{"include_usage":true},"model":"m","a":1}"#
    );
}

#[test]
fn names_inside_strings_and_deeper_objects_are_not_ours() {
    let inner = r#""a":"\"model\":\"x\",{","b\\":{"model":"x","n":7,"stream":false},"c":[{"n":2}],"é😀":"\\""#;
    let ours = r#""model":"m","stream":true,"stream_options":{"include_usage":true}"#;
    assert_eq!(sent(&format!("{{{inner}}}")), format!("{{{ours},{inner}}}"));
}

#[test]
fn a_model_name_is_escaped() {
    const MODEL: &str = "a\"b\\c\n/é";
    for body in ["{}", r#"{"model":1}"#, r#"{"model":"a"}"#] {
        let request = super::openai_chat()
            .request(RequestInput {
                source: Source::Native(&Bytes::from(body)),
                model: MODEL,
                dialect: Dialect::Openai,
                stored: false,
            })
            .unwrap();
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(sent["model"], MODEL);
    }
}

#[test]
fn more_than_one_choice_is_refused_by_name() {
    for n in [
        "2", "0", "-1", "1.5", "1e9", "\"1\"", "true", "[1]", "{}", "1e999",
    ] {
        assert_eq!(
            reason(format!(r#"{{"\u006e":{n}}}"#)),
            "native.json.n: must be 1 or absent: a generation is one choice"
        );
    }
    for n in ["1", "1.0", "10e-1", "null"] {
        assert!(sent(&format!(r#"{{"n":{n}}}"#)).ends_with(&format!(r#","n":{n}}}"#)));
    }
}

#[test]
fn a_repeated_name_is_refused_however_it_is_spelled() {
    for (json, name) in [
        (r#"{"model":"m","model":"m"}"#, "model"),
        (r#"{"model":"m","mod\u0065l":"x"}"#, "model"),
        (r#"{"stream":true,"a":1,"stream":true}"#, "stream"),
        (
            r#"{"stream_options":null,"stream_options":{}}"#,
            "stream_options",
        ),
        (r#"{"n":1,"n":1,"n":1}"#, "n"),
        (
            r#"{"stream_options":{"include_usage":true,"include_usage":false}}"#,
            "stream_options.include_usage",
        ),
    ] {
        let expected = format!("native.json.{name}: must not be repeated");
        assert_eq!(reason(json), expected);
    }
    assert!(sent(r#"{"x":1,"x":2}"#).ends_with(r#","x":1,"x":2}"#));
}

#[test]
fn stream_options_that_are_no_object_are_refused_by_name() {
    for options in ["5", "\"x\"", "[]", "true"] {
        assert_eq!(
            reason(format!(r#"{{"stream_options":{options}}}"#)),
            "native.json.stream_options: is not a JSON object"
        );
    }
}

#[test]
fn what_is_not_a_json_object_is_refused_and_not_quoted() {
    for (json, expected) in [
        (&b""[..], "is not a JSON object"),
        (b"  ", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b"\"secret\"", "is not a JSON object"),
        (b"[{}]", "is not a JSON object"),
        (b"\xef\xbb\xbf{}", "is not a JSON object"),
        (b"\x0b{}", "is not a JSON object"),
        (b"{\"a\":\"\xff\"}", "is not UTF-8 at byte 6"),
        (b"{\"a\":\"\xed\xa0\x80\"}", "is not UTF-8 at byte 6"),
        (b"{} {}", "is not valid JSON at line 1, column 4"),
        (b"{}\n\nsecret", "is not valid JSON at line 3, column 1"),
        (b"{\"secret\":1,}", "is not valid JSON at line 1, column 13"),
        (b"{\"a\":1", "is not valid JSON at line 1, column 6"),
        (b"{\"a\":\"\n\"}", "is not valid JSON at line 1, column 6"),
        (b"{\"a\":NaN}", "is not valid JSON at line 1, column 6"),
        (b"{\"a\":01}", "is not valid JSON at line 1, column 7"),
        (b"{'a':1}", "is not valid JSON at line 1, column 2"),
        (b"{\"a\":\"\\x\"}", "is not valid JSON at line 1, column 8"),
        (b"{\"\\ud800\":1}", "is not valid JSON at line 1, column 9"),
    ] {
        let shown = String::from_utf8_lossy(json);
        assert_eq!(reason(json), format!("native.json: {expected}"), "{shown}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(sent(&nested(127)).contains("[[["));
    let expected = "native.json: is nested more than 128 levels deep";
    assert_eq!(reason(nested(128)), expected);
    assert_eq!(reason(nested(1_000_000)), expected);
    assert_eq!(reason("{\"a\":".repeat(1_000_000)), expected);
    let siblings = format!("{{\"a\":[{}[]]}}", "[{}],".repeat(1000));
    assert!(sent(&siblings).contains("[{}],[{}]"));
    let brackets_in_a_string = format!(r#"{{"a":"\"{}"}}"#, "[".repeat(1000));
    assert!(sent(&brackets_in_a_string).contains("[[["));
}

/// JSON values of every kind, our names among the keys at every depth.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("m")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::Object),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        3 => any::<String>(),
        1 => prop::sample::select(vec!["model", "stream", "stream_options", "include_usage"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec((name, value), 0..6).prop_map(Map::from_iter)
}

/// An object spelled with `space` around every token and, where `escaped`, letters of names as `\u`.
fn spelled(front: &str, members: &[(String, String)], space: &str, escaped: bool) -> String {
    let members = members.iter().map(|(name, value)| {
        let mut name = Value::from(name.as_str()).to_string();
        if escaped && !name.contains('\\') {
            name = name.replace('e', "\\u0065").replace('m', "\\u006D");
        }
        format!("{space}{name}{space}:{space}{value}{space}")
    });
    let members = members.collect::<Vec<_>>().join(",");
    let comma = if members.is_empty() || front.is_empty() {
        ""
    } else {
        ","
    };
    format!("{space}{{{front}{comma}{members}{space}}}{space}")
}

/// `stream_options` with usage asked for, changed as little as can be.
fn with_usage(options: &str) -> String {
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(options) else {
        return r#"{"include_usage":true}"#.to_owned();
    };
    let asked = members.contains_key("include_usage");
    let members = members.iter().map(|(name, value)| match name.as_str() {
        "include_usage" => (name.clone(), "true".to_owned()),
        _ => (name.clone(), value.to_string()),
    });
    let front = if asked { "" } else { r#""include_usage":true"# };
    spelled(front, &members.collect::<Vec<_>>(), "", false)
}

proptest! {
    #[test]
    fn only_model_stream_and_usage_change(
        mut given in object(value()),
        space in "[ \t\r\n]{0,2}",
        escaped in any::<bool>(),
    ) {
        given.remove("n");
        if !matches!(given.get("stream_options"), None | Some(Value::Null | Value::Object(_))) {
            given.remove("stream_options");
        }
        let mut members = given
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect::<Vec<_>>();
        let sent = sent(&spelled("", &members, &space, escaped));

        let mut missing = vec![
            ("model", r#""model":"m""#),
            ("stream", r#""stream":true"#),
            ("stream_options", r#""stream_options":{"include_usage":true}"#),
        ];
        missing.retain(|(name, _)| !given.contains_key(*name));
        let front = missing.iter().map(|(_, member)| *member).collect::<Vec<_>>().join(",");
        for (name, value) in &mut members {
            match name.as_str() {
                "model" => *value = r#""m""#.to_owned(),
                "stream" => *value = "true".to_owned(),
                "stream_options" => *value = with_usage(value),
                _ => {}
            }
        }
        prop_assert_eq!(&sent, &spelled(&front, &members, &space, escaped));
        prop_assert_eq!(&super::native::sent(&sent), &sent, "a second pass changes nothing");
        prop_assert!(serde_json::from_str::<Value>(&sent).is_ok());
    }

    #[test]
    fn no_bytes_make_it_panic(json in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(request) = super::native(&Bytes::from(json)) {
            prop_assert!(serde_json::from_slice::<Value>(&request.body).is_ok());
        }
    }

    #[test]
    fn no_json_like_text_makes_it_panic(json in "[{}\\[\\]:,\"\\\\nmodelstru1 ]{0,40}") {
        if let Ok(request) = super::native(&Bytes::from(json)) {
            prop_assert!(serde_json::from_slice::<Value>(&request.body).is_ok());
        }
    }
}
