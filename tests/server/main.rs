//! The running server, seen through its gRPC surface, on a paused clock.
//!
//! Every RPC of every test goes through the check of `support::check`, and every test ends by counting
//! what is left (`Bench::finish`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests call the server as clients do, and read the clock that they pause"
)]

mod across;
mod admission;
mod anthropic;
mod budgets;
mod budgets_attacked;
mod budgets_ends;
mod budgets_providers;
mod chaos;
mod circuits;
mod complete;
mod continuing;
mod counting;
mod delivery;
mod detached;
mod draining;
mod effects;
mod gate_metrics;
mod gating;
mod gating_schemas;
mod leaving;
mod native;
mod opening;
mod providers;
mod refusals;
mod responses;
mod resuming;
#[path = "../support/mod.rs"]
mod support;
mod targets;
mod timers;
