//! Anthropic's error types, in a stream (whose status was 200) and with their statuses.

use redrive::verdict::Class;

use super::{class, in_band, response};

fn error(kind: &str, message: &str) -> String {
    format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#
    )
}

#[test]
fn every_type_has_the_same_class_in_a_stream_as_with_its_status() {
    for (kind, status, expected, retryable) in [
        ("invalid_request_error", 400, Class::InvalidRequest, false),
        ("authentication_error", 401, Class::Auth, false),
        ("billing_error", 402, Class::QuotaExhausted, false),
        ("permission_error", 403, Class::Permission, false),
        ("not_found_error", 404, Class::NotFound, false),
        ("conflict_error", 409, Class::InvalidRequest, false),
        ("request_too_large", 413, Class::InvalidRequest, false),
        ("rate_limit_error", 429, Class::RateLimited, true),
        ("api_error", 500, Class::ProviderInternal, true),
        ("timeout_error", 504, Class::TimeoutProvider, true),
        ("overloaded_error", 529, Class::Overloaded, true),
    ] {
        let body = error(kind, "m");
        let told = in_band(&body);
        assert_eq!(
            (told.class, told.retryable),
            (expected, retryable),
            "{kind}"
        );
        let told = response(status, &[], &body);
        assert_eq!(
            (told.class, told.retryable),
            (expected, retryable),
            "{status}"
        );
    }
}

#[test]
fn a_type_that_is_not_known_is_not_retried() {
    let told = in_band(&error("novel_error", "m"));
    assert_eq!((told.class, told.retryable), (Class::Unclassified, false));
}

#[test]
fn what_a_text_tells_of_an_invalid_request() {
    for (message, expected) in [
        (
            "prompt is too long: 208310 tokens > 200000 maximum",
            Class::ContextOverflow,
        ),
        (
            "Your credit balance is too low to access the Anthropic API.",
            Class::QuotaExhausted,
        ),
        (
            "This request would exceed the spend limit of your workspace.",
            Class::QuotaExhausted,
        ),
        (
            "This model does not support assistant message prefill.",
            Class::InvalidRequest,
        ),
    ] {
        let body = error("invalid_request_error", message);
        assert_eq!(in_band(&body).class, expected, "{message}");
        assert_eq!(class(400, &body), expected, "{message}");
    }
}

#[test]
fn a_spend_limit_under_the_status_of_a_rate_limit_is_permanent() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    for told in [in_band(body), response(429, &[], body)] {
        assert_eq!((told.class, told.retryable), (Class::QuotaExhausted, false));
    }
}

#[test]
fn x_should_retry_narrows_an_overload_and_widens_nothing() {
    let overloaded = error("overloaded_error", "Overloaded");
    assert!(response(529, &[("x-should-retry", "true")], &overloaded).retryable);
    assert!(!response(529, &[("x-should-retry", "false")], &overloaded).retryable);
    let invalid = error("invalid_request_error", "m");
    assert!(!response(400, &[("x-should-retry", "true")], &invalid).retryable);
}
