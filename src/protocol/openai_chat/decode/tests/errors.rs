//! Errors inside a successful response, and bytes that are no stream.

use super::{delta, stream, told, told_with};
use crate::protocol::Terminal;

#[test]
fn an_error_object_ends_the_stream_wherever_it_stands() {
    for chunk in [
        r#"{"error":{"message":"m","type":"weird_vendor_error"}}"#,
        r#"{"error":"m"}"#,
        r#"{"id":"c1","choices":[],"error":{"code":502}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"error":{"code":502}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"x"},"error":{"code":502}}]}"#,
        r#"{"choices":"none","error":{"code":502}}"#,
        r#"{"choices":[],"x_groq":{"id":"r","error":"over_capacity"}}"#,
        r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
    ] {
        let body = stream(&[chunk, "[DONE]"]);
        assert_eq!(told(&body), [format!("error {chunk}")]);
    }
}

#[test]
fn an_error_after_the_finish_is_told() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":null}],"error":{"code":400}}"#,
        "[DONE]",
    ]);
    let told = told(&body);
    assert_eq!(told[0], "finish Length length");
    assert!(told[1].starts_with("error "), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[test]
fn an_error_that_is_empty_is_none() {
    for empty in ["null", "false", "\"\"", "{}", "{ }", "[]", "0"] {
        let body = stream(&[&format!(r#"{{"choices":[],"error":{empty}}}"#)]);
        assert_eq!(told(&body), ["alive"], "{empty}");
    }
}

#[test]
fn an_error_event_is_an_error_whatever_its_data() {
    assert_eq!(
        told("event: error\ndata: {\"a\":1}\n\n"),
        ["error {\"a\":1}"]
    );
    assert_eq!(told("event: error\ndata: gone\n\n"), ["error gone"]);
    assert_eq!(told("event: error\n\n"), ["error "]);
}

#[test]
fn an_error_in_an_unknown_field_is_an_error() {
    assert_eq!(told("error: {\"code\":500}\n\n"), ["error {\"code\":500}"]);
    assert_eq!(
        told("fault: {\"message\":\"m\"}\n\n"),
        ["error {\"message\":\"m\"}"]
    );
    assert_eq!(
        told("meta: {\"colour\":\"red\"}\n\ndata: [DONE]\n\n"),
        ["end false"]
    );
}

#[test]
fn an_error_body_outside_the_events_is_an_error() {
    for body in [
        r#"{"error":{"message":"m"}}"#,
        r#"{"error":"m"}"#,
        r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT"}}]"#,
        r#"{"detail":"m"}"#,
        r#"{"message":"m","code":1}"#,
        r#"{"object":"error","message":"m"}"#,
    ] {
        assert_eq!(told(body), [format!("error {body}")]);
        assert_eq!(
            told_with(Terminal::FinishReason, body.as_bytes(), false),
            [""; 0]
        );
    }
    let after_output = format!("{}{{\"error\":1}}\n", delta(r#"{"content":"a"}"#));
    assert_eq!(told(&after_output), ["text a", "error {\"error\":1}"]);
}

#[test]
fn an_answer_that_was_not_streamed_is_refused() {
    let answer = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    assert_eq!(told(answer), ["undecodable WholeCompletion"]);
    assert_eq!(
        told(&format!("data: {answer}\n\n")),
        ["undecodable WholeCompletion"]
    );
}

#[test]
fn a_cumulative_message_beside_deltas_is_no_whole_answer() {
    let body = stream(&[
        r#"{"object":"chat.completion","choices":[{"index":0,"message":{"content":"Hi"},"delta":{"content":"Hi"}}]}"#,
        r#"{"object":"chat.completion.done","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(told(&body), ["text Hi", "finish Stop stop"]);
}

#[test]
fn other_json_and_text_is_no_stream() {
    for body in [
        r#"{"status":"ok"}"#,
        "[]",
        "<html></html>",
        "upstream connect error",
    ] {
        assert_eq!(told(body), ["undecodable NotAStream"], "{body}");
    }
}

#[test]
fn data_that_is_not_a_chunk_is_refused() {
    for data in [
        "{\"choices\":",
        "nonsense",
        "\"text\"",
        "7",
        "null",
        "[]",
        r#"{"choices":{}}"#,
        r#"{"choices":"x"}"#,
        r#"{"choices":[7]}"#,
        r#"{"choices":[{"delta":"x"}]}"#,
        r#"{"choices":[{"delta":{"content":7}}]}"#,
        r#"{"choices":[{"delta":{"content":["x"]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":{}}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":7}}]}}]}"#,
        "{\"choices\":[]} trailing",
        "{\"choices\":[{\"delta\":{\"content\":\"a\\x\"}}]}",
    ] {
        let body = format!("data: {data}\n\n{}", delta(r#"{"content":"late"}"#));
        assert_eq!(told(&body), ["undecodable Json"], "{data}");
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    let mut body = delta(r#"{"content":"a"}"#).into_bytes();
    body.extend(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}\n\n");
    assert_eq!(
        told_with(Terminal::FinishReason, &body, true),
        ["text a", "undecodable Utf8"]
    );
}

#[test]
fn a_truncated_last_event_is_not_told() {
    let body = format!(
        "{}data: {{\"choices\":[{{\"finish_reason\":\"stop\"}}]",
        delta(r#"{"content":"a"}"#)
    );
    assert_eq!(told(&body), ["text a"]);
}

#[test]
fn an_empty_body_tells_nothing() {
    assert_eq!(told(""), [""; 0]);
    assert_eq!(told("\r\n  \n"), [""; 0]);
}
