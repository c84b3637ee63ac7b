//! The rate-limit headers of a response: for how long the provider has nothing left.
//!
//! Only this brakes: a dimension that states that **exactly zero** remains, with its **own** reset. A
//! dimension that says zero and no reset brakes nothing, since no wait is ever invented; the refusal that
//! follows states one. What still remains is not read at all: a header can slow a budget down, it can never
//! let it go faster.
//!
//! Providers are told apart by form, not by name:
//!
//! | names | dimension | sent by |
//! |---|---|---|
//! | `*ratelimit-remaining[-D]`, `*ratelimit-reset[-D]` | `D`, or the only one | OpenAI, Azure, Groq, Cerebras, Together, OpenRouter, Hugging Face, and LiteLLM with `llm_provider-` before it |
//! | `*ratelimit-D-remaining`, `*ratelimit-D-reset` | `D` | Anthropic |
//! | `ratelimitbysize-remaining`, `ratelimitbysize-reset` | the size | Mistral |
//! | `ratelimit: "D";r=0;t=295` | each item | Hugging Face (draft-ietf-httpapi-ratelimit-headers) |
//!
//! | value of a reset | read as |
//! |---|---|
//! | `6ms`, `1h8m25.745s` | a duration |
//! | `33`, `24479.8428235054` | seconds |
//! | `1754667660`, `1754667660000` | a time, in seconds or milliseconds since 1970 |
//! | `2026-08-19T14:34:57Z` | a time (RFC 3339) |
//!
//! A time counts against the response's own `date`, so that no clock but the provider's matters. Zero, `-1`
//! (Azure: not known), the past and whatever cannot be read are absent.
//!
//! `retry-after` is no brake: Anthropic sends it with answers that leave nearly everything remaining, and to
//! heed it would stall healthy traffic. On a refusal the verdict reads it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, header::DATE};
use jiff::{SignedDuration, Timestamp};

/// No brake is longer than this: a day's quota that is used up says so again with the next answer, and a
/// value that is misread must not stop a budget for days.
pub const MAX_BRAKE: Duration = Duration::from_secs(60 * 60);

/// From this many seconds on, a number is a time and not a duration: 2001 as a time, 31 years as a duration.
const FIRST_EPOCH_SECONDS: f64 = 1e9;

/// From here on, a time is in milliseconds: 2001 in milliseconds, the year 33658 in seconds.
const FIRST_EPOCH_MILLIS: f64 = 1e12;

/// How long nothing should be sent, because a dimension of the provider's limits has nothing remaining: the
/// longest of them, above zero and at most [`MAX_BRAKE`].
///
/// `now_wall` stands in for a missing or unreadable `date` header, and is used for nothing else.
pub fn brake(headers: &HeaderMap, now_wall: SystemTime) -> Option<Duration> {
    let now = response_time(headers).unwrap_or(now_wall);
    let named = headers.iter().filter_map(|(name, remaining)| {
        if !is_zero(remaining.to_str().ok()?) {
            return None;
        }
        longest(headers.get_all(reset_beside(name)?), now)
    });
    let items = headers.get_all("ratelimit").iter();
    let items = items.filter_map(|value| draft(value.to_str().ok()?, now));
    let wait = named.chain(items).max()?;
    Some(wait.min(MAX_BRAKE))
}

/// The name of the reset of a dimension, if `name` is the name of what remains of it.
fn reset_beside(name: &HeaderName) -> Option<String> {
    let name = name.as_str();
    if !name.contains("ratelimit") || !name.split('-').any(|part| part == "remaining") {
        return None;
    }
    let parts = name.split('-');
    let parts = parts.map(|part| if part == "remaining" { "reset" } else { part });
    Some(parts.collect::<Vec<_>>().join("-"))
}

/// The longest of the resets that can be read.
fn longest<'h>(
    resets: impl IntoIterator<Item = &'h HeaderValue>,
    now: SystemTime,
) -> Option<Duration> {
    let resets = resets.into_iter();
    resets
        .filter_map(|value| reset(value.to_str().ok()?.trim(), now))
        .max()
}

fn reset(text: &str, now: SystemTime) -> Option<Duration> {
    if let Some(number) = number(text) {
        return from_number(number, now);
    }
    let wait = match text.parse::<Timestamp>() {
        Ok(time) => SystemTime::from(time).duration_since(now).ok()?,
        Err(_) => Duration::try_from(text.parse::<SignedDuration>().ok()?).ok()?,
    };
    (!wait.is_zero()).then_some(wait)
}

fn from_number(number: f64, now: SystemTime) -> Option<Duration> {
    let wait = if number < FIRST_EPOCH_SECONDS {
        Duration::try_from_secs_f64(number).ok()?
    } else {
        let scale = if number < FIRST_EPOCH_MILLIS {
            1.0
        } else {
            1e-3
        };
        let since_epoch = Duration::try_from_secs_f64(number * scale).ok()?;
        UNIX_EPOCH
            .checked_add(since_epoch)?
            .duration_since(now)
            .ok()?
    };
    (!wait.is_zero()).then_some(wait)
}

/// What the draft's `ratelimit` says, in its present form (`"api";r=0;t=295`, with a comma between items) and
/// in an older one (`limit=400, remaining=0, reset=19`).
fn draft(value: &str, now: SystemTime) -> Option<Duration> {
    let items = value.split(',');
    let items = items.filter_map(|item| parameters(item.split(';'), ["r", "t"], now));
    let whole = parameters(value.split(','), ["remaining", "reset"], now);
    items.chain(whole).max()
}

/// The reset among the parameters of one item, if none remains.
fn parameters<'v>(
    parameters: impl Iterator<Item = &'v str> + Clone,
    [remaining, wait]: [&str; 2],
    now: SystemTime,
) -> Option<Duration> {
    let find = |name: &str| {
        let mut pairs = parameters.clone().filter_map(|text| text.split_once('='));
        pairs.find(|(key, _)| key.trim() == name)
    };
    let (_, left) = find(remaining)?;
    let (_, wait) = find(wait)?;
    is_zero(left).then(|| reset(wait.trim(), now)).flatten()
}

/// Digits, all of them zero.
fn is_zero(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|byte| byte == b'0')
}

/// A decimal number without a sign or an exponent.
fn number(text: &str) -> Option<f64> {
    let decimal = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    text.bytes().all(decimal).then(|| text.parse().ok())?
}

fn response_time(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}
