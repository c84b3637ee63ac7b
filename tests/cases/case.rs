//! A case as it stands in the file. What runs is read strictly: a field that is not understood would
//! be a promise that is not checked.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::Deserialize;
use serde_json::Value;

/// A line of the file, whatever else it holds.
#[derive(Debug)]
pub struct Line {
    pub id: String,
    value: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub id: String,
    /// What the provider speaks, or another name where that does not matter.
    pub protocol: String,
    pub input: Input,
    #[serde(default)]
    pub client_actions: Vec<Action>,
    pub expect: Expect,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub upstream: Vec<Value>,
    #[serde(default)]
    pub repeat_for_all_sends: bool,
    #[serde(default)]
    pub repeat_cycle: bool,
    #[serde(default)]
    pub config: Config,
    #[serde(default)]
    pub requests: Vec<Requests>,
    #[serde(default)]
    pub assert_request: AssertRequest,
    #[serde(default)]
    pub otel: Option<Value>,
    #[serde(default, rename = "clock")]
    _clock: Vec<Suspend>,
}

/// The machine sleeps. Nothing is played for it: the monotonic clock stands still meanwhile, so all
/// that the sidecar can notice is a provider that is silent afterwards. (A process that is stopped
/// would be something else: its clock goes on, and its deadline passes.)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suspend {
    #[serde(rename = "at_ms")]
    _at_ms: u64,
    #[serde(rename = "suspend_ms")]
    _suspend_ms: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub scale: Option<String>,
    /// Ours is always scaled.
    #[serde(rename = "backoff_scale")]
    _backoff_scale: Option<String>,
    pub inactivity_ms: Option<u64>,
    pub admission_backoff_deadline_ms: Option<u64>,
    pub max_sends: Option<u64>,
    pub drain_ms: Option<u64>,
    pub tail_ms: Option<u64>,
    pub max_message_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    pub count: Option<usize>,
    #[serde(default)]
    pub sequential: bool,
    #[serde(default)]
    pub gap_ms: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssertRequest {
    #[serde(default)]
    pub header_equals: BTreeMap<String, String>,
    #[serde(default)]
    pub body_contains: BTreeMap<String, Value>,
    #[serde(default)]
    pub bodies_identical: bool,
    pub count: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub at_ms: Option<u64>,
    pub after: Option<String>,
    pub cancel: Option<String>,
    pub rst_stream: Option<bool>,
    pub pause_reading_ms: Option<u64>,
    pub signal: Option<String>,
    pub new_call: Option<String>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub frames: Vec<Value>,
    pub physical_sends: usize,
    #[serde(default)]
    pub attempt_failure_classes: Vec<String>,
    #[serde(default)]
    pub retry_wait: RetryWait,
    #[serde(default, rename = "final")]
    _final: Value,
    #[serde(default, rename = "note")]
    _note: Value,
    /// What another answer to an open question would give. The design has answered it.
    #[serde(default, rename = "alternatives")]
    _alternatives: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct RetryWait {
    pub min_ms: Option<u64>,
    pub max_ms: Option<u64>,
    pub source: Option<String>,
}

impl Line {
    pub fn into_value(self) -> Value {
        self.value
    }

    pub fn case(self) -> Case {
        let id = self.id;
        Case::deserialize(self.value).unwrap_or_else(|error| panic!("{id}: {error}"))
    }
}

impl Config {
    /// Whether times are a hundredth.
    pub fn is_scaled(&self) -> bool {
        match self.scale.as_deref() {
            None => false,
            Some("1:100") => true,
            Some(other) => panic!("scale {other}"),
        }
    }
}

impl Action {
    /// When it is due after the start of its call, or of the case.
    pub fn at(&self) -> Option<Duration> {
        self.at_ms.map(Duration::from_millis)
    }

    pub fn cancels(&self) -> bool {
        self.cancel.is_some() || self.rst_stream == Some(true)
    }
}

/// All cases of the file.
pub fn all() -> Vec<Line> {
    let text = read("cases.jsonl");
    let lines = text.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        let id = value["id"].as_str().unwrap().to_owned();
        Line { id, value }
    });
    lines.collect()
}

/// The ids of `not_run.txt` with their reasons.
pub fn not_run() -> BTreeMap<String, String> {
    let text = read("not_run.txt");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|line| {
        let (id, reason) = line
            .split_once("  ")
            .unwrap_or_else(|| panic!("no reason: {line}"));
        (id.to_owned(), reason.trim().to_owned())
    });
    let listed: Vec<_> = entries.collect();
    let count = listed.len();
    let map: BTreeMap<_, _> = listed.into_iter().collect();
    assert_eq!(map.len(), count, "an id is listed twice");
    map
}

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    std::fs::read_to_string(folder.join(name)).unwrap()
}
