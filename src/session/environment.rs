//! What all sessions work with.

use std::sync::{Arc, Mutex, PoisonError};

use super::estimate::Counters;
use crate::{
    budgets::Budgets,
    clock::Clock,
    recovery::{Access, Commons},
    telemetry::{Gauge, Guard, Telemetry},
    upstream::Upstream,
};

/// The clock, the door out, and what generations share.
pub struct Environment {
    /// The one clock.
    pub clock: Clock,
    /// The one door out.
    pub upstream: Arc<dyn Upstream>,
    /// Who may send now.
    pub budgets: Budgets,
    /// Metrics, traces and gauges.
    pub telemetry: Telemetry,
    /// Transcripts together.
    pub memory: Memory,
    /// Who counts prompts.
    pub(super) counters: Counters,
    commons: Mutex<Commons>,
}

impl Environment {
    /// An environment in which nothing has happened yet.
    pub fn new(
        clock: Clock,
        upstream: Arc<dyn Upstream>,
        budgets: Budgets,
        commons: Commons,
        telemetry: Telemetry,
        max_total_bytes: usize,
    ) -> Self {
        let bytes = telemetry.gauges().transcript_bytes.clone();
        Self {
            clock,
            upstream,
            budgets,
            telemetry,
            memory: Memory {
                bytes,
                max: max_total_bytes,
            },
            counters: Counters::new(),
            commons: Mutex::new(commons),
        }
    }

    /// Counts a task of a session or an RPC while it lives.
    pub fn count_task(&self) -> Guard {
        Guard::new(&self.telemetry.gauges().tasks)
    }
}

impl Access for Environment {
    fn with<R>(&self, f: impl FnOnce(&mut Commons) -> R) -> R {
        f(&mut self.commons.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts the bytes of all transcripts against one bound.
#[derive(Debug)]
pub struct Memory {
    bytes: Gauge,
    max: usize,
}

impl Memory {
    /// All transcripts together.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.bytes.value()).unwrap_or_default()
    }

    /// Whether the bound is reached.
    pub fn is_full(&self) -> bool {
        self.bytes() >= self.max
    }

    /// One transcript changes its size; whether the bound is passed by growing.
    pub(super) fn change(&self, from: usize, to: usize) -> bool {
        if from == to {
            return false;
        }
        self.bytes.add(to as i64 - from as i64);
        to > from && self.bytes() > self.max
    }
}
