//! Budgets that others take of, too: an engine elsewhere has the last word.
//!
//! What this process sends is part of what all send, so its own limits come first: whoever they deny needs
//! not ask further. Whoever they let through *tries*: the lease is taken here, the engine is asked
//! ([`Event::Try`](super::Event::Try)), and its answer ([`Desk::tried`]) grants the lease or undoes it. While somebody tries, the
//! shared budgets in question are held, so that nobody overtakes, and there is one question at a time for each.
//! A budget that the engine denied is held until the time that it named, or until something is known to have
//! come back ([`Desk::freed`]).
//!
//! When the engine is lost, [`OnLoss`] says what becomes of those who would ask it.

use super::{Desk, Obstacle, Pace, serve::Shut};
use crate::limits::{BudgetId, Day, Denied, LeaseId, Micros, Settings, Weights, fairness::Ticket};

/// The engine is asked again at least so often, whatever time it named: others may have given something back.
pub(super) const ASKED_AGAIN: Micros = 1_000_000;

/// The same where it could name none, as it depends on others' sends.
const ASKED_AGAIN_SOON: Micros = 100_000;

/// No sooner, whatever it says.
pub(super) const ASKED_AGAIN_AT_ONCE: Micros = 1_000;

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

/// What there is of a shared budget beside its own limits.
#[derive(Debug)]
pub(super) struct Afar {
    /// The part of its limits that the engine never hands out, where there is one, and from when it may be
    /// used: whoever had this share before, until this process began, may have used it in the same window.
    share: Option<(BudgetId, Micros)>,
    /// The day on which this process began: of its cap a share may have been used, too.
    first_day: Option<i64>,
    /// Who tries.
    pub(super) trial: Option<Ticket>,
    /// What the engine said last, and when it is asked again.
    pub(super) shut: Option<(Obstacle, Option<Micros>, Micros)>,
    /// The last that was heard was of the engine itself, not of the budget.
    pub(super) was_away: bool,
}

impl Afar {
    /// It is this day, the first that is told.
    pub(super) fn begins_on(&mut self, day: Day) {
        self.first_day.get_or_insert(day.number);
    }
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

    pub(super) fn shut_afar(
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

    pub(super) fn afar(&self, budget: BudgetId) -> Option<&Afar> {
        self.counters.get(budget)?.afar.as_ref()
    }

    pub(super) fn afar_mut(&mut self, budget: BudgetId) -> Option<&mut Afar> {
        self.counters.get_mut(budget)?.afar.as_mut()
    }
}
