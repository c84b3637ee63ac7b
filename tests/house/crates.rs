//! The crates that come in: their licences, versions and reasons. Read offline from the lock file
//! and the sources that Cargo has already fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::{assert_none, root};

/// Licences that suffice on their own.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that are there in several versions, and why nothing can be done about it here.
const DUPLICATES: &[(&str, &str)] = &[
    (
        "base64",
        "tonic 0.14 is a version behind pem, which only tests use",
    ),
    (
        "getrandom",
        "ring 0.17, opentelemetry_sdk (rand 0.9) and the rest are a generation apart each",
    ),
    (
        "hashbrown",
        "petgraph 0.8 (a build dependency) and governor are behind indexmap",
    ),
    ("foldhash", "follows hashbrown"),
    ("itertools", "criterion 0.7 (benches) is behind prost"),
    (
        "prettyplease",
        "tonic-build is behind prost-build; build only",
    ),
    (
        "rand",
        "opentelemetry_sdk is behind proptest, which only tests use",
    ),
    ("rand_core", "follows rand"),
    (
        "syn",
        "half of the derive macros have moved to 3; build only",
    ),
    (
        "synstructure",
        "x509-parser (rcgen) is behind yoke, which redis takes with url; build only",
    ),
    (
        "unicode-width",
        "miette (error texts of protox; build only) takes both itself",
    ),
];

/// Older ones close a whole connection after about 100 unread small frames.
const OLDEST_H2: [u64; 3] = [0, 4, 20];

/// The names of the package's own dependencies, as code spells them.
pub fn direct() -> BTreeSet<String> {
    let metadata = metadata(&["--no-deps"]);
    let dependencies = metadata["packages"][0]["dependencies"]
        .as_array()
        .unwrap()
        .clone();
    let names = dependencies
        .iter()
        .map(|one| one["name"].as_str().unwrap().replace('-', "_"));
    names.collect()
}

/// `cargo metadata`, without the network and without touching the lock file.
fn metadata(arguments: &[&str]) -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every foreign crate of the build on this platform: name, version and licence expression.
fn foreign() -> Vec<(String, String, String)> {
    let metadata = metadata(&["--filter-platform", platform()]);
    let packages = metadata["packages"].as_array().unwrap().iter();
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    packages
        .filter(|package| !package["source"].is_null())
        .map(|package| {
            (
                text(package, "name"),
                text(package, "version"),
                text(package, "license"),
            )
        })
        .collect()
}

/// What `cargo fetch` brings in without asking: the platform that the tests run on.
fn platform() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "aarch64-unknown-linux-gnu"
    } else {
        "x86_64-unknown-linux-gnu"
    }
}

/// `true` if an SPDX expression can be met by [`LICENCES`] alone. `A/B` is the older way to write
/// `A OR B`; an exception (`WITH`) makes another licence, which is not listed.
fn permitted(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    let permitted = either(&mut rest);
    permitted && rest.is_empty()
}

fn either(rest: &mut &[&str]) -> bool {
    let mut permitted = both(rest);
    while let Some(("OR", tail)) = rest.split_first().map(|(first, tail)| (*first, tail)) {
        *rest = tail;
        permitted |= both(rest);
    }
    permitted
}

fn both(rest: &mut &[&str]) -> bool {
    let mut permitted = licence(rest);
    while let Some(("AND", tail)) = rest.split_first().map(|(first, tail)| (*first, tail)) {
        *rest = tail;
        permitted &= licence(rest);
    }
    permitted
}

fn licence(rest: &mut &[&str]) -> bool {
    let Some((first, tail)) = rest.split_first() else {
        return false;
    };
    *rest = tail;
    if *first == "(" {
        let permitted = either(rest);
        let closed = rest.first() == Some(&")");
        *rest = rest.get(1..).unwrap_or_default();
        return permitted && closed;
    }
    if rest.first() == Some(&"WITH") {
        *rest = rest.get(2..).unwrap_or_default();
        return false;
    }
    LICENCES.contains(first)
}

/// Complaints about crates in several versions that are not tolerated, and about tolerance that is
/// no longer needed.
fn duplicates(crates: &[(String, String, String)], tolerated: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version, _) in crates {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let unforeseen = versions
        .iter()
        .filter(|(name, _)| !tolerated.iter().any(|(known, _)| known == *name))
        .map(|(name, versions)| format!("{name} comes in several versions: {versions:?}"));
    let settled = tolerated
        .iter()
        .filter(|(name, _)| !versions.contains_key(name))
        .map(|(name, _)| format!("{name} is there once now: strike it from the list"));
    unforeseen.chain(settled).collect()
}

#[test]
fn every_licence_is_on_the_list() {
    let found: Vec<String> = foreign()
        .into_iter()
        .filter(|(_, _, licence)| !permitted(licence))
        .map(|(name, version, licence)| format!("{name} {version}: `{licence}`"))
        .collect();
    assert_none(&found);
}

#[test]
fn no_crate_comes_in_several_versions_without_a_reason() {
    assert_none(&duplicates(&foreign(), DUPLICATES));
}

#[test]
fn h2_is_new_enough_for_slow_readers() {
    let crates = foreign();
    let versions: Vec<&str> = crates
        .iter()
        .filter(|(name, _, _)| name == "h2")
        .map(|(_, version, _)| version.as_str())
        .collect();
    assert!(!versions.is_empty(), "h2 is in the build");
    for version in versions {
        let numbers: Vec<u64> = version
            .split('.')
            .map(|part| part.parse().unwrap())
            .collect();
        assert!(numbers.as_slice() >= OLDEST_H2.as_slice(), "h2 {version}");
    }
}

#[test]
fn every_dependency_has_its_reason_in_the_documentation() {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let metadata = metadata(&["--no-deps"]);
    let dependencies = metadata["packages"][0]["dependencies"]
        .as_array()
        .unwrap()
        .iter();
    let missing: Vec<String> = dependencies
        .map(|dependency| dependency["name"].as_str().unwrap())
        .filter(|name| !page.contains(&format!("`{name}`")))
        .map(|name| format!("docs/dependencies.md does not say why `{name}`"))
        .collect();
    assert_none(&missing);
}

#[test]
fn a_licence_expression_is_met_only_as_a_whole() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(GPL-3.0 OR MIT) AND Unicode-3.0",
    ] {
        assert!(permitted(good), "{good}");
    }
    let bad = [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT",
        "MIT MIT",
    ];
    for bad in bad {
        assert!(!permitted(bad), "{bad}");
    }
}

#[test]
fn a_second_version_and_a_stale_tolerance_are_found() {
    let one = |name: &str, version: &str| (name.to_owned(), version.to_owned(), String::new());
    let crates = [
        one("a", "1.0.0"),
        one("a", "2.0.0"),
        one("b", "1.0.0"),
        one("b", "2.0.0"),
    ];
    assert_eq!(
        duplicates(&crates, &[("b", "tolerated"), ("c", "no longer there")]),
        [
            "a comes in several versions: {\"1.0.0\", \"2.0.0\"}",
            "c is there once now: strike it from the list",
        ]
    );
}
