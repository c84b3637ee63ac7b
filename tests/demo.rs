//! `redrive demo`, as a library call and as the process that people start.
//!
//! In real time, because it is about sockets and a process: its streams stall for 1.5 s and its
//! provider asks for a wait of 1 s. Bound: the demo ends within 30 s.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "the demo's length is promised, so it is measured"
)]

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use redrive::cli::{
    demo::{DemoArgs, DemoError, play},
    terminal::{Look, View, Window},
};

/// What every demo tells, in this order.
const STORY: &[&str] = &[
    "1. A healthy stream",
    "attempt 1 on provider/healthy",
    "committed: Most streams are like this one",
    "provider/healthy  yes       accepted",
    "2. A stream that falls silent",
    "preview: The lighthouse keeper climbed the stairs, lit the lamp, and then she",
    "void: ~~The lighthouse keeper climbed the stairs, lit the lamp, and then she~~",
    "reset: attempt 1 is void: stall (redrive ended the attempt: timer inter_delta (1.5s) ran out",
    "waiting ",
    "attempt 2 on provider/stalls, from the start",
    "committed: The lighthouse keeper climbed the stairs, lit the lamp, and wrote into her log",
    "1  provider/stalls  yes       stall     -",
    "2  provider/stalls  yes       accepted  ",
    "requests 2, sends 2",
    "3. A 429 whose Retry-After is honoured",
    "waiting 1",
    "committed: Waiting as long as one was asked to",
    "1  provider/limited  yes       rate_limited  -",
    " s provider  13 ",
    "4. A dead target, and its fallback",
    "attempt 3 on provider/fallback (fallback), from the start",
    "committed: The first address was silent",
    "1  dead/fallback      no        transport  -",
    "2  dead/fallback      no        transport  ",
    "3  provider/fallback  yes       accepted   -",
    "attempts 3, sends 1",
];

#[track_caller]
fn assert_in_order(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let Some(at) = rest.find(line) else {
            panic!("{line:?} is missing, or comes too early, in\n{text}");
        };
        rest = &rest[at + line.len()..];
    }
}

async fn played(args: DemoArgs, look: Look) -> (String, Result<(), DemoError>) {
    let mut shown = Vec::new();
    let end = play(&args, &mut View::new(&mut shown, look)).await;
    (String::from_utf8(shown).unwrap(), end)
}

fn fast() -> DemoArgs {
    DemoArgs {
        fast: true,
        ..DemoArgs::default()
    }
}

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.arg("demo").args(arguments).stdin(Stdio::null());
    command
}

fn recording(events: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(events.as_bytes()).unwrap();
    file
}

fn play_recording(file: &Path) -> Output {
    demo(&["--fast", "--recording", file.to_str().unwrap()])
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_four_scenes_end_as_they_should() {
    let (text, end) = played(fast(), Look::Plain).await;
    end.unwrap();
    assert_in_order(&text, STORY);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_preview_is_dim_void_is_struck_through_in_place_and_committed_is_plain() {
    let window = Window {
        columns: 120,
        rows: 40,
    };
    let (text, end) = played(fast(), Look::Styled(window)).await;
    end.unwrap();
    let void = "The lighthouse keeper climbed the stairs, lit the lamp, and then she";
    let committed = "The lighthouse keeper climbed the stairs, lit the lamp, and wrote into her \
                     log: all ships passed.";
    let story = [
        "\x1b[1m2. A stream that falls silent\x1b[0m\n",
        "\x1b[2mThe ",
        &format!("\r\x1b[J\x1b[2;9m{void}\x1b[0m\n"),
        &format!("\r\x1b[J{committed}\n"),
    ];
    assert_in_order(&text, &story);
}

#[test]
fn in_a_pipe_it_tells_the_whole_story_in_time_and_without_escape_codes() {
    let start = Instant::now();
    let output = demo(&[]).output().unwrap();
    let took = start.elapsed();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_in_order(&text, STORY);
    assert!(!text.contains('\x1b'), "{text}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn two_demos_at_once_do_not_disturb_each_other() {
    let start = || demo(&["--fast"]).stdout(Stdio::piped()).spawn().unwrap();
    let demos = [start(), start()];
    for demo in demos {
        let output = demo.wait_with_output().unwrap();
        assert_in_order(&String::from_utf8(output.stdout).unwrap(), STORY);
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn a_recording_goes_through_the_sidecar() {
    let file = recording(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Recorded \"}}]}\r\n\r\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"once.\"},\
         \"finish_reason\":\"stop\"}]}\r\n\r\n\
         data: [DONE]\r\n\r\n",
    );
    let output = play_recording(file.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let story = [
        "1. A recorded stream",
        "preview: Recorded once.",
        "committed: Recorded once.",
        "accepted",
        "requests 1, sends 1",
    ];
    assert_in_order(&text, &story);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn a_recording_that_proves_no_end_is_told_and_fails() {
    let file = recording("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Cut\"}}]}\n\n");
    let output = play_recording(file.path());
    let text = String::from_utf8(output.stdout).unwrap();
    // Whether the word was shown before its end was known is a matter of microseconds.
    assert_in_order(&text, &["failed: premature_eof", "premature_eof"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    let start = "redrive demo: the scene did not end as it should: it was not committed";
    assert!(complaint.starts_with(start), "{complaint}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_recording_that_is_not_there_is_told() {
    let output = play_recording(Path::new("no/such/recording.sse"));
    let complaint = String::from_utf8(output.stderr).unwrap();
    let start = "redrive demo: no/such/recording.sse: ";
    assert!(complaint.starts_with(start), "{complaint}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn ctrl_c_ends_it_at_once() {
    let mut child = demo(&[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let scene = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("1. ")));
    assert!(scene.is_some());
    let start = Instant::now();
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn real_recordings_go_through_the_sidecar() {
    let folder = std::env::var("REDRIVE_RECORDINGS").unwrap_or("../shared/fixtures".to_owned());
    let folder = Path::new(&folder).join("openai-chat");
    if !folder.is_dir() {
        println!("SKIPPED: the demo plays no recordings, there are none");
        return;
    }
    for name in [
        "avian--fantasy--avian-kimi-thinking-streaming.sse",
        "azure--fantasy--azure-o4-mini-tool-streaming.sse",
        "azure--fantasy--azure-o4-mini-simple-streaming.sse",
    ] {
        let output = play_recording(&folder.join(name));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {text}");
        assert_in_order(&text, &["preview", "committed: ", "accepted"]);
    }
}
