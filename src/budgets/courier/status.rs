//! What is known of the engine, for operators.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use super::Inner;
use crate::{
    budgets::{EngineStatus, FleetStatus, shared::Status},
    config::OnLoss,
    limits::BudgetId,
};

/// What the engine said of the budgets last, and when.
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

    pub(super) fn fleet(&self) -> Vec<(BudgetId, FleetStatus)> {
        match &self.fill().0 {
            Some((at, status)) => {
                let age = self.now().saturating_sub(*at);
                self.domain.fleet(status, age)
            }
            None => Vec::new(),
        }
    }

    pub(super) fn status(&self) -> EngineStatus {
        let now = self.now();
        let (counts, untold) = {
            let state = self.state();
            (state.book.counts, state.book.untold())
        };
        let standing = self.standing();
        let (since, why) = standing.since();
        let server = standing.server.clone();
        let warnings = server.as_ref().map(|server| server.warnings());
        let (name, version) = server
            .map(|server| (server.name, server.version))
            .unwrap_or_default();
        EngineStatus {
            lost: why,
            since: now.saturating_sub(since),
            server: name,
            version,
            round_trip: standing.round_trip,
            is_strict: self.on_loss != OnLoss::Open
                || standing.knows_all(now, self.domain.longest()),
            on_loss: self.on_loss,
            disagrees: standing.disagrees,
            warnings: warnings.unwrap_or_default(),
            held: self.shared.held() as u64,
            untold: untold as u64,
            losses: standing.losses,
            cut: counts.cut,
            dropped: counts.dropped,
        }
    }
}
