//! How budgets stand, for operators.

use std::{sync::Arc, time::Duration};

use super::{Budgets, words};
use crate::limits::{Account, Counts};

/// How one budget stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Each window and each cap of a day.
    pub limits: Vec<LimitStatus>,
    /// Sends that run, and the most that may.
    pub running: (u64, Option<u64>),
    /// Attempts that wait for it, and the most that may.
    pub waiting: (usize, usize),
    /// How long it rests or brakes yet, by a provider's word.
    pub rests: Option<Duration>,
    /// How often a send took more tokens than were reserved.
    pub overruns: u64,
    /// What was decided about it so far.
    pub counts: Counts,
}

/// How much of a limit is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// Which, for a person: `requests: 500 in 1m`.
    pub what: String,
    /// How much of it is used, with leases that are not sent yet.
    pub used: u64,
    /// The most.
    pub limit: u64,
}

impl Budgets {
    /// How every budget stands, in the configuration's order.
    pub fn status(&self) -> Vec<BudgetStatus> {
        let configured = self.engine.configured();
        if configured.is_empty() {
            return Vec::new();
        }
        self.engine.with(|state, now| {
            let all = configured.iter().enumerate();
            all.map(|(id, budget)| {
                let limits = state.desk.used(now, id).into_iter();
                let limits = limits.filter_map(|(limit, used)| {
                    Some(LimitStatus {
                        what: words::limit(&limit),
                        used,
                        limit: words::most(&limit)?,
                    })
                });
                let (running, _, overruns) = state.desk.limits().gauges(id).unwrap_or_default();
                let rests = state.desk.rests_until(id).filter(|until| *until > now);
                BudgetStatus {
                    name: self.engine.name(id).cloned().unwrap_or_default(),
                    limits: limits.collect(),
                    running: (running, budget.settings.concurrent),
                    waiting: (state.desk.waiting_for(id), budget.max_waiting),
                    rests: rests.map(|until| Duration::from_micros(until - now)),
                    overruns,
                    counts: state.desk.counts(id),
                }
            })
            .collect()
        })
    }

    /// What became of all leases, and how many are held.
    pub fn account(&self) -> (Account, usize) {
        self.engine.with(|state, _| {
            let limits = state.desk.limits();
            (limits.account(), limits.held())
        })
    }
}
