//! The rate-limit headers of a response: how long the provider has nothing left.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// How long nothing should be sent, because a dimension of the provider's limits has nothing remaining.
pub fn brake(_headers: &HeaderMap, _now_wall: SystemTime) -> Option<Duration> {
    None
}
