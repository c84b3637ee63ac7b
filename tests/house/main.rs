//! The rules of the house, kept by a test: which room may know which, what a pure room may touch,
//! which crates come in, and what the tree may hold.
//!
//! Every rule is a function from text to a list of complaints, so each is also shown to fail on a
//! text that breaks it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crates;
mod image;
mod pages;
mod rooms;
mod source;
mod tree;

use std::path::{Path, PathBuf};

/// The root of the package.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder`, relative to the package root and in order; build output and Git's own
/// files are no part of the tree.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with(".git") {
                    folders.push(path);
                }
            } else {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Fails with every complaint, one a line.
#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
