//! A sum, and how much of it can no longer come back.

use std::ops::{AddAssign, SubAssign};

use super::settings::{Measure, Refund};

/// How much counts. Wide enough that no number of sends of any size overflows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// In all.
    pub(super) sum: u128,
    /// Of this: what stays whatever running sends give back.
    pub(super) firm: u128,
}

impl Tally {
    /// Of what is over.
    pub(super) fn firm(counts: u64) -> Self {
        let sum = counts.into();
        Self { sum, firm: sum }
    }

    /// Of a send that is under way: its tokens may come back.
    pub(super) fn open(counts: u64, measure: Measure, refund: Refund) -> Self {
        let sum = counts.into();
        let firm = if refund.gives_back(measure) { 0 } else { sum };
        Self { sum, firm }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sum += other.sum;
        self.firm += other.firm;
    }
}

impl SubAssign for Tally {
    fn sub_assign(&mut self, other: Self) {
        self.sum = self.sum.saturating_sub(other.sum);
        self.firm = self.firm.saturating_sub(other.firm);
    }
}
