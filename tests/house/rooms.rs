//! The one-way rule and the purity of the pure rooms, over every file of `src`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::source::{Mention, Root, Source, read};
use crate::{assert_none, crates, files_below, root};

/// A room: a folder of `src`, or a single file there.
struct Room {
    name: &'static str,
    /// No runtime, clock, random source, socket, file, environment, thread, lock or log.
    pure: bool,
    /// Paths below `crate::` that it may name, with all below them. Its own are its own.
    knows: &'static [&'static str],
}

/// All rooms, inner ones first: a room knows only rooms that stand above it here.
const ROOMS: &[Room] = &[
    Room {
        name: "proto",
        pure: false,
        knows: &[],
    },
    Room {
        name: "protocol",
        pure: true,
        knows: &["proto"],
    },
    Room {
        name: "verdict",
        pure: true,
        knows: &[
            "proto",
            "protocol::DecodeError",
            "protocol::MAX_EVENT_BYTES",
        ],
    },
    Room {
        name: "gate",
        pure: true,
        knows: &["proto"],
    },
    Room {
        name: "limits",
        pure: true,
        knows: &[],
    },
    Room {
        name: "recovery",
        pure: true,
        knows: &[
            "gate",
            "limits::Spent",
            "proto",
            "protocol::BlockKind",
            "protocol::DecodeError",
            "protocol::Delta",
            "protocol::Event",
            "protocol::Protocol",
            "verdict",
        ],
    },
    // The one clock: hands out `recovery::Time`.
    Room {
        name: "clock",
        pure: false,
        knows: &["recovery"],
    },
    Room {
        name: "upstream",
        pure: false,
        knows: &["clock", "verdict"],
    },
    Room {
        name: "config",
        pure: false,
        knows: &[
            "gate", "limits", "proto", "protocol", "recovery", "upstream", "verdict",
        ],
    },
    Room {
        name: "telemetry",
        pure: false,
        knows: &[
            "clock",
            "config",
            "gate::Reason",
            "gate::Then",
            "proto",
            "recovery",
            "verdict",
        ],
    },
    Room {
        name: "budgets",
        pure: false,
        knows: &[
            "clock",
            "config",
            "limits",
            "proto::waiting",
            "recovery::Time",
            "telemetry",
            "upstream::Permit",
        ],
    },
    Room {
        name: "session",
        pure: false,
        knows: &[
            "budgets",
            "limits",
            "clock",
            "config",
            "proto",
            "protocol",
            "recovery",
            "telemetry",
            "upstream",
            "verdict",
        ],
    },
    Room {
        name: "server",
        pure: false,
        knows: &[
            "budgets",
            "gate",
            "limits",
            "clock",
            "config",
            "proto",
            "protocol",
            "recovery",
            "session",
            "telemetry",
            "upstream",
            "verdict",
        ],
    },
    // A provider: it must not know who asks it.
    Room {
        name: "simulator",
        pure: false,
        knows: &["clock"],
    },
    Room {
        name: "cli",
        pure: false,
        knows: &[
            "clock",
            "config",
            "limits::Measure",
            "limits::Refund",
            "proto",
            "protocol",
            "recovery",
            "server",
            "session",
            "simulator",
            "telemetry",
            "upstream",
            "verdict",
        ],
    },
];

/// The crates that a pure room may use: values and parsing, no IO.
const PURE_CRATES: &[&str] = &[
    "base64",
    "bpe_openai",
    "bytes",
    "corvus_json_schema",
    "http",
    "httpdate",
    "humantime",
    "jiff",
    "memchr",
    "prost",
    "prost_types",
    "serde",
    "serde_json",
    "thiserror",
];

/// What a pure room may not take from the standard library, with all below it.
const IMPURE_STD: &[&str] = &[
    "fs",
    "io",
    "net",
    "os",
    "process",
    "thread",
    "sync::Barrier",
    "sync::Condvar",
    "sync::Mutex",
    "sync::RwLock",
    "sync::atomic",
    "sync::mpsc",
    "time::Instant",
    "time::SystemTime::now",
    "time::SystemTime::elapsed",
    "hash::RandomState",
];

/// Words that have no business in a pure room however they came into scope.
const IMPURE_WORDS: &[&str] = &[
    "async",
    "await",
    "Instant",
    "Mutex",
    "RwLock",
    "println",
    "eprintln",
    "print",
    "eprint",
    "dbg",
    "thread_local",
];

/// Rooms that serve or call the gRPC service; to all others `proto` is plain data.
const SPEAKS_GRPC: &[&str] = &["server", "cli"];

/// Paths of other crates that only some rooms may name, with all below them, and why.
const RATIONED: &[(&str, &[&str], &str)] = &[
    (
        "h2::client",
        &["upstream"],
        "it opens connections to providers",
    ),
    (
        "h2",
        &["upstream", "simulator"],
        "it speaks with providers, or is one",
    ),
    (
        "tokio_rustls::client",
        &["upstream"],
        "it opens connections to providers",
    ),
    (
        "tokio_rustls",
        &["upstream", "simulator"],
        "it speaks with providers, or is one",
    ),
    (
        "webpki_roots",
        &["upstream"],
        "it decides which providers are trusted",
    ),
    (
        "redis",
        &["budgets"],
        "it speaks with the engine that budgets share",
    ),
    (
        "std::env",
        &["config", "cli"],
        "what depends on the environment cannot be told from the file",
    ),
];

/// Complaints about one file of `src`; `path` is below `src`, `crates` are the package's own
/// dependencies as code spells them.
fn complaints(path: &Path, source: &Source, crates: &BTreeSet<String>) -> Vec<String> {
    let name = module_of(path).first().cloned().unwrap_or_default();
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        return vec![format!(
            "src/{}: no such room in the table of tests/house",
            path.display()
        )];
    };
    let mut found = Vec::new();
    for mention in &source.paths {
        let complaint = match mention.root {
            Root::Crate => stranger(room, mention),
            Root::Outside => outsider(room, mention, crates),
        };
        found.extend(complaint.map(|why| at(path, mention.line, &why)));
    }
    let words = source
        .words
        .iter()
        .filter(|(word, _)| room.pure && IMPURE_WORDS.contains(&&**word));
    found.extend(words.map(|(word, line)| at(path, *line, &format!("`{word}` in a pure room"))));
    found
}

/// Why `room` may not name this path of our own crate.
fn stranger(room: &Room, mention: &Mention) -> Option<String> {
    let path = mention.path.join("::");
    let service = path.starts_with("proto::generation_service");
    if service && !SPEAKS_GRPC.contains(&room.name) {
        return Some(format!("{} names the gRPC service `{path}`", room.name));
    }
    let whole_room = mention.path.len() == 1;
    let known = |known: &&str| below(&path, known) || (whole_room && below(known, &path));
    let known = below(&path, room.name) || room.knows.iter().any(known);
    (!known).then(|| format!("{} may not know `{path}`", room.name))
}

/// Why `room` may not name this path of another crate.
fn outsider(room: &Room, mention: &Mention, crates: &BTreeSet<String>) -> Option<String> {
    let path = mention.path.join("::");
    let first = mention.path.first()?.as_str();
    let rationed = RATIONED
        .iter()
        .find(|(what, rooms, _)| below(&path, what) && !rooms.contains(&room.name));
    if let Some((_, rooms, why)) = rationed {
        return Some(format!(
            "`{path}` is for {} only: {why}",
            rooms.join(" and ")
        ));
    }
    if !room.pure {
        return None;
    }
    let foreign = crates.contains(first) && !PURE_CRATES.contains(&first);
    let std = path
        .strip_prefix("std::")
        .or_else(|| path.strip_prefix("core::"));
    let impure = std.is_some_and(|path| IMPURE_STD.iter().any(|banned| below(path, banned)));
    (foreign || impure).then(|| format!("`{path}` in a pure room"))
}

/// `true` if `path` is `base` or something in it.
fn below(path: &str, base: &str) -> bool {
    path.strip_prefix(base)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn at(path: &Path, line: usize, why: &str) -> String {
    format!("src/{}:{line}: {why}", path.display())
}

/// `recovery/state.rs` is `recovery::state`, `recovery/mod.rs` is `recovery`.
fn module_of(path: &Path) -> Vec<String> {
    let whole = path.with_extension("");
    let mut segments: Vec<String> = whole
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    segments.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    segments
}

/// Every file of `src` with its mentions, less the files that are tests.
fn sources() -> Vec<(std::path::PathBuf, Source)> {
    let mut all = Vec::new();
    let mut tests = Vec::new();
    for file in files_below("src") {
        if file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let path = file.strip_prefix("src").unwrap().to_owned();
        let module = module_of(&path);
        let source = read(
            &std::fs::read_to_string(root().join(&file)).unwrap(),
            &module,
        );
        let declared = source.test_modules.iter();
        tests.extend(declared.map(|name| [module.as_slice(), std::slice::from_ref(name)].concat()));
        all.push((path, source));
    }
    all.retain(|(path, _)| !tests.iter().any(|test| module_of(path).starts_with(test)));
    all
}

#[test]
fn rooms_know_only_the_rooms_that_the_table_allows() {
    let crates = crates::direct();
    let rooms = sources()
        .into_iter()
        .filter(|(path, _)| !module_of(path).is_empty());
    let found: Vec<String> = rooms
        .flat_map(|(path, source)| complaints(&path, &source, &crates))
        .collect();
    assert_none(&found);
}

#[test]
fn the_crate_root_and_main_reach_only_for_the_command_line() {
    let roots = sources()
        .into_iter()
        .filter(|(path, _)| module_of(path).is_empty());
    let found: Vec<String> = roots
        .flat_map(|(path, source)| {
            let mentions = source.paths.into_iter().filter(|mention| {
                mention.path.first().is_some_and(|first| first == "redrive")
                    && mention.path.get(1).is_none_or(|room| room != "cli")
            });
            mentions
                .map(move |m| at(&path, m.line, &m.path.join("::")))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_none(&found);
}

#[test]
fn arrows_point_inwards_only() {
    let found: Vec<String> = ROOMS
        .iter()
        .enumerate()
        .flat_map(|(place, room)| {
            let outer = move |known: &&&str| {
                let name = known.split("::").next().unwrap_or_default();
                !ROOMS[..place].iter().any(|inner| inner.name == name)
            };
            let strangers = room.knows.iter().filter(outer);
            strangers
                .map(move |known| format!("{} knows {known}, which is not inside it", room.name))
        })
        .collect();
    assert_none(&found);
}

/// What the rules say to `text` as the file `path` of `src`.
fn said(path: &str, text: &str) -> Vec<String> {
    let path = Path::new(path);
    let crates = ["tokio", "hyper", "bytes", "h2", "tracing"]
        .map(str::to_owned)
        .into();
    complaints(path, &read(text, &module_of(path)), &crates)
}

#[test]
fn a_pure_room_that_names_a_runtime_is_found() {
    assert_eq!(
        said("recovery/state.rs", "\nfn f() { tokio::spawn(g()); }"),
        ["src/recovery/state.rs:2: `tokio::spawn` in a pure room"]
    );
    assert_eq!(
        said("session/drive.rs", "fn f() { tokio::spawn(g()); }"),
        [""; 0]
    );
}

#[test]
fn a_pure_room_that_reads_a_clock_is_found() {
    assert_eq!(
        said(
            "verdict/wait.rs",
            "use std::time::SystemTime; fn f() { SystemTime::now() }"
        ),
        ["src/verdict/wait.rs:1: `std::time::SystemTime::now` in a pure room"]
    );
    assert_eq!(
        said("verdict/wait.rs", "use std::time::{Duration, SystemTime};"),
        [""; 0]
    );
}

#[test]
fn what_can_only_be_a_clock_is_found_by_path_and_by_word() {
    assert_eq!(
        said("recovery/time.rs", "use std::time::Instant;"),
        [
            "src/recovery/time.rs:1: `std::time::Instant` in a pure room",
            "src/recovery/time.rs:1: `Instant` in a pure room",
        ]
    );
}

#[test]
fn a_pure_room_that_waits_is_found() {
    assert_eq!(
        said("protocol/sse.rs", "async fn f() {}"),
        ["src/protocol/sse.rs:1: `async` in a pure room"]
    );
}

#[test]
fn an_arrow_that_points_outwards_is_found_however_it_is_spelled() {
    let expected = "recovery may not know `server::grpc`";
    for text in [
        "use crate::server::grpc;",
        "use super::super::server::grpc;",
    ] {
        assert_eq!(
            said("recovery/state.rs", text),
            [format!("src/recovery/state.rs:1: {expected}")]
        );
    }
    assert_eq!(
        said("recovery/mod.rs", "use super::server::grpc;"),
        [format!("src/recovery/mod.rs:1: {expected}")]
    );
}

#[test]
fn verdict_knows_little_of_protocol_and_no_more() {
    assert_eq!(
        said("verdict/decode.rs", "use crate::protocol::DecodeError;"),
        [""; 0]
    );
    assert_eq!(
        said("verdict/decode.rs", "use crate::protocol::Decoder;"),
        ["src/verdict/decode.rs:1: verdict may not know `protocol::Decoder`"]
    );
    assert_eq!(
        said(
            "verdict/decode.rs",
            "use crate::protocol; fn f(d: protocol::Decoder) {}"
        ),
        ["src/verdict/decode.rs:1: verdict may not know `protocol::Decoder`"]
    );
}

#[test]
fn a_second_door_is_found() {
    assert_eq!(
        said("server/grpc.rs", "use h2::client::handshake;"),
        [
            "src/server/grpc.rs:1: `h2::client::handshake` is for upstream only: it opens connections \
          to providers"
        ]
    );
}

#[test]
fn the_grpc_service_outside_the_server_is_found() {
    assert_eq!(
        said(
            "session.rs",
            "use crate::proto::generation_service_server::GenerationService;"
        ),
        ["src/session.rs:1: session names the gRPC service \
          `proto::generation_service_server::GenerationService`"]
    );
}

#[test]
fn a_room_that_the_table_does_not_name_is_found() {
    assert_eq!(
        said("attic/mod.rs", ""),
        ["src/attic/mod.rs: no such room in the table of tests/house"]
    );
}
