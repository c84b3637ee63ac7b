//! How the process stands, for an operator and for a scrape.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::admin::DrainStatus;
use crate::{
    budgets::{BudgetStatus, Budgets, EngineStatus, FleetStatus, LimitStatus},
    config::OnLoss,
    telemetry::{BudgetReading, EngineReading, LimitReading},
};

/// What `GET /status` answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Overview {
    /// How a drain goes.
    #[serde(flatten)]
    pub process: DrainStatus,
    /// What became of leases so far.
    pub leases: Leases,
    /// In the configuration's order.
    pub budgets: Vec<Budget>,
    /// Of shared budgets; none where no budget is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// What became of leases so far. `granted` is the sum of the next four.
#[derive(Debug, Serialize, Deserialize)]
pub struct Leases {
    /// All.
    pub granted: u64,
    /// Sent.
    pub sent: u64,
    /// Given back unsent.
    pub returned: u64,
    /// Not sent in time.
    pub expired: u64,
    /// Granted and not sent yet.
    pub unsent: u64,
    /// Not sent yet, or sent and not over.
    pub held: usize,
}

/// How one budget stands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Where it is counted.
    pub engine: Place,
    /// Each limit, and how much of it this process has taken.
    pub limits: Vec<Limit>,
    /// Sends of this process that run, and leases that are not sent yet.
    pub running: u64,
    /// Attempts of this process that wait for it.
    pub waiting: usize,
    /// How long a provider's word holds it back.
    pub resting_ms: u64,
    /// Sends of this process that took more tokens than were reserved.
    pub overruns: u64,
    /// How it stands for all pods together; of shared budgets, once the engine has said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Fleet>,
}

/// Where a budget is counted, as the configuration has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In this process.
    Local,
    /// By the engine, for all pods together.
    Redis,
}

/// How much of a limit is used.
#[derive(Debug, Serialize, Deserialize)]
pub struct Limit {
    /// Which, without its size: `requests/1m`, `requests/day`, `concurrent`.
    pub limit: String,
    /// How much.
    pub used: u64,
    /// The most.
    pub most: u64,
}

/// How a shared budget stands for all pods together, by the engine's last word.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fleet {
    /// Each limit, and how much of it all pods have taken.
    pub limits: Vec<Limit>,
    /// Sends that run, and leases that are not sent yet.
    pub running: u64,
    /// Sends that the engine remembers, where it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Sends that took more tokens than were reserved, since the engine's memory began.
    pub overruns: u64,
    /// For how long nothing is granted yet, because the engine does not know what was sent before.
    pub learning_ms: u64,
    /// How long ago the engine said so.
    pub age_ms: u64,
}

/// How the engine of shared budgets stands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Engine {
    /// Whether it is there.
    pub state: EngineState,
    /// For how long.
    pub since_ms: u64,
    /// Why it is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `redis` or `valkey`; empty where it is not known.
    pub server: String,
    /// The server's version; empty where it is not known.
    pub version: String,
    /// How long its last answer took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// Whether what is granted now is within the limits of all pods together.
    pub strict: bool,
    /// What happens while it is lost, as the configuration has it.
    pub on_loss: Loss,
    /// Whether pods have told it different limits.
    pub disagrees: bool,
    /// What puts the limits at risk, in words.
    pub warnings: Vec<String>,
    /// Leases that this pod holds of it.
    pub held: u64,
    /// What it was not told yet of leases.
    pub untold: u64,
}

/// Whether the engine is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineState {
    /// It answers.
    Up,
    /// It does not.
    Lost,
}

/// What happens while the engine is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Nothing is sent.
    Closed,
    /// Each pod sends within its share.
    LocalShare,
    /// Each pod sends as if it were alone.
    Open,
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
            engine: budgets.engine().map(Engine::from),
        }
    }
}

impl From<BudgetStatus> for Budget {
    fn from(status: BudgetStatus) -> Self {
        Self {
            name: status.name.to_string(),
            engine: if status.is_shared {
                Place::Redis
            } else {
                Place::Local
            },
            limits: status.limits.into_iter().map(Limit::from).collect(),
            running: status.running,
            waiting: status.waiting.0,
            resting_ms: millis(status.rests.unwrap_or_default()),
            overruns: status.overruns,
            fleet: status.fleet.map(Fleet::from),
        }
    }
}

impl From<LimitStatus> for Limit {
    fn from(status: LimitStatus) -> Self {
        Self {
            limit: status.which,
            used: status.used,
            most: status.limit,
        }
    }
}

impl From<FleetStatus> for Fleet {
    fn from(status: FleetStatus) -> Self {
        Self {
            limits: status.limits.into_iter().map(Limit::from).collect(),
            running: status.running,
            entries: status.entries,
            overruns: status.overruns,
            learning_ms: millis(status.learning),
            age_ms: millis(status.age),
        }
    }
}

impl From<EngineStatus> for Engine {
    fn from(status: EngineStatus) -> Self {
        let micros = |length: Duration| u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        Self {
            state: match status.lost {
                None => EngineState::Up,
                Some(_) => EngineState::Lost,
            },
            since_ms: millis(status.since),
            why: status.lost,
            server: status.server,
            version: status.version,
            round_trip_us: status.round_trip.map(micros),
            strict: status.is_strict,
            on_loss: match status.on_loss {
                OnLoss::Closed => Loss::Closed,
                OnLoss::LocalShare => Loss::LocalShare,
                OnLoss::Open => Loss::Open,
            },
            disagrees: status.disagrees,
            warnings: status.warnings,
            held: status.held,
            untold: status.untold,
        }
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The same for metrics.
pub(super) fn readings(budgets: &Budgets) -> Vec<BudgetReading> {
    let all = budgets.status().into_iter();
    all.map(|status| {
        let limits = |limits: Vec<LimitStatus>| {
            let limits = limits.into_iter().map(|limit| LimitReading {
                limit: limit.which,
                used: limit.used,
                most: limit.limit,
            });
            limits.collect()
        };
        BudgetReading {
            budget: status.name,
            limits: limits(status.limits),
            fleet: limits(status.fleet.map(|fleet| fleet.limits).unwrap_or_default()),
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

/// The engine for metrics; none where no budget is shared.
pub(super) fn engine_reading(budgets: &Budgets) -> Option<EngineReading> {
    let engine = budgets.engine()?;
    Some(EngineReading {
        up: engine.lost.is_none(),
        strict: engine.is_strict,
        lost: engine.losses,
        cut: engine.cut,
        untold: engine.untold,
    })
}
