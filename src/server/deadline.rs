//! The caller's gRPC deadline.
//!
//! tonic bounds only the response headers by it, and ours go out at once: so it is read here and
//! becomes a deadline of the core.

use std::time::Duration;

use http::HeaderMap;

/// How much earlier than the caller's deadline ours is, so that the ledger still arrives. Fixed.
pub const MARGIN: Duration = Duration::from_millis(100);

/// The time the caller gives, from `grpc-timeout` (gRPC over HTTP/2: at most eight digits and a unit).
/// Unreadable values count as absent, as gRPC servers treat them.
pub fn timeout(metadata: &HeaderMap) -> Option<Duration> {
    let value = metadata.get("grpc-timeout")?.to_str().ok()?;
    let unit_at = value.len().checked_sub(1)?;
    let (digits, unit) = value.split_at_checked(unit_at)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<Duration> {
        let mut metadata = HeaderMap::new();
        metadata.insert("grpc-timeout", value.parse().unwrap());
        timeout(&metadata)
    }

    #[test]
    fn every_unit_is_read() {
        assert_eq!(read("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(read("2M"), Some(Duration::from_secs(120)));
        assert_eq!(read("3S"), Some(Duration::from_secs(3)));
        assert_eq!(read("4m"), Some(Duration::from_millis(4)));
        assert_eq!(read("5u"), Some(Duration::from_micros(5)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
    }

    #[test]
    fn nonsense_counts_as_absent() {
        for value in ["", "S", "1", "-1S", "1.5S", "999999999S", "1s", "S1", "1 S"] {
            assert_eq!(read(value), None, "{value:?}");
        }
    }
}
