//! What codes and types say, against the status and against each other.

use std::time::Duration;

use redrive::verdict::Class;

use super::{class, response};

#[test]
fn a_code_outranks_the_status() {
    let table = [
        (
            429,
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Class::QuotaExhausted,
        ),
        (
            429,
            r#"{"error":{"type":"insufficient_quota","code":"rate_limit_exceeded"}}"#,
            Class::QuotaExhausted,
        ),
        (
            400,
            r#"{"error":{"message":"insufficient quota","code":"insufficientquota"}}"#,
            Class::QuotaExhausted,
        ),
        (
            429,
            r#"{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted"}}"#,
            Class::QuotaExhausted,
        ),
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            Class::QuotaExhausted,
        ),
        (
            429,
            r#"{"error":{"type":"rate_limit_error","code":"slow_down"}}"#,
            Class::RateLimited,
        ),
        (
            429,
            r#"{"error":{"code":"429","message":"m"}}"#,
            Class::RateLimited,
        ),
        (
            503,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            Class::Overloaded,
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            Class::Overloaded,
        ),
        (
            429,
            r#"{"error":"Model is overloaded","error_type":"overloaded"}"#,
            Class::Overloaded,
        ),
        (
            500,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            Class::ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"type":"context_window_exceeded","code":400,"message":"request over the limit"}}"#,
            Class::ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            Class::ContentFiltered,
        ),
        (
            403,
            r#"{"error":{"message":"m","code":"model_not_found"}}"#,
            Class::NotFound,
        ),
        (
            501,
            r#"{"error":{"code":501,"type":"not_supported_error"}}"#,
            Class::InvalidRequest,
        ),
        (
            424,
            r#"{"message":"m","__type":"ModelErrorException"}"#,
            Class::ProviderInternal,
        ),
        (
            504,
            r#"{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}"#,
            Class::TimeoutProvider,
        ),
    ];
    for (status, body, expected) in table {
        assert_eq!(class(status, body), expected, "{status} {body}");
    }
}

#[test]
fn the_error_type_in_the_header_of_aws_is_a_code() {
    let table = [
        (
            403,
            "ExpiredTokenException:http://internal.amazon.com/",
            Class::Auth,
        ),
        (403, "AccessDeniedException", Class::Permission),
        (429, "ThrottlingException:", Class::RateLimited),
        (
            429,
            "com.amazon.bedrock#ModelNotReadyException",
            Class::Overloaded,
        ),
        (503, "ServiceUnavailableException", Class::Overloaded),
        (408, "ModelTimeoutException", Class::TimeoutProvider),
        (400, "ValidationException", Class::InvalidRequest),
    ];
    for (status, name, expected) in table {
        let failure = response(status, &[("x-amzn-errortype", name)], r#"{"message":"m"}"#);
        assert_eq!(failure.class, expected, "{name}");
    }
}

#[test]
fn a_throttled_bedrock_call_is_no_overflow_whatever_it_says_about_tokens() {
    let body = r#"{"message":"Too many tokens, please wait before trying again."}"#;
    let failure = response(429, &[("x-amzn-errortype", "ThrottlingException")], body);
    assert_eq!(failure.class, Class::RateLimited);
}

#[test]
fn a_generic_type_yields_to_a_status_of_one_kind() {
    let generic = r#"{"error":{"message":"m","type":"invalid_request_error","code":null}}"#;
    assert_eq!(class(400, generic), Class::InvalidRequest);
    assert_eq!(class(401, generic), Class::Auth);
    assert_eq!(class(403, generic), Class::Permission);
    assert_eq!(class(404, generic), Class::NotFound);
    assert_eq!(class(429, generic), Class::RateLimited);
    let generic = r#"{"error":{"message":"Unauthorized","type":"api_error"}}"#;
    assert_eq!(class(401, generic), Class::Auth);
    assert_eq!(class(503, generic), Class::ProviderInternal);
    assert_eq!(class(504, generic), Class::TimeoutProvider);
    assert_eq!(class(529, generic), Class::Overloaded);
}

#[test]
fn a_generic_type_outranks_a_bare_status() {
    assert_eq!(
        class(500, r#"{"error":{"type":"invalid_request_error"}}"#),
        Class::InvalidRequest
    );
    assert_eq!(
        class(400, r#"{"error":{"type":"server_error"}}"#),
        Class::ProviderInternal
    );
}

#[test]
fn an_unlisted_code_leaves_the_decision_to_the_status() {
    let body = r#"{"error":{"message":"m","type":"llm_error","code":"E42"}}"#;
    assert_eq!(class(500, body), Class::ProviderInternal);
    assert_eq!(class(400, body), Class::InvalidRequest);
    assert_eq!(response(500, &[], body).code.as_deref(), Some("E42"));
}

#[test]
fn the_code_shown_is_the_most_specific_one_as_it_was_spelled() {
    let shown = |body| response(400, &[], body).code;
    let openai = r#"{"error":{"type":"invalid_request_error","code":"unsupported_value"}}"#;
    assert_eq!(shown(openai).as_deref(), Some("unsupported_value"));
    let deepseek = r#"{"error":{"type":"authentication_error","code":"invalid_request_error"}}"#;
    assert_eq!(shown(deepseek).as_deref(), Some("authentication_error"));
    let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error"}}"#;
    assert_eq!(shown(anthropic).as_deref(), Some("invalid_request_error"));
    assert_eq!(
        shown(r#"{"error":{"code":400,"message":"m"}}"#).as_deref(),
        Some("400")
    );
    assert_eq!(shown(r#"{"message":"m"}"#), None);
    assert_eq!(shown(r#"{"type":"error","message":"m"}"#), None);
}

#[test]
fn a_daily_quota_is_exhausted_and_a_quota_of_a_minute_is_a_rate_limit() {
    let violated = |id: &str, value: &str| {
        format!(
            r#"{{"error":{{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[
            {{"violations":[{{"quotaId":"{id}","quotaValue":"{value}"}}]}},
            {{"retryDelay":"1.837906927s"}}]}}}}"#
        )
    };
    let minute = violated("GenerateRequestsPerMinutePerProject", "15");
    assert_eq!(class(429, &minute), Class::RateLimited);
    let wait = response(429, &[], &minute).wait;
    assert_eq!(wait, Some(Duration::new(1, 837_906_927)));
    let day = violated("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "50");
    assert_eq!(class(429, &day), Class::QuotaExhausted);
    let none = violated("GenerateRequestsPerMinutePerProject", "0");
    assert_eq!(class(429, &none), Class::QuotaExhausted);
}

#[test]
fn the_reason_of_google_outranks_its_status() {
    let because = |reason: &str, status: &str| {
        format!(r#"[{{"error":{{"status":"{status}","details":[{{"reason":"{reason}"}}]}}}}]"#)
    };
    assert_eq!(
        class(400, &because("API_KEY_INVALID", "INVALID_ARGUMENT")),
        Class::Auth
    );
    let capacity = because("MODEL_CAPACITY_EXHAUSTED", "RESOURCE_EXHAUSTED");
    assert_eq!(class(429, &capacity), Class::Overloaded);
    assert_eq!(class(503, &because("X", "UNAVAILABLE")), Class::Overloaded);
}
