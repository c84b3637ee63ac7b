//! Rounds: who of those who wait may go.

use super::{Desk, Event, GRANTS_A_LOOK, Holder, Obstacle, Pace, outlook::Told, shared::Taken};
use crate::limits::{
    BudgetId, Day, Denied, Micros, Weights,
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
        let waiter = self.waiters.get(&ticket);
        let Some(waiter) = waiter.filter(|waiter| waiter.trial.is_none()) else {
            return false;
        };
        let place = waiter.places.iter().find(|(_, place)| place.set == *set);
        let Some((way, place)) = place.cloned() else {
            return false;
        };
        let (weights, within) = (waiter.weights, waiter.send_within);
        match self.take(now, set, weights, within) {
            Ok(Taken::Here(lease)) => {
                self.queue.charge_place(&place);
                self.remove(ticket);
                self.count_granted(now, set);
                self.events.push_back(Event::Granted { ticket, way, lease });
                true
            }
            Ok(Taken::Tries(lease)) => {
                self.begin_trial(ticket, way, lease);
                false
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
    ) -> Result<Taken, Vec<Shut>> {
        let paced = set.iter().all(|budget| self.pace.next(now, *budget) <= now);
        let by_engine = |budget: &BudgetId| self.shut_by_engine(now, *budget, weights).is_some();
        if paced && !set.iter().any(by_engine) {
            let (all, asks) = self.takes_of(set);
            let days = self.days(set);
            let send_by = now.saturating_add(within);
            if let Ok(lease) = self.limits.acquire(now, &all, &days, weights, send_by) {
                return Ok(match asks {
                    true => Taken::Tries(lease),
                    false => Taken::Here(lease),
                });
            }
        }
        Err(set
            .iter()
            .filter_map(|budget| self.shut(now, *budget, weights))
            .collect())
    }

    /// A lease of `set` may be sent.
    pub(super) fn count_granted(&mut self, now: Micros, set: &[BudgetId]) {
        for &budget in set {
            self.pace.take(now, budget);
            if let Some(counter) = self.counters.get_mut(budget) {
                counter.counts.granted += 1;
            }
        }
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
                let paced = (next > now).then_some(Shut {
                    budget,
                    obstacle: Obstacle::Pace,
                    until: Some(next),
                });
                paced.or_else(|| self.shut_by_engine(now, budget, weights))
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
