//! The Dockerfile, checked as text: the image holds what the tests built, and runs without root.

use crate::{assert_none, root};

/// The release build; `tests/run` runs it as its stage `build`.
const BUILD: &str = "tests/stages/build.sh";

/// Complaints about a Dockerfile.
fn complaints(text: &str) -> Vec<String> {
    let values = |keyword: &str| -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.strip_prefix(keyword)?.strip_prefix(' '))
            .collect()
    };
    let mut found = Vec::new();
    let runs = values("RUN");
    if runs != [BUILD] {
        found.push(format!(
            "the image is built by {runs:?}, not by {BUILD} alone"
        ));
    }
    let last_stage = text.rfind("\nFROM ").map_or(text, |start| &text[start..]);
    let user = last_stage
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("USER "));
    let numeric = |id: &str| id.parse::<u32>().is_ok_and(|id| id > 0);
    if !user.is_some_and(|user| user.split(':').all(numeric)) {
        found.push(format!("{user:?} is no numeric user other than root"));
    }
    let exec_form = |line: &&str| line.starts_with('[');
    if !values("ENTRYPOINT").iter().all(exec_form) || values("ENTRYPOINT").is_empty() {
        found.push("a shell would stand between Kubernetes' signals and the sidecar".to_owned());
    }
    found
}

#[test]
fn the_image_is_built_by_the_tested_script_and_runs_without_root() {
    let text = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert_none(&complaints(&text));
    let tests = std::fs::read_to_string(root().join("tests/run")).unwrap();
    assert!(tests.contains(BUILD), "tests/run runs {BUILD}");
}

#[test]
fn another_build_command_a_root_user_and_a_shell_are_found() {
    let text =
        "FROM a AS build\nRUN cargo build\nUSER 65532\nFROM b\nUSER root\nENTRYPOINT redrive";
    assert_eq!(
        complaints(text),
        [
            "the image is built by [\"cargo build\"], not by tests/stages/build.sh alone",
            "Some(\"root\") is no numeric user other than root",
            "a shell would stand between Kubernetes' signals and the sidecar",
        ]
    );
}
