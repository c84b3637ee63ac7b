//! Deterministic simulation: every run is a function of one seed, and every promise that needs no
//! shared engine is checked after every step.
//!
//! `core` plays whole fleets against the recovery core alone, `server` plays them against the whole
//! server on a paused clock. See `docs/testing.md` for how to run more seeds and replay one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "the clock is the runtime's, paused; the clients are ours"
)]

mod core;
mod dice;
#[allow(dead_code, reason = "shared with tests/recovery.rs")]
#[path = "../recovery/support/fixtures.rs"]
mod fixtures;
#[path = "../model/mod.rs"]
mod model;
mod seeds;
mod server;
#[path = "../support/mod.rs"]
mod support;
