//! The metrics of budgets. Their names are the configuration's, and so is the number of series.

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use super::metrics::seconds;

/// How an attempt that asked a budget was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be sent.
    Granted,
    /// It has to wait. Once for each attempt, at the budget that it was first told of.
    Waited,
    /// It will not be granted: too large for a limit, or too many wait.
    Refused,
}

impl Decision {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Granted, Self::Waited, Self::Refused];

    /// The label value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Waited => "waited",
            Self::Refused => "refused",
        }
    }
}

/// What a budget looks like at a scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetReading {
    /// Its name in the configuration.
    pub budget: Arc<str>,
    /// Each of its limits.
    pub limits: Vec<LimitReading>,
    /// Attempts that wait for it.
    pub waiting: u64,
    /// A provider asked it to rest.
    pub resting: bool,
    /// How often a send took more tokens than were reserved, since the start.
    pub overruns: u64,
}

/// What a limit looks like at a scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReading {
    /// Which one, such as `requests/1m`.
    pub limit: String,
    /// How much of it is taken.
    pub used: u64,
    /// The most of it.
    pub most: u64,
}

/// What events are counted in.
#[derive(Debug)]
pub(super) struct BudgetMetrics {
    decisions: Counter<u64>,
    wait: Histogram<f64>,
}

impl BudgetMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            decisions: meter
                .u64_counter("redrive.budget.decisions")
                .with_description("Answers to attempts that asked a budget")
                .build(),
            wait: seconds(
                meter,
                "redrive.budget.wait",
                "Seconds that an attempt waited for its lease, by the budget it waited for last",
            ),
        }
    }

    pub(super) fn decided(&self, budget: &str, decision: Decision) {
        self.decisions.add(1, &labels(budget, decision));
    }

    pub(super) fn waited(&self, budget: &str, wait: Duration) {
        self.wait.record(wait.as_secs_f64(), &[name(budget)]);
    }

    /// A series that exists before its first event makes that event visible as an increase.
    pub(super) fn start_at_zero(&self, budget: &str) {
        for decision in Decision::ALL {
            self.decisions.add(0, &labels(budget, decision));
        }
    }
}

/// Reads all budgets whenever somebody scrapes.
pub(super) fn observe(
    meter: &Meter,
    read: impl Fn() -> Vec<BudgetReading> + Clone + Send + Sync + 'static,
) {
    let gauge = |metric: &'static str, text: &'static str, value: fn(&BudgetReading) -> u64| {
        let read = read.clone();
        meter
            .u64_observable_gauge(metric)
            .with_description(text)
            .with_callback(move |observer| {
                for budget in read() {
                    observer.observe(value(&budget), &[name(&budget.budget)]);
                }
            })
            .build();
    };
    gauge(
        "redrive.budget.waiting",
        "Attempts that wait for a budget",
        |budget| budget.waiting,
    );
    gauge(
        "redrive.budget.resting",
        "1 while a budget rests because a provider asked for it",
        |budget| u64::from(budget.resting),
    );
    let limits = |metric: &'static str, text: &'static str, value: fn(&LimitReading) -> u64| {
        let read = read.clone();
        meter
            .u64_observable_gauge(metric)
            .with_description(text)
            .with_callback(move |observer| {
                for budget in read() {
                    for limit in &budget.limits {
                        let which = KeyValue::new("limit", limit.limit.clone());
                        observer.observe(value(limit), &[name(&budget.budget), which]);
                    }
                }
            })
            .build();
    };
    limits(
        "redrive.budget.used",
        "How much of a limit is taken, by leases and by sends within its window",
        |limit| limit.used,
    );
    limits("redrive.budget.limit", "The most of a limit", |limit| {
        limit.most
    });
    meter
        .u64_observable_counter("redrive.budget.overruns")
        .with_description("Sends that took more tokens than were reserved")
        .with_callback(move |observer| {
            for budget in read() {
                observer.observe(budget.overruns, &[name(&budget.budget)]);
            }
        })
        .build();
}

fn name(budget: &str) -> KeyValue {
    KeyValue::new("budget", budget.to_owned())
}

fn labels(budget: &str, decision: Decision) -> [KeyValue; 2] {
    [name(budget), KeyValue::new("decision", decision.label())]
}
