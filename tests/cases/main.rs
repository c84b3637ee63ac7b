//! The cases: failures from public bug reports, played as scripts by the simulator against the running
//! sidecar over real gRPC, and compared with the outcome that is right.
//!
//! `cases.jsonl`, and `gate.jsonl` of the turn gate, are in the format of `docs/simulator.md` and
//! `README.md` here; `not_run.txt` lists the cases that are not run, with the reason.
//! `REDRIVE_CASES=C001,C027 cargo test --test cases` runs only some. Real time, with the timers a
//! hundredth of the defaults where a case says so; only waits that a provider asked for, backoff and
//! closings are measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests call the sidecar as clients do"
)]

mod case;
#[path = "../support/check.rs"]
mod check;
mod drive;
mod engine;
mod expect;
mod gated;
mod limits;
mod list;
mod names;
mod outcome;
mod promises;
mod provider;
mod resp;
mod run;
#[allow(dead_code, reason = "shared with tests/shared_budgets")]
#[path = "../shared_budgets/server.rs"]
mod server;
mod shared;
mod sidecar;
mod want;
mod ways_to_fail;
