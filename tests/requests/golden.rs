//! Bodies as they are sent, kept in files.
//!
//! `UPDATE_GOLDEN=1 cargo test --test requests` writes the files anew.

use std::{env, fs, path::PathBuf};

/// Compares `body` with `tests/golden/openai_chat/{name}.json`, byte for byte.
#[track_caller]
pub fn compare(name: &str, body: &[u8]) {
    compare_in("openai_chat", name, body);
}

/// Compares `body` with `tests/golden/{folder}/{name}.json`, byte for byte.
#[track_caller]
pub fn compare_in(folder: &str, name: &str, body: &[u8]) {
    serde_json::from_slice::<serde_json::Value>(body).expect("what is sent is JSON");
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(folder)
        .join(format!("{name}.json"));
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, body).unwrap();
    }
    let expected = fs::read(&file).unwrap();
    assert_eq!(
        String::from_utf8_lossy(body),
        String::from_utf8_lossy(&expected),
        "{}",
        file.display()
    );
    assert_eq!(body, expected);
}
