//! One acquire is all or nothing over every budget that matches.

use std::collections::{BTreeSet, HashMap};

use super::{
    Day, Micros,
    budget::{Budget, Full, Limit, Place},
    lease::{Account, Lease, LeaseId, Part},
    settings::Settings,
    weights::Weights,
};

/// Names a budget among those of [`Limits`].
pub type BudgetId = usize;

/// How many sends one budget remembers at most, unless told otherwise: 32 MiB.
const MOST_ENTRIES: usize = 1 << 20;

/// The largest limit of requests in a window that can be used: one remembered entry each, and some to spare
/// for what runs.
pub const MOST_REQUESTS: u64 = 1_000_000;

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

/// Every budget of one engine.
///
/// Time never runs back here: a time before the last one that was told counts as the last one. Each call
/// is given the budgets in question and the calendar day of each, in the same order; a budget that is named
/// twice counts once, an unknown one not at all.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub(super) budgets: Vec<Budget>,
    pub(super) leases: HashMap<LeaseId, Lease>,
    /// When those leases end that have a life.
    pub(super) ends: BTreeSet<(Micros, LeaseId)>,
    pub(super) life: Option<Micros>,
    pub(super) account: Account,
    next: LeaseId,
    now: Micros,
    /// When the last of the unsent leases must have been sent.
    last_send_by: Micros,
}

impl Limits {
    /// Budgets that nothing has been taken of.
    pub fn new(settings: impl IntoIterator<Item = Settings>) -> Self {
        Self::remembering(settings, MOST_ENTRIES)
    }

    /// As [`new`](Self::new), with `most` sends that each budget remembers at most. One whose log is full
    /// grants nothing until its oldest sends have left all windows.
    pub fn remembering(settings: impl IntoIterator<Item = Settings>, most: usize) -> Self {
        let budgets = settings.into_iter();
        Self {
            budgets: budgets.map(|budget| Budget::new(budget, most)).collect(),
            ..Self::default()
        }
    }

    /// One more budget, of which nothing has been taken.
    pub(super) fn add(&mut self, settings: Settings) -> BudgetId {
        self.budgets.push(Budget::new(settings, MOST_ENTRIES));
        self.budgets.len() - 1
    }

    /// Leases end after `life` unless they are renewed, but none while it may still be sent.
    #[must_use]
    pub fn with_life(self, life: Micros) -> Self {
        Self {
            life: Some(life),
            ..self
        }
    }

    /// What time it is, and lets go of leases that ended before.
    pub(super) fn clock(&mut self, now: Micros) -> Micros {
        self.now = self.now.max(now);
        self.expire(self.now);
        self.now
    }

    /// Takes `weights` of every budget in `which`, or nothing of any, for a send that leaves no later than
    /// `send_by`.
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
        let now = self.now;
        let id = self.next;
        self.next += 1;
        let mut parts = Vec::with_capacity(which.len());
        for (budget, _) in asked(which, days) {
            if let Some(state) = self.budgets.get_mut(budget) {
                state.grant(now, id, weights);
                let place = Place::default();
                parts.push(Part { budget, place });
            }
        }
        self.account.granted += 1;
        self.last_send_by = self.last_send_by.max(send_by);
        let ends = self.life.map(|life| {
            let sent = send_by.saturating_add(1);
            now.saturating_add(life).max(sent)
        });
        self.ends.extend(ends.map(|ends| (ends, id)));
        self.leases.insert(
            id,
            Lease {
                parts: parts.into(),
                weights,
                send_by,
                sent: false,
                ends,
            },
        );
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
        let now = self.clock(now);
        if let Some((budget, limit)) = self.never_fits(which, weights) {
            return Err(Denied::Never { budget, limit });
        }
        self.fits(now, which, days, weights)
    }

    /// Every budget of `which` that denies `weights` now.
    pub fn blocking(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Vec<BudgetId> {
        let now = self.clock(now);
        let denies = asked(which, days).filter(|&(budget, day)| {
            let state = self.budgets.get_mut(budget);
            state.is_some_and(|state| {
                state.never_fits(weights).is_some()
                    || state.check(now, day, weights, self.last_send_by).is_err()
            })
        });
        denies.map(|(budget, _)| budget).collect()
    }

    pub(super) fn never_fits(
        &self,
        which: &[BudgetId],
        weights: Weights,
    ) -> Option<(BudgetId, Limit)> {
        which.iter().find_map(|&budget| {
            let limit = self.budgets.get(budget)?.never_fits(weights);
            limit.map(|limit| (budget, limit))
        })
    }

    /// Whether `weights`, which are more than no limit, fit now.
    pub(super) fn fits(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Result<(), Denied> {
        let mut denied: Option<(BudgetId, Full)> = None;
        for (budget, day) in asked(which, days) {
            let Some(state) = self.budgets.get_mut(budget) else {
                continue;
            };
            let Err(full) = state.check(now, day, weights, self.last_send_by) else {
                continue;
            };
            if full.later_than(denied.as_ref().map(|(_, full)| full)) {
                denied = Some((budget, full));
            }
        }
        denied.map_or(Ok(()), |(budget, full)| Err(Denied::Full { budget, full }))
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
        self.budgets.get(budget).map(Budget::gauges)
    }

    /// How much of each limit of a budget is used.
    pub fn used(&mut self, budget: BudgetId, now: Micros, day: Day) -> Vec<(Limit, u64)> {
        let now = self.clock(now);
        let budget = self.budgets.get_mut(budget);
        budget.map_or_else(Vec::new, |budget| budget.used(now, day))
    }
}

/// Each budget of `which` once, with its day. Where no day is told, it is the one that was told before.
pub(super) fn asked<'a>(
    which: &'a [BudgetId],
    days: &'a [Day],
) -> impl Iterator<Item = (BudgetId, Day)> + 'a {
    which.iter().enumerate().filter_map(|(place, &budget)| {
        let before = which.get(..place).unwrap_or_default();
        let day = days.get(place).copied().unwrap_or_default();
        (!before.contains(&budget)).then_some((budget, day))
    })
}
