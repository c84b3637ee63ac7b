//! The metrics of the engine of shared budgets.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use super::labels::EngineAnswer;

/// Bucket bounds of round trips, in seconds: from a server on the same machine to the longest time-out.
const ROUND_TRIPS: [f64; 12] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 5.0,
];

/// What the engine looks like at a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineReading {
    /// It answers.
    pub up: bool,
    /// What is granted now is within the limits of all pods together.
    pub strict: bool,
    /// How often it was lost so far.
    pub lost: u64,
    /// Sends that were cut so far, because their leases could not be renewed.
    pub cut: u64,
    /// What it was not told yet of leases.
    pub untold: u64,
}

/// What is counted as it happens.
#[derive(Debug)]
pub(super) struct Engine {
    calls: Counter<u64>,
    round_trip: Histogram<f64>,
}

impl Engine {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            calls: meter
                .u64_counter("redrive.budget.engine.calls")
                .with_description(
                    "Times that the engine was asked for a lease, by what it answered",
                )
                .build(),
            round_trip: meter
                .f64_histogram("redrive.budget.engine.round_trip")
                .with_unit("s")
                .with_description("Seconds from asking the engine for a lease to its answer")
                .with_boundaries(ROUND_TRIPS.to_vec())
                .build(),
        }
    }

    /// It was asked for a lease. Without an answer there is no round trip.
    pub(super) fn asked(&self, answer: EngineAnswer, took: Duration) {
        self.calls.add(1, &[outcome(answer)]);
        if answer != EngineAnswer::Lost {
            self.round_trip.record(took.as_secs_f64(), &[]);
        }
    }

    /// Reads the engine whenever somebody scrapes; nothing is shown of none.
    pub(super) fn observe(
        &self,
        meter: &Meter,
        read: impl Fn() -> Option<EngineReading> + Clone + Send + Sync + 'static,
    ) {
        for answer in EngineAnswer::ALL {
            self.calls.add(0, &[outcome(answer)]);
        }
        type Value = fn(&EngineReading) -> u64;
        let gauges: [(&'static str, &'static str, Value); 3] = [
            (
                "redrive.budget.engine.up",
                "1 while the engine of shared budgets answers",
                |engine| u64::from(engine.up),
            ),
            (
                "redrive.budget.engine.strict",
                "1 while what is granted is within the limits of all pods together",
                |engine| u64::from(engine.strict),
            ),
            (
                "redrive.budget.engine.untold",
                "Changes of leases that the engine was not told yet",
                |engine| engine.untold,
            ),
        ];
        for (metric, text, value) in gauges {
            let read = read.clone();
            let gauge = meter.u64_observable_gauge(metric).with_description(text);
            gauge
                .with_callback(move |observer| {
                    if let Some(engine) = read() {
                        observer.observe(value(&engine), &[]);
                    }
                })
                .build();
        }
        let counters: [(&'static str, &'static str, Value); 2] = [
            (
                "redrive.budget.engine.lost",
                "Times that the engine was lost",
                |engine| engine.lost,
            ),
            (
                "redrive.budget.engine.cut",
                "Sends that were cut because their leases could not be renewed",
                |engine| engine.cut,
            ),
        ];
        for (metric, text, value) in counters {
            let read = read.clone();
            let counter = meter.u64_observable_counter(metric).with_description(text);
            counter
                .with_callback(move |observer| {
                    if let Some(engine) = read() {
                        observer.observe(value(&engine), &[]);
                    }
                })
                .build();
        }
    }
}

fn outcome(answer: EngineAnswer) -> KeyValue {
    KeyValue::new("outcome", answer.label())
}
