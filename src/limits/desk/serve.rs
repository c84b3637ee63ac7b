//! Rounds: who of those who wait may go.

use super::{Desk, Event, GRANTS_A_LOOK, Holder, Obstacle, Pace, outlook::Told};
use crate::limits::{
    BudgetId, Day, Denied, LeaseId, Micros, Weights,
    fairness::{SetKey, Ticket},
};

/// A budget that stands in the way.
pub(super) struct Shut {
    pub(super) budget: BudgetId,
    pub(super) obstacle: Obstacle,
    /// When it no longer does, as far as that depends on time alone.
    pub(super) until: Option<Micros>,
}

impl<P: Pace> Desk<P> {
    /// The time of [`Desk::next_look`] has come.
    pub fn look(&mut self, now: Micros) {
        if self.look.is_some_and(|look| look <= now) {
            self.serve(now);
        }
        self.review(now);
    }

    /// Grants what can be granted, in order.
    pub(super) fn serve(&mut self, now: Micros) {
        let mut left = GRANTS_A_LOOK;
        while self.round(now, &mut left) {}
    }

    /// One round. Whether another is due: one who held a budget was granted by another of its ways.
    fn round(&mut self, now: Micros, left: &mut usize) -> bool {
        if self.waiters.is_empty() {
            return false;
        }
        self.look = None;
        for counter in &mut self.counters {
            counter.holder = None;
        }
        let mut released = false;
        let mut round = self.queue.round();
        while let Some((set, key)) = round.next(&self.queue) {
            if set.iter().any(|budget| self.holder(*budget).is_some()) {
                continue;
            }
            if *left == 0 {
                self.look = Some(now);
                return false;
            }
            let ticket = key.ticket();
            if self.try_first(now, &set, ticket) {
                *left -= 1;
                released |= self.holds(ticket);
                round.again(&self.queue, &set);
            }
        }
        released
    }

    /// Whether `ticket` holds a budget.
    pub(super) fn holds(&self, ticket: Ticket) -> bool {
        let mut holders = self.counters.iter().flat_map(|counter| &counter.holder);
        holders.any(|holder| holder.ticket == ticket)
    }

    /// Grants the first of a set, or lets it hold what denies it.
    fn try_first(&mut self, now: Micros, set: &SetKey, ticket: Ticket) -> bool {
        let Some(waiter) = self.waiters.get(&ticket) else {
            return false;
        };
        let place = waiter.places.iter().find(|(_, place)| place.set == *set);
        let Some((way, place)) = place.cloned() else {
            return false;
        };
        let (weights, within) = (waiter.weights, waiter.send_within);
        match self.take(now, set, weights, within) {
            Ok(lease) => {
                self.queue.charge_place(&place);
                self.remove(ticket);
                self.events.push_back(Event::Granted { ticket, way, lease });
                true
            }
            Err(shut) => {
                self.hold(ticket, set, &shut);
                self.reconsider(now, ticket, Told::IfOther);
                false
            }
        }
    }

    /// `ticket`, the first of `set`, holds every budget that denies it.
    pub(super) fn hold(&mut self, ticket: Ticket, set: &SetKey, shut: &[Shut]) {
        for shut in shut {
            if let Some(until) = shut.until {
                self.look = Some(self.look.map_or(until, |look| look.min(until)));
            }
            if let Some(counter) = self.counters.get_mut(shut.budget) {
                counter.holder = Some(Holder {
                    ticket,
                    set: SetKey::clone(set),
                    obstacle: shut.obstacle,
                });
            }
        }
    }

    /// Takes a lease of all budgets, or says which deny it: the limits first, then the pace.
    pub(super) fn take(
        &mut self,
        now: Micros,
        set: &[BudgetId],
        weights: Weights,
        within: Micros,
    ) -> Result<LeaseId, Vec<Shut>> {
        let paced = set.iter().all(|budget| self.pace.next(now, *budget) <= now);
        if paced {
            let days = self.days(set);
            let send_by = now.saturating_add(within);
            if let Ok(lease) = self.limits.acquire(now, set, &days, weights, send_by) {
                for &budget in set {
                    self.pace.take(now, budget);
                    if let Some(counter) = self.counters.get_mut(budget) {
                        counter.counts.granted += 1;
                    }
                }
                return Ok(lease);
            }
        }
        Err(set
            .iter()
            .filter_map(|budget| self.shut(now, *budget, weights))
            .collect())
    }

    /// Whether one budget stands in the way of `weights` now.
    pub(super) fn shut(&mut self, now: Micros, budget: BudgetId, weights: Weights) -> Option<Shut> {
        let day = [self.day(budget)];
        match self.limits.check(now, &[budget], &day, weights) {
            Err(Denied::Full { full, .. }) => Some(Shut {
                budget,
                obstacle: Obstacle::Limit(full.limit),
                until: full.until,
            }),
            Err(Denied::Never { limit, .. }) => Some(Shut {
                budget,
                obstacle: Obstacle::Limit(limit),
                until: None,
            }),
            Ok(()) => {
                let next = self.pace.next(now, budget);
                (next > now).then_some(Shut {
                    budget,
                    obstacle: Obstacle::Pace,
                    until: Some(next),
                })
            }
        }
    }

    pub(super) fn holder(&self, budget: BudgetId) -> Option<&Holder> {
        self.counters.get(budget)?.holder.as_ref()
    }

    fn days(&self, set: &[BudgetId]) -> Vec<Day> {
        set.iter().map(|budget| self.day(*budget)).collect()
    }
}
