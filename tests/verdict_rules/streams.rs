//! Errors inside a successful response.

use std::time::Duration;

use redrive::verdict::{Class, MAX_BODY_BYTES, Origin, Stage, class::transient, inband};

use super::{in_band, response};

#[test]
fn a_listed_code_in_a_stream_has_its_class() {
    let table = [
        (
            r#"{"error":{"message":"m","type":"server_error","param":null,"code":null}}"#,
            Class::ProviderInternal,
        ),
        (
            r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"m"}}"#,
            Class::Overloaded,
        ),
        (
            r#"{"type":"error","error":{"type":"service_unavailable_error","code":"server_is_overloaded"}}"#,
            Class::Overloaded,
        ),
        (
            r#"{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Class::QuotaExhausted,
        ),
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"m","sequence_number":2}"#,
            Class::RateLimited,
        ),
        (
            r#"{"error":{"code":"tool_use_failed","type":"invalid_request_error","status_code":400}}"#,
            Class::MalformedOutput,
        ),
        (
            r#"{"id":"c1","choices":[],"error":{"code":502,"metadata":{"error_type":"provider_unavailable"}}}"#,
            Class::ProviderInternal,
        ),
        (
            r#"{"error":{"code":503,"metadata":{"error_type":"provider_overloaded"}}}"#,
            Class::Overloaded,
        ),
        (
            r#"{"response":{"error":{"code":"server_error","message":"m"},"error_type":"authentication"}}"#,
            Class::Auth,
        ),
        (
            r#"{"error":{"object":"error","message":"m","type":"InternalServerError","code":500}}"#,
            Class::ProviderInternal,
        ),
        (
            r#"{"error":{"object":"error","message":"m","type":"BadRequestError","code":400}}"#,
            Class::InvalidRequest,
        ),
        (
            r#"{"choices":[{"finish_reason":"error","error":{"code":502,"message":"m"}}]}"#,
            Class::ProviderInternal,
        ),
    ];
    for (json, expected) in table {
        let failure = in_band(json);
        assert_eq!(failure.class, expected, "{json}");
        assert_eq!(failure.retryable, transient(expected), "{json}");
        assert_eq!(
            (failure.origin, failure.stage),
            (Origin::Provider, Stage::Stream)
        );
        assert_eq!(failure.http_status, None, "{json}");
    }
}

#[test]
fn every_code_of_a_failed_response_has_its_class() {
    let table = [
        ("server_error", Class::ProviderInternal),
        ("rate_limit_exceeded", Class::RateLimited),
        ("slow_down", Class::RateLimited),
        ("server_is_overloaded", Class::Overloaded),
        ("insufficient_quota", Class::QuotaExhausted),
        ("usage_limit_reached", Class::QuotaExhausted),
        ("context_length_exceeded", Class::ContextOverflow),
        ("invalid_prompt", Class::InvalidRequest),
        ("bio_policy", Class::ContentFiltered),
        ("cyber_policy", Class::ContentFiltered),
        ("vector_store_timeout", Class::TimeoutProvider),
        ("data_residency_mismatch", Class::Permission),
        ("image_content_policy_violation", Class::ContentFiltered),
        ("invalid_image", Class::InvalidRequest),
        ("invalid_image_format", Class::InvalidRequest),
        ("invalid_base64_image", Class::InvalidRequest),
        ("invalid_image_url", Class::InvalidRequest),
        ("invalid_image_mode", Class::InvalidRequest),
        ("image_too_large", Class::InvalidRequest),
        ("image_too_small", Class::InvalidRequest),
        ("image_parse_error", Class::InvalidRequest),
        ("image_file_too_large", Class::InvalidRequest),
        ("image_file_not_found", Class::InvalidRequest),
        ("unsupported_image_media_type", Class::InvalidRequest),
        ("empty_image_file", Class::InvalidRequest),
        ("failed_to_download_image", Class::InvalidRequest),
        ("a_code_of_tomorrow", Class::Unclassified),
    ];
    for (code, expected) in table {
        let error = format!(r#"{{"code":"{code}","message":"m"}}"#);
        for json in [
            format!(
                r#"{{"type":"response.failed","response":{{"status":"failed","error":{error}}}}}"#
            ),
            format!(r#"{{"type":"error","error":{error},"sequence_number":2}}"#),
            format!(r#"{{"type":"error","code":"{code}","message":"m","sequence_number":2}}"#),
        ] {
            let failure = in_band(&json);
            assert_eq!(failure.class, expected, "{json}");
            assert_eq!(failure.retryable, transient(expected), "{json}");
        }
    }
}

#[test]
fn a_numeric_code_in_a_stream_is_judged_as_that_status_and_kept_as_the_code() {
    let failure = in_band(r#"{"error":{"message":"TimeoutError","type":"X","code":504}}"#);
    assert_eq!(failure.class, Class::TimeoutProvider);
    let failure = in_band(r#"{"error":{"code":"429","message":"m"}}"#);
    assert_eq!(
        (failure.class, failure.code.as_deref()),
        (Class::RateLimited, Some("429"))
    );
    let failure = in_band(r#"{"error":{"code":502,"message":"upstream gone"}}"#);
    assert_eq!(
        (failure.class, failure.code.as_deref()),
        (Class::ProviderInternal, Some("502"))
    );
    assert_eq!(failure.http_status, None);
    for code in ["200", "302", "600", "1302", "-1", "4.5"] {
        let failure = in_band(&format!(r#"{{"error":{{"code":{code},"message":"m"}}}}"#));
        assert_eq!(
            (failure.class, failure.retryable),
            (Class::Unclassified, false),
            "{code}"
        );
    }
}

#[test]
fn an_unlisted_code_in_a_stream_is_unclassified_and_final() {
    for json in [
        r#"{"error":{"message":"something odd","type":"weird_vendor_error"}}"#,
        r#"{"error":"an error was encountered while running the model"}"#,
        r#"{"detail":"failed to decode","error":{"message":"failed to decode, try again"}}"#,
        r#"{"error":true}"#,
        r#"{"error":{}}"#,
        "not json",
        "",
    ] {
        let failure = in_band(json);
        assert_eq!(
            (failure.class, failure.retryable),
            (Class::Unclassified, false),
            "{json}"
        );
        assert!(!failure.message.is_empty());
    }
}

#[test]
fn the_rejected_output_in_an_error_may_be_long() {
    let output = "x".repeat(MAX_BODY_BYTES);
    let body =
        format!(r#"{{"error":{{"code":"tool_use_failed","failed_generation":"{output}"}}}}"#);
    assert_eq!(in_band(&body).class, Class::MalformedOutput);
    let endless = body.replace('x', "xxxxxxxxxxxxxxxxx");
    assert_eq!(in_band(&endless).class, Class::Unclassified);
}

#[test]
fn the_reason_groq_gives_for_an_early_end_is_shown() {
    let failure = in_band(r#"{"choices":[],"x_groq":{"id":"r","error":"stopped early"}}"#);
    assert_eq!(failure.message, "stopped early");
    assert_eq!(
        (failure.class, failure.retryable),
        (Class::Unclassified, false)
    );
}

#[test]
fn a_wait_in_a_stream_comes_from_the_error_object_itself() {
    let failure = in_band(r#"{"error":{"code":429,"availability":{"retry_after":7}}}"#);
    assert_eq!(failure.wait, Some(Duration::from_secs(7)));
}

#[test]
fn an_error_object_in_a_200_is_judged_by_its_code_and_its_headers_are_no_wait() {
    let body = r#"{"error":{"code":"content_filter","status":400,"message":"m"}}"#;
    let failure = response(
        200,
        &[("retry-after", "24"), ("x-should-retry", "true")],
        body,
    );
    assert_eq!(failure.class, Class::ContentFiltered);
    assert_eq!(
        (failure.stage, failure.http_status),
        (Stage::Response, Some(200))
    );
    assert_eq!(failure.wait, None);
    let body = r#"{"error":{"code":429,"availability":{"retry_after":7}}}"#;
    let failure = response(200, &[("retry-after", "24")], body);
    assert_eq!(failure.wait, Some(Duration::from_secs(7)));
}

#[test]
fn a_finish_reason_that_is_a_failure_has_its_class() {
    let table = [
        ("error", Class::MalformedOutput),
        ("ERROR", Class::MalformedOutput),
        ("MALFORMED_FUNCTION_CALL", Class::MalformedOutput),
        ("abort", Class::ProviderInternal),
        ("insufficient_system_resource", Class::Overloaded),
        ("who_knows", Class::Unclassified),
    ];
    for (native, expected) in table {
        let failure = inband::bad_finish(native);
        assert_eq!(failure.class, expected, "{native:?}");
        assert_eq!(failure.code.as_deref(), Some(native));
        assert_eq!(
            (failure.origin, failure.stage),
            (Origin::Provider, Stage::Stream)
        );
        assert_eq!(failure.retryable, transient(expected));
    }
}

#[test]
fn an_empty_finish_reason_is_unclassified() {
    let failure = inband::bad_finish("");
    assert_eq!((failure.class, failure.code), (Class::Unclassified, None));
}
