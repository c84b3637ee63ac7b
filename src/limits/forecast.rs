//! When a send can fit at the earliest: what a wait is told with, and refused for.

use super::{
    Day, Micros,
    acquire::{BudgetId, Limits, asked},
    settings::Measure,
    weights::Weights,
};

/// Those who are to be granted first, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// How many sends.
    pub requests: u64,
    /// Their tokens.
    pub tokens: Weights,
}

impl Ahead {
    pub(super) fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => self.requests,
            _ => self.tokens.of(measure),
        }
    }
}

impl Limits {
    /// A lower bound of when `weights` can be granted if those `ahead` go first: it is not granted before,
    /// whatever unsent leases and running sends give back. `now` if it fits; `None` where it does not fit,
    /// and it depends on running or unsent sends alone when it does. With nothing ahead, no unsent lease
    /// and no tokens that may come back it is the very time.
    pub fn earliest(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
        ahead: Ahead,
    ) -> Option<Micros> {
        let now = self.clock(now);
        if self.never_fits(which, weights).is_some() {
            return Some(Micros::MAX);
        }
        let fits = self.fits(now, which, days, weights).is_ok();
        let mut earliest = now;
        for (budget, _) in asked(which, days) {
            if let Some(budget) = self.budgets.get_mut(budget) {
                earliest = earliest.max(budget.earliest(now, weights, ahead));
            }
        }
        (fits || earliest > now).then_some(earliest)
    }
}
