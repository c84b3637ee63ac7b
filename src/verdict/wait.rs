//! The wait a provider asked for.
//!
//! Never shortened and never invented: the larger of what is there, and nothing where nothing
//! readable is there. Prose ("try again in 2s") and reset headers never decide a wait, and what a
//! successful response says about the next window is not a wait at all.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap,
    header::{DATE, RETRY_AFTER},
};

use super::ErrorObject;

/// The longest wait that counts: what `google.protobuf.Duration` can express (10,000 years). What is
/// above is a mistake (often a point in time, in milliseconds), and counts as absent.
const MAX_WAIT: Duration = Duration::from_secs(315_576_000_000);

/// The wait that a failed response asked for: the larger of `retry-after-ms`, `retry-after` and what
/// the body states in a structured field. Negative, past, zero and unreadable values are absent.
///
/// A `retry-after` that is a date counts against the response's own `date`, so that no clock but the
/// provider's matters. `now_wall` stands in for a missing `date` header and is used for nothing else;
/// without either a date is absent.
///
/// A status below 400 has no wait, whatever its headers say.
pub fn supplied(
    status: u16,
    headers: &HeaderMap,
    body: Option<&ErrorObject>,
    now_wall: Option<SystemTime>,
) -> Option<Duration> {
    if status < 400 {
        return None;
    }
    let millis = texts(headers, "retry-after-ms").filter_map(millis);
    let seconds = texts(headers, RETRY_AFTER.as_str()).filter_map(seconds);
    let until = texts(headers, RETRY_AFTER.as_str())
        .filter_map(|text| until(text, response_time(headers, now_wall)?));
    millis
        .chain(seconds)
        .chain(until)
        .chain(body.and_then(|body| body.wait))
        .max()
}

/// Decimal seconds, such as `2` or `1.837906927`. A fraction of a nanosecond counts as a whole one.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let nanos = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |nanos, digit| nanos * 10 + u64::from(digit - b'0'));
    let rest = u64::from(fraction.bytes().skip(9).any(|digit| digit != b'0'));
    let wait =
        Duration::from_secs(whole.parse().ok()?).checked_add(Duration::from_nanos(nanos + rest))?;
    sane(wait)
}

/// Decimal milliseconds.
pub(super) fn millis(text: &str) -> Option<Duration> {
    let thousandfold = seconds(text)?;
    let nanos = thousandfold.as_nanos().div_ceil(1000);
    sane(Duration::from_nanos(u64::try_from(nanos).ok()?))
}

/// A duration as JSON-encoded protobuf has it (`48s`, `1.5s`); Google also sent `900ms`.
pub(super) fn proto_duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(number) => millis(number),
        None => seconds(text.strip_suffix('s')?),
    }
}

fn until(text: &str, now: SystemTime) -> Option<Duration> {
    sane(
        httpdate::parse_http_date(text)
            .ok()?
            .duration_since(now)
            .ok()?,
    )
}

fn response_time(headers: &HeaderMap, now_wall: Option<SystemTime>) -> Option<SystemTime> {
    match headers.get(DATE) {
        Some(date) => httpdate::parse_http_date(date.to_str().ok()?).ok(),
        None => now_wall,
    }
}

fn texts<'h>(headers: &'h HeaderMap, name: &'static str) -> impl Iterator<Item = &'h str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
}

fn sane(wait: Duration) -> Option<Duration> {
    (Duration::ZERO < wait && wait <= MAX_WAIT).then_some(wait)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOON: &str = "Mon, 30 Nov 2026 12:00:00 GMT";
    const NOON_AND_30_S: &str = "Mon, 30 Nov 2026 12:00:30 GMT";

    fn waits(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        supplied(429, &headers(pairs), None, None)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn body(json: &str) -> ErrorObject {
        ErrorObject::parse(json.as_bytes()).expect("an error object")
    }

    fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn without_a_hint_there_is_no_wait() {
        assert_eq!(waits(&[]), None);
    }

    #[test]
    fn seconds_are_read_whole_and_in_fractions() {
        assert_eq!(waits(&[("retry-after", "120")]), ms(120_000));
        assert_eq!(waits(&[("retry-after", " 0.25 ")]), ms(250));
        assert_eq!(
            waits(&[("retry-after", "1.837906927")]),
            Some(Duration::new(1, 837_906_927))
        );
    }

    #[test]
    fn a_fraction_finer_than_a_nanosecond_is_rounded_up() {
        assert_eq!(
            waits(&[("retry-after", "0.0000000001")]),
            Some(Duration::from_nanos(1))
        );
        assert_eq!(
            waits(&[("retry-after", "1.9999999999")]),
            Some(Duration::from_secs(2))
        );
    }

    #[test]
    fn milliseconds_are_read() {
        assert_eq!(waits(&[("retry-after-ms", "700")]), ms(700));
        assert_eq!(
            waits(&[("retry-after-ms", "0.5")]),
            Some(Duration::from_micros(500))
        );
    }

    #[test]
    fn the_larger_header_wins() {
        assert_eq!(
            waits(&[("retry-after-ms", "0"), ("retry-after", "1")]),
            ms(1_000)
        );
        assert_eq!(
            waits(&[("retry-after-ms", "700"), ("retry-after", "1")]),
            ms(1_000)
        );
        assert_eq!(
            waits(&[("retry-after-ms", "2500"), ("retry-after", "1")]),
            ms(2_500)
        );
        assert_eq!(
            waits(&[("retry-after", "3"), ("retry-after", "7")]),
            ms(7_000)
        );
    }

    #[test]
    fn a_date_counts_against_the_date_of_the_response() {
        assert_eq!(
            waits(&[("date", NOON), ("retry-after", NOON_AND_30_S)]),
            ms(30_000)
        );
    }

    #[test]
    fn the_local_time_stands_in_for_a_missing_date_only() {
        let noon = httpdate::parse_http_date(NOON).unwrap();
        let later = Some(noon + Duration::from_secs(20));
        let date_only = headers(&[("retry-after", NOON_AND_30_S)]);
        assert_eq!(supplied(429, &date_only, None, None), None);
        assert_eq!(supplied(429, &date_only, None, later), ms(10_000));
        let dated = headers(&[("date", NOON), ("retry-after", NOON_AND_30_S)]);
        assert_eq!(supplied(429, &dated, None, later), ms(30_000));
    }

    #[test]
    fn a_date_that_is_past_or_now_is_absent() {
        assert_eq!(
            waits(&[("date", NOON_AND_30_S), ("retry-after", NOON)]),
            None
        );
        assert_eq!(waits(&[("date", NOON), ("retry-after", NOON)]), None);
    }

    #[test]
    fn what_is_unreadable_negative_or_zero_is_absent() {
        let values = [
            "-5",
            "0",
            "0.0",
            "",
            " ",
            ".",
            "5.",
            ".5",
            "+5",
            "1e3",
            "0x10",
            "NaN",
            "inf",
            "infinity",
            "5s",
            "1, 2",
            "1,5",
            "soon",
            "Wed, 99 Foo 2026 99:99:99 GMT",
            "１２",
        ];
        for value in values {
            for name in ["retry-after", "retry-after-ms"] {
                let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
                let headers = HeaderMap::from_iter([(http::HeaderName::from_static(name), value)]);
                let wait = supplied(429, &headers, None, Some(SystemTime::UNIX_EPOCH));
                assert_eq!(wait, None, "{headers:?}");
            }
        }
    }

    #[test]
    fn an_unreadable_hint_does_not_hide_a_readable_one() {
        assert_eq!(
            waits(&[("retry-after-ms", "soon"), ("retry-after", "4")]),
            ms(4_000)
        );
    }

    #[test]
    fn a_huge_wait_is_kept_as_it_is() {
        assert_eq!(waits(&[("retry-after", "298800")]), ms(298_800_000));
    }

    #[test]
    fn a_wait_beyond_any_duration_is_absent() {
        assert_eq!(waits(&[("retry-after", "1754667660000")]), None);
        assert_eq!(waits(&[("retry-after", "99999999999999999999999")]), None);
        assert_eq!(waits(&[("retry-after-ms", "18446744073709551615")]), None);
    }

    #[test]
    fn a_success_has_no_wait() {
        let headers = headers(&[("retry-after", "24"), ("retry-after-ms", "700")]);
        for status in [200, 206, 304, 307] {
            assert_eq!(supplied(status, &headers, None, None), None, "{status}");
        }
    }

    #[test]
    fn reset_headers_are_no_wait() {
        let resets = [
            ("x-ratelimit-reset-requests", "12ms"),
            ("x-ratelimit-reset", "1754667660000"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-30T12:00:30Z"),
            ("ratelimit-reset", "19"),
        ];
        assert_eq!(waits(&resets), None);
    }

    #[test]
    fn google_states_the_wait_in_the_body() {
        let retry_info = |delay: &str| {
            let json =
                format!(r#"[{{"error":{{"code":429,"details":[{{"retryDelay":"{delay}"}}]}}}}]"#);
            supplied(429, &HeaderMap::new(), Some(&body(&json)), None)
        };
        assert_eq!(retry_info("48s"), ms(48_000));
        assert_eq!(retry_info("900ms"), ms(900));
        assert_eq!(
            retry_info("51820.638305887s"),
            Some(Duration::new(51_820, 638_305_887))
        );
        for unreadable in ["", "s", "ms", "-3s", "0s", "soon", "48", "1h"] {
            assert_eq!(retry_info(unreadable), None, "{unreadable:?}");
        }
    }

    #[test]
    fn openrouter_states_the_wait_in_the_body() {
        let in_error = |fields: &str| {
            let json = format!(r#"{{"error":{{"code":429,{fields}}}}}"#);
            supplied(429, &HeaderMap::new(), Some(&body(&json)), None)
        };
        assert_eq!(in_error(r#""availability":{"retry_after":12}"#), ms(12_000));
        assert_eq!(
            in_error(r#""metadata":{"availability":{"retry_after":1.5}}"#),
            ms(1_500)
        );
        let both = r#""metadata":{"retry_after_seconds":26,"retry_after_seconds_raw":25.917}"#;
        assert_eq!(in_error(both), ms(26_000));
        assert_eq!(
            in_error(r#""metadata":{"headers":{"Retry-After":"9"}}"#),
            ms(9_000)
        );
        let reset = r#""metadata":{"headers":{"X-RateLimit-Reset":"1754667660000"}}"#;
        assert_eq!(in_error(reset), None);
        for absent in ["-1", "0", "null", "true", "\"soon\"", "1e30", "[]"] {
            let fields = format!(r#""availability":{{"retry_after":{absent}}}"#);
            assert_eq!(in_error(&fields), None, "{absent}");
        }
    }

    #[test]
    fn the_larger_of_header_and_body_wins() {
        let body = body(r#"{"error":{"availability":{"retry_after":5400}}}"#);
        let ten = headers(&[("retry-after", "10")]);
        assert_eq!(supplied(429, &ten, Some(&body), None), ms(5_400_000));
        let more = headers(&[("retry-after", "6000")]);
        assert_eq!(supplied(429, &more, Some(&body), None), ms(6_000_000));
    }

    #[test]
    fn prose_is_no_wait() {
        let body =
            body(r#"{"error":{"message":"Please try again in 2s. Retry after 33 seconds."}}"#);
        assert_eq!(supplied(429, &HeaderMap::new(), Some(&body), None), None);
    }
}
