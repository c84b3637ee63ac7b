//! Lengths of time.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::config::hint;

/// Milliseconds in a second, for the bounds of [`Span`].
pub(in crate::config) const SECOND: u64 = 1000;
/// Milliseconds in an hour.
pub(in crate::config) const HOUR: u64 = 3600 * SECOND;
/// Milliseconds in a day.
pub(in crate::config) const DAY: u64 = 24 * HOUR;

/// A length of time from `MIN` to `MAX` milliseconds, written as `45s`, `450ms` or `1m 30s`; `0` and
/// `0s` where `MIN` is 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Span<const MIN: u64, const MAX: u64, const DEFAULT: u64>(
    pub(in crate::config) Duration,
);

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Span<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        Span(Duration::from_millis(DEFAULT))
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Serialize for Span<MIN, MAX, DEFAULT> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&in_words(self.0))
    }
}

impl<'de, const MIN: u64, const MAX: u64, const DEFAULT: u64> Deserialize<'de>
    for Span<MIN, MAX, DEFAULT>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let span = deserializer.deserialize_any(Length)?;
        let (min, max) = (Duration::from_millis(MIN), Duration::from_millis(MAX));
        if (min..=max).contains(&span) {
            Ok(Span(span))
        } else {
            Err(de::Error::custom(format_args!(
                "{} is out of range: {} to {}",
                in_words(span),
                in_words(min),
                in_words(max),
            )))
        }
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Span<MIN, MAX, DEFAULT> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // JSON Schema cannot bound a duration; `redrive check` does.
        let unit = "(ns|us|ms|s|sec|secs|m|min|mins|h|hr|hrs|hours?|minutes?|seconds?|d|days?)";
        let pattern = format!(r"^\s*(0|([0-9]+(\.[0-9]+)?\s*{unit}\s*)+)\s*$");
        let text = json_schema!({"type": "string", "pattern": pattern});
        if MIN == 0 {
            json_schema!({"anyOf": [text, {"const": 0}]})
        } else {
            text
        }
    }
}

struct Length;

impl Visitor<'_> for Length {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with a unit, such as \"45s\" or \"450ms\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        if text.trim() == "0" {
            return Ok(Duration::ZERO);
        }
        humantime::parse_duration(text).map_err(|_| {
            E::custom(format_args!(
                "{} is not a duration; write a number with a unit, such as \"45s\" or \"450ms\"",
                hint::shown(text),
            ))
        })
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Duration, E> {
        match n {
            0 => Ok(Duration::ZERO),
            _ => Err(E::invalid_type(de::Unexpected::Unsigned(n), &self)),
        }
    }
}

/// `45s`, `1800s`, `24h`; `0s` for zero: the units in which the documentation speaks.
pub(crate) fn in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    if span.subsec_nanos() != 0 {
        humantime::format_duration(span).to_string()
    } else if seconds > 0 && seconds.is_multiple_of(3600) {
        format!("{}h", seconds / 3600)
    } else {
        format!("{seconds}s")
    }
}
