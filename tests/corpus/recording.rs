//! The recordings and what their manifest says of them.

use std::{fs, path::Path};

use serde_json::Value;

/// One recorded response.
pub struct Recording {
    /// Its name in the manifest.
    pub file: String,
    /// The body.
    pub bytes: Vec<u8>,
    /// The finish reasons of its chunks, without repetitions in a row.
    pub finish_reasons: Vec<String>,
    /// Whether `[DONE]` was dispatched; unknown where the framing was added later.
    pub done_sentinel: Option<bool>,
    /// How many events with data were dispatched.
    pub events: usize,
}

impl Recording {
    /// All recordings of a protocol. Every file that the manifest names must be there.
    pub fn all(folder: &Path, protocol: &str) -> Vec<Self> {
        let manifest = fs::read_to_string(folder.join("MANIFEST.jsonl"))
            .unwrap_or_else(|error| panic!("{}: MANIFEST.jsonl: {error}", folder.display()));
        manifest
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|entry| entry["protocol"] == protocol)
            .map(|entry| Self::read(folder, &entry))
            .collect()
    }

    fn read(folder: &Path, entry: &Value) -> Self {
        let file = entry["file"].as_str().unwrap().to_owned();
        let bytes = fs::read(folder.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(
            bytes.len() as u64,
            entry["bytes"].as_u64().unwrap(),
            "{file}: size"
        );
        let mut finish_reasons: Vec<String> = match &entry["finish_reason"] {
            Value::String(reason) => vec![reason.clone()],
            Value::Array(reasons) => reasons
                .iter()
                .map(|reason| reason.as_str().unwrap().to_owned())
                .collect(),
            _ => Vec::new(),
        };
        finish_reasons.dedup();
        Self {
            finish_reasons,
            done_sentinel: entry["done_sentinel"].as_bool(),
            events: entry["events"].as_u64().unwrap() as usize,
            file,
            bytes,
        }
    }
}
