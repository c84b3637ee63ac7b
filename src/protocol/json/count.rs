//! Numbers that count something.

use serde_json::value::RawValue;

/// The largest count that is believed. Above it, a number is not a count.
const MAX_TOKENS: f64 = (1_u64 << 53) as f64;

/// A count of tokens; `None` where the value is none.
pub(in crate::protocol) fn tokens(raw: Option<&RawValue>) -> Option<u64> {
    let number: f64 = raw?.get().parse().ok()?;
    (0.0..=MAX_TOKENS)
        .contains(&number)
        .then_some(number as u64)
}
