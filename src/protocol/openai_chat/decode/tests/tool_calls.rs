//! Tool calls in the fashion of every server.

use super::{super::tools::MAX_TOOL_CALLS, delta, stream, told};
use crate::protocol::{Decoder as _, Terminal};

/// The events of these `tool_calls` lists, one chunk each, then a finish.
fn calls(lists: &[&str]) -> Vec<String> {
    let mut body: String = lists
        .iter()
        .map(|list| delta(&format!("{{\"tool_calls\":[{list}]}}")))
        .collect();
    body += &stream(&[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#]);
    let mut told = told(&body);
    assert_eq!(told.pop().as_deref(), Some("finish ToolCalls tool_calls"));
    told
}

#[test]
fn fragments_are_keyed_by_index() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":1}"}}"#,
            r#"{"index":1,"id":"","function":{"name":null,"arguments":"2}"}}"#,
        ]),
        [
            "call 0 a f",
            "call 1 b g",
            r#"args 1 {"y":"#,
            r#"args 0 {"x":1}"#,
            "args 1 2}"
        ]
    );
}

#[test]
fn another_id_at_a_known_index_is_another_call() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":" "}}"#,
        ]),
        [
            "call 0 a f",
            "args 0 {}",
            "call 1 b f",
            "args 1 {}",
            "args 1  "
        ]
    );
}

#[test]
fn the_same_id_and_name_again_continue_the_call() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}"#,
        ]),
        ["call 0 a f", r#"args 0 {"x""#, "args 0 :1}"]
    );
}

#[test]
fn without_an_index_the_id_or_else_the_last_call_is_meant() {
    assert_eq!(
        calls(&[
            r#"{"id":"a","function":{"name":"f","arguments":"{"}},{"id":"b","function":{"name":"f","arguments":"["}}"#,
            r#"{"id":"a","function":{"name":"","arguments":"}"}}"#,
            r#"{"function":{"arguments":"]"}}"#,
        ]),
        [
            "call 0 a f",
            "args 0 {",
            "call 1 b f",
            "args 1 [",
            "args 0 }",
            "args 1 ]"
        ]
    );
}

#[test]
fn a_call_that_never_gets_an_id_is_given_one() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"function":{"name":"f","arguments":"{\"x\":"}}"#,
            r#"{"index":0,"function":{"arguments":"1}"}}"#,
            r#"{"index":1,"function":{"name":"g","arguments":""}}"#,
        ]),
        [
            "call 0 call_redrive_0 f",
            r#"args 0 {"x":"#,
            "args 0 1}",
            "alive",
            "call 1 call_redrive_1 g"
        ]
    );
}

#[test]
fn whole_calls_without_id_and_index_stay_apart() {
    assert_eq!(
        calls(&[
            r#"{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"[]"}}"#,
            r#"{"function":{"name":"g","arguments":"{}"}}"#,
        ]),
        [
            "call 0 call_redrive_0 f",
            "args 0 {}",
            "call 1 call_redrive_1 f",
            "args 1 []",
            "call 2 call_redrive_2 g",
            "args 2 {}"
        ]
    );
}

#[test]
fn an_id_that_comes_before_the_arguments_is_kept() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"function":{"name":"f"}}"#,
            r#"{"index":0,"id":"a"}"#,
            r#"{"index":0,"function":{"arguments":"{}"}}"#,
        ]),
        ["alive", "call 0 a f", "args 0 {}"]
    );
}

#[test]
fn an_id_that_comes_after_arguments_does_not_split_the_call() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":"}"}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":" "}}"#,
        ]),
        [
            "call 0 call_redrive_0 f",
            "args 0 {",
            "args 0 }",
            "args 0  "
        ]
    );
}

#[test]
fn arguments_wait_for_a_late_name() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"}"}}"#,
            r#"{"index":0,"function":{"name":"f"}}"#,
            r#"{"index":0,"function":{"arguments":" "}}"#,
        ]),
        ["alive", "alive", "call 0 a f", "args 0 {}", "args 0  "]
    );
}

#[test]
fn a_call_that_never_gets_a_name_is_told_at_the_end() {
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#]),
        ["alive", "call 0 a ", "args 0 {}"]
    );
}

#[test]
fn a_named_call_without_id_and_arguments_begins_before_the_next() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"function":{"name":"f"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g"}}"#,
        ]),
        ["alive", "call 0 call_redrive_0 f", "call 1 b g"]
    );
}

#[test]
fn arguments_are_passed_on_as_they_stand() {
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":{"n": 9223372036854775807}}}"#
        ]),
        ["call 0 a f", r#"args 0 {"n": 9223372036854775807}"#]
    );
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":null}}"#]),
        ["call 0 a f"]
    );
}

#[test]
fn the_old_function_call_is_a_tool_call() {
    let body = [
        delta(r#"{"function_call":{"name":"f","arguments":""}}"#),
        delta(r#"{"function_call":{"arguments":"{"}}"#),
        delta(r#"{"function_call":{"arguments":"}"}}"#),
    ];
    assert_eq!(
        told(&body.concat()),
        ["alive", "call 0 call_redrive_0 f", "args 0 {", "args 0 }"]
    );
}

#[test]
fn too_many_calls_are_refused() {
    let body: String = (0..=MAX_TOOL_CALLS)
        .map(|n| {
            delta(&format!(
                r#"{{"tool_calls":[{{"index":{n},"id":"{n}","function":{{"name":"f"}}}}]}}"#
            ))
        })
        .collect();
    let told = told(&body);
    assert_eq!(told.len(), MAX_TOOL_CALLS + 1);
    assert_eq!(
        told.last().map(String::as_str),
        Some("undecodable TooLarge")
    );
}

#[test]
fn arguments_that_wait_are_bounded() {
    let piece = "x".repeat(1 << 20);
    let body = delta(&format!(
        r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"arguments":"{piece}"}}}}]}}"#
    ));
    let mut decoder = super::super::Decoder::new(Terminal::FinishReason);
    let mut told = Vec::new();
    for _ in 0..20 {
        decoder.feed(body.as_bytes(), &mut |event| {
            told.push(super::words(&event))
        });
    }
    assert_eq!(told.len(), 16);
    assert_eq!(
        told.last().map(String::as_str),
        Some("undecodable TooLarge")
    );
}
