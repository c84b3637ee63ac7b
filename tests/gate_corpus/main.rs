//! The golden corpus of the turn gate: each scenario under each policy and delivery, run against the whole
//! sidecar on a paused clock, and compared with what `corpus.txt` says of it.
//!
//! `REDRIVE_RECORD=1 cargo test --test gate_corpus` writes the file anew. It refuses rows that do not
//! show what they declare ([`row::Row::hollow`]), and so does the check: a file cannot become right by saying
//! nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests call the server as clients do, and read the clock that they pause"
)]

mod ask;
mod file;
mod hollow;
mod row;
mod run;
mod scenario;
mod scenarios;
#[path = "../support/mod.rs"]
mod support;
mod wire;

use std::thread;

use row::Row;
use scenario::Scenario;
use scenarios::SCENARIOS;
use tokio::runtime::Builder;

/// So many clocks run at once.
const THREADS: usize = 4;

#[test]
fn the_gate_does_what_the_corpus_says() {
    let some = SCENARIOS.chunks(SCENARIOS.len().div_ceil(THREADS));
    let rows: Vec<Row> = thread::scope(|scope| {
        let running: Vec<_> = some
            .map(|some| scope.spawn(|| run_on_a_clock(some)))
            .collect();
        let done = running.into_iter().map(|one| one.join().unwrap());
        done.flatten().collect()
    });
    match std::env::var_os("REDRIVE_RECORD") {
        Some(_) => file::record(&rows).unwrap_or_else(|refused| panic!("{refused}")),
        None => file::check(&rows).unwrap_or_else(|differs| panic!("{differs}")),
    }
}

/// On a paused clock of their own.
fn run_on_a_clock(scenarios: &[Scenario]) -> Vec<Row> {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(run::all(scenarios))
}
