//! What becomes of a lease: sent or given back, renewed or expired, and settled.

use super::{
    Micros,
    acquire::{BudgetId, Limits},
    budget::{Budget, Place},
    weights::Weights,
};

/// Names a lease. Never used twice.
pub type LeaseId = u64;

/// A granted right to make one send.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) parts: Box<[Part]>,
    pub(super) weights: Weights,
    pub(super) send_by: Micros,
    pub(super) sent: bool,
    /// When it is over unless it is renewed; never where leases have no life.
    pub(super) ends: Option<Micros>,
}

/// What a lease takes of one budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) budget: BudgetId,
    /// Where the send is counted, once it was sent.
    pub(super) place: Place,
}

/// What was done with leases so far. `granted` is the sum of the others and of those that are held unsent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Leases that were granted.
    pub granted: u64,
    /// Of these: sent.
    pub sent: u64,
    /// Of these: given back unsent.
    pub returned: u64,
    /// Of these: over unsent because their time to send, or their life, had passed.
    pub expired: u64,
}

/// How a lease goes back that was not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unsent {
    Returned,
    Expired,
}

impl Limits {
    /// The first byte may leave now. Told again, the send before provably did not happen, and the lease
    /// counts from now. `false` if nothing may be sent: the lease is unknown, its time to send has passed,
    /// or the send before no longer counts somewhere; what was told before still stands.
    pub fn sent(&mut self, now: Micros, id: LeaseId) -> bool {
        let now = self.clock(now);
        let late = |lease: &Lease| now > lease.send_by;
        if self.leases.get(&id).is_none_or(late) || !self.take_back(now, id) {
            return false;
        }
        let Some(lease) = self.leases.get_mut(&id) else {
            return false;
        };
        lease.sent = true;
        for part in &mut lease.parts {
            if let Some(budget) = self.budgets.get_mut(part.budget) {
                part.place = budget.sent(now, lease.weights);
            }
        }
        self.account.sent += 1;
        true
    }

    /// What was told as sent provably did not leave: the lease is unsent again. If the send no longer
    /// counts somewhere, another may have been granted in its place: then the lease is over, as expired.
    pub fn stayed(&mut self, now: Micros, id: LeaseId) {
        let now = self.clock(now);
        if self.take_back(now, id) {
            return;
        }
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        lease.unsend(&mut self.budgets);
        self.account.sent -= 1;
        self.give_back(now, id, Unsent::Expired);
    }

    /// Makes a lease unsent if it is not. `false` if it cannot be: it is unknown, or no longer counts
    /// wherever it must.
    fn take_back(&mut self, now: Micros, id: LeaseId) -> bool {
        let Some(lease) = self.leases.get_mut(&id) else {
            return false;
        };
        if !lease.sent {
            return true;
        }
        let recalls = lease.parts.iter().all(|part| {
            let budget = self.budgets.get_mut(part.budget);
            budget.is_none_or(|budget| budget.recalls(now, part.place))
        });
        if recalls {
            lease.unsend(&mut self.budgets);
            self.account.sent -= 1;
        }
        recalls
    }

    /// The lease will not be sent, or was and is over without anything known: then it stays counted as it
    /// was reserved.
    pub fn release(&mut self, now: Micros, id: LeaseId) {
        let now = self.clock(now);
        let Some(lease) = self.leases.get(&id) else {
            return;
        };
        if lease.sent {
            self.close(now, id, None);
        } else if now > lease.send_by {
            self.give_back(now, id, Unsent::Expired);
        } else {
            self.give_back(now, id, Unsent::Returned);
        }
    }

    /// An unsent lease was not granted after all.
    pub(super) fn undo(&mut self, now: Micros, id: LeaseId) {
        let now = self.clock(now);
        if self.leases.get(&id).is_some_and(|lease| !lease.sent) {
            self.give_back(now, id, Unsent::Returned);
            self.account.returned -= 1;
            self.account.granted -= 1;
        }
    }

    /// The send of a lease is over and took `actual`. What was never told as sent is settled as sent now.
    pub fn settle(&mut self, now: Micros, id: LeaseId, actual: Weights) {
        let now = self.clock(now);
        self.close(now, id, Some(actual));
    }

    /// The answer to the send of a lease has begun: a probe among its budgets has shown that the rest is
    /// over. Whether there was one.
    pub fn answered(&mut self, now: Micros, id: LeaseId) -> bool {
        let now = self.clock(now);
        let Some(lease) = self.leases.get(&id).filter(|lease| lease.sent) else {
            return false;
        };
        let mut opened = false;
        for part in &lease.parts {
            if let Some(budget) = self.budgets.get_mut(part.budget) {
                opened |= budget.answered(now, id);
            }
        }
        opened
    }

    /// The holder of these leases lives: they end no sooner than `until`. Those that are over already are
    /// told: their sends must be cut.
    pub fn renew(&mut self, now: Micros, ids: &[LeaseId], until: Micros) -> Vec<LeaseId> {
        self.clock(now);
        let mut over = Vec::new();
        for &id in ids {
            let Some(lease) = self.leases.get_mut(&id) else {
                over.push(id);
                continue;
            };
            if let Some(ends) = &mut lease.ends
                && *ends < until
            {
                self.ends.remove(&(*ends, id));
                *ends = until;
                self.ends.insert((until, id));
            }
        }
        over
    }

    /// Lets go of leases that were not renewed in time.
    pub(super) fn expire(&mut self, now: Micros) {
        while let Some(&(ends, id)) = self.ends.first()
            && ends <= now
        {
            if self.leases.get(&id).is_some_and(|lease| lease.sent) {
                self.close(now, id, None);
            } else {
                self.give_back(now, id, Unsent::Expired);
            }
            self.ends.remove(&(ends, id));
        }
    }

    fn give_back(&mut self, now: Micros, id: LeaseId, how: Unsent) {
        let Some(lease) = self.remove(id) else {
            return;
        };
        for part in &lease.parts {
            if let Some(budget) = self.budgets.get_mut(part.budget) {
                budget.give_back(now, id, lease.weights);
            }
        }
        match how {
            Unsent::Returned => self.account.returned += 1,
            Unsent::Expired => self.account.expired += 1,
        }
    }

    /// A send is over; `actual` is what it took, if that is known.
    fn close(&mut self, now: Micros, id: LeaseId, actual: Option<Weights>) {
        let Some(lease) = self.remove(id) else {
            return;
        };
        if !lease.sent {
            self.account.sent += 1;
        }
        for part in &lease.parts {
            if let Some(budget) = self.budgets.get_mut(part.budget) {
                let place = if lease.sent {
                    part.place
                } else {
                    budget.sent(now, lease.weights)
                };
                budget.settle(now, id, place, lease.weights, actual);
            }
        }
    }

    fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        if let Some(ends) = lease.ends {
            self.ends.remove(&(ends, id));
        }
        Some(lease)
    }
}

impl Lease {
    /// Its send did not happen.
    fn unsend(&mut self, budgets: &mut [Budget]) {
        self.sent = false;
        for part in &self.parts {
            if let Some(budget) = budgets.get_mut(part.budget) {
                budget.take_back(part.place, self.weights);
            }
        }
    }
}
