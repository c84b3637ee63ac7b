//! The leases that this process holds: what it may send, what it renews, and what it tells again when the
//! engine has forgotten.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::{Id, Today};
use crate::limits::{BudgetId, Micros, Weights};

/// How many leases may stand in doubt. Others end by themselves.
const MOST_DOUBTS: usize = 4_096;

/// A lease that is held.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) budgets: Box<[BudgetId]>,
    pub(super) days: Box<[Today]>,
    pub(super) tokens: Weights,
    /// By when it must have left, since the clock's origin: counted from before it was asked for.
    pub(super) send_by: Duration,
    /// When it left, if it has.
    pub(super) sent_at: Option<Duration>,
    /// How often it left or stayed.
    pub(super) times: u64,
    /// Of these: what the engine knows.
    pub(super) confirmed: u64,
}

/// What is known of the engine, and what is held of it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) held: HashMap<Id, Held>,
    /// Leases that were asked for and not answered: to be given back, and not to be asked for again.
    doubts: BTreeSet<Id>,
    /// The engine's epoch as of which all of `held` is known to it; empty before the first.
    pub(super) epoch: String,
    /// Whether another configuration is in use, too.
    pub(super) disagrees: bool,
    /// The engine's clock, and when it was told.
    heard: Option<(Micros, Duration)>,
}

impl Ledger {
    /// Whether it may leave now; from then on it has.
    pub(super) fn leave(&mut self, now: Duration, id: Id) -> bool {
        let Some(held) = self.held.get_mut(&id) else {
            return false;
        };
        // What left once must be known to have stayed before it leaves again: else another may have been
        // granted in its place.
        let may = held.sent_at.is_none() && held.confirmed == held.times && now <= held.send_by;
        if may {
            held.times += 1;
            held.sent_at = Some(now);
        }
        may
    }

    /// It provably did not leave.
    pub(super) fn stayed(&mut self, id: Id) {
        if let Some(held) = self.held.get_mut(&id)
            && held.sent_at.take().is_some()
        {
            held.times += 1;
        }
    }

    pub(super) fn confirm(&mut self, id: Id, times: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.confirmed = held.confirmed.max(times);
        }
    }

    pub(super) fn doubt(&mut self, id: Id) {
        if self.doubts.len() < MOST_DOUBTS {
            self.doubts.insert(id);
        }
    }

    pub(super) fn next_doubt(&self) -> Option<Id> {
        self.doubts.first().copied()
    }

    pub(super) fn is_doubted(&self, id: Id) -> bool {
        self.doubts.contains(&id)
    }

    /// It was given back.
    pub(super) fn undoubt(&mut self, id: Id) {
        self.doubts.remove(&id);
    }

    pub(super) fn hear(&mut self, engine: Micros, now: Duration) {
        self.heard = Some((engine, now));
    }

    /// The engine's clock, as far as it is known.
    pub(super) fn engine_now(&self, now: Duration) -> Option<Duration> {
        let (engine, at) = self.heard?;
        Some(Duration::from_micros(engine).saturating_add(now.saturating_sub(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ledger(id: Id) -> Ledger {
        let mut ledger = Ledger::default();
        let held = Held {
            budgets: [0].into(),
            days: [].into(),
            tokens: Weights::default(),
            send_by: 5 * SECOND,
            sent_at: None,
            times: 0,
            confirmed: 0,
        };
        ledger.held.insert(id, held);
        ledger
    }

    #[test]
    fn nothing_leaves_without_a_lease_after_its_time_or_twice() {
        let id = Id::from(1);
        assert!(!ledger(id).leave(SECOND, Id::from(2)));
        assert!(!ledger(id).leave(6 * SECOND, id));
        let mut ledger = ledger(id);
        assert!(ledger.leave(5 * SECOND, id));
        assert!(!ledger.leave(5 * SECOND, id));
    }

    #[test]
    fn what_stayed_leaves_again_once_the_engine_knows() {
        let id = Id::from(1);
        let mut ledger = ledger(id);
        assert!(ledger.leave(SECOND, id));
        ledger.confirm(id, 1);
        ledger.stayed(id);
        assert!(!ledger.leave(SECOND, id), "the engine does not know");
        ledger.confirm(id, 2);
        assert!(ledger.leave(2 * SECOND, id));
        assert_eq!(ledger.held[&id].times, 3);
    }

    #[test]
    fn doubts_are_bounded() {
        let mut ledger = Ledger::default();
        for id in 0..2 * MOST_DOUBTS {
            ledger.doubt(Id::from(id as u128));
        }
        assert_eq!(ledger.doubts.len(), MOST_DOUBTS);
    }
}
