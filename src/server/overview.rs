//! How the process stands, for an operator and for a scrape.

use serde::Serialize;

use super::admin::DrainStatus;
use crate::{
    budgets::{BudgetStatus, Budgets},
    telemetry::{BudgetReading, LimitReading},
};

/// What `GET /status` answers.
#[derive(Debug, Serialize)]
pub(super) struct Overview {
    #[serde(flatten)]
    process: DrainStatus,
    leases: Leases,
    budgets: Vec<Budget>,
}

/// What became of leases so far. `granted` is the sum of the next four.
#[derive(Debug, Serialize)]
struct Leases {
    granted: u64,
    sent: u64,
    returned: u64,
    expired: u64,
    /// Granted and not sent yet.
    unsent: u64,
    /// Not sent yet, or sent and not over.
    held: usize,
}

#[derive(Debug, Serialize)]
struct Budget {
    name: String,
    limits: Vec<Limit>,
    /// Sends that run, and leases that are not sent yet.
    running: u64,
    waiting: usize,
    /// How long a provider's word holds it back.
    resting_ms: u64,
    overruns: u64,
}

#[derive(Debug, Serialize)]
struct Limit {
    limit: String,
    used: u64,
    most: u64,
}

impl Overview {
    pub(super) fn new(process: DrainStatus, budgets: &Budgets) -> Self {
        let (account, held) = budgets.account();
        let over = account.sent + account.returned + account.expired;
        Self {
            process,
            leases: Leases {
                granted: account.granted,
                sent: account.sent,
                returned: account.returned,
                expired: account.expired,
                unsent: account.granted.saturating_sub(over),
                held,
            },
            budgets: budgets.status().into_iter().map(Budget::from).collect(),
        }
    }
}

impl From<BudgetStatus> for Budget {
    fn from(status: BudgetStatus) -> Self {
        let limits = status.limits.into_iter().map(|limit| Limit {
            limit: limit.which,
            used: limit.used,
            most: limit.limit,
        });
        let rests = status.rests.unwrap_or_default().as_millis();
        Self {
            name: status.name.to_string(),
            limits: limits.collect(),
            running: status.running,
            waiting: status.waiting.0,
            resting_ms: u64::try_from(rests).unwrap_or(u64::MAX),
            overruns: status.overruns,
        }
    }
}

/// The same for metrics.
pub(super) fn readings(budgets: &Budgets) -> Vec<BudgetReading> {
    let all = budgets.status().into_iter();
    all.map(|status| {
        let limits = status.limits.into_iter().map(|limit| LimitReading {
            limit: limit.which,
            used: limit.used,
            most: limit.limit,
        });
        BudgetReading {
            budget: status.name,
            limits: limits.collect(),
            waiting: status.waiting.0 as u64,
            resting: status.rests.is_some(),
            granted: status.counts.granted,
            waited: status.counts.waited,
            refused: status.counts.refused,
            overruns: status.overruns,
        }
    })
    .collect()
}
