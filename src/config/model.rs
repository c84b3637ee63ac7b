//! The configuration, resolved: every name looked up, every default filled in, every secret read.

mod engine;
mod gate;

use std::{
    collections::BTreeMap, fmt, net::SocketAddr, num::NonZeroU32, sync::Arc, time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::tz::TimeZone;
use secrecy::SecretString;

pub use self::{
    engine::{EnginePlace, LocalShare, OnLoss, SharedEngine},
    gate::{Gate, GateRules},
};
use crate::{
    limits::Settings,
    protocol::{Dialect, Protocol, Terminal},
    recovery::settings::{Policy, RetryBudgetSettings, Timers},
    upstream::Endpoint,
};

/// Everything `redrive serve` needs.
#[derive(Debug)]
pub struct Config {
    /// Where the sidecar listens.
    pub listen: Listen,
    /// Routes by name.
    pub routes: BTreeMap<String, Arc<Route>>,
    /// Rate limits shared by generations, in the file's order: the order names them.
    pub budgets: Arc<[Budget]>,
    /// Where the shared ones among them are counted; some if any is shared.
    pub engine: Option<SharedEngine>,
    /// How much of the traffic to a provider may be retries.
    pub retry_budget: RetryBudgetSettings,
    /// Traces, metrics and logs.
    pub telemetry: Telemetry,
    /// Bounds of the whole process.
    pub limits: Limits,
    /// How long running generations may finish after SIGTERM.
    pub drain_grace: Duration,
}

/// The listeners and their bounds.
#[derive(Debug)]
pub struct Listen {
    /// gRPC.
    pub grpc: SocketAddr,
    /// Drain; loopback only.
    pub admin: SocketAddr,
    /// Health and metrics.
    pub public: SocketAddr,
    /// gRPC connections at most; further ones are closed at once.
    pub max_connections: usize,
    /// Streams per gRPC connection at most.
    pub max_streams_per_connection: u32,
    /// The largest client frame.
    pub max_request_bytes: usize,
    /// HTTP/2 PING interval of the gRPC listener; zero is off.
    pub keepalive_interval: Duration,
    /// How long a PING may go unanswered.
    pub keepalive_timeout: Duration,
    /// How fast clients may open streams.
    pub admission: Admission,
    /// gRPC server reflection.
    pub reflection: bool,
}

/// How fast clients may open streams; those over it are refused at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Every call of the service, by one gRPC connection.
    pub per_connection: Option<StreamRate>,
    /// Starts of generations, by one value of a label.
    pub per_label: Option<LabelRate>,
}

/// `burst` streams at once, then `streams` evenly over each `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRate {
    /// Streams.
    pub streams: NonZeroU32,
    /// In this time.
    pub per: Duration,
    /// At once.
    pub burst: NonZeroU32,
}

/// A rate for each value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRate {
    /// The label's name.
    pub label: String,
    /// The rate of each of its values.
    pub rate: StreamRate,
}

/// A provider: where it is, what it speaks and with which credentials.
#[derive(Debug)]
pub struct Provider {
    /// Its name in the configuration.
    pub name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// Deviations from that protocol.
    pub dialect: Dialect,
    /// What completes a response.
    pub terminal: Terminal,
    /// The provider is asked to continue the text of a cut-off answer.
    pub prefill: bool,
    /// The provider is asked to store responses, so that a cut-off one can be read on.
    pub resume: bool,
    /// Connections to it.
    pub endpoint: Arc<Endpoint>,
    /// In order of preference; empty: requests go without a credential.
    pub credentials: Vec<Credential>,
    /// Fixed extra headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Provider {
    /// Adds the fixed extra headers, over what is there.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
    }
}

/// A named credential.
#[derive(Debug)]
pub struct Credential {
    /// Its name, for logs and the ledger; never the secret.
    pub name: String,
    /// The secret.
    pub api_key: SecretString,
}

/// What an application asks for by name.
#[derive(Debug)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// In order of preference; at least one.
    pub targets: Vec<Target>,
    /// Patterns (`*` matches any run of characters) of what `start.model` may ask for; empty: it may
    /// not name a model.
    pub models: Vec<String>,
    /// How failures are recovered.
    pub policy: Policy,
    /// Whether a completed attempt is good enough to commit.
    pub gate: Gate,
    /// The largest message, in bytes.
    pub max_message_bytes: usize,
    /// Tokens of output that are reserved of budgets where the request states no bound.
    pub max_output_tokens: u64,
    /// How long a client may take nothing although something waits for it; zero is off.
    pub client_idle: Duration,
}

/// One place a route's attempts go to.
#[derive(Clone, Debug)]
pub struct Target {
    /// `provider/model`.
    pub name: String,
    /// The provider.
    pub provider: Arc<Provider>,
    /// The model, as the provider names it.
    pub model: String,
    /// The model's context window in tokens, where known.
    pub context_window: Option<u64>,
    /// Its timers: its own over the route's over the profile's.
    pub timers: Timers,
}

/// A rate limit shared by generations.
#[derive(Clone, Debug)]
pub struct Budget {
    /// What it allows.
    pub settings: Settings,
    /// Whether it is counted by [`Config::engine`], for all pods together, instead of in this process.
    pub is_shared: bool,
    /// Which attempts take part of it.
    pub selector: Selector,
    /// Where its calendar days begin.
    pub zone: TimeZone,
    /// Whom those who wait are fair to; none: first come, first served.
    pub fairness: Option<Fairness>,
    /// How its sends are spread inside its windows.
    pub smoothing: Option<Smoothing>,
    /// How many attempts may wait for it.
    pub max_waiting: usize,
    /// Where no tokenizer is known for the model: so many bytes of the prompt count as one token.
    pub bytes_per_token: u32,
}

/// Which attempts take part of a budget: those that match all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The provider's name.
    pub provider: Option<String>,
    /// The credential's name.
    pub credential: Option<String>,
    /// `provider/model`, in which `*` stands for any run of characters.
    pub target: Option<String>,
    /// The route's name.
    pub route: Option<String>,
    /// Values of labels, in which `*` stands for any run of characters; a label that a start does not
    /// have matches nothing.
    pub labels: BTreeMap<String, String>,
}

impl Selector {
    /// Whether it stands for quota at a provider: only then do the provider's own words (a 429, its
    /// rate-limit headers) concern it.
    pub fn is_of_a_provider(&self) -> bool {
        self.provider.is_some() || self.credential.is_some() || self.target.is_some()
    }
}

impl fmt::Display for Selector {
    /// As in the file: `provider openai, label.tenant gold`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            ("provider", &self.provider),
            ("credential", &self.credential),
            ("target", &self.target),
            ("route", &self.route),
        ];
        let mut comma = "";
        for (key, name) in names {
            if let Some(name) = name {
                write!(f, "{comma}{key} {name}")?;
                comma = ", ";
            }
        }
        for (label, value) in &self.labels {
            write!(f, "{comma}label.{label} {value}")?;
            comma = ", ";
        }
        Ok(())
    }
}

/// Those who wait are served in turn by the values of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fairness {
    /// The label's name.
    pub label: String,
    /// Shares by value, from 1.
    pub weights: BTreeMap<String, u32>,
    /// The share of every other value.
    pub default_weight: u32,
}

/// Sends are spread: `burst` at once, then `requests` evenly over each `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smoothing {
    /// Sends.
    pub requests: NonZeroU32,
    /// In this time.
    pub per: Duration,
    /// At once.
    pub burst: NonZeroU32,
}

/// Traces, metrics and logs.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// OTLP/gRPC endpoint of traces.
    pub traces_otlp: Option<String>,
    /// Serve Prometheus metrics on the public listener.
    pub prometheus: bool,
    /// Log format.
    pub log_format: LogFormat,
    /// Log level: `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: String,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Bounds of the whole process.
#[derive(Debug)]
pub struct Limits {
    /// All transcripts together, in bytes; beyond it new work is refused.
    pub max_total_bytes: usize,
    /// How long an ended generation can be attached to.
    pub retention: Duration,
}
