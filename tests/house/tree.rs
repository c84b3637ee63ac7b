//! What the tree may hold: no names of one machine or one mirror, no unfinished work, no file that
//! has grown out of hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{assert_none, files_below, root};

/// The most lines a file of `src` may have, tests included.
const MAX_LINES: usize = 500;

/// The most lines another Rust file may have: tables of cases grow.
const MAX_TEST_LINES: usize = 700;

/// Paths of one machine, hosts of package registries, and marks of unfinished work. Spelled in two
/// halves so that this file does not find itself.
const BANNED: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("registry.npm", "js.org"),
    concat!("deb.deb", "ian.org"),
    concat!("proxy.go", "lang.org"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// Files that a tool writes: their words are not ours.
const GENERATED: &[&str] = &["Cargo.lock"];

/// Complaints about the words of one file.
fn words(path: &Path, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate().flat_map(|(number, line)| {
        let found = BANNED.iter().filter(move |banned| line.contains(**banned));
        found.map(move |banned| format!("{}:{}: `{banned}`", path.display(), number + 1))
    });
    lines.collect()
}

/// The complaint about a source file that is too long.
fn length(path: &Path, text: &str) -> Option<String> {
    let most = if path.starts_with("src") {
        MAX_LINES
    } else {
        MAX_TEST_LINES
    };
    let lines = text.lines().count();
    (lines > most).then(|| format!("{} has {lines} lines, over {most}", path.display()))
}

/// What Git tracks or would track; outside a checkout, all there is.
fn tree() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output();
    match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).unwrap();
            names.split_terminator('\0').map(PathBuf::from).collect()
        }
        _ => files_below(""),
    }
}

/// Every text of the tree that is written by hand.
fn texts() -> Vec<(PathBuf, String)> {
    let written = tree()
        .into_iter()
        .filter(|path| !GENERATED.iter().any(|name| path.ends_with(name)));
    let texts = written.filter_map(|path| {
        let text = std::fs::read_to_string(root().join(&path)).ok()?;
        Some((path, text))
    });
    texts.collect()
}

#[test]
fn no_file_names_a_machine_a_registry_host_or_unfinished_work() {
    let texts = texts();
    assert!(texts.len() > 20, "the tree was read");
    let found: Vec<String> = texts
        .iter()
        .flat_map(|(path, text)| words(path, text))
        .collect();
    assert_none(&found);
}

#[test]
fn no_source_file_is_out_of_hand() {
    let rust = texts()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "rs"));
    let found: Vec<String> = rust
        .filter_map(|(path, text)| length(&path, &text))
        .collect();
    assert_none(&found);
}

#[test]
fn a_banned_word_is_found_with_its_line() {
    let text = format!("fine\ncd {}main\n", BANNED[0]);
    assert_eq!(
        words(Path::new("notes.md"), &text),
        [format!("notes.md:2: `{}`", BANNED[0])]
    );
}

#[test]
fn a_file_that_is_too_long_is_found() {
    let lines = |count| "x\n".repeat(count);
    assert_eq!(length(Path::new("src/a.rs"), &lines(500)), None);
    assert_eq!(
        length(Path::new("src/a.rs"), &lines(501)).unwrap(),
        "src/a.rs has 501 lines, over 500"
    );
    assert_eq!(length(Path::new("tests/a.rs"), &lines(700)), None);
    assert!(length(Path::new("tests/a.rs"), &lines(701)).is_some());
}
