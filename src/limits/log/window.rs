//! One window of a log: what is inside, and when enough of it will have left.

use super::super::{
    Micros,
    settings::{Measure, Refund, WindowLimit},
    tally::Tally,
    weights::Weights,
};

/// One send, or tokens that came on top of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) at: Micros,
    pub(super) weights: Weights,
    /// Not what came on top of one, nor one that did not happen.
    pub(super) send: bool,
    /// Its lease is not settled: tokens may come back.
    pub(super) open: bool,
}

// What docs say that a log takes.
const _: () = assert!(size_of::<Entry>() == 32);

impl Entry {
    fn amount(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => u64::from(self.send),
            _ => self.weights.of(measure),
        }
    }

    /// How much it counts.
    pub(super) fn of(&self, measure: Measure, refund: Refund) -> Tally {
        let amount = self.amount(measure);
        if self.open {
            Tally::open(amount, measure, refund)
        } else {
            Tally::firm(amount)
        }
    }

    /// How much it counts, of each measure.
    pub(super) fn counts(&self, refund: Refund) -> [Tally; 3] {
        Measure::ALL.map(|measure| self.of(measure, refund))
    }
}

/// A limit, and how much of it is used.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) limit: WindowLimit,
    /// Its length and the margin.
    pub(super) length: Micros,
    /// The number of the first entry inside.
    pub(super) first: u64,
    /// Of all entries inside.
    pub(super) sum: Tally,
}

impl Window {
    pub(super) fn new(limit: WindowLimit, margin: Micros) -> Self {
        Self {
            limit,
            length: limit.window.saturating_add(margin),
            first: 0,
            sum: Tally::default(),
        }
    }

    /// When `excess` will have left, if what is `unsent` is sent at the last moment.
    pub(super) fn frees<'a>(
        &self,
        inside: impl Iterator<Item = &'a Entry>,
        excess: u128,
        mut unsent: u128,
        last_send_by: Micros,
    ) -> Micros {
        let mut left = excess;
        for entry in inside {
            if entry.at > last_send_by {
                left = left.saturating_sub(std::mem::take(&mut unsent));
                if left == 0 {
                    break;
                }
            }
            left = left.saturating_sub(entry.amount(self.limit.measure).into());
            if left == 0 {
                return entry.at.saturating_add(self.length);
            }
        }
        last_send_by.saturating_add(self.length)
    }

    /// A lower bound of when `need` fits.
    ///
    /// Let `need` be more than the limit L. When the last of it is granted, no more than L of it lies within
    /// the window before: `need` - L of it was granted a window's length earlier, at least. And so on, until
    /// what had to be granted is no more than L; that waits for what is in the log.
    pub(super) fn earliest<'a>(
        &self,
        inside: impl Iterator<Item = &'a Entry>,
        now: Micros,
        need: u128,
        refund: Refund,
    ) -> Micros {
        let limit = u128::from(self.limit.limit);
        if need == 0 {
            return now;
        }
        if limit == 0 {
            return Micros::MAX;
        }
        let rounds = (need - 1) / limit;
        let first = need - rounds * limit;
        let mut left = (self.sum.firm + first).saturating_sub(limit);
        let mut at = now;
        let stays = !refund.gives_back(self.limit.measure);
        for entry in inside {
            if left == 0 {
                break;
            }
            let amount = entry.amount(self.limit.measure);
            if amount > 0 && (stays || !entry.open) {
                left = left.saturating_sub(amount.into());
                at = entry.at.saturating_add(self.length);
            }
        }
        let rounds = Micros::try_from(rounds).unwrap_or(Micros::MAX);
        at.saturating_add(rounds.saturating_mul(self.length))
    }
}
