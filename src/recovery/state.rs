//! Where a generation stands.
//!
//! ```text
//!              Start
//!                │
//!                ▼            no slot, no lease: Waiting
//!   ┌────────▶ choose ──────▶ Reserving ◀──┐
//!   │            │               │   └─────┘
//!   │   not yet  │               │ Reserved: debit, ledger, AttemptStarted, Send
//!   │            ▼               ▼
//!   │ TimerDue Waiting        Running ── Sent ─ Head ─ Decoded* ─┐
//!   └────────────┘               │   └─ CONTINUE: held ─ judged ┤
//!                ▲               │ failure     Committed{prefix}│ terminal evidence,
//!                │   RESTART:    ▼                              │ tail over
//!                ├─ PreviewReset ┤                              │
//!                │   CONTINUE,   │                              │
//!                └── RESUME: ────┤                              ▼
//!                   output stays │ stop                      accept
//!                                ▼                              │
//!                             Ended(Failed)  ◀─ malformed ──────┤
//!                                ▲                              ▼
//!       Cancel, ClientLost, Violation, Drain,            Ended(Committed)
//!       deadline, client_idle: from everywhere
//! ```
//!
//! Legend: boxes are variants of [`State`], `choose` is `next.rs` over `policy.rs`; `Running` owns the
//! [`Attempt`]. A reservation leads back to `choose` if its target or its credential became unusable
//! while it was waited for, and if a budget has no room in time (`limited.rs`).
//! Where output stays, a [`super::sequel::Sequel`] says who goes on with it, and how; a refusal, or an
//! answer begun anew instead of continued, is a failure that leads to RESTART.
//! Nothing leaves `Ended`; an attached client is only given what is there.

use super::{
    Time, circuit::Probe, commit::Closing, event::Wait, sequel::Stored, timers::Clockwork,
};
use crate::proto::{Failed, FinishReason, Usage, waiting::Reason};

/// The state of a generation.
#[derive(Debug)]
pub(super) enum State {
    /// Created; `Start` has not come.
    Idle,
    /// Nothing is sent until a time has come.
    Waiting {
        /// Where it will go then.
        target: usize,
        /// When.
        until: Time,
        /// What the client was told.
        reason: Reason,
    },
    /// A connection slot and a lease were asked for.
    Reserving {
        /// For this target; which credential, is known when they are held.
        target: usize,
        /// When one more credential of the target can be used than was offered.
        returns: Option<Time>,
        /// What stands in the way, once that was told.
        held: Option<Box<Held>>,
    },
    /// An attempt is in flight.
    Running(Box<Attempt>),
    /// There is a terminal frame.
    Ended(Outcome),
}

/// What stands in the way of a reservation.
#[derive(Debug)]
pub(super) struct Held {
    /// As it was told last.
    pub wait: Wait,
    /// When it is over, where that is known.
    pub until: Option<Time>,
}

/// How a generation ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// With a message.
    Committed(Box<Closing>),
    /// Without.
    Failed(Box<Failed>),
}

/// The attempt in flight.
#[derive(Debug)]
pub(super) struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// Set if it is the probe of its target's circuit.
    pub probe: Option<Probe>,
    /// Its timers.
    pub clockwork: Clockwork,
    /// The finish reason, once it has come.
    pub finish: Option<Finish>,
    /// The last usage the provider gave.
    pub usage: Option<Usage>,
    /// The model as the provider reports it.
    pub model: String,
    /// The provider's request id, else its response id.
    pub request_id: String,
    /// The index of the newest block.
    pub block: usize,
    /// Bytes of output that came, for estimates of tokens.
    pub output_bytes: usize,
    /// Where its response is stored, if it is.
    pub stored: Option<Stored>,
    /// When `progress` was last told in the current silence.
    pub progress_told: Option<Time>,
}

/// A finish reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    /// In the contract's words.
    pub reason: FinishReason,
    /// In the provider's.
    pub native: String,
}
