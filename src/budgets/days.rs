//! Calendar days of budgets, in the zones of their providers.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::engine::micros;
use crate::{
    config,
    limits::{BudgetId, Day, Micros},
};

/// How long a day lasts where the calendar cannot say.
const A_DAY: Duration = Duration::from_secs(24 * 3600);

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
        let number = wall.as_secs() / A_DAY.as_secs();
        (number as i64, A_DAY.saturating_mul(number as u32 + 1))
    })
}
