//! The leases that this process holds: what it may send, what it renews, and what it tells again when the
//! engine has forgotten.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::{Id, Today, micros};
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
    /// Its time, as it was told.
    heard: Option<Reading>,
}

/// The engine's time, when it was told, and in which epoch.
#[derive(Clone, Debug)]
struct Reading {
    epoch: String,
    engine: Micros,
    at: Duration,
}

/// What the engine is told with each call: what was heard of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The last epoch; empty before the first.
    pub(super) epoch: String,
    /// What time it is there at least: it was told, and so long ago. -1 before the first.
    pub(super) at_least: i64,
    /// How much later it may be: answers and calls take their time.
    pub(super) slack: Micros,
}

/// Two clocks drift apart by less than one part in so many.
const DRIFT: u32 = 1_000;

/// A call lies around for less than this, or nobody waits for its answer; and the time-out, if that is longer.
const LEAST_SLACK: Duration = Duration::from_millis(100);

impl Reading {
    /// What time it is there at least.
    fn at_least(&self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.at);
        Duration::from_micros(self.engine).saturating_add(passed - passed / DRIFT)
    }
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

    /// Notes what time it is there; kept is what says that it is latest, since an answer may have lain around.
    pub(super) fn hear(&mut self, epoch: &str, engine: Micros, now: Duration) {
        let known = self.heard.as_ref().filter(|heard| heard.epoch == epoch);
        if known.is_some_and(|heard| heard.at_least(now) > Duration::from_micros(engine)) {
            return;
        }
        self.heard = Some(Reading {
            epoch: epoch.into(),
            engine,
            at: now,
        });
    }

    /// What is known now by one who waits for answers for so long.
    pub(super) fn known(&self, now: Duration, timeout: Duration) -> Known {
        let Some(heard) = &self.heard else {
            return Known {
                at_least: -1,
                ..Known::default()
            };
        };
        let drift = now.saturating_sub(heard.at) / DRIFT;
        let slack = timeout.max(LEAST_SLACK).saturating_add(2 * drift);
        Known {
            epoch: heard.epoch.clone(),
            at_least: i64::try_from(micros(heard.at_least(now))).unwrap_or(-1),
            slack: micros(slack),
        }
    }

    /// The engine's clock, as far as it is known.
    pub(super) fn engine_now(&self, now: Duration) -> Option<Duration> {
        self.heard.as_ref().map(|heard| heard.at_least(now))
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
    fn the_engines_time_is_at_least_what_the_latest_answer_says() {
        let mut ledger = Ledger::default();
        let timeout = Duration::from_millis(50);
        let nothing = ledger.known(SECOND, timeout);
        assert_eq!((&*nothing.epoch, nothing.at_least), ("", -1));
        ledger.hear("a", 100_000_000, SECOND);
        let known = ledger.known(11 * SECOND, timeout);
        // Ten seconds later, and its clock may be slower or faster by a thousandth of that.
        let expected = Known {
            epoch: "a".into(),
            at_least: 109_990_000,
            slack: 120_000,
        };
        assert_eq!(known, expected);
        // An answer that lay around says nothing new; one that did not does.
        ledger.hear("a", 109_000_000, 11 * SECOND);
        assert_eq!(ledger.known(11 * SECOND, timeout), expected);
        ledger.hear("a", 109_995_000, 11 * SECOND);
        assert_eq!(ledger.known(11 * SECOND, timeout).at_least, 109_995_000);
        assert_eq!(ledger.known(11 * SECOND, SECOND).slack, 1_000_000);
        // Another epoch has another time.
        ledger.hear("b", 5, 11 * SECOND);
        let known = ledger.known(11 * SECOND, timeout);
        assert_eq!((&*known.epoch, known.at_least), ("b", 5));
        assert_eq!(ledger.engine_now(12 * SECOND).unwrap().as_micros(), 999_005);
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
