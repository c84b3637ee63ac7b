//! What decides a verdict, one rule a test. Bodies are our own or minimal forms of public reports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use redrive::{
    protocol::DecodeError,
    verdict::{
        Class, Failure, MAX_BODY_BYTES, MAX_MESSAGE_BYTES, Origin, Stage,
        class::transient,
        decode,
        http::{HttpEvidence, classify},
        inband,
        transport::{self, TransportError, TransportKind},
    },
};

fn response(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Failure {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect();
    classify(&HttpEvidence {
        status,
        headers: &headers,
        body: body.as_bytes(),
        body_complete: true,
        now_wall: None,
    })
}

/// The class of a response without telling headers.
fn class(status: u16, body: &str) -> Class {
    response(status, &[], body).class
}

fn in_band(json: &str) -> Failure {
    inband::classify(json.as_bytes())
}

// Status alone.

#[test]
fn a_bare_status_has_its_class() {
    let table = [
        (400, Class::InvalidRequest),
        (401, Class::Auth),
        (402, Class::QuotaExhausted),
        (403, Class::Permission),
        (404, Class::NotFound),
        (405, Class::InvalidRequest),
        (408, Class::TimeoutProvider),
        (409, Class::InvalidRequest),
        (410, Class::NotFound),
        (413, Class::InvalidRequest),
        (422, Class::InvalidRequest),
        (424, Class::ProviderInternal),
        (429, Class::RateLimited),
        (499, Class::Unclassified),
        (500, Class::ProviderInternal),
        (501, Class::InvalidRequest),
        (502, Class::ProviderInternal),
        (503, Class::ProviderInternal),
        (504, Class::TimeoutProvider),
        (520, Class::ProviderInternal),
        (529, Class::Overloaded),
        (600, Class::Unclassified),
        (199, Class::Unclassified),
    ];
    for (status, expected) in table {
        let failure = response(status, &[], "");
        assert_eq!(failure.class, expected, "{status}");
        assert_eq!(failure.retryable, transient(expected), "{status}");
        assert_eq!(failure.http_status, Some(status));
        assert_eq!(
            (failure.origin, failure.stage),
            (Origin::Provider, Stage::Response)
        );
        assert_eq!(
            (failure.wait, failure.code, failure.not_sent),
            (None, None, false)
        );
    }
}

#[test]
fn a_plain_429_is_a_rate_limit_without_a_wait() {
    let failure = response(429, &[], "");
    assert_eq!(failure.class, Class::RateLimited);
    assert_eq!(failure.wait, None);
    assert!(failure.replayable());
}

#[test]
fn the_larger_of_the_body_wait_and_the_header_wins() {
    let body = r#"{"error":{"code":429,"availability":{"retry_after":5400}}}"#;
    let failure = response(429, &[("retry-after", "10")], body);
    assert_eq!(failure.wait, Some(Duration::from_secs(5400)));
    let failure = response(429, &[("retry-after", "120")], "");
    assert_eq!(failure.wait, Some(Duration::from_secs(120)));
}

#[test]
fn a_500_is_a_fault_of_the_provider() {
    assert_eq!(class(500, ""), Class::ProviderInternal);
}

#[test]
fn a_response_decides_even_if_the_connection_broke_in_its_body() {
    let body = br#"{"error":{"message":"Rate limit re"#;
    let failure = classify(&HttpEvidence {
        status: 429,
        headers: &HeaderMap::new(),
        body,
        body_complete: false,
        now_wall: None,
    });
    assert_eq!(failure.class, Class::RateLimited);
    assert_eq!(failure.message, "HTTP 429 with a truncated JSON body");
}

#[test]
fn every_redirect_is_refused_and_its_path_not_shown() {
    for status in [300, 301, 302, 303, 304, 307, 308, 399] {
        let location = ("location", "https://other.test/login?token=hunter2");
        let failure = response(status, &[location, ("retry-after", "5")], "see elsewhere");
        assert_eq!(failure.class, Class::RedirectRefused);
        assert!(!failure.retryable);
        assert_eq!(failure.wait, None);
        let expected = format!("HTTP {status} redirect to other.test was not followed");
        assert_eq!(failure.message, expected);
    }
    let failure = response(303, &[("location", "/login")], "");
    assert_eq!(failure.message, "HTTP 303 redirect was not followed");
}

// Codes before status.

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
}

// Google's details.

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

// Anchored phrases.

#[test]
fn an_overflow_said_in_words_is_an_overflow_under_a_generic_code() {
    let phrases = [
        "prompt is too long: 3333404 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model.",
        "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "prompt token count of 200000 exceeds the limit of 128000",
        "request (2009 tokens) exceeds the available context size (512 tokens)",
        "the number of tokens is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "context_length_exceeded",
        "Context length exceeded",
        "too many tokens: total number of tokens in the prompt exceeds",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        "input (4097 tokens) is too large to process. increase the physical batch size",
        "prompt too long; exceeded max context length by 1119046 tokens",
    ];
    for phrase in phrases {
        let under = |kind: &str| format!(r#"{{"error":{{"message":"{phrase}","type":"{kind}"}}}}"#);
        assert_eq!(
            class(400, &under("invalid_request_error")),
            Class::ContextOverflow,
            "{phrase}"
        );
        assert_eq!(
            class(500, &under("server_error")),
            Class::ContextOverflow,
            "{phrase}"
        );
        assert_eq!(
            in_band(&under("server_error")).class,
            Class::ContextOverflow,
            "{phrase}"
        );
        for bare in [400, 413, 500] {
            assert_eq!(
                class(bare, phrase),
                Class::ContextOverflow,
                "{bare} {phrase}"
            );
        }
        for other in [401, 403, 404, 429, 502, 503, 529] {
            assert_ne!(
                class(other, phrase),
                Class::ContextOverflow,
                "{other} {phrase}"
            );
        }
    }
}

#[test]
fn an_overflow_in_a_failed_response_is_no_server_error() {
    let failure = in_band(
        r#"{"type":"response.failed","response":{"id":"r1","status":"failed","error":
        {"code":"server_error","message":"Your input exceeds the context window of this model."}}}"#,
    );
    assert_eq!(failure.class, Class::ContextOverflow);
    assert!(!failure.retryable);
}

#[test]
fn a_request_larger_than_the_whole_limit_is_an_overflow() {
    let text =
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389.";
    let body = format!(
        r#"{{"error":{{"message":"{text}","type":"tokens","code":"rate_limit_exceeded"}}}}"#
    );
    assert_eq!(class(429, &body), Class::ContextOverflow);
    assert_eq!(class(413, &body), Class::ContextOverflow);
    assert_eq!(in_band(&body).class, Class::ContextOverflow);
    assert_eq!(class(413, text), Class::ContextOverflow);
}

#[test]
fn an_ordinary_token_limit_is_a_rate_limit_whatever_it_says_about_size() {
    let body = r#"{"error":{"type":"invalid_request_error","code":"RateLimitReached",
        "message":"Rate limit of 50000 per 60s exceeded for tokens. Limit 50000."}}"#;
    let failure = response(429, &[("retry-after", "1")], body);
    assert_eq!(failure.class, Class::RateLimited);
    assert_eq!(failure.wait, Some(Duration::from_secs(1)));
}

#[test]
fn the_word_quota_in_a_message_decides_nothing() {
    let body = r#"{"error":{"code":"429","message":"Requests have exceeded the token rate limit of
        your current quota tier. Please retry after 1 second."}}"#;
    let failure = response(429, &[("retry-after", "1")], &body.replace('\n', " "));
    assert_eq!(failure.class, Class::RateLimited);
    assert_eq!(failure.wait, Some(Duration::from_secs(1)));
}

#[test]
fn a_limit_per_day_is_a_quota() {
    for text in [
        "Rate limit reached for m on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619.",
        "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200, Requested 1.",
    ] {
        let body = format!(r#"{{"error":{{"message":"{text}","code":"rate_limit_exceeded"}}}}"#);
        assert_eq!(class(429, &body), Class::QuotaExhausted);
        assert_eq!(class(429, text), Class::QuotaExhausted);
        let minute = body.replace("per day", "per min").replace("PD)", "PM)");
        assert_eq!(class(429, &minute), Class::RateLimited);
    }
}

#[test]
fn money_said_with_a_400_is_a_quota() {
    for text in [
        "Your credit balance is too low to access the API.",
        "You have reached your specified API usage limits. You will regain access on 2026-12-01.",
        "This request would exceed the spend limit of your workspace.",
    ] {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{text}"}}}}"#
        );
        assert_eq!(class(400, &body), Class::QuotaExhausted, "{text}");
    }
}

#[test]
fn a_402_is_a_quota_unless_it_is_about_size_or_about_spend_in_flight() {
    assert_eq!(class(402, "Insufficient Balance"), Class::QuotaExhausted);
    let size = r#"{"error":{"code":402,"message":"Prompt tokens limit exceeded: 23229 > 14796."}}"#;
    assert_eq!(class(402, size), Class::ContextOverflow);
    let in_flight =
        r#"{"error":{"code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#;
    let failure = response(402, &[("retry-after", "3")], in_flight);
    assert_eq!(failure.class, Class::RateLimited);
    assert_eq!(failure.wait, Some(Duration::from_secs(3)));
}

#[test]
fn a_403_about_the_content_is_a_filter() {
    let xai = r#"{"code":"The caller does not have permission to execute the specified operation",
        "error":"Content violates usage guidelines. Team: t"}"#;
    assert_eq!(class(403, &xai.replace('\n', " ")), Class::ContentFiltered);
    let routed = r#"{"error":{"code":403,"message":"Provider returned error","metadata":
        {"raw":"{\"error\":\"Content violates usage guidelines.\"}"}}}"#;
    assert_eq!(class(403, routed), Class::ContentFiltered);
    let moderated = r#"{"error":{"code":403,"message":"m","metadata":
        {"reasons":["violence"],"flagged_input":"x"}}}"#;
    assert_eq!(class(403, moderated), Class::ContentFiltered);
    let guarded = r#"{"error":{"code":403,"message":"Request blocked: prompt injection patterns
        detected","metadata":{"error_type":"permission_denied"}}}"#;
    assert_eq!(
        class(403, &guarded.replace('\n', " ")),
        Class::ContentFiltered
    );
    let region = r#"{"error":{"code":"unsupported_country_region_territory","message":"m"}}"#;
    assert_eq!(class(403, region), Class::Permission);
}

#[test]
fn a_skewed_clock_is_a_matter_of_credentials() {
    let body =
        r#"{"message":"Signature expired: 20250808T105739Z is now earlier than 20250808T1301Z"}"#;
    assert_eq!(class(403, body), Class::Auth);
}

#[test]
fn an_unknown_model_said_with_a_400_is_not_found() {
    for body in [
        r#"{"error":{"code":400,"message":"a/b is not a valid model ID"}}"#,
        r#"{"message":"The provided model identifier is invalid."}"#,
        r#"{"code":"invalid-argument","error":"Model not found: grok-x"}"#,
        r#"{"error":{"code":"invalid_request_error","message":"The supported API model names are a or b, but you passed c."}}"#,
        r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}"#,
        r#"{"error":{"message":"m","code":"model_not_found"}}"#,
    ] {
        assert_eq!(class(400, body), Class::NotFound, "{body}");
    }
}

#[test]
fn a_500_of_llama_cpp_about_its_flags_is_an_invalid_request() {
    let body = |text: &str| {
        format!(r#"{{"error":{{"code":500,"message":"{text}","type":"server_error"}}}}"#)
    };
    let flags = body("tools param requires --jinja flag");
    assert_eq!(class(500, &flags), Class::InvalidRequest);
    assert_eq!(
        class(500, &body("Cannot use both json_schema and grammar")),
        Class::ProviderInternal
    );
}

#[test]
fn no_other_text_overrides_a_500() {
    let body = r#"{"error":{"message":"INTERNAL_SERVER_ERROR: Bad request to upstream: Error code:
        400 - invalid signature in thinking block","type":"llm_error"}}"#;
    let failure = response(500, &[], &body.replace('\n', " "));
    assert_eq!(failure.class, Class::ProviderInternal);
    assert!(failure.retryable);
}

#[test]
fn text_that_says_overloaded_makes_no_400_transient() {
    let body = r#"{"error":{"message":"the engine is overloaded, internal timeout"}}"#;
    assert_eq!(class(400, body), Class::InvalidRequest);
    assert_eq!(class(503, body), Class::ProviderInternal);
}

// Hints on retrying.

#[test]
fn the_provider_may_forbid_a_retry_but_not_ask_for_one() {
    let body = r#"{"type":"error","error":{"type":"api_error","message":"maintenance"}}"#;
    let forbidden = response(503, &[("x-should-retry", "false")], body);
    assert_eq!(forbidden.class, Class::ProviderInternal);
    assert!(!forbidden.retryable && !forbidden.replayable());
    assert!(response(503, &[("x-should-retry", "true")], body).retryable);
    assert!(!response(400, &[("x-should-retry", "true")], "").retryable);
    assert!(!response(401, &[("x-should-retry", "true")], "").retryable);
}

#[test]
fn a_router_may_forbid_a_retry_but_not_ask_for_one() {
    let available = |code: u16, retryable: bool| {
        format!(r#"{{"error":{{"code":{code},"availability":{{"retryable":{retryable}}}}}}}"#)
    };
    assert!(!in_band(&available(502, false)).retryable);
    assert!(in_band(&available(502, true)).retryable);
    assert!(!in_band(&available(400, true)).retryable);
    assert!(!response(502, &[], &available(502, false)).retryable);
}

// Bodies that are no error object.

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

// Errors inside a successful response.

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

// Bytes and connections.

#[test]
fn bytes_that_are_not_the_protocol_have_their_class() {
    let table = [
        (DecodeError::TooLarge, Class::TooLarge, false),
        (DecodeError::Json, Class::Corrupt, true),
        (DecodeError::Utf8, Class::Corrupt, true),
        (DecodeError::NotAStream, Class::Corrupt, true),
        (DecodeError::WholeCompletion, Class::Unclassified, false),
    ];
    for (error, expected, replayable) in table {
        let failure = decode::classify(error);
        assert_eq!(failure.class, expected, "{error:?}");
        assert_eq!(failure.retryable, replayable, "{error:?}");
        assert_eq!(failure.replayable(), replayable, "{error:?}");
        assert_eq!(
            (failure.origin, failure.stage),
            (Origin::Provider, Stage::Stream)
        );
        assert!(!failure.message.is_empty());
    }
}

#[test]
fn a_broken_connection_is_transport_and_never_a_rate_limit() {
    use TransportKind::*;
    let kinds = [
        Dns,
        Connect,
        Tls,
        Reset,
        Truncated,
        GoAway,
        RefusedStream,
        StreamReset,
        Protocol,
        Proxy,
    ];
    for kind in kinds {
        let failure = broken(kind, Stage::Request);
        assert_eq!(failure.class, Class::Transport, "{kind:?}");
        assert!(failure.replayable() && !failure.not_sent, "{kind:?}");
        assert_eq!((failure.wait, failure.http_status), (None, None));
    }
}

#[test]
fn the_other_kinds_of_transport_failure_have_their_class() {
    assert_eq!(
        broken(TransportKind::Encoding, Stage::Stream).class,
        Class::Corrupt
    );
    assert_eq!(
        broken(TransportKind::HeadTooLarge, Stage::Request).class,
        Class::TooLarge
    );
    let late = broken(TransportKind::NotSentInTime, Stage::Connect);
    assert_eq!((late.class, late.not_sent), (Class::TimeoutConnect, true));
}

#[test]
fn an_untrusted_certificate_is_transport_and_not_retryable() {
    let failure = broken(TransportKind::UntrustedCertificate, Stage::Connect);
    assert_eq!(failure.class, Class::Transport);
    assert!(!failure.retryable && !failure.replayable());
    assert!(failure.not_sent);
}

#[test]
fn the_detail_of_a_transport_failure_carries_no_credential() {
    let failure = transport::classify(&TransportError {
        kind: TransportKind::Proxy,
        stage: Stage::Connect,
        detail: "proxy said 407 to Authorization: Basic dXNlcjpwYXNz".to_owned(),
    });
    assert_eq!(
        failure.message,
        "proxy said 407 to Authorization: Basic [redacted]"
    );
}

fn broken(kind: TransportKind, stage: Stage) -> Failure {
    transport::classify(&TransportError {
        kind,
        stage,
        detail: "connection lost".to_owned(),
    })
}
