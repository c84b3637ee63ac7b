//! Budgets that others take of, too: an engine elsewhere has the last word.
//!
//! What this process sends is part of what all send, so its own limits come first: whoever they deny needs
//! not ask further. Whoever they let through *tries*: the lease is taken here, the engine is asked
//! ([`Event::Try`]), and its answer ([`Desk::tried`]) grants the lease or undoes it. While somebody tries, the
//! shared budgets in question are held, so that nobody overtakes, and there is one question at a time for each.
//! A budget that the engine denied is held until the time that it named, or until something is known to have
//! come back ([`Desk::freed`]).
//!
//! When the engine is lost, [`OnLoss`] says what becomes of those who would ask it.

use super::{Desk, Event, Obstacle, Pace, Refused, Stands, outlook::Told, serve::Shut};
use crate::limits::{
    BudgetId, Day, Denied, LeaseId, Limit, Micros, Settings, Weights, fairness::Ticket,
};

/// The engine is asked again at least so often, whatever time it named: others may have given something back.
const ASKED_AGAIN: Micros = 1_000_000;

/// The same where it could name none, as it depends on others' sends.
const ASKED_AGAIN_SOON: Micros = 100_000;

/// No sooner, whatever it says.
const ASKED_AGAIN_AT_ONCE: Micros = 1_000;

/// How many may come while the engine is asked, whatever room there is: only its answer tells whether they wait.
pub(super) const AT_ONCE: usize = 256;

/// What is done about shared budgets while their engine is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Nothing is granted.
    #[default]
    Closed,
    /// What the engine never hands out is granted: each process has its own share.
    LocalShare,
    /// The limits of this process alone hold.
    Open,
}

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

/// What there is of a shared budget beside its own limits.
#[derive(Debug)]
pub(super) struct Afar {
    /// The part of its limits that the engine never hands out, where there is one, and from when it may be
    /// used: whoever had this share before, until this process began, may have used it in the same window.
    share: Option<(BudgetId, Micros)>,
    /// The day on which this process began: of its cap a share may have been used, too.
    first_day: Option<i64>,
    /// Who tries.
    trial: Option<Ticket>,
    /// What the engine said last, and when it is asked again.
    shut: Option<(Obstacle, Option<Micros>, Micros)>,
    /// The last that was heard was of the engine itself, not of the budget.
    was_away: bool,
}

impl Afar {
    /// It is this day, the first that is told.
    pub(super) fn begins_on(&mut self, day: Day) {
        self.first_day.get_or_insert(day.number);
    }
}

/// One who tries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    way: usize,
    lease: LeaseId,
}

/// Which budgets a lease is taken of.
pub(super) enum Taken {
    /// It may be sent.
    Here(LeaseId),
    /// The engine has to be asked.
    Tries(LeaseId),
}

impl<P: Pace> Desk<P> {
    /// `shared` budgets are the engine's, each with the part of its limits that is this process's own while
    /// the engine is lost, where there is one. Time begins with the process.
    #[must_use]
    pub fn with_engine(
        mut self,
        on_loss: OnLoss,
        shared: impl IntoIterator<Item = (BudgetId, Option<Settings>)>,
    ) -> Self {
        self.on_loss = on_loss;
        for (id, share) in shared {
            let share = share.map(|settings| {
                let windows = settings.windows.iter().map(|window| window.window);
                let longest = windows.max().map_or(0, |longest| longest + settings.margin);
                (self.limits.add(settings), longest)
            });
            if let Some(counter) = self.counters.get_mut(id) {
                counter.afar = Some(Afar {
                    share,
                    first_day: None,
                    trial: None,
                    shut: None,
                    was_away: false,
                });
            }
        }
        self
    }

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

    /// The engine gives no answers.
    pub fn engine_lost(&mut self, now: Micros) {
        if !self.lost {
            self.lost = true;
            self.retell = Some(0);
            let afar = self.counters.iter_mut().filter_map(|c| c.afar.as_mut());
            afar.for_each(|afar| afar.was_away = true);
            self.serve(now);
        }
    }

    /// It answers again.
    pub fn engine_up(&mut self, now: Micros) {
        if self.lost {
            self.lost = false;
            // It may yet have to learn: whoever was told that it is lost hears that soon.
            self.retell = Some(0);
            for counter in &mut self.counters {
                if let Some(afar) = &mut counter.afar {
                    afar.shut = None;
                }
            }
            self.serve(now);
        }
    }

    /// Whether the engine is lost, as far as is known here.
    pub fn is_engine_lost(&self) -> bool {
        self.lost
    }

    /// The engine has heard that something of these budgets is free again.
    pub fn freed(&mut self, now: Micros, budgets: &[BudgetId]) {
        let mut concerns = false;
        for &budget in budgets {
            if let Some(afar) = self.afar_mut(budget)
                && let Some((Obstacle::Limit(_) | Obstacle::Turn, ..)) = afar.shut
            {
                afar.shut = None;
                concerns = true;
            }
        }
        if concerns {
            self.serve(now);
        }
    }

    /// Whether a cap of the day counts sends that this process may not know of.
    fn is_first_day(&self, budget: BudgetId) -> bool {
        let settings = self.limits.settings(budget);
        let is_capped = settings.is_some_and(|settings| !settings.daily.is_empty());
        let first = self.afar(budget).and_then(|afar| afar.first_day);
        is_capped && first.is_none_or(|first| first == self.day(budget).number)
    }

    /// Whether somebody tries for a budget of `set`.
    pub(super) fn is_tried(&self, set: &[BudgetId]) -> bool {
        let mut afar = set.iter().filter_map(|budget| self.afar(*budget));
        afar.any(|afar| afar.trial.is_some())
    }

    /// What stands in the way of `weights` of a budget, beside what this process has sent.
    pub(super) fn shut_by_engine(
        &mut self,
        now: Micros,
        budget: BudgetId,
        weights: Weights,
    ) -> Option<Shut> {
        let afar = self.afar(budget)?;
        let shut = |obstacle, until| {
            Some(Shut {
                budget,
                obstacle,
                until,
            })
        };
        if self.lost {
            return match (self.on_loss, afar.share) {
                (OnLoss::Open, _) => None,
                (OnLoss::LocalShare, Some((_, from))) if now < from => {
                    shut(Obstacle::EngineLearns, Some(from))
                }
                (OnLoss::LocalShare, Some(_)) if self.is_first_day(budget) => {
                    shut(Obstacle::EngineLearns, Some(self.day(budget).ends))
                }
                (OnLoss::LocalShare, Some((share, _))) => {
                    let day = [self.day(budget)];
                    match self.limits.check(now, &[share], &day, weights) {
                        Ok(()) => None,
                        Err(Denied::Full { full, .. }) => {
                            shut(Obstacle::Limit(full.limit), full.until)
                        }
                        Err(Denied::Never { .. }) => shut(Obstacle::EngineLost, None),
                    }
                }
                _ => shut(Obstacle::EngineLost, None),
            };
        }
        match (&afar.trial, afar.shut) {
            (Some(_), _) => shut(Obstacle::EngineAsked, None),
            (None, Some((obstacle, _, again))) if now < again => shut(obstacle, Some(again)),
            _ => None,
        }
    }

    /// What stands in the way of `weights` of a budget by the engine's word, or for want of it, and until when.
    pub(super) fn opens_afar(
        &mut self,
        now: Micros,
        budget: BudgetId,
        weights: Weights,
    ) -> Option<(Obstacle, Option<Micros>)> {
        if self.lost {
            let shut = self.shut_by_engine(now, budget, weights)?;
            return Some((shut.obstacle, shut.until));
        }
        let (obstacle, until, again) = self.afar(budget)?.shut?;
        (now < again).then_some((obstacle, until))
    }

    /// What a lease of `set` takes of: those budgets, and the shares of those whose engine is lost. Whether
    /// the engine has to be asked, too.
    pub(super) fn takes_of(&self, set: &[BudgetId]) -> (Vec<BudgetId>, bool) {
        let mut all = set.to_vec();
        let afar = set.iter().filter_map(|budget| self.afar(*budget));
        if self.lost {
            if self.on_loss == OnLoss::LocalShare {
                all.extend(afar.filter_map(|afar| Some(afar.share?.0)));
            }
            return (all, false);
        }
        (all, afar.count() > 0)
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
        super::for_each_budget(&gone, |budget| {
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
            super::for_each_budget(&waiter.places, |budget| {
                if self.afar(budget).is_some() {
                    shared.push(budget);
                }
            });
        }
        shared
    }

    fn shut_afar(
        &mut self,
        now: Micros,
        budget: BudgetId,
        obstacle: Obstacle,
        until: Option<Micros>,
    ) {
        let again = match until {
            Some(until) => until.clamp(now + ASKED_AGAIN_AT_ONCE, now + ASKED_AGAIN),
            None => now.saturating_add(ASKED_AGAIN_SOON),
        };
        if let Some(afar) = self.afar_mut(budget) {
            afar.shut = Some((obstacle, until, again));
        }
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
        super::for_each_budget(&places, |budget| {
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
        let is_of = |waiter: &super::Waiter| {
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

    fn afar(&self, budget: BudgetId) -> Option<&Afar> {
        self.counters.get(budget)?.afar.as_ref()
    }

    fn afar_mut(&mut self, budget: BudgetId) -> Option<&mut Afar> {
        self.counters.get_mut(budget)?.afar.as_mut()
    }
}
