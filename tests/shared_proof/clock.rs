//! The engine's clock is set.

use std::{fs, path::Path, time::Duration};

use super::{
    proof::{Seen, run, same_account, strict},
    server::{Kind, Server, installed},
    stage::{CLOSED, LIMITS, Stage, a_while, has},
};

/// A server whose clock is what the file `offset` says, in seconds beside the machine's.
fn start(offset: &Path, library: &str) -> Server {
    fs::write(offset, "+0\n").unwrap();
    let variables = [
        // The server's own allocator asks for the time before the library can tell it.
        ("LD_PRELOAD", format!("{library}:libc.so.6")),
        (
            "FAKETIME_TIMESTAMP_FILE",
            offset.to_str().unwrap().to_owned(),
        ),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    Server::start_in(Kind::Redis, &[], &variables)
}

async fn steps(library: &str, by: &str) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let stage = Stage::on(start(&offset, library), LIMITS, CLOSED).await;
    let load = stage.load();
    a_while().await;
    let clock = |server: &Server| {
        let time: Vec<String> = server.beside().run(&["TIME"]);
        time[0].parse::<i64>().unwrap()
    };
    let before = clock(&stage.server);
    // Whoever reads it meanwhile must not find it empty.
    let next = folder.path().join("next");
    fs::write(&next, format!("{by}\n")).unwrap();
    fs::rename(&next, &offset).unwrap();
    let stepped = clock(&stage.server) - before;
    let by_seconds: i64 = by.parse().unwrap();
    assert!(
        (stepped - by_seconds).abs() <= 1,
        "it stepped by {stepped} s"
    );
    let from = stage.fleet.now();
    // Whatever was on its way.
    let settled = from + Duration::from_millis(500);
    let went_on = stage.fleet.goes_on("default", settled).await + Duration::from_millis(500);
    println!("clock {by} s: sends go on after {went_on:?}");
    // It is known by how much, so nothing has to be learned.
    assert!(went_on <= 2 * LIMITS.period(), "{went_on:?}");
    a_while().await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    same_account(&stage.server, &seen).await;
    seen
}

#[test]
fn an_engine_whose_clock_steps_overflows_no_window() {
    if !has(Kind::Redis) {
        return;
    }
    match installed("faketime") {
        Ok(library) => run(async {
            tokio::join!(
                strict("clock +5 s", async || steps(&library, "+5").await),
                strict("clock -5 s", async || steps(&library, "-5").await),
            );
        }),
        Err(why) => eprintln!("SKIPPED: no libfaketime: {why}"),
    }
}
