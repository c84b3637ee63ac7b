//! The bodies of the fuzz targets (`fuzz/`), over the seeds, bytes near them, and any bytes: bounded,
//! on every toolchain. `docs/testing.md` says how to let a fuzzer look further.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fuzz/targets/chunk.rs"]
mod chunk;
#[path = "../fuzz/targets/client.rs"]
mod client;
#[path = "../fuzz/targets/config.rs"]
mod config;
#[allow(dead_code, reason = "shared with tests/recovery.rs")]
#[path = "recovery/support/fixtures.rs"]
mod fixtures;
#[path = "../fuzz/targets/gate.rs"]
mod gate;
mod model;
#[path = "../fuzz/targets/sse.rs"]
mod sse;
#[path = "../fuzz/targets/verdict.rs"]
mod verdict;

use std::path::PathBuf;

use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};

/// How often each target runs.
const CASES: u32 = 1_500;

/// A change to a seed.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    /// Repeats a piece of it elsewhere.
    Copy(usize, usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 16));
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (at(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), 1usize..40).prop_map(|(at, length)| Change::Remove(at, length)),
        (at(), 1usize..80, at()).prop_map(|(from, length, to)| Change::Copy(from, length, to)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: Vec<Change>) -> Vec<u8> {
    for change in changes {
        let within = |at: usize| at % (bytes.len() + 1);
        match change {
            Change::Put(at, byte) => {
                let at = within(at);
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            Change::Insert(at, more) => {
                let at = within(at);
                bytes.splice(at..at, more);
            }
            Change::Remove(at, length) => {
                let at = within(at);
                bytes.drain(at..(at + length).min(bytes.len()));
            }
            Change::Copy(from, length, to) => {
                let (from, to) = (within(from), within(to));
                let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fuzz/seeds", target]
        .iter()
        .collect();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn run(target: &str, body: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(seeds.len() >= 2, "no seeds for {target}");
    seeds.iter().for_each(|seed| body(seed));
    let near = (select(seeds), vec(change(), 0..12));
    let input = prop_oneof![
        4 => near.prop_map(|(seed, changes)| changed(seed, changes)),
        1 => vec(any::<u8>(), 0..400),
    ];
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&input, |bytes| {
        body(&bytes);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn sse_is_split_the_same_however_it_arrives() {
    run("sse", sse::run);
}

#[test]
fn chunks_are_decoded_the_same_however_they_arrive() {
    run("chunk", chunk::run);
}

#[test]
fn client_frames_in_any_order_break_no_promise() {
    run("client", client::run);
}

#[test]
fn configurations_are_sound_or_refused() {
    run("config", config::run);
}

#[test]
fn verdicts_are_sound_and_invent_no_wait() {
    run("verdict", verdict::run);
}

#[test]
fn arguments_are_checked_against_any_schema() {
    run("gate", gate::run);
}
