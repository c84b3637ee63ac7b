//! Every rate-limit header that was recorded from a real provider.
//!
//! The recordings are no part of the package. They are looked for in `REDRIVE_RECORDINGS`, else beside the
//! package; without them the tests say so and pass.

use std::{
    collections::BTreeSet,
    env, fs,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use redrive::limits::headers::{MAX_BRAKE, brake};
use serde_json::Value;

/// Recorded dimensions that say what remains and never when there is more: nothing to brake by. Mistral's,
/// and those of Hugging Face's models.
const WITHOUT_RESET: &[&str] = &[
    "x-ratelimit-remaining-audio-seconds-minute",
    "x-ratelimit-remaining-input-characters-minute",
    "x-ratelimit-remaining-minute",
    "x-ratelimit-remaining-ocr-pages-minute",
    "x-ratelimit-remaining-req-10-second",
    "x-ratelimit-remaining-req-minute",
    "x-ratelimit-remaining-requests-hour",
    "x-ratelimit-remaining-requests-minute",
    "x-ratelimit-remaining-tokens-day",
    "x-ratelimit-remaining-tokens-hour",
    "x-ratelimit-remaining-tokens-month",
    "x-ratelimitbysize-remaining-minute",
    "x-ratelimitbysize-remaining-month",
];

/// Recorded resets that mean no wait, or nothing at all.
const NO_WAIT: &[&str] = &[
    "0",
    "0s",
    "0s, req_b176c7aa266e48aa8eff647b6b309bb8",
    "REDACTED",
];

fn recording(name: &str) -> Option<String> {
    let folder = env::var_os("REDRIVE_RECORDINGS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures")),
        PathBuf::from,
    );
    let text = fs::read_to_string(folder.join(name)).ok();
    if text.is_none() {
        eprintln!(
            "SKIPPED: no {name} at {}; set REDRIVE_RECORDINGS",
            folder.display()
        );
    }
    text
}

/// The sets of headers of all recorded responses, with their providers.
fn sets() -> Option<Vec<(String, HeaderMap)>> {
    let lines = recording("HEADERS.jsonl")? + &recording("MANIFEST.jsonl")?;
    let sets = lines.lines().map(|line| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let members = entry["headers"].as_object().unwrap().iter();
        let mut headers: HeaderMap = members
            .map(|(name, value)| pair(name, value.as_str().unwrap()))
            .collect();
        if let Some(date) = entry["date"].as_str() {
            headers.insert("date", HeaderValue::from_str(date).unwrap());
        }
        (entry["provider"].as_str().unwrap().to_owned(), headers)
    });
    Some(sets.collect())
}

fn pair(name: &str, value: &str) -> (HeaderName, HeaderValue) {
    (name.parse().unwrap(), value.parse().unwrap())
}

/// Recorded headers that are no reset of a dimension: `ratelimit` holds its own, the others are not read.
const NOT_RESETS: &[&str] = &[
    "ratelimit",
    "ratelimit-limit",
    "ratelimit-policy",
    "ratelimit-remaining",
    "ratelimitbysize-limit",
    "ratelimitbysize-query-cost",
    "ratelimitbysize-remaining",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
];

/// When all recordings were made, or before.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_600_000_000)
}

/// The wait that `headers` mean once nothing remains of `dimension`, seen from before all recordings.
fn used_up(headers: &HeaderMap, dimension: &HeaderName) -> Option<Duration> {
    let mut headers = headers.clone();
    headers.remove("date");
    headers.insert(dimension, HeaderValue::from_static("0"));
    brake(&headers, now())
}

/// Whether the reset of `dimension` is there, and is one of [`NO_WAIT`].
fn says_no_wait(headers: &HeaderMap, dimension: &HeaderName) -> bool {
    let reset = headers.get(dimension.as_str().replace("remaining", "reset"));
    reset.is_some_and(|reset| NO_WAIT.iter().any(|value| reset == value))
}

#[test]
fn what_was_recorded_brakes_only_where_nothing_remained() {
    let Some(sets) = sets() else { return };
    assert!(sets.len() > 300, "only {} responses", sets.len());
    for (provider, headers) in sets {
        let none_left = headers.values().any(|value| value == "0");
        let wait = brake(&headers, now());
        assert!(
            wait.is_none() || none_left,
            "{provider}: {wait:?} of {headers:?}"
        );
    }
}

#[test]
fn every_recorded_dimension_is_understood_or_says_no_reset() {
    let Some(sets) = sets() else { return };
    let (mut understood, mut without) = (BTreeSet::new(), BTreeSet::new());
    for (provider, headers) in &sets {
        let dimensions = headers
            .keys()
            .filter(|name| name.as_str().contains("remaining"));
        for dimension in dimensions {
            let spelled = dimension.to_string();
            match used_up(headers, dimension) {
                Some(wait) => {
                    assert!(wait <= MAX_BRAKE, "{provider}: {spelled}: {wait:?}");
                    understood.insert(spelled);
                }
                None if says_no_wait(headers, dimension) => {}
                None => {
                    without.insert(spelled);
                }
            }
        }
    }
    let never: Vec<_> = without
        .difference(&understood)
        .map(String::as_str)
        .collect();
    eprintln!("{} dimensions are understood", understood.len());
    assert_eq!(never, WITHOUT_RESET);
}

#[test]
fn every_recorded_value_of_a_reset_is_read() {
    let Some(values) = recording("HEADER_VALUES.json") else {
        return;
    };
    let providers: Value = serde_json::from_str(&values).unwrap();
    let (mut read, mut others) = (0, BTreeSet::new());
    for (provider, names) in providers.as_object().unwrap() {
        for (name, values) in names.as_object().unwrap() {
            if !name.contains("reset") {
                others.insert(name.as_str());
                continue;
            }
            let dimension = name.replace("reset", "remaining").parse().unwrap();
            for value in values.as_array().unwrap() {
                let value = value.as_str().unwrap();
                let headers = HeaderMap::from_iter([pair(name, value)]);
                let wait = used_up(&headers, &dimension);
                assert_eq!(
                    wait.is_none(),
                    NO_WAIT.contains(&value),
                    "{provider}: {name}: {value}: {wait:?}"
                );
                read += 1;
            }
        }
    }
    assert!(read > 400, "only {read} values");
    assert_eq!(Vec::from_iter(others), NOT_RESETS);
}
