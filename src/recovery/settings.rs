//! What a route, its targets and a client's options say about recovery.

use std::time::Duration;

/// The timers of one target. Zero is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// TCP and TLS; from dispatch.
    pub connect: Duration,
    /// Until the first substantive event, the response head included; from the request's hand-over.
    pub first_token: Duration,
    /// Silence of the provider after the first substantive event; any event resets it.
    pub inter_delta: Duration,
    /// Replaces `inter_delta` while a tool call or reasoning block is open.
    pub open_block: Duration,
    /// No substantive event although keepalives flow.
    pub no_progress: Duration,
    /// After the finish reason: usage and late errors. Zero: do not wait.
    pub tail: Duration,
}

impl Timers {
    /// For the vendors' own hosts.
    pub const HOSTED: Timers = Timers {
        connect: Duration::from_secs(10),
        first_token: Duration::from_secs(600),
        inter_delta: Duration::from_secs(45),
        open_block: Duration::from_secs(300),
        no_progress: Duration::from_secs(300),
        tail: Duration::from_secs(2),
    };

    /// For self-hosted servers, where long queues, long prefills and pre-emption are normal.
    pub const SELF_HOSTED: Timers = Timers {
        connect: Duration::from_secs(10),
        first_token: Duration::from_secs(1800),
        inter_delta: Duration::from_secs(600),
        open_block: Duration::from_secs(600),
        no_progress: Duration::from_secs(1200),
        tail: Duration::from_secs(2),
    };
}

/// How a target's circuit opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitSettings {
    /// Consecutive failures of the transport, timeout or 5xx kind that open it; at least 1.
    pub failures: u32,
    /// How long it stays open before one probe is let through.
    pub open: Duration,
}

/// Our own wait before a replay: `min(base · 2^n, max)`, lengthened by up to `jitter` of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
    /// Upwards only, 0.0 to 0.25 (0.25: up to a quarter longer).
    pub jitter: f64,
}

/// Whether failed attempts are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Reset, then the original body again.
    Restart,
    /// One attempt only.
    None,
}

/// The recovery policy of a route, as its client's options have tightened it.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// How many attempts may be dispatched, the first included; at least 1.
    pub max_attempts: u32,
    /// Bounds admission and backoff, from the first `accepted`.
    pub deadline: Duration,
    /// The longest wait for a rate-limited or overloaded target before the next one is tried.
    pub patience: Duration,
    /// Whether failed attempts are tried again.
    pub replay: Replay,
    /// Replay on the same target after `timeout_first_token`, which pays the prefill again.
    pub replay_first_token: bool,
    /// Our own waits.
    pub backoff: Backoff,
    /// The circuits of the route's targets.
    pub circuit: CircuitSettings,
}

/// How much of the traffic to a budget domain may be retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBudgetSettings {
    /// Retries per first attempt, 0.0 to 1.0.
    pub ratio: f64,
    /// Retries that are always allowed in `per`.
    pub floor: u32,
    /// The sliding window.
    pub per: Duration,
}
