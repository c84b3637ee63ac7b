//! The one clock. Everything else is given [`Time`] as a value, or asks here.

use std::time::Duration;

use governor::nanos::Nanos;
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

    /// The runtime's instant of `time`; one that lies too far ahead is a year from now, one that is over
    /// is now.
    pub fn instant(&self, time: Time) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let now = self.now();
        self.origin + now.since_origin() + time.since(now).min(FAR)
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

/// What is paced is paced by this clock too: governor's own know nothing of a paused one.
impl governor::clock::Clock for Clock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        let since = Clock::now(self).since_origin().as_nanos();
        Nanos::new(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use governor::{Quota, RateLimiter, state::InMemoryState};

    use super::*;

    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

    #[tokio::test(start_paused = true)]
    async fn a_time_ahead_is_ahead_also_after_years_of_uptime() {
        let clock = Clock::start();
        tokio::time::advance(3 * YEAR).await;
        let now = clock.now();
        let ahead = |time| clock.instant(time) - clock.instant(now);
        assert_eq!(ahead(now + Duration::from_secs(5)), Duration::from_secs(5));
        assert_eq!(ahead(now + Duration::MAX), YEAR);
        assert_eq!(ahead(Time::default()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_paced_by_it_stands_still_with_it() {
        let one = NonZeroU32::MIN;
        let quota = Quota::per_second(one).allow_burst(one);
        let clock = Clock::start();
        let pace = RateLimiter::direct_with_clock(quota, clock);
        let _: &RateLimiter<_, InMemoryState, Clock, _> = &pace;
        assert!(pace.check().is_ok());
        let refused = pace.check().expect_err("one a second");
        assert_eq!(
            refused.wait_time_from(governor::clock::Clock::now(&clock)),
            Duration::from_secs(1)
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pace.check().is_ok());
    }
}
