//! IO. Budgets at work: who may send now, who waits, and what was really used.
//!
//! [`Budgets`] is what the sidecar has of them. A driver asks once per attempt, for everything that
//! the attempt matches, and is answered by a [`Lease`] or told what it waits for. What is
//! decided, [`crate::limits`] decides; here are the lock, the clock and the wake-ups.

mod asking;
mod courier;
mod days;
mod engine;
mod lease;
mod matching;
mod pace;
pub mod shared;
mod status;
mod trial;
mod words;

use std::{sync::Arc, time::Duration};

pub use asking::Asking;
pub use lease::{Lease, Pass};
pub use matching::{Matched, Occasion};
pub use status::{BudgetStatus, EngineStatus, FleetStatus, LimitStatus};

use self::engine::Engine;
use crate::{
    clock::Clock,
    config,
    limits::{BudgetId, Weights},
    proto::waiting,
};

/// Every budget of the sidecar.
#[derive(Clone)]
pub struct Budgets {
    engine: Arc<Engine>,
}

/// What one attempt needs.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The ways it can go, in order of preference: one per usable credential. At least one.
    pub ways: Vec<Way>,
    /// What it takes at most.
    pub tokens: Weights,
    /// How long after the grant its first byte may leave at the latest.
    pub send_within: Duration,
}

/// One way an attempt can go.
#[derive(Clone, Debug)]
pub struct Way {
    /// Index into the provider's credentials; 0 where it has none.
    pub credential: usize,
    /// What it takes part of.
    pub matched: Arc<Matched>,
}

/// What an attempt that asked is told, until there is a lease or a refusal.
#[derive(Debug)]
pub enum Answer {
    /// It may be sent.
    Granted {
        /// Which credential it goes with.
        credential: usize,
        /// The right to send once.
        lease: Lease,
    },
    /// It stands in the queue. Told again when what stands in the way, or the time, has changed.
    Waiting(Wait),
    /// It will not be granted.
    Refused(Refusal),
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// `REASON_BUDGET` where the budget is used up, `REASON_COOLDOWN` where a provider asked it to rest.
    pub reason: waiting::Reason,
    /// The budget's name.
    pub budget: Arc<str>,
    /// Which of its limits, for a person: `requests: 500 in 1m`.
    pub limit: String,
    /// The earliest time it can be over, from now; unknown where it depends on others' sends.
    pub expected: Option<Duration>,
}

/// Why no lease is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What of.
    pub kind: RefusalKind,
    /// The budget's name.
    pub budget: Arc<str>,
    /// Which of its limits, for a person: `output_tokens: 40000 in 1m`.
    pub limit: String,
    /// How much of it was asked for.
    pub asked: u64,
    /// When to come back, where that is known.
    pub retry_after: Option<Duration>,
}

/// What a refusal is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// More than the limit, whatever else is sent.
    Never,
    /// Too many wait already.
    QueueFull,
}

impl Budgets {
    /// Budgets of which nothing has been taken.
    pub fn new(clock: Clock, configured: impl Into<Arc<[config::Budget]>>) -> Self {
        let engine = Engine::new(clock, configured.into());
        Self {
            engine: Arc::new(engine),
        }
    }

    /// Asks for a lease; dropping the result gives up. To be polled inside a runtime.
    pub fn ask(&self, ask: Ask) -> Asking {
        Asking::new(Arc::clone(&self.engine), ask)
    }

    /// The name of a budget.
    pub fn name(&self, budget: BudgetId) -> Option<&str> {
        self.engine.name(budget).map(|name| &**name)
    }
}
