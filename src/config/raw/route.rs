//! `routes.*`, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::value::{Count, DAY, GIB, HOUR, KIB, MIB, SECOND, Share, Size, Span};

/// What an application asks for by name.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["targets"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Route {
    /// In order of preference; at least one.
    #[schemars(length(min = 1))]
    pub(in crate::config) targets: Vec<Target>,
    /// Patterns of what `start.model` may ask for; `*` matches any run of characters. Without any it may
    /// not name a model.
    pub(in crate::config) models: Vec<String>,
    /// How failures are recovered.
    pub(in crate::config) recovery: Recovery,
    /// Timers of all targets that do not set their own.
    pub(in crate::config) timers: Timers,
    /// The turn gate: whether a completed answer is good enough to commit.
    pub(in crate::config) gate: Gate,
    /// The largest message.
    pub(in crate::config) max_message_bytes: Size<KIB, GIB, { 8 * MIB }>,
    /// Tokens of output that are reserved of budgets where the request states no bound. Not sent.
    pub(in crate::config) max_output_tokens: Count<1, 1_000_000_000, 4096>,
    /// How long a client may take nothing although something waits for it; 0 is off.
    pub(in crate::config) client_idle: Span<0, DAY, { 120 * SECOND }>,
}

/// One place a route's attempts go to.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["provider", "model"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Target {
    /// The name of a provider. Required.
    pub(in crate::config) provider: Option<String>,
    /// The model, as the provider names it. Required.
    pub(in crate::config) model: Option<String>,
    /// The model's context window in tokens.
    pub(in crate::config) context_window: Option<Count<1, 1_000_000_000, 1>>,
    /// Its own timers; over the route's, over those of the provider's profile.
    pub(in crate::config) timers: Timers,
}

/// Which timers apply where neither target nor route sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Profile {
    /// A vendor's own service.
    Hosted,
    /// Long queues, long prefills and pre-emption are normal.
    SelfHosted,
}

/// Timers; 0 is off. Unset: those of the provider's profile.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Timers {
    /// TCP and TLS. hosted 10s, self_hosted 10s.
    pub(in crate::config) connect: Option<Span<0, DAY, 0>>,
    /// Until the first substantive event, the response head included. hosted 600s, self_hosted 1800s.
    pub(in crate::config) first_token: Option<Span<0, DAY, 0>>,
    /// Silence after the first substantive event; any event resets it. hosted 45s, self_hosted 600s.
    pub(in crate::config) inter_delta: Option<Span<0, DAY, 0>>,
    /// Replaces inter_delta while a tool call or reasoning block is open. hosted 300s, self_hosted 600s.
    pub(in crate::config) open_block: Option<Span<0, DAY, 0>>,
    /// No substantive event although keepalives flow. hosted 300s, self_hosted 1200s.
    pub(in crate::config) no_progress: Option<Span<0, DAY, 0>>,
    /// After the finish reason, for usage and late errors; 0 does not wait. hosted 2s, self_hosted 2s.
    pub(in crate::config) tail: Option<Span<0, { 10 * SECOND }, 0>>,
}

/// How failures are recovered.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Recovery {
    /// How many attempts may be dispatched, the first included.
    pub(in crate::config) max_attempts: Count<1, 500, 11>,
    /// Bounds admission and backoff; never cuts an attempt in flight.
    pub(in crate::config) deadline: Span<1, DAY, { 600 * SECOND }>,
    /// The longest wait for a rate-limited or overloaded target before the next one is tried.
    pub(in crate::config) patience: Span<0, HOUR, { 5 * SECOND }>,
    /// Whether failed attempts are tried again.
    pub(in crate::config) replay: Replay,
    /// Replay on the same target after timeout_first_token, which pays the prefill again.
    pub(in crate::config) replay_first_token: bool,
    /// Our own waits: base, doubled each time, up to max, and up to jitter longer.
    pub(in crate::config) backoff: Backoff,
    /// When a target that keeps failing is left alone.
    pub(in crate::config) circuit: Circuit,
}

/// Whether failed attempts are tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Replay {
    /// Reset, then the original request again.
    #[default]
    Restart,
    /// One attempt only.
    None,
}

/// Our own waits: base, doubled each time, up to max, and up to jitter longer.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Backoff {
    /// The first wait.
    pub(in crate::config) base: Span<0, HOUR, { SECOND }>,
    /// The longest wait; not below base.
    pub(in crate::config) max: Span<0, HOUR, { 60 * SECOND }>,
    /// How much longer a wait may get at random, as a share of it.
    pub(in crate::config) jitter: Share<25, 25>,
}

/// When a target that keeps failing is left alone.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Circuit {
    /// Consecutive failures of the transport, timeout or 5xx kind that open the circuit.
    pub(in crate::config) failures: Count<1, 1000, 5>,
    /// How long it stays open before one probe is let through.
    pub(in crate::config) open: Span<0, HOUR, { 30 * SECOND }>,
}

/// The turn gate: whether a completed answer is good enough to commit.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Gate {
    /// Its rules.
    pub(in crate::config) preset: Preset,
    /// How many completed attempts it judges, the first included.
    pub(in crate::config) max_attempts: Count<1, 6, 3>,
    /// Prose beside calls that are written as text is fine. agent false, lenient true.
    pub(in crate::config) prose_with_tools: Option<bool>,
    /// Prose without a completion wrapper is a final answer. true.
    pub(in crate::config) accept_bare_final: Option<bool>,
    /// A broken call is the reason to try again even if a demanded one is missing too. agent true,
    /// lenient false.
    pub(in crate::config) tool_errors_before_required: Option<bool>,
    /// A broken call rejects the answer even with a good one beside it, where calls are written as text.
    /// agent true, lenient false.
    pub(in crate::config) tool_errors_veto_with_calls: Option<bool>,
}

/// The rules of the turn gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Preset {
    /// Malformed tool calls fail, everything else commits.
    #[default]
    Off,
    /// For clients that run the calls of an answer as a set.
    Agent,
    /// For clients that act on each block by itself.
    Lenient,
}
