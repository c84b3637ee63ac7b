//! IO. Seeing what happens: metrics, traces and logs, from one set of calls.
//!
//! The session tells a [`GenerationObserver`] what happens; the server holds an [`RpcSpan`] for each
//! RPC; other rooms count what is alive in [`Gauges`]. Nothing here decides anything, blocks a
//! generation, or ever sees content, prompts or credentials.
//!
//! A trace has three levels: the RPC, the generation (which may outlive its RPC), one client span
//! for each send. They end exactly once, at the latest when their owner is dropped.

mod attempt;
mod budgets;
mod context;
mod engine;
mod gauges;
mod generation;
mod labels;
pub mod log;
mod metrics;
mod rpc;
mod semconv;
mod traces;

use std::{sync::Arc, time::Duration};

use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::{error::OTelSdkError, trace::SdkTracerProvider};

pub use self::{
    attempt::Attempt,
    budgets::{BudgetReading, LimitReading},
    engine::EngineReading,
    gauges::{Gauge, Gauges, Guard},
    generation::{Generation, GenerationObserver},
    labels::{EngineAnswer, Outcome, Pace},
    rpc::RpcSpan,
};
/// Identifies a span, for parents and links.
pub use opentelemetry::trace::SpanContext;

use self::{metrics::Metrics, traces::Traces};
use crate::config;

/// Metrics and traces of the process. Clones share them.
#[derive(Clone, Debug)]
pub struct Telemetry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    metrics: Metrics,
    traces: Traces,
    gauges: Gauges,
}

/// Telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The OTLP endpoint of the configuration is unusable.
    #[error("telemetry.traces.otlp: {0}")]
    Otlp(#[from] ExporterBuildError),
    /// The metrics could not be registered.
    #[error("metrics: {0}")]
    Metrics(#[from] OTelSdkError),
}

impl Telemetry {
    /// Telemetry as configured. `targets` are the names (`provider/model`) of all routes' targets:
    /// metrics show these and count every other as `_OTHER`.
    ///
    /// With an OTLP endpoint it must be called inside a Tokio runtime.
    pub fn new(
        settings: &config::Telemetry,
        targets: impl IntoIterator<Item = String>,
    ) -> Result<Self, TelemetryError> {
        let traces = match &settings.traces_otlp {
            Some(endpoint) => Traces::otlp(endpoint)?,
            None => Traces::off(),
        };
        Self::build(settings.prometheus, targets, traces)
    }

    /// Metrics, and spans that go where `provider` says: for a process that exports its own way, and
    /// for tests that look at spans.
    pub fn with_tracer_provider(
        targets: impl IntoIterator<Item = String>,
        provider: SdkTracerProvider,
    ) -> Result<Self, TelemetryError> {
        Self::build(true, targets, Traces::from_provider(provider))
    }

    fn build(
        prometheus: bool,
        targets: impl IntoIterator<Item = String>,
        traces: Traces,
    ) -> Result<Self, TelemetryError> {
        let gauges = Gauges::default();
        let metrics = Metrics::new(prometheus, targets.into_iter().collect(), &gauges)?;
        Ok(Self(Arc::new(Inner {
            metrics,
            traces,
            gauges,
        })))
    }

    /// What is alive right now.
    pub fn gauges(&self) -> &Gauges {
        &self.0.gauges
    }

    /// The metrics as Prometheus text; nothing where they are off.
    pub fn render_metrics(&self) -> Option<String> {
        self.0.metrics.render()
    }

    /// A client opened a stream faster than `pace` admits.
    pub fn stream_refused(&self, pace: Pace) {
        self.0.metrics.stream_refused(pace);
    }

    /// Exports the spans that have ended, for at most 3 s, and records none afterwards. Safe to call
    /// again. A collector that hangs costs its spans and those 3 s.
    pub async fn shutdown(&self) {
        let provider = self.0.traces.provider();
        // The SDK blocks until its own bound; it needs a thread that may.
        let flush = move || provider.shutdown_with_timeout(traces::SHUTDOWN_TIMEOUT);
        match tokio::task::spawn_blocking(flush).await {
            Ok(Ok(()) | Err(OTelSdkError::AlreadyShutdown)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last spans were not exported"),
            Err(error) => tracing::warn!(%error, "the export of the last spans did not finish"),
        }
    }

    /// From now on every scrape reads all budgets by `read`, which must not block.
    pub fn observe_budgets(
        &self,
        read: impl Fn() -> Vec<BudgetReading> + Clone + Send + Sync + 'static,
    ) {
        self.metrics().observe_budgets(read);
    }

    /// From now on every scrape reads the engine of shared budgets by `read`, which must not block.
    pub fn observe_engine(
        &self,
        read: impl Fn() -> Option<EngineReading> + Clone + Send + Sync + 'static,
    ) {
        self.metrics().observe_engine(read);
    }

    /// The engine of shared budgets was asked for a lease, and the answer took so long.
    pub fn engine_asked(&self, answer: EngineAnswer, took: Duration) {
        self.metrics().engine_asked(answer, took);
    }

    /// An attempt got its lease after it had waited for `budget`, for so long.
    pub fn budget_waited(&self, budget: &str, wait: Duration) {
        self.metrics().budget_waited(budget, wait);
    }

    fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    fn traces(&self) -> &Traces {
        &self.0.traces
    }
}
