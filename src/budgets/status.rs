//! How budgets stand, for operators.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Budgets, courier::Courier, words};
use crate::{
    config::OnLoss,
    limits::{Account, Counts, Limit},
};

/// How one budget stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is counted for all pods together. The figures beside `fleet` are this pod's own.
    pub is_shared: bool,
    /// How it stands for all pods together, by the engine's last word; none of a local budget, and none
    /// until the engine said anything.
    pub fleet: Option<FleetStatus>,
    /// Each window, each cap of a day, and sends at a time where they are limited.
    pub limits: Vec<LimitStatus>,
    /// Sends that run, and leases that are not sent yet.
    pub running: u64,
    /// Attempts that wait for it, and the most that may.
    pub waiting: (usize, usize),
    /// How long it rests or brakes yet, by a provider's word to this pod, or to any as far as the engine told.
    pub rests: Option<Duration>,
    /// How often a send took more tokens than were reserved.
    pub overruns: u64,
    /// What was decided about it so far.
    pub counts: Counts,
}

/// How much of a limit is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// Which, without its size: `requests/1m`, `requests/day`, `concurrent`.
    pub which: String,
    /// How much of it is used, with leases that are not sent yet.
    pub used: u64,
    /// The most.
    pub limit: u64,
}

/// How a shared budget stands for all pods together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetStatus {
    /// Each window, each cap of a day, and sends at a time where they are limited.
    pub limits: Vec<LimitStatus>,
    /// Sends that run, and leases that are not sent yet.
    pub running: u64,
    /// Sends that the engine remembers, where it said.
    pub entries: Option<u64>,
    /// How often a send took more tokens than were reserved, since the engine's memory began.
    pub overruns: u64,
    /// For how long nothing is granted yet, because the engine does not know what was sent before.
    pub learning: Duration,
    /// For how long it rested, by a provider's word to any pod.
    pub rests: Duration,
    /// How long ago the engine said so.
    pub age: Duration,
}

/// How the engine of shared budgets stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// Why it is lost; none while it is there.
    pub lost: Option<String>,
    /// How long it has been there, or lost.
    pub since: Duration,
    /// `redis` or `valkey`; empty where it is not known.
    pub server: String,
    /// The server's version; empty where it is not known.
    pub version: String,
    /// How long its last answer took.
    pub round_trip: Option<Duration>,
    /// Whether what is granted now is within the limits of all pods together.
    pub is_strict: bool,
    /// What happens while it is lost.
    pub on_loss: OnLoss,
    /// Whether pods have told it different limits: the stricter of both count.
    pub disagrees: bool,
    /// What puts the limits at risk, in words.
    pub warnings: Vec<String>,
    /// Leases that this pod holds of it.
    pub held: u64,
    /// What it was not told yet of leases.
    pub untold: u64,
    /// How often it was lost so far.
    pub losses: u64,
    /// Sends that were cut so far, because their leases could not be renewed.
    pub cut: u64,
    /// Leases so far whose end it was never told: they ended by themselves, a little later.
    pub dropped: u64,
}

impl Budgets {
    /// How the engine of shared budgets stands; none where no budget is shared.
    pub fn engine(&self) -> Option<EngineStatus> {
        self.engine.courier().map(Courier::status)
    }

    /// Asks the engine of shared budgets how they stand for all pods, within a time-out; where it gives no
    /// answer, what it said before stands.
    pub async fn refresh(&self) {
        if let Some(courier) = self.engine.courier() {
            courier.refresh().await;
        }
    }

    /// Waits until the engine of shared budgets has heard all that there is to tell: while it is lost, for good.
    pub async fn told(&self) {
        if let Some(courier) = self.engine.courier() {
            courier.told().await;
        }
    }

    /// How every budget stands, in the configuration's order.
    pub fn status(&self) -> Vec<BudgetStatus> {
        let configured = self.engine.configured();
        if configured.is_empty() {
            return Vec::new();
        }
        let fleet = self.engine.courier().map(Courier::fleet);
        let mut fleet: BTreeMap<_, _> = fleet.into_iter().flatten().collect();
        self.engine.with(|state, now| {
            let all = configured.iter().enumerate();
            all.map(|(id, budget)| {
                let (running, _, overruns) = state.desk.limits().gauges(id).unwrap_or_default();
                let at_once = budget.settings.concurrent.map(Limit::Concurrent);
                let limits = state.desk.used(now, id).into_iter();
                let limits = limits.chain(at_once.map(|limit| (limit, running)));
                let limits = limits.filter_map(|(limit, used)| {
                    Some(LimitStatus {
                        which: words::key(&limit)?,
                        used,
                        limit: words::most(&limit)?,
                    })
                });
                let rests = state.desk.rests_until(id).filter(|until| *until > now);
                let rests = rests.map(|until| Duration::from_micros(until - now));
                let fleet = fleet.remove(&id);
                let of_all = fleet.as_ref().map(|of| of.rests.saturating_sub(of.age));
                let of_all = of_all.filter(|rests| !rests.is_zero());
                BudgetStatus {
                    name: self.engine.name(id).cloned().unwrap_or_default(),
                    is_shared: budget.is_shared,
                    fleet,
                    limits: limits.collect(),
                    running,
                    waiting: (state.desk.waiting_for(id), budget.max_waiting),
                    rests: rests.max(of_all),
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
