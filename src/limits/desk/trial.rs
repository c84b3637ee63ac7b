//! Trials: the engine of shared budgets is asked for one who waits, and what its answer comes to.

use super::{
    Desk, Event, Obstacle, Pace, Refused, Stands, Waiter, for_each_budget,
    outlook::Told,
    shared::{ASKED_AGAIN, ASKED_AGAIN_AT_ONCE},
};
use crate::limits::{BudgetId, LeaseId, Limit, Micros, fairness::Ticket};

/// What the engine says to one who tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It may be sent.
    Granted,
    /// It does not fit now.
    Denied {
        /// The budget that stands in the way the longest.
        budget: BudgetId,
        /// What of it.
        obstacle: Obstacle,
        /// Until when, if nothing is given back before; unknown where it depends on others' sends.
        until: Option<Micros>,
    },
    /// It fits, and it is the turn of others who wait elsewhere.
    Turn {
        /// The budget that is shared fairly.
        budget: BudgetId,
        /// When to ask again.
        again: Micros,
    },
    /// It never fits.
    Never {
        /// The budget that is too small.
        budget: BudgetId,
        /// Which of its limits.
        limit: Limit,
    },
    /// Nothing, this time. Whether it is lost is told by [`Desk::engine_lost`].
    Lost,
}

/// One who tries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    way: usize,
    lease: LeaseId,
}

impl<P: Pace> Desk<P> {
    /// What the engine says to `ticket`. `false` if nobody waits for that any more: what was granted goes back.
    pub fn tried(&mut self, now: Micros, ticket: Ticket, said: Said) -> bool {
        let waiter = self.waiters.get_mut(&ticket);
        let Some(trial) = waiter.and_then(|waiter| waiter.trial.take()) else {
            return false;
        };
        self.trial_is_over(ticket);
        self.hears_of(ticket, said);
        match said {
            Said::Granted => self.trial_succeeds(now, ticket, trial),
            Said::Denied {
                budget,
                obstacle,
                until,
            } => {
                self.limits.undo(now, trial.lease);
                self.shut_afar(now, budget, obstacle, until);
                self.denied_afar(now, ticket);
            }
            Said::Turn { budget, again } => {
                self.limits.undo(now, trial.lease);
                let again = again.clamp(now + ASKED_AGAIN_AT_ONCE, now + ASKED_AGAIN);
                if let Some(afar) = self.afar_mut(budget) {
                    afar.shut = Some((Obstacle::Turn, None, again));
                }
                self.denied_afar(now, ticket);
            }
            Said::Never { budget, limit } => {
                self.limits.undo(now, trial.lease);
                if self.leave_way(ticket, trial.way) {
                    self.retell = Some(0);
                } else {
                    self.remove(ticket);
                    self.count_refused(budget);
                    let why = Refused::Never { budget, limit };
                    self.events.push_back(Event::Refused { ticket, why });
                }
            }
            Said::Lost => {
                self.limits.undo(now, trial.lease);
                for budget in self.shared_of(ticket) {
                    self.shut_afar(now, budget, Obstacle::EngineLost, None);
                }
                self.denied_afar(now, ticket);
            }
        }
        self.serve(now);
        said == Said::Granted
    }

    /// `ticket`, which waits, tries by one of its ways.
    pub(super) fn begin_trial(&mut self, ticket: Ticket, way: usize, lease: LeaseId) {
        let Some(waiter) = self.waiters.get_mut(&ticket) else {
            return;
        };
        waiter.trial = Some(Trial { way, lease });
        let place = waiter.places.iter().find(|(index, _)| *index == way);
        let Some((_, place)) = place.cloned() else {
            return;
        };
        let (weights, send_within) = (waiter.weights, waiter.send_within);
        let (line, more) = self.queue.line_of(&place);
        let stands = Stands {
            domain: line.domain,
            flow: line.flow.into(),
            weight: line.weight,
            more,
        };
        for &budget in place.set.iter() {
            if let Some(afar) = self.afar_mut(budget) {
                afar.trial = Some(ticket);
            }
        }
        self.events.push_back(Event::Try {
            ticket,
            budgets: place.set,
            stands,
            weights,
            send_within,
        });
    }

    /// Whoever tried is gone: its lease was never taken.
    pub(super) fn forget_trial(&mut self, now: Micros, ticket: Ticket, trial: Trial) {
        self.limits.undo(now, trial.lease);
        self.trial_is_over(ticket);
    }

    fn trial_is_over(&mut self, ticket: Ticket) {
        for counter in &mut self.counters {
            if let Some(afar) = &mut counter.afar
                && afar.trial == Some(ticket)
            {
                afar.trial = None;
            }
        }
    }

    /// Once the engine speaks of budgets again, and no longer of itself, all learn what they wait for: they
    /// were told of the engine, and for how long that was to last.
    fn hears_of(&mut self, ticket: Ticket, said: Said) {
        let is_away = match said {
            Said::Denied { obstacle, .. } => obstacle.is_engine(),
            Said::Lost => true,
            Said::Granted | Said::Turn { .. } | Said::Never { .. } => false,
        };
        for budget in self.shared_of(ticket) {
            if let Some(afar) = self.afar_mut(budget) {
                let was_away = std::mem::replace(&mut afar.was_away, is_away);
                if was_away && !is_away {
                    self.retell = Some(0);
                }
            }
        }
    }

    fn trial_succeeds(&mut self, now: Micros, ticket: Ticket, trial: Trial) {
        let Some(waiter) = self.remove(ticket) else {
            return;
        };
        let Trial { way, lease } = trial;
        if let Some((_, place)) = waiter.places.iter().find(|(index, _)| *index == way) {
            self.queue.charge_place(place);
            self.count_granted(now, &place.set);
        }
        self.events.push_back(Event::Granted { ticket, way, lease });
    }

    /// `ticket` no longer waits for one of its ways. `false` if it has no other.
    fn leave_way(&mut self, ticket: Ticket, way: usize) -> bool {
        let waiter = self.waiters.get_mut(&ticket);
        let Some(waiter) = waiter.filter(|waiter| waiter.places.len() > 1) else {
            return false;
        };
        let places = std::mem::take(&mut waiter.places).into_iter();
        let (gone, kept): (Vec<_>, Vec<_>) = places.partition(|(index, _)| *index == way);
        let (weights, of_others) = (waiter.weights, kept.clone());
        waiter.places = kept.into();
        for (_, place) in &gone {
            self.queue.leave(place, ticket, weights);
        }
        for_each_budget(&gone, |budget| {
            let mut others = of_others.iter();
            if !others.any(|(_, place)| place.set.contains(&budget))
                && let Some(counter) = self.counters.get_mut(budget)
            {
                counter.waiting -= 1;
            }
        });
        !gone.is_empty()
    }

    fn shared_of(&self, ticket: Ticket) -> Vec<BudgetId> {
        let mut shared = Vec::new();
        if let Some(waiter) = self.waiters.get(&ticket) {
            for_each_budget(&waiter.places, |budget| {
                if self.afar(budget).is_some() {
                    shared.push(budget);
                }
            });
        }
        shared
    }

    /// `ticket` waits from now on, if it did not before: there must be room for that, and those who came while
    /// it tried learn what they wait for.
    fn denied_afar(&mut self, now: Micros, ticket: Ticket) {
        let Some(waiter) = self.waiters.get_mut(&ticket) else {
            return;
        };
        if waiter.told.obstacle != Obstacle::EngineAsked {
            return self.reconsider(now, ticket, Told::Now);
        }
        let places = waiter.places.clone();
        for_each_budget(&places, |budget| {
            if let Some(counter) = self.counters.get_mut(budget) {
                counter.counts.waited += 1;
            }
            self.refuse_the_last(now, budget);
        });
        self.retell = Some(0);
    }

    /// Those who came while the engine was asked had a place whatever the room.
    fn refuse_the_last(&mut self, now: Micros, budget: BudgetId) {
        let Some(counter) = self.counters.get(budget) else {
            return;
        };
        let excess = counter.waiting.saturating_sub(counter.max_waiting);
        let is_of = |waiter: &Waiter| {
            let mut sets = waiter.places.iter().map(|(_, place)| &place.set);
            sets.any(|set| set.contains(&budget))
        };
        let last = self.waiters.iter().rev();
        let last = last.filter(|(_, waiter)| is_of(waiter) && waiter.trial.is_none());
        let last: Vec<Ticket> = last.take(excess).map(|(ticket, _)| *ticket).collect();
        for ticket in last {
            let Some(waiter) = self.remove(ticket) else {
                continue;
            };
            let outlook = self.outlook(now, &waiter.places, waiter.weights);
            self.count_refused(budget);
            let why = Refused::QueueFull { budget, outlook };
            self.events.push_back(Event::Refused { ticket, why });
        }
    }
}
