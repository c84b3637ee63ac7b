//! What holds for any bytes and any headers: no panic, no invented wait, no long message.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::{collection::vec, option, prelude::*, sample::select};
use redrive::verdict::{
    ErrorObject, Failure, MAX_MESSAGE_BYTES, Origin, Stage,
    class::transient,
    http::{HttpEvidence, classify},
    inband, wait,
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_response_has_a_sound_verdict(
        status in prop_oneof![100_u16..600, select(vec![400, 402, 403, 413, 429, 500, 503])],
        headers in headers(),
        body in body(),
        body_complete in any::<bool>(),
        now_wall in option::of(instant()),
    ) {
        let evidence =
            HttpEvidence { status, headers: &headers, body: &body, body_complete, now_wall };
        let failure = classify(&evidence);
        assert_sound(&failure)?;
        prop_assert_eq!(failure.stage, Stage::Response);
        prop_assert_eq!(failure.http_status, Some(status));
        if headers.get("x-should-retry").is_some_and(|value| value == "false") && status >= 400 {
            prop_assert!(!failure.retryable);
        }
    }

    #[test]
    fn any_error_in_a_stream_has_a_sound_verdict(json in body()) {
        let failure = inband::classify(&json);
        assert_sound(&failure)?;
        prop_assert_eq!(failure.stage, Stage::Stream);
        prop_assert_eq!(failure.http_status, None);
    }

    #[test]
    fn any_finish_reason_has_a_sound_verdict(native in "\\PC{0,700}") {
        assert_sound(&inband::bad_finish(&native))?;
    }

    #[test]
    fn a_wait_is_never_invented(
        status in 100_u16..600,
        headers in headers_without_wait(),
        now_wall in option::of(instant()),
    ) {
        prop_assert_eq!(wait::supplied(status, &headers, None, now_wall), None);
    }

    #[test]
    fn a_success_and_a_redirect_have_no_wait(
        status in 100_u16..400,
        headers in headers(),
        body in body(),
        now_wall in option::of(instant()),
    ) {
        let object = ErrorObject::parse(&body);
        prop_assert_eq!(wait::supplied(status, &headers, object.as_ref(), now_wall), None);
    }

    #[test]
    fn a_wait_is_what_was_asked_for_or_more_by_less_than_a_nanosecond(
        seconds in 0_u64..1_000_000,
        fraction in "[0-9]{1,12}",
    ) {
        let text = format!("{seconds}.{fraction}");
        let header = HeaderValue::from_str(&text).unwrap();
        let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, header)]);
        let wait = wait::supplied(429, &headers, None, None).unwrap_or_default();
        let padded: u64 = format!("{fraction:0<12}").parse().unwrap();
        let asked_picos = u128::from(seconds) * 1_000_000_000_000 + u128::from(padded);
        let wait_picos = wait.as_nanos() * 1_000;
        prop_assert!(asked_picos <= wait_picos && wait_picos < asked_picos + 1_000, "{text}");
    }

    #[test]
    fn a_key_in_a_message_is_never_shown(
        before in "[a-z ,.:\"']{0,40}",
        key in "sk-[A-Za-z0-9_-]{20,60}",
        after in "[ \"',:;]{0,2}[a-z ]{0,40}",
    ) {
        let message = format!("{before} {key}{}{after}", if after.is_empty() { "" } else { " " });
        let body = serde_json::json!({ "error": { "message": message, "code": key } }).to_string();
        for failure in [inband::classify(body.as_bytes()), rejected(body.as_bytes())] {
            let shown = format!("{failure:?}");
            prop_assert!(!shown.contains(&key), "{shown}");
        }
    }
}

fn rejected(body: &[u8]) -> Failure {
    let headers = HeaderMap::new();
    classify(&HttpEvidence {
        status: 400,
        headers: &headers,
        body,
        body_complete: true,
        now_wall: None,
    })
}

fn assert_sound(failure: &Failure) -> Result<(), TestCaseError> {
    prop_assert_eq!(failure.origin, Origin::Provider);
    prop_assert!(!failure.not_sent);
    prop_assert!(!failure.retryable || transient(failure.class));
    prop_assert!(!failure.message.is_empty());
    prop_assert!(failure.message.len() <= MAX_MESSAGE_BYTES);
    prop_assert!(!failure.message.contains(char::is_control));
    prop_assert!(failure.code.as_ref().is_none_or(|code| code.len() <= 128));
    prop_assert!(failure.wait.is_none_or(|wait| wait > Duration::ZERO));
    Ok(())
}

fn instant() -> impl Strategy<Value = SystemTime> {
    (0_u64..10_000_000_000).prop_map(|s| SystemTime::UNIX_EPOCH + Duration::from_secs(s))
}

/// Header values that are near to something: numbers, durations, dates, and any bytes.
fn value() -> impl Strategy<Value = HeaderValue> {
    let text = prop_oneof![
        "-?[0-9]{1,25}(\\.[0-9]{1,20})?(s|ms)?",
        "[a-zA-Z0-9,:. -]{0,40}",
        instant().prop_map(httpdate::fmt_http_date),
        select(vec![
            "false",
            "true",
            "NaN",
            "inf",
            "text/html",
            "ThrottlingException:x"
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        4 => text.prop_map(|text| HeaderValue::from_str(&text).unwrap()),
        1 => vec(any::<u8>(), 0..40).prop_filter_map("a header value", |bytes| {
            HeaderValue::from_bytes(&bytes).ok()
        }),
    ]
}

fn headers_of(names: &'static [&'static str]) -> impl Strategy<Value = HeaderMap> {
    vec((select(names), value()), 0..6).prop_map(|pairs| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), value);
        }
        headers
    })
}

fn headers() -> impl Strategy<Value = HeaderMap> {
    headers_of(&[
        "retry-after",
        "retry-after-ms",
        "date",
        "content-type",
        "location",
        "x-should-retry",
        "x-amzn-errortype",
        "x-ratelimit-reset",
    ])
}

fn headers_without_wait() -> impl Strategy<Value = HeaderMap> {
    headers_of(&[
        "date",
        "x-ratelimit-reset",
        "x-ratelimit-reset-requests",
        "anthropic-ratelimit-tokens-reset",
        "ratelimit-reset",
        "x-should-retry",
    ])
}

/// Bodies that are near to something: bytes, text, JSON with the keys that errors have, and its
/// prefixes.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let whole = error_json().prop_map(|json| json.to_string().into_bytes());
    let cut = (error_json(), any::<prop::sample::Index>()).prop_map(|(json, at)| {
        let mut bytes = json.to_string().into_bytes();
        bytes.truncate(at.index(bytes.len() + 1));
        bytes
    });
    prop_oneof![
        1 => vec(any::<u8>(), 0..200),
        1 => "\\PC{0,700}".prop_map(String::into_bytes),
        4 => whole,
        2 => cut,
    ]
}

fn error_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (390_u16..610).prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        select(vec![
            "error",
            "server_error",
            "invalid_request_error",
            "rate_limit_exceeded",
            "insufficient_quota",
            "429",
            "48s",
            "GenerateRequestsPerDay",
            "prompt is too long",
            "Request too large for m: Limit 1, Requested 2",
            "maximum context length is 99999999999999999999 tokens",
        ])
        .prop_map(Value::from),
    ];
    let key = select(vec![
        "error",
        "message",
        "code",
        "type",
        "status",
        "details",
        "metadata",
        "availability",
        "retry_after",
        "retryDelay",
        "retryable",
        "violations",
        "quotaId",
        "reason",
        "raw",
        "headers",
        "Retry-After",
        "response",
        "errors",
        "detail",
        "choices",
        "msg",
        "patterns",
    ]);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Value::from),
            4 => vec((key.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}
