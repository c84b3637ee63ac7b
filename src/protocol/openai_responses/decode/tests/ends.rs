//! How a response ends: finished, cut, failed, or not a stream at all.

use serde_json::json;

use super::*;
use crate::protocol::Terminal;

fn over(name: &str, response: Value) -> Vec<String> {
    output(&[json!({"type": name, "response": response})])
}

#[test]
fn a_completed_response_stopped_and_tells_its_tokens() {
    let usage = json!({
        "input_tokens": 30, "input_tokens_details": {"cached_tokens": 8},
        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 50,
    });
    assert_eq!(
        over(
            "response.completed",
            json!({"status": "completed", "usage": usage, "output": []})
        ),
        [
            "usage 30 20 cached 8 0 reasoning 5",
            "finish Stop completed",
            "over false"
        ]
    );
}

#[test]
fn an_incomplete_response_is_a_finish_with_a_reason() {
    for (reason, word) in [
        ("max_output_tokens", "Length"),
        ("content_filter", "ContentFilter"),
        ("boredom", "Other"),
    ] {
        let told = over(
            "response.incomplete",
            json!({"status": "incomplete", "incomplete_details": {"reason": reason}}),
        );
        assert_eq!(
            told,
            [format!("finish {word} {reason}").as_str(), "over false"]
        );
    }
    let told = over("response.incomplete", json!({}));
    assert_eq!(told[0], "finish Length incomplete");
}

#[test]
fn the_status_of_the_response_counts_and_an_error_in_it_above_all() {
    let incomplete =
        json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}});
    assert_eq!(
        over("response.done", incomplete)[0],
        "finish ContentFilter content_filter"
    );
    assert_eq!(
        over("response.done", json!({"status": "completed"}))[0],
        "finish Stop completed"
    );
    for name in ["response.completed", "response.cancelled"] {
        let told = over(name, json!({"status": "cancelled"}));
        assert_eq!(told, ["bad finish cancelled"]);
    }
    let failed = json!({"status": "completed", "error": {"code": "server_error"}});
    assert!(over("response.completed", failed)[0].starts_with("error "));
}

#[test]
fn a_repeated_member_hides_no_error() {
    let error = r#""error":{"code":"server_error"}"#;
    for response in [
        format!(r#"{{"id":"a","id":"b","status":"completed",{error}}}"#),
        format!(r#"{{"status":"completed","status":"completed","output":[],{error}}}"#),
    ] {
        let event = format!(r#"{{"type":"response.completed","response":{response}}}"#);
        let told = told(&format!("data: {event}\n\n"));
        let last = told.last().unwrap();
        assert_eq!(*last, format!("error {event}"));
    }
}

#[test]
fn a_failure_is_told_once_as_it_came() {
    let error =
        json!({"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded"}});
    let failed =
        json!({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}});
    let told = output(&[created(), error, failed.clone()]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[1].contains("\"code\":\"rate_limit_exceeded\""),
        "{told:?}"
    );

    let told = output(&[created(), failed]);
    assert!(told[1].contains("response.failed"), "{told:?}");

    let flat = output(&[json!({"type": "error", "code": "server_error", "message": "m"})]);
    assert!(flat[0].contains("\"message\":\"m\""), "{flat:?}");
}

#[test]
fn a_failed_response_tells_its_tokens_and_of_a_large_one_the_error_alone() {
    let long = "x".repeat(300 << 10);
    let response = json!({"error": {"code": "server_error"}, "instructions": long,
        "usage": {"input_tokens": 3, "output_tokens": 1}});
    let told = over("response.failed", response);
    let error = r#"error {"code":"server_error"}"#;
    assert_eq!(told, ["usage 3 1 cached 0 0 reasoning 0", error]);
}

#[test]
fn an_error_of_any_other_form_is_told_too() {
    for body in [
        "data: {\"error\":{\"message\":\"m\"}}\n\n",
        "event: error\ndata: overloaded\n\n",
        "error: {\"code\":500}\n\n",
        "{\"error\":{\"message\":\"m\"}}",
        "[{\"error\":{\"message\":\"m\"}}]",
        "{\"object\":\"error\",\"code\":1}",
        "{\"detail\":\"Not Found\"}",
        "{\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"output\":[]}",
    ] {
        let told = told(body);
        assert_eq!(told.len(), 1, "{body}: {told:?}");
        assert!(told[0].starts_with("error "), "{body}: {told:?}");
    }
}

#[test]
fn a_whole_response_is_told_from_what_is_no_response() {
    for (body, reason) in [
        (
            "{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"error\":null,\"output\":[]}",
            "WholeCompletion",
        ),
        ("{\"choices\":[{\"message\":{}}]}", "WholeCompletion"),
        ("{\"hello\":1}", "NotAStream"),
        ("<html></html>\n\n", "NotAStream"),
        ("data: [1]\n\n", "Json"),
        ("data: {\"type\":\n\n", "Json"),
        (
            "data: {\"type\":\"response.output_item.added\"}\n\n",
            "Json",
        ),
    ] {
        assert_eq!(told(body), [format!("undecodable {reason}")], "{body}");
    }
    let mut decoder = Decoder::new(DecoderOptions::default());
    let mut events = Vec::new();
    decoder.feed(b"data: {\"a\":\"\xff\"}\n\n", &mut |event| {
        events.push(words(&event))
    });
    assert_eq!(events, ["undecodable Utf8"]);
}

#[test]
fn done_after_the_end_is_passed_over_and_alone_completes_only_where_it_may() {
    let body = stream(&[text(0, 0, "a"), completed(&json!([]))]) + "data: [DONE]\n\n";
    let told = told(&body);
    assert_eq!(told[2..], ["finish Stop completed", "over false"]);

    let alone = stream(&[text(0, 0, "a")]) + "data: [DONE]\n\n";
    for (terminal, completes) in [
        (Terminal::FinishReason, false),
        (Terminal::DoneSentinel, true),
    ] {
        let options = DecoderOptions {
            terminal,
            ..DecoderOptions::default()
        };
        let told = told_with(options, &alone);
        assert_eq!(told[2], format!("over {completes}"));
    }
}

#[test]
fn a_body_that_ends_without_an_end_tells_none() {
    assert_eq!(
        told(&stream(&[text(0, 0, "a")])),
        ["block 0.0 text", "text a"]
    );
}
