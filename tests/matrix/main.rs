//! The fault matrix: every fault of a provider, in every protocol, at every place of a response.
//!
//! `table.txt` says what each cell comes to: the first attempt's verdict, the sends and the frames. Each
//! is played through the whole server on a paused clock, with one target and two attempts, the second of
//! which is healthy. `docs/faults.md` is the table for people, made from it by
//! `REDRIVE_WRITE_FAULTS=1 cargo test --test matrix`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the paused clock to say when something happened"
)]

mod faults;
mod page;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod talk;

use redrive::{
    proto::{Protocol, RecoveryOptions, generate_response::Frame},
    protocol::adapter::adapter,
};

use faults::{FAULTS, Fault, Place};
use support::*;
use table::{Cell, Row};
use talk::Talk;

/// The columns.
const PROTOCOLS: [Protocol; 3] = [
    Protocol::OpenaiChat,
    Protocol::OpenaiResponses,
    Protocol::AnthropicMessages,
];

/// Plays `fault` as the first answer.
async fn play(protocol: Protocol, fault: &Fault, place: Place) -> Cell {
    let name = protocol.as_str_name().to_lowercase();
    let name = name.strip_prefix("protocol_").unwrap();
    let config = format!(
        "providers: {{a: {{base_url: 'http://a.test/v1', profile: hosted, protocol: {name}}}}}\n\
         routes: {{default: {{targets: [{{provider: a, model: m}}]}}}}\n"
    );
    let bench = Bench::configured(&config).await;
    bench
        .provider
        .then((fault.script)(Talk::begin(protocol), place));
    let healthy = move || Talk::begin(protocol).opened().text("Hello").completed();
    bench.provider.always(healthy);
    let twice = RecoveryOptions {
        max_attempts: Some(2),
        ..RecoveryOptions::default()
    };
    let ended = bench.generate(start_with(twice)).await.end().await;
    let sends = bench.provider.may_have_received();
    let cell = Cell::of(&ended, sends);
    bench.finish().await;
    cell
}

#[tokio::test(start_paused = true)]
async fn every_fault_comes_to_what_the_table_says() {
    let expected = table::read();
    let mut found = Vec::new();
    for fault in FAULTS {
        for place in fault.places {
            let mut cells = Vec::new();
            for protocol in PROTOCOLS {
                assert!(adapter(protocol).is_some(), "{protocol:?}");
                cells.push(play(protocol, fault, *place).await);
            }
            found.push(Row {
                fault: fault.name.to_owned(),
                place: place.to_string(),
                cells,
            });
        }
    }
    let wrong: Vec<String> = table::differences(&expected, &found);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    println!("{} cells", found.len() * PROTOCOLS.len());
}

/// The page is what the table makes of it.
#[test]
fn the_page_is_made_from_the_table() {
    let page = page::render(&table::read());
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faults.md");
    if std::env::var_os("REDRIVE_WRITE_FAULTS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == page,
        "docs/faults.md is old: REDRIVE_WRITE_FAULTS=1 cargo test --test matrix"
    );
}

/// What kinds of frames came, a letter each; runs of deltas and of progress are one.
fn letters(ended: &Ended) -> String {
    let letter = |frame: &Frame| match frame {
        Frame::Accepted(_) => 'a',
        Frame::Waiting(_) => 'w',
        Frame::AttemptStarted(_) => 's',
        Frame::Delta(_) => 'd',
        Frame::Progress(_) => 'p',
        Frame::PreviewReset(_) => 'r',
        Frame::Committed(_) => 'c',
        Frame::Failed(_) => 'f',
    };
    let mut letters: Vec<char> = ended.told().map(letter).collect();
    letters.dedup_by(|a, b| a == b && matches!(a, 'd' | 'p'));
    letters.into_iter().collect()
}
