//! What is known of the engine, for operators.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use super::Inner;
use crate::{
    budgets::shared::{BudgetStatus, Lost, Status},
    config::OnLoss,
    limits::BudgetId,
};

/// What is known of the engine of shared budgets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::budgets) struct EngineStatus {
    /// Whether it can be asked.
    pub(in crate::budgets) is_up: bool,
    /// For how long it is, or is not.
    pub(in crate::budgets) since: Duration,
    /// Why it cannot.
    pub(in crate::budgets) why: Option<Lost>,
    /// What happens while it is lost.
    pub(in crate::budgets) on_loss: OnLoss,
    /// `redis`, `valkey`, or empty where it is not known.
    pub(in crate::budgets) server: String,
    /// The server's version.
    pub(in crate::budgets) version: String,
    /// What puts the limits at risk.
    pub(in crate::budgets) warnings: Vec<String>,
    /// Whether pods with another configuration are at work.
    pub(in crate::budgets) disagrees: bool,
    /// How long an answer takes, smoothed.
    pub(in crate::budgets) round_trip: Option<Duration>,
    /// Leases that are held.
    pub(in crate::budgets) held: usize,
    /// Leases whose end was not told yet.
    pub(in crate::budgets) untold: usize,
    /// How often it was lost.
    pub(in crate::budgets) losses: u64,
    /// Sends that were cut.
    pub(in crate::budgets) cut: u64,
    /// Ends that were never told.
    pub(in crate::budgets) dropped: u64,
    /// How full the budgets were when the engine was asked last.
    pub(in crate::budgets) fleet: Option<Fleet>,
}

/// How full the budgets of all pods were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::budgets) struct Fleet {
    /// How long ago.
    pub(in crate::budgets) age: Duration,
    /// For how long nothing was granted yet.
    pub(in crate::budgets) learning: Duration,
    /// Each shared budget, by its place in the configuration.
    pub(in crate::budgets) budgets: Vec<(BudgetId, BudgetStatus)>,
}

/// What the engine said last, and when.
#[derive(Debug, Default)]
pub(super) struct Fill(Option<(Duration, Status)>);

impl Inner {
    fn fill(&self) -> MutexGuard<'_, Fill> {
        self.fill.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn refresh(&self) {
        let budgets = self.domain.all();
        let days = self.domain.days(&budgets, self.wall());
        let asked = self.now();
        let status = self.shared.status(&budgets, &days, self.timeout).await;
        if let Ok(status) = status {
            let now = self.now();
            self.standing().answered(now.saturating_sub(asked));
            self.fill().0 = Some((now, status));
        }
    }

    pub(super) fn status(&self) -> EngineStatus {
        let now = self.now();
        let (counts, untold) = {
            let state = self.state();
            (state.book.counts, state.book.untold())
        };
        let fleet = self.fill().0.as_ref().map(|(at, status)| Fleet {
            age: now.saturating_sub(*at),
            learning: status.learning,
            budgets: (status.budgets.iter().enumerate())
                .map(|(budget, status)| (self.domain.outward(budget), status.clone()))
                .collect(),
        });
        let standing = self.standing();
        let (since, why) = standing.since();
        let server = standing.server.as_ref();
        EngineStatus {
            is_up: standing.is_up(),
            since: now.saturating_sub(since),
            why: why.cloned(),
            on_loss: self.on_loss,
            server: server.map(|server| server.name.clone()).unwrap_or_default(),
            version: server
                .map(|server| server.version.clone())
                .unwrap_or_default(),
            warnings: server.map(|server| server.warnings()).unwrap_or_default(),
            disagrees: standing.disagrees,
            round_trip: standing.round_trip,
            held: self.shared.held(),
            untold,
            losses: standing.losses,
            cut: counts.cut,
            dropped: counts.dropped,
            fleet,
        }
    }
}
