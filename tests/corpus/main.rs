//! Every recording of a stream, through the decoder of its protocol: whole, byte by byte, split at
//! every byte of every event, split at every byte of the file, cut at and around every event, cut at
//! every byte. Each is compared with the decoding of the whole file, that with the manifest and with
//! an oracle that shares no code with the decoder ([`protocol::Protocol`]).
//!
//! Meant for the release profile: `cargo test --release --test corpus -- --nocapture`.
//!
//! The recordings are no part of the package. They are looked for in `REDRIVE_RECORDINGS`, else
//! beside the package; without them the test says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic_messages;
mod check;
mod items;
mod openai_chat;
mod openai_responses;
mod protocol;
mod recording;
mod told;

use std::{env, fs, path::PathBuf, thread};

use anthropic_messages::AnthropicMessages;
use check::Count;
use openai_chat::OpenaiChat;
use openai_responses::OpenaiResponses;
use protocol::Protocol;
use recording::Recording;
use redrive::protocol::{Decoder as _, DecoderOptions, Terminal};
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

/// Every recording decodes the same however it is split, and never completes when cut.
fn every_recording<P: Protocol>() {
    let Some(folder) = recordings() else { return };
    let recordings = Recording::all(&folder, P::NAME);
    assert!(
        recordings.len() >= P::AT_LEAST,
        "only {} recordings",
        recordings.len()
    );
    let recordings: Vec<_> = recordings.into_iter().flat_map(P::bodies).collect();

    let threads = thread::available_parallelism().map_or(1, usize::from);
    let total = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let share = recordings.iter().skip(worker).step_by(threads);
                scope.spawn(|| {
                    share
                        .map(check::check::<P>)
                        .fold(Count::default(), Count::plus)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .fold(Count::default(), Count::plus)
    });
    eprintln!(
        "{}: {} recordings, {} events, {} splits, {} cuts, {} comparisons with the oracle",
        P::NAME,
        total.recordings,
        total.events,
        total.splits,
        total.cuts,
        total.oracle
    );
    assert_eq!(total.recordings, recordings.len());
    assert!(total.splits > 0 && total.cuts > 0 && total.oracle > 0);
}

/// A recorded error body under a good status is told as an error.
fn every_error_body<P: Protocol>() {
    let Some(folder) = recordings() else { return };
    let mut bodies = 0;
    for entry in fs::read_dir(folder.join("http-errors")).unwrap() {
        let path = entry.unwrap().path();
        let body = fs::read(&path).unwrap();
        let mut told: Vec<Told> = Vec::new();
        let mut decoder = P::decoder(DecoderOptions {
            terminal: Terminal::DoneSentinel,
            ..DecoderOptions::default()
        });
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
    eprintln!("{}: {bodies} error bodies", P::NAME);
    assert!(bodies > 0);
}

#[test]
fn openai_chat() {
    every_recording::<OpenaiChat>();
    every_error_body::<OpenaiChat>();
}

#[test]
fn anthropic_messages() {
    every_recording::<AnthropicMessages>();
    every_error_body::<AnthropicMessages>();
}

#[test]
fn openai_responses() {
    every_recording::<OpenaiResponses>();
    every_error_body::<OpenaiResponses>();
}
