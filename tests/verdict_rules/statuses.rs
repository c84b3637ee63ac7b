//! What the status, the headers and the redirects say.

use std::time::Duration;

use http::HeaderMap;
use redrive::verdict::{
    Class, Origin, Stage,
    class::transient,
    http::{HttpEvidence, classify},
};

use super::{class, in_band, response};

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
