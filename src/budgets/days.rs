//! Calendar days of budgets, in the zones of their providers.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::engine::micros;
use crate::{
    config,
    limits::{BudgetId, Day, Micros},
};

/// How many seconds a day has where the calendar cannot say.
const A_DAY: u64 = 24 * 3600;

/// The days of all budgets that have caps of a day.
pub(super) struct Days {
    zones: Vec<(BudgetId, TimeZone)>,
    /// When the first of them ends.
    next: Micros,
}

impl Days {
    pub(super) fn new(configured: &[config::Budget]) -> Self {
        let daily = configured.iter().enumerate();
        let daily = daily.filter(|(_, budget)| !budget.settings.daily.is_empty());
        Self {
            zones: daily
                .map(|(id, budget)| (id, budget.zone.clone()))
                .collect(),
            next: 0,
        }
    }

    /// Tells `told` the day of each budget if one has begun. `origin` is the wall clock at the origin of
    /// time, since the Unix epoch.
    pub(super) fn turn(
        &mut self,
        now: Micros,
        origin: Duration,
        mut told: impl FnMut(BudgetId, Day),
    ) {
        if now < self.next || self.zones.is_empty() {
            return;
        }
        self.next = Micros::MAX;
        let wall = origin.saturating_add(Duration::from_micros(now));
        for (budget, zone) in &self.zones {
            let (number, ends) = day(zone, wall);
            let ends = micros(ends.saturating_sub(origin)).max(now + 1);
            self.next = self.next.min(ends);
            told(*budget, Day { number, ends });
        }
    }
}

/// The calendar day at `wall`, since the Unix epoch, in a zone: days since 1970-01-01, and when it ends,
/// since the Unix epoch.
pub(super) fn day(zone: &TimeZone, wall: Duration) -> (i64, Duration) {
    let end = || -> Result<(i64, Duration), jiff::Error> {
        let now = Timestamp::UNIX_EPOCH
            .checked_add(wall)?
            .to_zoned(zone.clone());
        let epoch = jiff::civil::date(1970, 1, 1);
        let number = i64::from(now.date().since(epoch)?.get_days());
        let ends = now.tomorrow()?.start_of_day()?.timestamp();
        let ends = Duration::try_from(ends.as_duration())?;
        Ok((number, ends))
    };
    end().unwrap_or_else(|_| {
        let number = wall.as_secs() / A_DAY;
        let ends = Duration::from_secs((number + 1).saturating_mul(A_DAY));
        (i64::try_from(number).unwrap_or(i64::MAX), ends)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The day at a civil time in a zone: when it began to end, in that zone, and how many hours are left.
    fn at(zone: &str, civil: &str) -> (i64, String, f64) {
        let zone = TimeZone::get(zone).unwrap();
        let civil: jiff::civil::DateTime = civil.parse().unwrap();
        let wall = Duration::try_from(zone.to_timestamp(civil).unwrap().as_duration()).unwrap();
        let (number, ends) = day(&zone, wall);
        let left = (ends - wall).as_secs_f64() / 3600.0;
        let ends = Timestamp::UNIX_EPOCH.checked_add(ends).unwrap();
        let ends = ends.to_zoned(zone).datetime().to_string();
        (number, ends, left)
    }

    fn expect(number: i64, ends: &str, left: f64) -> (i64, String, f64) {
        (number, ends.to_owned(), left)
    }

    #[test]
    fn a_day_ends_at_midnight_in_its_zone() {
        let midnight = "2026-06-02T00:00:00";
        assert_eq!(
            at("UTC", "2026-06-01T18:00:00"),
            expect(20_605, midnight, 6.0)
        );
        for zone in ["Europe/Berlin", "America/Los_Angeles", "Pacific/Kiritimati"] {
            assert_eq!(
                at(zone, "2026-06-01T00:00:00"),
                expect(20_605, midnight, 24.0),
                "{zone}"
            );
            assert_eq!(
                at(zone, "2026-06-01T23:00:00"),
                expect(20_605, midnight, 1.0),
                "{zone}"
            );
        }
    }

    #[test]
    fn zones_are_on_different_days_at_one_time() {
        let wall = Duration::from_secs(20_605 * 24 * 3600 + 11 * 3600);
        let number = |zone: &str| day(&TimeZone::get(zone).unwrap(), wall).0;
        assert_eq!(number("America/Los_Angeles"), 20_605);
        assert_eq!(number("Pacific/Kiritimati"), 20_606);
        assert_eq!(number("Pacific/Pago_Pago"), 20_605);
    }

    #[test]
    fn a_day_on_which_clocks_change_has_23_or_25_hours() {
        let spring = "2026-03-30T00:00:00";
        assert_eq!(
            at("Europe/Berlin", "2026-03-29T00:00:00"),
            expect(20_541, spring, 23.0)
        );
        let autumn = "2026-10-26T00:00:00";
        assert_eq!(
            at("Europe/Berlin", "2026-10-25T00:00:00"),
            expect(20_751, autumn, 25.0)
        );
        let spring = "2026-03-09T00:00:00";
        assert_eq!(
            at("America/Los_Angeles", "2026-03-08T00:00:00"),
            expect(20_520, spring, 23.0)
        );
        let autumn = "2026-11-02T00:00:00";
        assert_eq!(
            at("America/Los_Angeles", "2026-11-01T00:00:00"),
            expect(20_758, autumn, 25.0)
        );
    }

    #[test]
    fn a_day_without_a_midnight_begins_when_it_begins() {
        // Clocks go from 23:59:59 to 01:00:00.
        let ends = "2026-04-24T01:00:00";
        assert_eq!(
            at("Africa/Cairo", "2026-04-23T12:00:00"),
            expect(20_566, ends, 12.0)
        );
        assert_eq!(at("Africa/Cairo", "2026-04-24T01:00:00").0, 20_567);
    }

    #[test]
    fn a_day_that_a_zone_leaves_out_is_left_out() {
        // Samoa went from the 29th to the 31st of December.
        let ends = "2011-12-31T00:00:00";
        assert_eq!(
            at("Pacific/Apia", "2011-12-29T12:00:00"),
            expect(15_337, ends, 12.0)
        );
        assert_eq!(at("Pacific/Apia", "2011-12-31T00:00:00").0, 15_339);
    }

    #[test]
    fn days_are_told_once_each_and_follow_each_other() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let mut days = Days {
            zones: vec![(3, zone)],
            next: 0,
        };
        // Noon in Berlin, on the day before clocks change.
        let origin = Duration::from_secs(20_540 * 24 * 3600 + 11 * 3600);
        let hour = 3_600_000_000;
        let mut told = Vec::new();
        for quarter in 0..4 * 24 * 3 {
            let now = quarter * hour / 4;
            days.turn(now, origin, |budget, day| told.push((now, budget, day)));
        }
        let day = |number, ends| Day { number, ends };
        assert_eq!(
            told,
            [
                (0, 3, day(20_540, 12 * hour)),
                (12 * hour, 3, day(20_541, 35 * hour)),
                (35 * hour, 3, day(20_542, 59 * hour)),
                (59 * hour, 3, day(20_543, 83 * hour)),
            ]
        );
    }

    #[test]
    fn a_time_beyond_the_calendar_has_a_day_too() {
        let (number, ends) = day(&TimeZone::UTC, Duration::from_secs(u64::MAX / 2));
        assert!(number > 0);
        assert!(ends > Duration::from_secs(1));
    }
}
