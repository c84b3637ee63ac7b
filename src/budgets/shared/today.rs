//! Calendar days, as the engine is told them: by its own clock, in the budget's zone.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use crate::budgets::engine::micros;
use crate::{budgets::days, limits::Micros};

/// A calendar day in a budget's zone, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Today {
    /// Days since 1970-01-01.
    pub number: i64,
    /// When it starts. The engine does not believe a day that has not begun by its own clock.
    pub starts: Micros,
    /// When it ends.
    pub ends: Micros,
}

impl Today {
    /// The day at `wall`, since the Unix epoch.
    pub fn at(zone: &TimeZone, wall: Duration) -> Self {
        let (number, ends) = days::day(zone, wall);
        let starts = || -> Result<Duration, jiff::Error> {
            let now = Timestamp::UNIX_EPOCH.checked_add(wall)?;
            let starts = now.to_zoned(zone.clone()).start_of_day()?;
            Duration::try_from(starts.timestamp().as_duration())
        };
        Self {
            number,
            starts: micros(starts().unwrap_or(wall)),
            ends: micros(ends),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_starts_and_ends_at_its_zones_midnights() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        // The day on which clocks go forward has 23 hours.
        let noon: Timestamp = "2026-03-29T10:00:00Z".parse().unwrap();
        let today = Today::at(&berlin, Duration::try_from(noon.as_duration()).unwrap());
        let at = |text: &str| {
            let time: Timestamp = text.parse().unwrap();
            u64::try_from(time.as_microsecond()).unwrap()
        };
        let expected = Today {
            number: 20_541,
            starts: at("2026-03-28T23:00:00Z"),
            ends: at("2026-03-29T22:00:00Z"),
        };
        assert_eq!(today, expected);
    }
}
