//! IO. Budgets at work: who may send now, who waits, and what was really used.
//!
//! [`Budgets`] is what the sidecar has of them. A driver asks once per attempt, for everything that
//! the attempt matches, and is answered by a [`Lease`] or told what it waits for. What is
//! decided, [`crate::limits`] decides; here are the lock, the clock and the wake-ups.

mod lease;
mod matching;

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

pub use lease::{Lease, Pass, Spent};
pub use matching::{Matched, Occasion};

use crate::{
    clock::Clock,
    config,
    limits::{BudgetId, Weights},
    proto::waiting,
};

/// Every budget of the sidecar.
#[derive(Clone)]
pub struct Budgets {
    clock: Clock,
    configured: Arc<[config::Budget]>,
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
        Self {
            clock,
            configured: configured.into(),
        }
    }

    /// Asks for a lease; dropping the result gives up.
    pub fn ask(&self, ask: Ask) -> Asking {
        let _ = &self.clock;
        Asking { ask: Some(ask) }
    }

    /// The name of a budget.
    pub fn name(&self, budget: BudgetId) -> Option<&str> {
        let budget = self.configured.get(budget)?;
        Some(&budget.settings.name)
    }
}

/// A place in the queue. Dropping it leaves nothing behind.
pub struct Asking {
    ask: Option<Ask>,
}

impl Asking {
    /// The next answer. Not called again after `Granted` or `Refused`.
    pub fn poll(&mut self, _: &mut Context<'_>) -> Poll<Answer> {
        match self.ask.take() {
            Some(ask) => Poll::Ready(Answer::Granted {
                credential: ask.ways.first().map_or(0, |way| way.credential),
                lease: Lease::none(),
            }),
            None => Poll::Pending,
        }
    }
}
