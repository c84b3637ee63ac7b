//! The recovery core on plain values: each case of the published behaviours it must match, and each
//! sentence of the contract that a client can notice. Time is a value; nothing sleeps.
//!
//! Cases that are not here, and why: G24 and G25 (earlier tool results and queued prompts are the
//! client's own state: shown by the example clients), G31 (a wrong allowance is an error of the
//! configuration: tested there), and the parsing half of G28, G29 and G34 (dates, garbage, bodies:
//! tested in `verdict`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "recovery/bounded.rs"]
mod bounded;
#[path = "recovery/budgets.rs"]
mod budgets;
#[path = "recovery/client.rs"]
mod client;
#[path = "recovery/continuing.rs"]
mod continuing;
#[path = "recovery/continuing_clients.rs"]
mod continuing_clients;
#[path = "recovery/costs.rs"]
mod costs;
#[path = "recovery/deliveries.rs"]
mod deliveries;
#[path = "recovery/effects.rs"]
mod effects;
#[path = "recovery/engines.rs"]
mod engines;
#[path = "recovery/gating.rs"]
mod gating;
#[path = "recovery/gating_again.rs"]
mod gating_again;
#[path = "recovery/gating_streams.rs"]
mod gating_streams;
#[path = "recovery/ledger.rs"]
mod ledger;
#[path = "recovery/message.rs"]
mod message;
#[path = "recovery/recorded.rs"]
mod recorded;
#[path = "recovery/resuming.rs"]
mod resuming;
#[path = "recovery/scopes.rs"]
mod scopes;
#[path = "recovery/silence.rs"]
mod silence;
#[path = "recovery/snapshots.rs"]
mod snapshots;
#[path = "recovery/stalls.rs"]
mod stalls;
#[path = "recovery/support/mod.rs"]
mod support;
#[path = "recovery/targets.rs"]
mod targets;
#[path = "recovery/waits.rs"]
mod waits;
