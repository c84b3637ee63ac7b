//! What the whole path costs: provider → sidecar → gRPC client, each a process of its own, beside the
//! floor: a relay with the same gRPC server and the same HTTP client that only copies lines. Rows that
//! compare the two alternate between them within one run, so that the machine's moods meet both.
//!
//! `cargo bench --bench path` prints the table; `cargo bench --bench path -- paced memory` only these
//! rows; `--rounds N` repeats more often. docs/performance.md tells how to read it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "the floor and the provider are not the sidecar; latencies are real time"
)]

mod client;
mod measure;
mod process;
mod provider;
mod relay;
mod report;
mod rows;
mod stamp;

use std::env;

use report::Report;
use rows::Bench;

/// Rows, in the order in which they are printed.
const ROWS: [&str; 5] = ["paced", "burst", "first", "recovery", "memory"];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    // Cargo gives `--bench` to every benchmark.
    let mut words = env::args().skip(1).filter(|word| word != "--bench");
    match words.next().as_deref() {
        Some("provider") => runtime.block_on(provider::run()),
        Some("relay") => runtime.block_on(relay::run(&words.next().expect("a base URL"))),
        first => {
            let words: Vec<String> = first.map(str::to_owned).into_iter().chain(words).collect();
            runtime.block_on(bench(&words));
        }
    }
}

async fn bench(words: &[String]) {
    let mut rounds = 5;
    let mut chosen = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match ROWS.iter().find(|row| *row == word) {
            Some(row) => chosen.push(*row),
            None if word == "--rounds" => rounds = words.next().unwrap().parse().unwrap(),
            None => panic!("{word}: no such row; there are {ROWS:?} and --rounds N"),
        }
    }
    if chosen.is_empty() {
        chosen = ROWS.to_vec();
    }
    let mut report = Report::new();
    let bench = Bench::new(rounds).await;
    for row in chosen {
        eprintln!("measuring {row} …");
        match row {
            "paced" => bench.paced(&mut report).await,
            "burst" => bench.burst(&mut report).await,
            "first" => bench.first_token(&mut report).await,
            "recovery" => bench.recovery(&mut report).await,
            _ => bench.memory(&mut report).await,
        }
    }
    report.print();
}
