//! The file as it is written: every key, its kind of value, its bounds and its default.
//!
//! These structs are private to the configuration. They are the one statement of the format: the parser
//! and the JSON Schema both derive from them, and their doc comments are the schema's descriptions.

mod budget;
mod engine;
mod listen;
mod provider;
mod route;
mod secret;
mod selector;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::{
    budget::{Budget, Daily, Engine, Fairness, Refund, Smoothing, Window},
    engine::{Engines, Redis, Sentinel},
    listen::{Admission, Listen},
    provider::{Continue, Credential, Http2, Protocol, Provider, Proxy, Resume, Terminal},
    route::{Gate, Preset, Profile, Recovery, Replay, Route, Target, Timers},
    secret::Secret,
    selector::{LABEL, Selector},
};
use super::{
    model::LogFormat,
    value::{Count, DAY, HOUR, KIB, Later, MIB, SECOND, Share, Size, Span, TIB},
};

/// The configuration of Redrive. Durations are written as "45s" or "450ms", and 0 is off; sizes as
/// "16MiB" or a number of bytes; secrets as references, {file: PATH} or {env: NAME}. A key that is left
/// out, or has no value, has its default.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(title = "Redrive configuration")]
#[schemars(extend("required" = ["providers", "routes"]))]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    /// Where the sidecar listens, and the bounds of its listeners.
    pub(super) listen: Listen,
    /// Providers by name: where they are, what they speak, and with which credentials.
    pub(super) providers: BTreeMap<String, Provider>,
    /// Routes by name: what applications ask for. At least one.
    #[schemars(extend("minProperties" = 1))]
    pub(super) routes: BTreeMap<String, Route>,
    /// Rate limits shared by generations, at most 64.
    #[schemars(length(max = 64))]
    pub(super) budgets: Vec<Budget>,
    /// Engines of shared budgets.
    pub(super) engines: Engines,
    /// How much of the traffic may be retries, so that an outage is not amplified.
    pub(super) retry_budget: RetryBudget,
    /// Traces, metrics and logs.
    pub(super) telemetry: Telemetry,
    /// Bounds of the whole process.
    pub(super) limits: Limits,
    /// What happens on SIGTERM.
    pub(super) drain: Drain,
}

/// How much of the traffic may be retries, so that an outage is not amplified.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetryBudget {
    /// Retries per first attempt.
    pub(super) ratio: Share<100, 20>,
    /// Retries that are always allowed within `per`.
    pub(super) floor: Count<0, 1_000_000, 20>,
    /// The sliding window.
    pub(super) per: Span<1, HOUR, { 10 * SECOND }>,
}

/// Traces, metrics and logs.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Telemetry {
    /// OpenTelemetry traces.
    pub(super) traces: Traces,
    /// Metrics.
    pub(super) metrics: Metrics,
    /// Log lines, on standard error.
    pub(super) logs: Logs,
    /// Send the trace context on to providers. `true` is not available in this version.
    pub(super) propagate_to_provider: bool,
    /// Record prompts and answers in traces. `true` is not available in this version.
    pub(super) capture_content: bool,
    /// Prices per target. Not available in this version: may only be empty.
    pub(super) prices: Option<Later>,
}

/// OpenTelemetry traces.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Traces {
    /// URL of an OTLP/gRPC collector, such as `http://otel-collector:4317`; without it no traces are
    /// exported.
    pub(super) otlp: Option<String>,
    /// Which traces are recorded.
    pub(super) sample: Sample,
}

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sample {
    /// As the caller's trace context says; those without one are recorded.
    #[default]
    Parent,
}

/// Metrics.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Metrics {
    /// Serve Prometheus metrics on the public listener.
    pub(super) prometheus: bool,
    /// Push metrics by OTLP. Not available in this version.
    pub(super) otlp: Option<Later>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            prometheus: true,
            otlp: None,
        }
    }
}

/// Log lines, on standard error.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Logs {
    /// How they are written.
    pub(super) format: Format,
    /// The least severe level that is written.
    pub(super) level: Level,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

impl From<Format> for LogFormat {
    fn from(format: Format) -> LogFormat {
        match format {
            Format::Json => LogFormat::Json,
            Format::Text => LogFormat::Text,
        }
    }
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// Errors only.
    Error,
    /// And what may need attention.
    Warn,
    /// And what normally happens.
    #[default]
    Info,
    /// And why.
    Debug,
    /// And everything else.
    Trace,
}

impl Level {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

/// Bounds of the whole process.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    /// All transcripts together; beyond it new work is refused.
    pub(super) max_total_bytes: Size<KIB, TIB, { 128 * MIB }>,
    /// How long an ended generation can be attached to.
    pub(super) retention: Span<0, DAY, { 60 * SECOND }>,
}

/// What happens on SIGTERM.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Drain {
    /// How long running generations may finish.
    pub(super) grace: Span<0, DAY, { 120 * SECOND }>,
}
