//! Every recording of a Chat Completions stream, through the decoder: whole, byte by byte, split at
//! every byte of every event, split at every byte of the file, cut at and around every event, cut at
//! every byte. Each is compared with the decoding of the whole file, that with the manifest and with
//! an [`oracle`] that shares no code with the decoder.
//!
//! Meant for the release profile: `cargo test --release --test corpus -- --nocapture`.
//!
//! The recordings are no part of the package. They are looked for in `REDRIVE_RECORDINGS`, else
//! beside the package; without them the test says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod oracle;
mod recording;
mod told;

use std::{env, fs, path::PathBuf, thread};

use check::Count;
use recording::Recording;
use redrive::protocol::{Decoder as _, Terminal, openai_chat::Decoder};
use told::Told;

/// Files up to this size are split and cut at every byte.
const EVERY_BYTE_UP_TO: usize = 16 << 10;

/// Where the recordings are, or `None`, said loudly.
fn recordings() -> Option<PathBuf> {
    let folder = env::var_os("REDRIVE_RECORDINGS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures")),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "SKIPPED: no recordings at {}; set REDRIVE_RECORDINGS",
        folder.display()
    );
    None
}

#[test]
fn every_recording_decodes_the_same_however_it_is_split_and_never_completes_when_cut() {
    let Some(folder) = recordings() else { return };
    let recordings = Recording::all(&folder, "openai-chat");
    assert!(
        recordings.len() >= 300,
        "only {} recordings",
        recordings.len()
    );

    let threads = thread::available_parallelism().map_or(1, usize::from);
    let total = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let share = recordings.iter().skip(worker).step_by(threads);
                scope.spawn(|| share.map(check::check).fold(Count::default(), Count::plus))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .fold(Count::default(), Count::plus)
    });
    eprintln!(
        "corpus: {} recordings, {} events, {} splits, {} cuts, {} comparisons with the oracle",
        total.recordings, total.events, total.splits, total.cuts, total.oracle
    );
    assert_eq!(total.recordings, recordings.len());
    assert!(total.splits > 0 && total.cuts > 0 && total.oracle > 0);
}

#[test]
fn a_recorded_error_body_under_a_good_status_is_told_as_an_error() {
    let Some(folder) = recordings() else { return };
    let mut bodies = 0;
    for entry in fs::read_dir(folder.join("http-errors")).unwrap() {
        let path = entry.unwrap().path();
        let body = fs::read(&path).unwrap();
        let mut told: Vec<Told> = Vec::new();
        let mut decoder = Decoder::new(Terminal::DoneSentinel);
        decoder.feed(&body, &mut |event| told.push(event.into()));
        decoder.end(true, &mut |event| told.push(event.into()));
        let json = body.trim_ascii().starts_with(b"{") || body.trim_ascii().starts_with(b"[");
        match told.as_slice() {
            [Told::Error(error)] if json => assert_eq!(error.trim_ascii(), body.trim_ascii()),
            [Told::Undecodable(error)] if !json => assert_eq!(error, "NotAStream"),
            [] if body.trim_ascii().is_empty() => {}
            other => panic!("{}: {other:?}", path.display()),
        }
        bodies += 1;
    }
    eprintln!("corpus: {bodies} error bodies");
    assert!(bodies > 0);
}
