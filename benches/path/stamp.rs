//! Times that travel in the text of tokens, between processes of one machine.

use std::time::{SystemTime, UNIX_EPOCH};

/// Digits of a stamp: nanoseconds, of which the last 1,000 seconds are told.
const DIGITS: usize = 12;

/// A token: its stamp and a space.
pub const TOKEN_BYTES: usize = DIGITS + 1;

const AGAIN: u64 = 10_u64.pow(DIGITS as u32);

/// Now.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (since.as_nanos() % u128::from(AGAIN)) as u64
}

/// The token that carries `stamp`.
pub fn token(stamp: u64) -> String {
    format!("{stamp:0width$} ", width = DIGITS)
}

/// How long ago `token` was stamped, in microseconds.
pub fn age_us(token: &[u8], now: u64) -> u32 {
    let digits = std::str::from_utf8(&token[..DIGITS]).unwrap();
    let stamp: u64 = digits.parse().unwrap();
    // A stamp may be of the future by what the clock was stepped meanwhile.
    let age = (now + AGAIN - stamp) % AGAIN;
    if age > AGAIN / 2 {
        0
    } else {
        (age / 1_000) as u32
    }
}
