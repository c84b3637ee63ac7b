//! The one clock. Everything else is given [`Time`] as a value, or asks here.

use std::time::Duration;

use tokio::time::Instant;

use crate::recovery::Time;

/// Maps the runtime's monotonic clock, which tests pause, to [`Time`].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    wall_origin: Duration,
}

impl Clock {
    /// A clock whose origin is now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where clocks are read"
    )]
    pub fn start() -> Self {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            origin: Instant::now(),
            wall_origin: wall.unwrap_or_default(),
        }
    }

    /// Now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where clocks are read"
    )]
    pub fn now(&self) -> Time {
        Time::from_origin(self.origin.elapsed())
    }

    /// The runtime's instant of `time`; one that lies too far ahead is about a year away.
    pub fn instant(&self, time: Time) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.origin + time.since_origin().min(FAR)
    }

    /// The wall clock at the origin, since the Unix epoch.
    pub fn wall_origin(&self) -> Duration {
        self.wall_origin
    }

    /// The wall clock now, by the monotonic clock: steps of the wall clock do not show.
    pub fn wall_now(&self) -> std::time::SystemTime {
        std::time::UNIX_EPOCH + self.wall_origin + self.now().since_origin()
    }
}
