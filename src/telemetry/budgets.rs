//! The metrics of budgets. Their names are the configuration's, and so is the number of series.

use std::sync::Arc;

use opentelemetry::{
    KeyValue,
    metrics::{Histogram, Meter},
};

use super::metrics::seconds;

/// What a budget looks like at a scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetReading {
    /// Its name in the configuration.
    pub budget: Arc<str>,
    /// Each of its limits.
    pub limits: Vec<LimitReading>,
    /// The same for all pods together; empty of a local budget, and until the engine said anything.
    pub fleet: Vec<LimitReading>,
    /// Attempts that wait for it.
    pub waiting: u64,
    /// A provider asked it to rest.
    pub resting: bool,
    /// Attempts that were granted a lease so far.
    pub granted: u64,
    /// Attempts that had to wait so far.
    pub waited: u64,
    /// Attempts that were refused so far: too large for a limit, or too many waited.
    pub refused: u64,
    /// How often a send took more tokens than were reserved so far.
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

/// How long attempts waited for their leases, by the budget that they waited for last.
pub(super) fn wait(meter: &Meter) -> Histogram<f64> {
    seconds(
        meter,
        "redrive.budget.wait",
        "Seconds that an attempt waited for its lease, by the budget it waited for last",
    )
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
    type Limits = fn(&BudgetReading) -> &[LimitReading];
    let limits =
        |metric: &'static str, text: &'static str, of: Limits, value: fn(&LimitReading) -> u64| {
            let read = read.clone();
            meter
                .u64_observable_gauge(metric)
                .with_description(text)
                .with_callback(move |observer| {
                    for budget in read() {
                        for limit in of(&budget) {
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
        |budget| &budget.limits,
        |limit| limit.used,
    );
    limits(
        "redrive.budget.limit",
        "The most of a limit",
        |budget| &budget.limits,
        |limit| limit.most,
    );
    limits(
        "redrive.budget.fleet.used",
        "How much of a limit all pods together have taken",
        |budget| &budget.fleet,
        |limit| limit.used,
    );
    let reading = read.clone();
    meter
        .u64_observable_counter("redrive.budget.decisions")
        .with_description("Answers to attempts that asked a budget")
        .with_callback(move |observer| {
            for budget in reading() {
                let counts = [
                    ("granted", budget.granted),
                    ("waited", budget.waited),
                    ("refused", budget.refused),
                ];
                for (decision, count) in counts {
                    let decision = KeyValue::new("decision", decision);
                    observer.observe(count, &[name(&budget.budget), decision]);
                }
            }
        })
        .build();
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

pub(super) fn name(budget: &str) -> KeyValue {
    KeyValue::new("budget", budget.to_owned())
}
