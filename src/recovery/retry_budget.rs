//! Bounds the share of retries, so that an outage is not amplified.
//!
//! Budgets beat counts: with three layers of three retries each, a dead provider sees 27 times the
//! load; with a budget of 20 % it sees 1.2 times.

use super::{Time, settings::RetryBudgetSettings};

/// The window is this many slots long.
const WIDTHS: usize = 10;

/// One slot more than the window has, because the oldest and the newest are only partly inside it.
const SLOTS: usize = WIDTHS + 1;

/// The retry budget of one domain: in any window of `per`, retries ≤ max(floor, ratio · first attempts).
#[derive(Clone, Debug)]
pub struct RetryBudget {
    settings: RetryBudgetSettings,
    firsts: [u32; SLOTS],
    retries: [u32; SLOTS],
    /// The number of the newest slot since the origin of time.
    newest: u64,
}

impl RetryBudget {
    /// An unused budget.
    pub fn new(settings: RetryBudgetSettings) -> Self {
        Self {
            settings,
            firsts: [0; SLOTS],
            retries: [0; SLOTS],
            newest: 0,
        }
    }

    /// Counts a first attempt.
    pub fn first_attempt(&mut self, now: Time) {
        let slot = self.advance(now);
        if let Some(count) = self.firsts.get_mut(slot) {
            *count = count.saturating_add(1);
        }
    }

    /// Takes one retry; `false` if the budget is spent.
    pub fn take(&mut self, now: Time) -> bool {
        let slot = self.advance(now);
        let firsts: u64 = self.firsts.iter().copied().map(u64::from).sum();
        let retries: u64 = self.retries.iter().copied().map(u64::from).sum();
        let earned = (firsts as f64 * self.settings.ratio) as u64;
        if retries >= earned.max(u64::from(self.settings.floor)) {
            return false;
        }
        if let Some(count) = self.retries.get_mut(slot) {
            *count = count.saturating_add(1);
        }
        true
    }

    /// Empties the slots that the window has left behind; the index of the newest one.
    fn advance(&mut self, now: Time) -> usize {
        let width = (self.settings.per.as_nanos() / WIDTHS as u128).max(1);
        let number = (now.since_origin().as_nanos() / width) as u64;
        let behind = number.saturating_sub(self.newest).min(SLOTS as u64);
        for step in 1..=behind {
            let slot = ((self.newest + step) % SLOTS as u64) as usize;
            if let Some(count) = self.firsts.get_mut(slot) {
                *count = 0;
            }
            if let Some(count) = self.retries.get_mut(slot) {
                *count = 0;
            }
        }
        if behind == SLOTS as u64 {
            self.firsts = [0; SLOTS];
            self.retries = [0; SLOTS];
        }
        self.newest = self.newest.max(number);
        (self.newest % SLOTS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_origin(Duration::from_secs(seconds))
    }

    fn budget(ratio: f64, floor: u32) -> RetryBudget {
        RetryBudget::new(RetryBudgetSettings {
            ratio,
            floor,
            per: Duration::from_secs(10),
        })
    }

    #[test]
    fn the_floor_is_always_there_and_returns_with_the_window() {
        let mut budget = budget(0.2, 2);
        assert!(budget.take(at(0)) && budget.take(at(1)));
        assert!(!budget.take(at(2)));
        assert!(
            !budget.take(at(9)),
            "the first retry is still inside the window"
        );
        assert!(budget.take(at(11)));
    }

    #[test]
    fn no_window_holds_more_than_the_floor_wherever_it_begins() {
        let mut budget = budget(0.0, 1);
        let late = Time::from_origin(Duration::from_millis(9_999));
        assert!(budget.take(late));
        assert!(!budget.take(at(19)), "only nine seconds later");
        assert!(budget.take(at(20)));
    }

    #[test]
    fn first_attempts_earn_their_share() {
        let mut budget = budget(0.5, 0);
        assert!(!budget.take(at(100)));
        for _ in 0..4 {
            budget.first_attempt(at(100));
        }
        assert!(budget.take(at(101)) && budget.take(at(101)));
        assert!(!budget.take(at(101)));
        assert!(!budget.take(at(200)), "what was earned long ago is gone");
    }
}
