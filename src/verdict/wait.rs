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
