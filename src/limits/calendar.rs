//! The calendar day of one budget: what was sent on it.
//!
//! Days are named from outside, with each acquire. A send after the end of the day that was named last
//! falls on a day that nobody has named yet: it counts for the one named next. A send shortly before the
//! end may arrive after it: it counts for both.

use super::{
    Day, Micros,
    settings::{Measure, Refund},
    tally::Tally,
    weights::Weights,
};

/// On which days a send counts: the first and the last, numbered in the order in which they were named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Days {
    first: u64,
    last: u64,
}

/// What was sent on the day that was named last, and on the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    day: Day,
    /// How many days were named before.
    number: u64,
    today: [Tally; 3],
    next: [Tally; 3],
}

impl Calendar {
    /// It is `day` now; an earlier one than was named before is not believed.
    pub(super) fn turn(&mut self, day: Day) {
        if day.number > self.day.number {
            self.number += 1;
            self.today = std::mem::take(&mut self.next);
        }
        if day.number >= self.day.number {
            self.day = day;
        }
    }

    /// When this day ends.
    pub(super) fn ends(&self) -> Micros {
        self.day.ends
    }

    /// What counts today, without unsent leases.
    pub(super) fn sent(&self, now: Micros, measure: Measure) -> Tally {
        let mut sum = self.today[measure as usize];
        if now >= self.day.ends {
            // Nobody said which day it is.
            sum += self.next[measure as usize];
        }
        sum
    }

    /// A send of `weights` that may arrive `margin` later.
    pub(super) fn add(
        &mut self,
        now: Micros,
        margin: Micros,
        weights: Weights,
        refund: Refund,
    ) -> Days {
        let days = Days {
            first: self.number + u64::from(now >= self.day.ends),
            last: self.number + u64::from(now.saturating_add(margin) >= self.day.ends),
        };
        self.change(days, |tally, measure| {
            *tally += Tally::open(weights.of(measure), measure, refund);
        });
        days
    }

    /// Whether a send still counts.
    pub(super) fn counts(&self, days: Days) -> bool {
        days.last >= self.number
    }

    /// A send of `weights` did not happen.
    pub(super) fn take_back(&mut self, days: Days, weights: Weights, refund: Refund) {
        self.change(days, |tally, measure| {
            *tally -= Tally::open(weights.of(measure), measure, refund);
        });
    }

    /// A send of `reserved` is over: of it stays `kept`, and `overrun` comes on top.
    pub(super) fn close(
        &mut self,
        days: Days,
        refund: Refund,
        reserved: Weights,
        kept: Weights,
        overrun: Weights,
    ) {
        self.change(days, |tally, measure| {
            *tally -= Tally::open(reserved.of(measure), measure, refund);
            *tally += Tally::firm(kept.of(measure));
            if measure != Measure::Requests {
                *tally += Tally::firm(overrun.of(measure));
            }
        });
    }

    fn change(&mut self, days: Days, change: impl Fn(&mut Tally, Measure)) {
        if days.last < self.number {
            return;
        }
        let counts = |number| days.first <= number && number <= days.last;
        for measure in Measure::ALL {
            if counts(self.number) {
                change(&mut self.today[measure as usize], measure);
            }
            if counts(self.number + 1) {
                change(&mut self.next[measure as usize], measure);
            }
        }
    }
}
