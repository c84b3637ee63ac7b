//! The shapes of bodies, and what is shown of them.

use redrive::verdict::{Class, MAX_BODY_BYTES, MAX_MESSAGE_BYTES};

use super::{class, in_band, response};

#[test]
fn a_page_is_never_shown() {
    let page = "<!DOCTYPE html>\n<html><title>520: unknown error</title>Ray ID: 0</html>";
    let failure = response(520, &[("content-type", "text/html; charset=UTF-8")], page);
    assert_eq!(failure.class, Class::ProviderInternal);
    assert_eq!(failure.message, "HTTP 520 with an HTML body");
    assert_eq!(
        response(520, &[], page).message,
        "HTTP 520 with an HTML body"
    );
    let empty = response(413, &[("content-type", "text/html")], "");
    assert_eq!(empty.message, "HTTP 413 with an empty body");
}

#[test]
fn a_page_decides_nothing() {
    let page = "<html>prompt is too long; API key not valid; spend limit</html>";
    assert_eq!(class(400, page), Class::InvalidRequest);
}

#[test]
fn a_body_that_cannot_be_read_is_judged_by_its_status() {
    let bound = format!(
        r#"{{"error":{{"code":"insufficient_quota","m":"{}"}}}}"#,
        "x".repeat(MAX_BODY_BYTES)
    );
    let deep = "[".repeat(10_000);
    for body in [
        bound.as_str(),
        deep.as_str(),
        "{",
        "{}",
        "[]",
        "{\"error\":null}",
    ] {
        let failure = response(429, &[], body);
        assert_eq!(failure.class, Class::RateLimited);
        assert_eq!(failure.code, None);
        assert!(
            failure.message.starts_with("HTTP 429 with "),
            "{}",
            failure.message
        );
    }
}

#[test]
fn a_blank_message_is_replaced_by_what_is_known() {
    for body in [
        r#"{"error":{"message":" \u0007 "}}"#,
        r#"{"detail":"","error":""}"#,
    ] {
        let failure = response(429, &[], body);
        assert!(
            failure.message.starts_with("HTTP 429 with "),
            "{}",
            failure.message
        );
        let failure = in_band(body);
        assert_eq!(
            failure.message,
            "an error without text in a successful response"
        );
    }
    let body = r#"{"error":{"message":""},"message":"why"}"#;
    assert_eq!(response(429, &[], body).message, "why");
}

#[test]
fn plain_text_is_shown_as_the_provider_wrote_it() {
    let failure = response(502, &[("content-type", "text/plain")], " bad gateway\r\n");
    assert_eq!(failure.message, "bad gateway");
}

#[test]
fn each_shape_of_body_gives_its_message() {
    for body in [
        r#"{"error":{"message":"why","type":"t","param":null,"code":null}}"#,
        r#"{"type":"error","error":{"type":"t","message":"why"},"request_id":"r"}"#,
        r#"[{"error":{"code":500,"message":"why","status":"INTERNAL"}}]"#,
        r#"{"error":"why"}"#,
        r#"{"code":"c","error":"why"}"#,
        r#"{"object":"error","message":"why","type":"t","code":"3051","raw_status_code":500}"#,
        r#"{"code":500,"message":"why","type":"t"}"#,
        r#"{"detail":"why"}"#,
        r#"{"detail":[{"loc":["body"],"msg":"why"}]}"#,
        r#"{"object":"error","message":{"detail":[{"loc":["body"],"msg":"why"}]},"code":"x"}"#,
        r#"{"message":"why"}"#,
        r#"{"id":"i","message":"why"}"#,
        r#"{"error":["why"]}"#,
        r#"{"errors":[{"code":7003,"message":"why"}],"success":false}"#,
        r#""why""#,
        "\u{feff}{\"error\":\"why\"}",
    ] {
        let failure = response(500, &[], body);
        assert_eq!(
            (failure.message.as_str(), failure.class),
            ("why", Class::ProviderInternal),
            "{body}"
        );
    }
}

#[test]
fn the_message_is_short_and_without_credentials() {
    let body = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: sk-proj-Ab1.\n{}"}}}}"#,
        "é".repeat(600)
    );
    let failure = response(401, &[], &body);
    assert!(
        failure
            .message
            .starts_with("Incorrect API key provided: [redacted]. éé")
    );
    assert!(failure.message.len() <= MAX_MESSAGE_BYTES);
    let hostile = format!(
        r#"{{"error":{{"code":"sk-abcdefghijkl{}"}}}}"#,
        "x".repeat(9000)
    );
    assert_eq!(response(400, &[], &hostile).code, None);
}
