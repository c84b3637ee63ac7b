//! Leases: one acquire is all or nothing over every budget that matches.

use std::collections::HashMap;

use super::{
    Day, Micros,
    budget::{Budget, Full, Limit},
    settings::{Measure, Settings},
    weights::Weights,
};

/// Names a budget among those of [`Limits`].
pub type BudgetId = usize;

/// Names a lease. Never used twice.
pub type LeaseId = u64;

/// A granted right to make one send.
#[derive(Clone, Debug)]
struct Lease {
    budgets: Box<[BudgetId]>,
    weights: Weights,
    send_by: Micros,
    /// The number of its entry in each budget's log and the day of its send, once it was sent.
    sent: Option<Box<[(u64, i64)]>>,
}

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

/// Why no lease was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It does not fit now.
    Full {
        /// The budget that stands in the way the longest.
        budget: BudgetId,
        /// Which of its limits, and until when.
        full: Full,
    },
    /// It never fits.
    Never {
        /// The budget that is too small.
        budget: BudgetId,
        /// Which of its limits.
        limit: Limit,
    },
}

/// What was done with leases so far. `granted` is the sum of the others and of those that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Leases that were granted.
    pub granted: u64,
    /// Of these: sent.
    pub sent: u64,
    /// Of these: given back unsent.
    pub returned: u64,
    /// Of these: given back because their time to send had passed.
    pub expired: u64,
}

/// Every budget of one engine.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    budgets: Vec<Budget>,
    leases: HashMap<LeaseId, Lease>,
    next: LeaseId,
    account: Account,
    /// When the last of the unsent leases must have been sent.
    last_send_by: Micros,
}

impl Limits {
    /// Budgets that nothing has been taken of.
    pub fn new(settings: impl IntoIterator<Item = Settings>) -> Self {
        Self {
            budgets: settings.into_iter().map(Budget::new).collect(),
            ..Self::default()
        }
    }

    /// Takes `weights` of every budget in `which`, or nothing of any. `days` tells the calendar day of
    /// each, in the same order.
    ///
    /// # Errors
    /// [`Denied`], with the budget that frees up last.
    pub fn acquire(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
        send_by: Micros,
    ) -> Result<LeaseId, Denied> {
        self.check(now, which, days, weights)?;
        let weights = weights.bounded();
        let id = self.next;
        self.next += 1;
        for &budget in which {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.grant(now, id, weights);
            }
        }
        self.account.granted += 1;
        self.last_send_by = self.last_send_by.max(send_by);
        let lease = Lease {
            budgets: which.into(),
            weights,
            send_by,
            sent: None,
        };
        self.leases.insert(id, lease);
        Ok(id)
    }

    /// Whether `weights` would be granted now; takes nothing.
    ///
    /// # Errors
    /// [`Denied`], with the budget that frees up last.
    pub fn check(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Result<(), Denied> {
        let weights = weights.bounded();
        let mut denied: Option<(BudgetId, Full)> = None;
        for (&budget, &day) in which.iter().zip(days) {
            let Some(state) = self.budgets.get_mut(budget) else {
                continue;
            };
            if let Some(limit) = state.never_fits(weights) {
                return Err(Denied::Never { budget, limit });
            }
            let Err(full) = state.check(now, day, weights, self.last_send_by) else {
                continue;
            };
            let later = match (&denied, full.until) {
                (None, _) => true,
                (Some((_, other)), Some(until)) => other.until.is_none_or(|other| other < until),
                (Some(_), None) => false,
            };
            if later {
                denied = Some((budget, full));
            }
        }
        denied.map_or(Ok(()), |(budget, full)| Err(Denied::Full { budget, full }))
    }

    /// Every budget of `which` that denies `weights` now.
    pub fn blocking(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Vec<BudgetId> {
        let weights = weights.bounded();
        let asked = which.iter().zip(days);
        let denies = asked.filter(|&(&budget, &day)| {
            let state = self.budgets.get_mut(budget);
            state.is_some_and(|state| {
                state.never_fits(weights).is_some()
                    || state.check(now, day, weights, self.last_send_by).is_err()
            })
        });
        denies.map(|(&budget, _)| budget).collect()
    }

    /// A lower bound of when `weights` can be granted if those `ahead` go first; exact with nothing ahead
    /// and no unsent lease. `None` where it depends on when a running send ends, and on nothing else.
    pub fn earliest(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
        ahead: Ahead,
    ) -> Option<Micros> {
        let mut earliest = now;
        let mut unknown = false;
        for (&budget, &day) in which.iter().zip(days) {
            let Some(state) = self.budgets.get_mut(budget) else {
                continue;
            };
            match state.earliest(now, day, weights, ahead) {
                Some(at) => earliest = earliest.max(at),
                None => unknown = true,
            }
        }
        (!unknown || earliest > now).then_some(earliest)
    }

    /// The first byte may leave now. Told again, the send before provably did not happen, and the lease
    /// counts from now. `false` if nothing may be sent: the lease is unknown, its time to send has passed,
    /// or the send before no longer counts somewhere.
    pub fn sent(&mut self, now: Micros, id: LeaseId) -> bool {
        let Some(lease) = self.leases.get(&id) else {
            return false;
        };
        if now > lease.send_by {
            return false;
        }
        if lease.sent.is_some() && !self.unsend(now, id) {
            return false;
        }
        let Some(lease) = self.leases.get_mut(&id) else {
            return false;
        };
        let numbers = lease.budgets.iter().map(|&budget| {
            let state = self.budgets.get_mut(budget);
            state.map_or((0, 0), |state| state.sent(now, lease.weights))
        });
        lease.sent = Some(numbers.collect());
        self.account.sent += 1;
        true
    }

    /// What was told as sent provably did not leave: the lease is unsent again. If the send no longer
    /// counts somewhere, others may have its place: then the lease is over, as expired.
    pub fn stayed(&mut self, now: Micros, id: LeaseId) {
        let sent = |lease: &Lease| lease.sent.is_some();
        if self.leases.get(&id).is_none_or(|lease| !sent(lease)) || self.unsend(now, id) {
            return;
        }
        let Some(lease) = self.leases.remove(&id) else {
            return;
        };
        self.account.sent -= 1;
        self.account.expired += 1;
        let places = lease.sent.iter().flatten();
        for (&budget, &place) in lease.budgets.iter().zip(places) {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.unsend(place, lease.weights);
                state.give_back(now, id, lease.weights);
            }
        }
    }

    /// Makes a sent lease unsent, if it still counts wherever it must.
    fn unsend(&mut self, now: Micros, id: LeaseId) -> bool {
        let Some(lease) = self.leases.get_mut(&id) else {
            return false;
        };
        let places = lease.sent.iter().flatten();
        let mut places = lease.budgets.iter().zip(places);
        let counts = places.all(|(&budget, &place)| {
            let state = self.budgets.get_mut(budget);
            state.is_none_or(|state| state.counts(now, place))
        });
        if !counts {
            return false;
        }
        let places = lease.sent.take().unwrap_or_default();
        for (&budget, &place) in lease.budgets.iter().zip(&places) {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.unsend(place, lease.weights);
            }
        }
        self.account.sent -= 1;
        true
    }

    /// The lease will not be sent, or was and is over without anything known: then it settles as it was
    /// reserved.
    pub fn release(&mut self, now: Micros, id: LeaseId) {
        if self
            .leases
            .get(&id)
            .is_some_and(|lease| lease.sent.is_some())
        {
            let weights = self.leases.get(&id).map(|lease| lease.weights);
            return self.settle(now, id, weights.unwrap_or_default());
        }
        let Some(lease) = self.leases.remove(&id) else {
            return;
        };
        for &budget in &lease.budgets {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.give_back(now, id, lease.weights);
            }
        }
        if now > lease.send_by {
            self.account.expired += 1;
        } else {
            self.account.returned += 1;
        }
    }

    /// The send of a lease is over and took `actual`. What was never told as sent is settled as sent now.
    pub fn settle(&mut self, now: Micros, id: LeaseId, actual: Weights) {
        let Some(mut lease) = self.leases.remove(&id) else {
            return;
        };
        let actual = actual.bounded();
        let numbers = lease.sent.take().unwrap_or_else(|| {
            self.account.sent += 1;
            let numbers = lease.budgets.iter().map(|&budget| {
                let state = self.budgets.get_mut(budget);
                state.map_or((0, 0), |state| state.sent(now, lease.weights))
            });
            numbers.collect()
        });
        for (&budget, &place) in lease.budgets.iter().zip(&numbers) {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.settle(now, id, place, lease.weights, actual);
            }
        }
    }

    /// A provider asked all of these budgets' generations not to come back before `until`.
    pub fn penalise(&mut self, which: &[BudgetId], until: Micros) {
        for &budget in which {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.penalise(until);
            }
        }
    }

    /// A provider says that nothing remains before `until`.
    pub fn brake(&mut self, which: &[BudgetId], until: Micros) {
        for &budget in which {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.brake(until);
            }
        }
    }

    /// What was done with leases so far.
    pub fn account(&self) -> Account {
        self.account
    }

    /// How many leases are held.
    pub fn held(&self) -> usize {
        self.leases.len()
    }

    /// The settings of a budget.
    pub fn settings(&self, budget: BudgetId) -> Option<&Settings> {
        self.budgets.get(budget).map(|budget| &budget.settings)
    }

    /// How many budgets there are.
    pub fn len(&self) -> usize {
        self.budgets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.budgets.is_empty()
    }

    /// How many sends a budget runs, how many it remembers, and how often one took more than was reserved.
    pub fn gauges(&self, budget: BudgetId) -> Option<(u64, usize, u64)> {
        let budget = self.budgets.get(budget)?;
        Some((budget.running(), budget.log.len(), budget.overruns))
    }

    /// How much of each limit of a budget is used.
    pub fn used(&mut self, budget: BudgetId, now: Micros, day: Day) -> Vec<(Limit, u64)> {
        let Some(budget) = self.budgets.get_mut(budget) else {
            return Vec::new();
        };
        let windows = budget
            .log
            .used(now)
            .map(|(limit, used)| (Limit::Window(limit), used));
        let mut all: Vec<_> = windows.collect();
        all.extend(
            budget
                .used_today(day)
                .map(|(limit, used)| (Limit::Daily(limit), used)),
        );
        all
    }
}
