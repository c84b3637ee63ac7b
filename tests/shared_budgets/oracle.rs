//! The pure limits, told the same as the server; and what the distance adds: leases end by themselves, and
//! one that was not told as sent counts as sent then.

use std::collections::BTreeMap;

use redrive::limits::*;

/// A lease that the pure limits hold.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    lease: LeaseId,
    sent: bool,
    ends: Micros,
    /// It lives longer than it was granted for.
    renewed: bool,
}

impl Held {
    pub fn is_sent(self) -> bool {
        self.sent
    }

    pub fn is_renewed(self) -> bool {
        self.renewed
    }
}

/// The limits, and the leases by their names on the server.
pub struct Oracle {
    pub limits: Limits,
    pub held: BTreeMap<u128, Held>,
    life: Micros,
    now: Micros,
    /// Leases that ended unsent: the limits were told that they were sent.
    ended_unsent: u64,
}

impl Oracle {
    pub fn new(settings: &[Settings], most: usize, life: Micros) -> Self {
        Self {
            limits: Limits::remembering(settings.iter().cloned(), most),
            held: BTreeMap::new(),
            life,
            now: 0,
            ended_unsent: 0,
        }
    }

    /// What time it is. Time does not run back.
    pub fn turn(&mut self, now: Micros) -> Micros {
        self.now = self.now.max(now);
        let mut due: Vec<_> = self
            .held
            .iter()
            .map(|(id, held)| (held.ends, *id))
            .collect();
        due.sort_unstable();
        for (ends, id) in due {
            if ends > self.now {
                break;
            }
            let held = self.held.remove(&id).unwrap();
            if !held.sent {
                assert!(self.limits.sent(ends, held.lease));
                self.ended_unsent += 1;
            }
            self.limits.release(ends, held.lease);
        }
        self.now
    }

    pub fn acquire(
        &mut self,
        id: u128,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
        send_within: Micros,
    ) -> Result<(), Denied> {
        let now = self.now;
        let ends = (now + self.life).max(now + send_within + 1);
        // Until its end it may be told as sent.
        let lease = self.limits.acquire(now, which, days, weights, ends)?;
        let held = Held {
            lease,
            sent: false,
            ends,
            renewed: false,
        };
        self.held.insert(id, held);
        Ok(())
    }

    pub fn sent(&mut self, id: u128) -> bool {
        let Some(held) = self.held.get_mut(&id) else {
            return false;
        };
        held.sent = true;
        self.limits.sent(self.now, held.lease)
    }

    /// Whether it is still held.
    pub fn stayed(&mut self, id: u128) -> bool {
        let Some(held) = self.held.get_mut(&id) else {
            return false;
        };
        held.sent = false;
        let before = self.limits.held();
        self.limits.stayed(self.now, held.lease);
        let over = self.limits.held() < before;
        if over {
            self.held.remove(&id);
        }
        !over
    }

    /// Whether it is held.
    pub fn answered(&mut self, id: u128) -> bool {
        let held = self.held.get(&id);
        held.is_some_and(|held| {
            self.limits.answered(self.now, held.lease);
            true
        })
    }

    pub fn settle(&mut self, id: u128, actual: Weights) -> bool {
        let held = self.held.remove(&id);
        held.is_some_and(|held| {
            self.limits.settle(self.now, held.lease, actual);
            true
        })
    }

    pub fn release(&mut self, id: u128) -> bool {
        let held = self.held.remove(&id);
        held.is_some_and(|held| {
            self.limits.release(self.now, held.lease);
            true
        })
    }

    /// Prolongs those that were sent.
    pub fn renew(&mut self) {
        let until = self.now + self.life;
        for held in self.held.values_mut().filter(|held| held.sent) {
            held.renewed |= held.ends < until;
            held.ends = held.ends.max(until);
        }
    }

    pub fn account(&self) -> Account {
        let account = self.limits.account();
        Account {
            sent: account.sent - self.ended_unsent,
            expired: account.expired + self.ended_unsent,
            ..account
        }
    }
}
