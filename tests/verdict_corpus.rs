//! Every recorded and every quoted provider error against the class that a reader gave it.
//!
//! The recordings are not part of this package: `REDRIVE_RECORDINGS` names their folder, by default
//! `../shared/fixtures`. Without the folder these tests say so and pass; with a part of it they fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use redrive::verdict::{
    Failure, MAX_MESSAGE_BYTES, Origin, Stage,
    class::{self, Class},
    http::{HttpEvidence, classify},
    inband, wait,
};
use serde_json::Value;

/// The rows of `verdict_expected.tsv`: class and wait by name of the evidence.
const EXPECTED: &str = include_str!("verdict_expected.tsv");

#[test]
fn every_recorded_error_body_has_the_class_that_its_reader_gave_it() {
    let Some(root) = recordings() else { return };
    let manifest = jsonl(&root.join("MANIFEST.jsonl"));
    let by_file: BTreeMap<&str, &Value> = manifest
        .iter()
        .map(|entry| (entry["file"].as_str().unwrap(), entry))
        .collect();
    let mut expected = expected("http-errors/");

    let mut wrong = Vec::new();
    for entry in fs::read_dir(root.join("http-errors")).expect("the folder of error bodies") {
        let path = entry.unwrap().path();
        let name = format!(
            "http-errors/{}",
            path.file_name().unwrap().to_str().unwrap()
        );
        let manifest = by_file
            .get(name.as_str())
            .expect("a manifest line for each error body");
        let body = fs::read(&path).unwrap();
        let failure = classify_response(manifest, &body);

        assert_wellformed(&name, &failure);
        assert_eq!(failure.stage, Stage::Response, "{name}");
        assert_eq!(failure.http_status, Some(status(manifest)), "{name}");
        wrong.extend(expected.take(&name).mismatch(&name, &failure));
    }
    assert_eq!(wrong, Vec::<String>::new());
    expected.assert_all_seen();
}

#[test]
fn every_quoted_error_has_the_class_that_its_reader_gave_it() {
    let Some(root) = recordings() else { return };
    let mut expected = expected("quoted/");

    let mut wrong = Vec::new();
    for (index, quoted) in jsonl(&root.join("QUOTED_ERRORS.jsonl")).iter().enumerate() {
        let phase = quoted["phase"].as_str().unwrap();
        let provider = quoted["provider"].as_str().unwrap();
        let name = format!(
            "quoted/{:02}-{provider}-{phase}-{}",
            index + 1,
            status(quoted)
        );
        let body = quoted["body"].as_str().unwrap();
        let failure = match phase {
            "http" => classify_response(quoted, body.as_bytes()),
            "mid-stream" => inband::classify(first_event(body).as_bytes()),
            _ => panic!("{name}: an unknown phase"),
        };

        assert_wellformed(&name, &failure);
        wrong.extend(expected.take(&name).mismatch(&name, &failure));
    }
    assert_eq!(wrong, Vec::<String>::new());
    expected.assert_all_seen();
}

#[test]
fn no_recorded_header_set_but_one_is_a_wait_and_none_on_a_success() {
    let Some(root) = recordings() else { return };
    let sets = jsonl(&root.join("HEADERS.jsonl"));
    let mut waits = Vec::new();
    for set in &sets {
        let headers = headers(set);
        let status = status(set);
        if let Some(wait) = wait::supplied(status, &headers, None, None) {
            waits.push((set["provider"].as_str().unwrap(), status, wait));
        }
    }
    assert_eq!(waits, [("azure", 429, Duration::from_secs(1))]);

    // The guard is the status: the same headers on a 429 are waits.
    let on_success = sets.iter().filter(|set| status(set) == 200);
    let as_failures: BTreeSet<_> = on_success
        .filter_map(|set| wait::supplied(429, &headers(set), None, None))
        .map(|wait| wait.as_secs())
        .collect();
    assert_eq!(as_failures, BTreeSet::from([2, 10, 24, 30, 31]));
}

#[test]
fn no_recorded_reset_value_is_a_wait() {
    let Some(root) = recordings() else { return };
    let text = fs::read_to_string(root.join("HEADER_VALUES.json")).expect("the header values");
    let by_provider: Value = serde_json::from_str(&text).unwrap();
    let mut resets = 0;
    for by_header in by_provider.as_object().unwrap().values() {
        for (name, values) in by_header.as_object().unwrap() {
            for value in values.as_array().unwrap() {
                let value = HeaderValue::from_str(value.as_str().unwrap()).unwrap();
                let headers = HeaderMap::from_iter([(name.parse::<HeaderName>().unwrap(), value)]);
                let wait = wait::supplied(429, &headers, None, Some(UNIX_EPOCH));
                if name.starts_with("retry-after") {
                    let seconds = headers[name].to_str().unwrap().parse().unwrap();
                    assert_eq!(
                        wait.unwrap_or_default(),
                        Duration::from_secs(seconds),
                        "{name}"
                    );
                } else {
                    assert_eq!(wait, None, "{name}: {:?}", headers[name]);
                    resets += 1;
                }
            }
        }
    }
    assert!(resets > 100, "only {resets} reset values");
}

/// What a reader decided, and what was asked about already.
struct Expected {
    rows: BTreeMap<&'static str, Row>,
    seen: BTreeSet<&'static str>,
}

struct Row {
    class: &'static str,
    wait: Option<Duration>,
}

impl Expected {
    fn take(&mut self, name: &str) -> &Row {
        let Some((name, row)) = self.rows.get_key_value(name) else {
            panic!("{name}: read the body and add a row to verdict_expected.tsv");
        };
        self.seen.insert(name);
        row
    }

    fn assert_all_seen(&self) {
        let missing: Vec<_> = self
            .rows
            .keys()
            .filter(|name| !self.seen.contains(*name))
            .collect();
        assert!(
            missing.is_empty(),
            "the recordings are incomplete: {missing:?}"
        );
    }
}

impl Row {
    fn mismatch(&self, name: &str, failure: &Failure) -> Option<String> {
        let found = (class::label(failure.class), failure.wait);
        (found != (self.class, self.wait)).then(|| {
            format!(
                "{name}: expected {} {:?}, found {found:?}",
                self.class, self.wait
            )
        })
    }
}

fn expected(prefix: &str) -> Expected {
    let mut rows = BTreeMap::new();
    for line in EXPECTED.lines().filter(|line| line.starts_with(prefix)) {
        let [name, class, wait] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let wait = (wait != "-").then(|| Duration::from_millis(wait.parse().unwrap()));
        assert!(
            rows.insert(name, Row { class, wait }).is_none(),
            "{name} has two rows"
        );
    }
    assert!(!rows.is_empty());
    Expected {
        rows,
        seen: BTreeSet::new(),
    }
}

/// What holds for each verdict on what a provider said.
fn assert_wellformed(name: &str, failure: &Failure) {
    assert_eq!(failure.origin, Origin::Provider, "{name}");
    assert!(!failure.not_sent, "{name}");
    assert!(!failure.message.is_empty(), "{name}");
    assert!(failure.message.len() <= MAX_MESSAGE_BYTES, "{name}");
    assert!(!failure.message.contains(char::is_control), "{name}");
    assert_ne!(failure.class, Class::Unspecified, "{name}");
    assert_eq!(failure.retryable, class::transient(failure.class), "{name}");
}

fn classify_response(evidence: &Value, body: &[u8]) -> Failure {
    classify(&HttpEvidence {
        status: status(evidence),
        headers: &headers(evidence),
        body,
        body_complete: true,
        now_wall: None,
    })
}

/// The JSON of the first event, or of the first bare line.
fn first_event(body: &str) -> &str {
    let data = body.lines().find_map(|line| line.strip_prefix("data: "));
    data.unwrap_or_else(|| body.lines().next().unwrap())
}

fn status(evidence: &Value) -> u16 {
    evidence["status"].as_u64().unwrap().try_into().unwrap()
}

fn headers(evidence: &Value) -> HeaderMap {
    let pairs = evidence["headers"].as_object().unwrap();
    let mut headers: HeaderMap = pairs
        .iter()
        .map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (
                name,
                HeaderValue::from_str(value.as_str().unwrap()).unwrap(),
            )
        })
        .collect();
    if let Some(date) = evidence.get("date").and_then(Value::as_str) {
        headers.insert("date", HeaderValue::from_str(date).unwrap());
    }
    headers
}

fn jsonl(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn recordings() -> Option<PathBuf> {
    let named = std::env::var_os("REDRIVE_RECORDINGS").map(PathBuf::from);
    let root =
        named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"));
    if root.is_dir() {
        return Some(root);
    }
    // Past the test harness, which would keep the line of a passing test to itself.
    let line =
        format!("SKIPPED: no recordings at {root:?}; set REDRIVE_RECORDINGS to their folder");
    writeln!(std::io::stderr(), "{line}").expect("stderr");
    None
}
