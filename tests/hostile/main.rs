//! What a hostile client, provider, network or operator does, against the process itself or the whole
//! server: each once broke something.
//!
//! Partly in real time: `tests/REAL_TIME.md` says why.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests open sockets as attackers do, and measure the named bounds in real time"
)]

mod attach;
mod attacker;
mod frames;
mod http2_clients;
mod http2_providers;
mod listeners;
mod operator;
mod providers;
mod siege;
#[path = "../support/mod.rs"]
mod support;

use support::process as sidecar;
