//! The metrics, by the OpenTelemetry SDK, exposed as Prometheus text.
//!
//! Two grains, never mixed: generations (what applications asked for) and sends (what providers
//! were asked for). Every label has a fixed or configured set of values.
//!
//! | name | kind | labels |
//! |---|---|---|
//! | `redrive_generations_total` | counter | `outcome`: committed, failed, cancelled |
//! | `redrive_sends_total` | counter | `target`: `provider/model` of the configuration, `provider/_OTHER`, `_OTHER` · `verdict`: accepted or a class of the contract in snake_case |
//! | `redrive_tokens_total` | counter | output tokens; `disposition`: committed, void |
//! | `redrive_streams_refused_total` | counter | `pace`: connection, label |
//! | `redrive_unknown_events_total` | counter | `target` |
//! | `redrive_gate_rejections_total` | counter | `reason`: as `Verdict.gate_reason` has it · `then`: retried, delivered, failed |
//! | `redrive_generations_active` | gauge | |
//! | `redrive_time_to_first_token_seconds` | histogram | |
//! | `redrive_recovery_time_seconds` | histogram | |
//! | `redrive_budget_decisions_total` | counter | `budget`: a name of the configuration · `decision`: granted, waited, refused |
//! | `redrive_budget_wait_seconds` | histogram | `budget` |
//! | `redrive_budget_used`, `redrive_budget_limit` | gauge | `budget` · `limit`: such as `requests/1m` |
//! | `redrive_budget_waiting`, `redrive_budget_resting` | gauge | `budget` |
//! | `redrive_budget_overruns_total` | counter | `budget` |
//! | `redrive_budget_fleet_used` | gauge | `budget` · `limit` |
//! | `redrive_budget_engine_up`, `redrive_budget_engine_strict`, `redrive_budget_engine_untold` | gauge | |
//! | `redrive_budget_engine_round_trip_seconds` | histogram | |
//! | `redrive_budget_engine_calls_total` | counter | `outcome`: granted, denied, learning, lost |
//! | `redrive_budget_engine_lost_total`, `redrive_budget_engine_cut_total` | counter | |
//! | `redrive_grpc_connections_active`, `redrive_grpc_streams_active`, `redrive_provider_connections_active`, `redrive_tasks_active`, `redrive_transcript_bytes` | gauge | |

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider},
};
use opentelemetry_sdk::{error::OTelSdkError, metrics::SdkMeterProvider};
use prometheus::{Registry, TextEncoder};

use super::{
    budgets::{self, BudgetReading},
    engine::{Engine, EngineReading},
    gauges::{Gauge, Gauges},
    labels::{EngineAnswer, Outcome, Pace, TargetNames, verdict},
};
use crate::{
    gate::{Reason, Then},
    verdict::class::Class,
};

/// Bucket bounds of both histograms, in seconds: from a cached prompt on a near provider to the
/// longest `first_token` timer a route has by default.
const SECONDS: [f64; 15] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];

/// The instruments, and the registry they are scraped from.
#[derive(Debug)]
pub(super) struct Metrics {
    generations: Counter<u64>,
    sends: Counter<u64>,
    tokens: Counter<u64>,
    streams_refused: Counter<u64>,
    unknown_events: Counter<u64>,
    gate_rejections: Counter<u64>,
    time_to_first_token: Histogram<f64>,
    recovery_time: Histogram<f64>,
    budget_wait: Histogram<f64>,
    engine: Engine,
    targets: TargetNames,
    registry: Option<Registry>,
    meter: Meter,
    /// Dropping it would end the collection.
    _provider: SdkMeterProvider,
}

impl Metrics {
    /// The instruments. Without `prometheus` nothing reads them and recording costs next to nothing.
    pub(super) fn new(
        prometheus: bool,
        targets: TargetNames,
        gauges: &Gauges,
    ) -> Result<Self, OTelSdkError> {
        let mut provider = SdkMeterProvider::builder();
        let registry = prometheus.then(Registry::new);
        if let Some(registry) = &registry {
            // Our names are the contract: no scope labels on every line, no `target_info`.
            let exporter = opentelemetry_prometheus::exporter()
                .with_registry(registry.clone())
                .scope_info_enabled(false)
                .without_target_info()
                .build()?;
            provider = provider.with_reader(exporter);
        }
        let provider = provider.build();
        let meter = provider.meter("redrive");
        observe_gauges(&meter, gauges);
        let metrics = Self {
            generations: meter
                .u64_counter("redrive.generations")
                .with_description("Generations that ended, by outcome")
                .build(),
            sends: meter
                .u64_counter("redrive.sends")
                .with_description(
                    "Attempts whose request may have left the process, by target and verdict",
                )
                .build(),
            tokens: meter
                .u64_counter("redrive.tokens")
                .with_description("Output tokens of ended generations, committed or void")
                .build(),
            streams_refused: meter
                .u64_counter("redrive.streams_refused")
                .with_description("Streams that clients opened faster than the listener admits")
                .build(),
            unknown_events: meter
                .u64_counter("redrive.unknown_events")
                .with_description("Events and blocks of providers that were passed over, by target")
                .build(),
            gate_rejections: meter
                .u64_counter("redrive.gate_rejections")
                .with_description("Answers that the turn gate rejected, and what became of them")
                .build(),
            time_to_first_token: seconds(
                &meter,
                "redrive.time_to_first_token",
                "Seconds from accepting a generation to its first token",
            ),
            recovery_time: seconds(
                &meter,
                "redrive.recovery_time",
                "Seconds from knowing of a failure to the first token of its replacement",
            ),
            budget_wait: budgets::wait(&meter),
            engine: Engine::new(&meter),
            targets,
            registry,
            meter,
            _provider: provider,
        };
        metrics.start_at_zero();
        Ok(metrics)
    }

    /// A generation ended.
    pub(super) fn generation(&self, outcome: Outcome) {
        self.generations.add(1, &[outcome_label(outcome)]);
    }

    /// A send ended; without a `class` it was accepted.
    pub(super) fn send(&self, target: &str, class: Option<Class>) {
        let labels = [
            KeyValue::new("target", self.targets.label(target)),
            KeyValue::new("verdict", verdict(class)),
        ];
        self.sends.add(1, &labels);
    }

    /// Output tokens of a generation that ended.
    pub(super) fn tokens(&self, committed: u64, void: u64) {
        self.tokens.add(committed, &[disposition("committed")]);
        self.tokens.add(void, &[disposition("void")]);
    }

    /// A client opened a stream faster than `pace` admits.
    pub(super) fn stream_refused(&self, pace: Pace) {
        self.streams_refused.add(1, &[pace_label(pace)]);
    }

    /// A provider sent an event or a block that is not known.
    pub(super) fn unknown_event(&self, target: &str) {
        let label = KeyValue::new("target", self.targets.label(target));
        self.unknown_events.add(1, &[label]);
    }

    /// The turn gate rejected an answer.
    pub(super) fn gate_rejected(&self, reason: Reason, then: Then) {
        self.gate_rejections.add(1, &gate_labels(reason, then));
    }

    /// The first token of a generation came `since_accepted`.
    pub(super) fn first_token(&self, since_accepted: Duration) {
        self.time_to_first_token
            .record(since_accepted.as_secs_f64(), &[]);
    }

    /// The first token of a replacement came `since_failure` was known.
    pub(super) fn recovered(&self, since_failure: Duration) {
        self.recovery_time.record(since_failure.as_secs_f64(), &[]);
    }

    /// From now on every scrape reads all budgets.
    pub(super) fn observe_budgets(
        &self,
        read: impl Fn() -> Vec<BudgetReading> + Clone + Send + Sync + 'static,
    ) {
        budgets::observe(&self.meter, read);
    }

    /// From now on every scrape reads the engine of shared budgets.
    pub(super) fn observe_engine(
        &self,
        read: impl Fn() -> Option<EngineReading> + Clone + Send + Sync + 'static,
    ) {
        self.engine.observe(&self.meter, read);
    }

    /// The engine was asked for a lease.
    pub(super) fn engine_asked(&self, answer: EngineAnswer, took: Duration) {
        self.engine.asked(answer, took);
    }

    /// An attempt got its lease after it had waited for `budget`.
    pub(super) fn budget_waited(&self, budget: &str, wait: Duration) {
        self.budget_wait
            .record(wait.as_secs_f64(), &[budgets::name(budget)]);
    }

    /// The Prometheus text, or nothing where metrics are off.
    pub(super) fn render(&self) -> Option<String> {
        let families = self.registry.as_ref()?.gather();
        match TextEncoder::new().encode_to_string(&families) {
            Ok(text) => Some(text),
            Err(error) => {
                tracing::error!(%error, "metrics could not be encoded");
                None
            }
        }
    }

    /// A series that exists before its first event makes that event visible as an increase.
    fn start_at_zero(&self) {
        for outcome in Outcome::ALL {
            self.generations.add(0, &[outcome_label(outcome)]);
        }
        for pace in Pace::ALL {
            self.streams_refused.add(0, &[pace_label(pace)]);
        }
        for reason in Reason::ALL {
            for then in Then::ALL {
                self.gate_rejections.add(0, &gate_labels(reason, then));
            }
        }
        self.tokens(0, 0);
    }
}

fn outcome_label(outcome: Outcome) -> KeyValue {
    KeyValue::new("outcome", outcome.label())
}

fn pace_label(pace: Pace) -> KeyValue {
    KeyValue::new("pace", pace.label())
}

fn gate_labels(reason: Reason, then: Then) -> [KeyValue; 2] {
    [
        KeyValue::new("reason", reason.as_str()),
        KeyValue::new("then", then.as_str()),
    ]
}

fn disposition(value: &'static str) -> KeyValue {
    KeyValue::new("disposition", value)
}

pub(super) fn seconds(
    meter: &Meter,
    name: &'static str,
    description: &'static str,
) -> Histogram<f64> {
    meter
        .f64_histogram(name)
        .with_unit("s")
        .with_description(description)
        .with_boundaries(SECONDS.to_vec())
        .build()
}

/// Every gauge, read when somebody scrapes.
fn observe_gauges(meter: &Meter, gauges: &Gauges) {
    let observe = |name: &'static str, unit: &'static str, text: &'static str, gauge: &Gauge| {
        let gauge = gauge.clone();
        meter
            .i64_observable_gauge(name)
            .with_unit(unit)
            .with_description(text)
            .with_callback(move |observer| observer.observe(gauge.value(), &[]))
            .build();
    };
    observe(
        "redrive.generations.active",
        "",
        "Generations that have not ended, detached ones included",
        &gauges.generations,
    );
    observe(
        "redrive.grpc.connections.active",
        "",
        "Connections of clients to the gRPC listener",
        &gauges.grpc_connections,
    );
    observe(
        "redrive.grpc.streams.active",
        "",
        "RPCs that have not ended",
        &gauges.grpc_streams,
    );
    observe(
        "redrive.provider.connections.active",
        "",
        "Connections to providers, idle ones included",
        &gauges.provider_connections,
    );
    observe(
        "redrive.tasks.active",
        "",
        "Tasks of generations and of the server",
        &gauges.tasks,
    );
    observe(
        "redrive.transcript",
        "By",
        "Bytes of all transcripts together, kept results included",
        &gauges.transcript_bytes,
    );
}
