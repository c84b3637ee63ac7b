//! The only prose that decides, and where it does.

use std::time::Duration;

use redrive::verdict::Class;

use super::{class, in_band, response};

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
