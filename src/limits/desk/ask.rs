//! Asking: at once, or with a place in the queue.

use super::{
    Asked, Choice, Desk, Obstacle, Pace, Refused, Waiter, for_each_budget,
    serve::Shut,
    shared::{AT_ONCE, Taken},
};
use crate::limits::{
    BudgetId, Denied, Limit, Micros, Weights,
    fairness::{Place, Ticket},
};

/// One who did not wait before.
struct Newcomer {
    ticket: Ticket,
    weights: Weights,
    send_within: Micros,
    /// The engine is asked for it.
    tries: bool,
}

impl<P: Pace> Desk<P> {
    /// Asks for a lease by one of `ways`, the first that goes; at least one. `send_within` is how long
    /// after its grant it may be sent.
    pub fn ask(
        &mut self,
        now: Micros,
        ways: &[Choice<'_>],
        weights: Weights,
        send_within: Micros,
    ) -> Asked {
        if self.look.is_some_and(|look| look <= now) {
            // Who waits and may go by now goes first.
            self.serve(now);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let mut fits = Vec::with_capacity(ways.len());
        let mut never = None;
        for (index, way) in ways.iter().enumerate() {
            match self.never_fits(now, way, weights) {
                Some(limit) => never = Some(limit),
                None => fits.push((index, way)),
            }
        }
        let mut first_but_denied = Vec::new();
        let mut tries = None;
        for &(index, way) in &fits {
            if !self.goes_first(now, way, ticket) {
                continue;
            }
            let line = way.line();
            match self.take(now, way.budgets, weights, send_within) {
                Ok(Taken::Here(lease)) => {
                    self.queue.charge(line, self.cost(line.domain, weights));
                    self.count_granted(now, way.budgets);
                    return Asked::Granted { way: index, lease };
                }
                Ok(Taken::Tries(lease)) => {
                    tries = Some((index, lease));
                    break;
                }
                Err(shut) => first_but_denied.push((index, shut)),
            }
        }
        if fits.is_empty()
            && let Some((budget, limit)) = never
        {
            self.count_refused(budget);
            return Asked::Refused(Refused::Never { budget, limit });
        }
        let newcomer = Newcomer {
            ticket,
            weights,
            send_within,
            tries: tries.is_some(),
        };
        let asked = self.wait(now, &fits, newcomer, &first_but_denied);
        if let Some((way, lease)) = tries {
            self.begin_trial(ticket, way, lease);
        }
        asked
    }

    /// The first limit of a way that `weights` can never fit.
    fn never_fits(
        &mut self,
        now: Micros,
        way: &Choice<'_>,
        weights: Weights,
    ) -> Option<(BudgetId, Limit)> {
        way.budgets.iter().find_map(|&budget| {
            let day = [self.day(budget)];
            match self.limits.check(now, &[budget], &day, weights) {
                Err(Denied::Never { budget, limit }) => Some((budget, limit)),
                _ => None,
            }
        })
    }

    /// Whether nobody who waits comes before a newcomer on any of the way's budgets.
    fn goes_first(&self, now: Micros, way: &Choice<'_>, ticket: Ticket) -> bool {
        if self.look.is_some_and(|look| look <= now) {
            // The round was too long: not everybody who may go has gone.
            return false;
        }
        let line = way.line();
        let Some(key) = self.queue.front(way.budgets, line, ticket) else {
            return false;
        };
        way.budgets.iter().all(|budget| {
            let Some(holder) = self.holder(*budget) else {
                return true;
            };
            // Between domains the first to come goes first, and that is who holds it.
            let before = self.queue.key(&holder.set, line.domain, holder.ticket);
            before.is_some_and(|holder| key < holder)
        })
    }

    /// Gives it a place in the lanes of all ways that have room.
    fn wait(
        &mut self,
        now: Micros,
        ways: &[(usize, &Choice<'_>)],
        newcomer: Newcomer,
        first_but_denied: &[(usize, Vec<Shut>)],
    ) -> Asked {
        let Newcomer {
            ticket,
            weights,
            send_within,
            tries,
        } = newcomer;
        let mut fullest = None;
        let mut places: Vec<(usize, Place)> = Vec::new();
        for &(index, way) in ways {
            let asks = tries || self.is_tried(way.budgets);
            let mut full = way
                .budgets
                .iter()
                .filter(|budget| self.is_full(**budget, asks));
            if let Some(&budget) = full.next() {
                fullest = Some((budget, way));
                continue;
            }
            if places.iter().any(|(_, place)| *place.set == *way.budgets) {
                continue;
            }
            let line = way.line();
            let cost = self.cost(line.domain, weights);
            let place = self.queue.join(way.budgets, line, ticket, weights, cost);
            places.push((index, place));
        }
        if let Some((budget, way)) = fullest.filter(|_| places.is_empty()) {
            self.count_refused(budget);
            let outlook = self.outlook_of_set(now, way.budgets, weights, Default::default());
            return Asked::Refused(Refused::QueueFull { budget, outlook });
        }
        for (index, shut) in first_but_denied {
            if let Some((_, place)) = places.iter().find(|(other, _)| other == index) {
                self.hold(ticket, &place.set, shut);
            }
        }
        for_each_budget(&places, |budget| {
            if let Some(counter) = self.counters.get_mut(budget) {
                counter.waiting += 1;
                counter.counts.waited += u64::from(!tries);
            }
        });
        let mut outlook = self.outlook(now, &places, weights);
        if tries {
            outlook.obstacle = Obstacle::EngineAsked;
            outlook.expected = None;
        }
        let review = outlook.review(now);
        self.reviews.insert((review, ticket));
        let waiter = Waiter {
            places: places.into(),
            weights,
            send_within,
            told: outlook,
            looked_at: now,
            review,
            trial: None,
        };
        self.waiters.insert(ticket, waiter);
        Asked::Waits { ticket, outlook }
    }

    /// Whether nobody more can wait for a budget. Who comes while its engine `asks` is told later.
    fn is_full(&self, budget: BudgetId, asks: bool) -> bool {
        let counter = self.counters.get(budget);
        counter.is_some_and(|counter| {
            let more = if asks { AT_ONCE } else { 0 };
            counter.waiting >= counter.max_waiting.saturating_add(more)
        })
    }

    pub(super) fn count_refused(&mut self, budget: BudgetId) {
        if let Some(counter) = self.counters.get_mut(budget) {
            counter.counts.refused += 1;
        }
    }
}
