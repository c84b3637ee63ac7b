//! The whole table of signals, one row each, and the shapes of error bodies, whichever provider they
//! come from. Bodies are synthetic.

use redrive::verdict::{
    Class,
    class::{label, transient},
    inband,
};

use super::{in_band, response};

/// Error responses, in the order of the table that providers are read by.
const RESPONSES: &str = include_str!("responses.tsv");

/// Errors inside a successful response.
const IN_BAND: &str = include_str!("in_band.tsv");

/// The rows of a table, in `N` columns; the last may be empty.
fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let columns: Vec<_> = row.split('\t').collect();
        columns.try_into().expect(row)
    })
}

#[test]
fn every_signal_in_a_response_has_its_class() {
    for [status, name, class, body] in rows(RESPONSES) {
        let headers: &[_] = match name {
            "-" => &[],
            name => &[("x-amzn-errortype", name)],
        };
        let failure = response(status.parse().unwrap(), headers, body);
        assert_eq!(label(failure.class), class, "{status} {name} {body}");
        assert_eq!(
            failure.retryable,
            transient(failure.class),
            "{status} {body}"
        );
    }
}

#[test]
fn every_signal_in_a_stream_has_its_class() {
    for [class, json] in rows(IN_BAND) {
        let failure = in_band(json);
        assert_eq!(label(failure.class), class, "{json}");
        assert_eq!(failure.retryable, transient(failure.class), "{json}");
    }
}

#[test]
fn an_error_may_be_written_in_many_lines() {
    let json = "[{\n  \"error\": {\n    \"code\": 500,\n    \"status\": \"INTERNAL\"\n  }\n}\n]";
    assert_eq!(in_band(json).class, Class::ProviderInternal);
}

#[test]
fn a_blocked_prompt_is_told_by_its_reason() {
    let failure =
        in_band(r#"{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"no"}}"#);
    assert_eq!(
        (failure.code.as_deref(), failure.message.as_str()),
        (Some("SAFETY"), "no")
    );
    for json in [
        r#"{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}"#,
        r#"{"promptFeedback":{"safetyRatings":[]}}"#,
    ] {
        assert_eq!(in_band(json).class, Class::Unclassified, "{json}");
    }
}

#[test]
fn every_finish_reason_that_is_a_failure_has_its_class() {
    use Class::*;
    for (native, expected) in [
        ("error", MalformedOutput),
        ("MALFORMED_FUNCTION_CALL", MalformedOutput),
        ("UNEXPECTED_TOOL_CALL", MalformedOutput),
        ("TOO_MANY_TOOL_CALLS", MalformedOutput),
        ("malformed_tool_use", MalformedOutput),
        ("malformed_model_output", MalformedOutput),
        ("abort", ProviderInternal),
        ("network_error", ProviderInternal),
        ("insufficient_system_resource", Overloaded),
        ("timeout", TimeoutProvider),
        ("REASON_TIME_LIMIT", TimeoutProvider),
    ] {
        let failure = inband::bad_finish(native);
        assert_eq!(failure.class, expected, "{native}");
        assert_eq!(failure.retryable, transient(expected), "{native}");
    }
}

#[test]
fn every_shape_of_an_error_body_is_read() {
    // Body, and the code and the text that are in it.
    for (body, code, text) in [
        (
            r#"{"error":{"message":"why","type":"t","param":null,"code":"c"}}"#,
            Some("c"),
            "why",
        ),
        (
            r#"{"type":"error","error":{"type":"t","message":"why"},"request_id":"r"}"#,
            Some("t"),
            "why",
        ),
        (
            r#"{"error":{"code":400,"message":"why","status":"S","details":[]}}"#,
            Some("S"),
            "why",
        ),
        (
            r#"[{"error":{"code":400,"message":"why","status":"S"}}]"#,
            Some("S"),
            "why",
        ),
        (
            r#"{"error":{"code":400,"message":"why","metadata":{"provider_name":"p"}}}"#,
            Some("400"),
            "why",
        ),
        (r#"{"error":"why"}"#, None, "why"),
        (r#"{"code":"c","error":"why"}"#, Some("c"), "why"),
        (
            r#"{"object":"error","message":"why","type":"t","param":null,"code":"3051","raw_status_code":400}"#,
            Some("3051"),
            "why",
        ),
        (
            r#"{"code":400,"message":"why","type":"t"}"#,
            Some("t"),
            "why",
        ),
        (r#"{"detail":"why"}"#, None, "why"),
        (
            r#"{"detail":[{"loc":["body"],"msg":"why","type":"x"}]}"#,
            None,
            "why",
        ),
        (r#"{"message":"why"}"#, None, "why"),
        (r#"{"id":"i","message":"why"}"#, None, "why"),
        (
            r#"{"id":"i","message":"why","error_type":"t"}"#,
            Some("t"),
            "why",
        ),
        (r#"{"error":["why"]}"#, None, "why"),
        ("why", None, "why"),
        ("", None, "HTTP 400 with an empty body"),
        (
            "<!doctype html><p>why</p>",
            None,
            "HTTP 400 with an HTML body",
        ),
    ] {
        let failure = response(400, &[], body);
        assert_eq!(
            (failure.code.as_deref(), failure.message.as_str()),
            (code, text),
            "{body}"
        );
        assert_eq!(failure.class, Class::InvalidRequest, "{body}");
    }
}
