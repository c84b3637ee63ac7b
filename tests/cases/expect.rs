//! What a case expects, compared with what was seen.

use std::{collections::BTreeMap, time::Duration};

use redrive::proto::{
    Committed, Part, StoppedBy, committed::Flag, delta::Content, generate_response::Frame, part,
};
use serde_json::Value;
use tonic::Code;

use crate::{
    case::{AssertRequest, Case},
    names,
    outcome::{Call, Outcome, reasoning_of, text_of},
    want::{self, End, Want},
};

/// How much longer than a case says a wait may look: two slow cores, several cases at once.
const LATE: Duration = Duration::from_millis(700);

/// How exactly the time is known at which a budget has room again.
const RESETS: Duration = Duration::from_secs(1);

/// What is not as expected.
pub fn complaints(case: &Case, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(case.expect.physical_sends.complaint(outcome.requests.len()));
    found.extend(classes(case, outcome));
    found.extend(reasons(case, outcome));
    found.extend(waits(case, outcome));
    found.extend(requests(&case.input.assert_request, outcome));
    for call in &outcome.calls {
        let want = want::of(&case.expect.frames, call.index);
        if want.end == End::Unsaid {
            continue;
        }
        found.extend(previews(call, &want));
        found.extend(end(call, &want.end));
    }
    found
}

/// Why each failed attempt failed. Of a client that has left there is no ledger.
fn classes(case: &Case, outcome: &Outcome) -> Option<String> {
    if outcome.calls.iter().any(|call| call.left.is_some()) {
        return None;
    }
    let entries = outcome
        .calls
        .iter()
        .filter_map(Call::ledger)
        .flat_map(|ledger| ledger.entries);
    let seen = entries.filter_map(|entry| Some(entry.verdict?.class()));
    let seen: Vec<_> = seen.collect();
    let expected = &case.expect.attempt_failure_classes;
    let expected: Vec<_> = expected.iter().map(|name| names::class(name)).collect();
    (seen != expected).then(|| format!("failed attempts {seen:?}, not {expected:?}"))
}

/// Why the gate rejected attempts.
fn reasons(case: &Case, outcome: &Outcome) -> Option<String> {
    if outcome.calls.iter().any(|call| call.left.is_some()) {
        return None;
    }
    let ledgers = outcome.calls.iter().filter_map(Call::ledger);
    let verdicts = ledgers
        .flat_map(|ledger| ledger.entries)
        .filter_map(|entry| entry.verdict);
    let seen: Vec<String> = verdicts
        .map(|verdict| verdict.gate_reason)
        .filter(|reason| !reason.is_empty())
        .collect();
    let expected = &case.expect.gate_reasons;
    (seen != *expected).then(|| format!("rejected for {seen:?}, not {expected:?}"))
}

fn waits(case: &Case, outcome: &Outcome) -> Vec<String> {
    let wait = &case.expect.retry_wait;
    let mut found = Vec::new();
    for call in &outcome.calls {
        for pair in outcome.requests_of(call).windows(2) {
            let &[before, after] = pair else { continue };
            let gap = after
                .arrived
                .saturating_sub(before.head.or(before.ended).unwrap_or_default());
            let millis = Duration::from_millis;
            let short = wait
                .min_ms
                .is_some_and(|least| gap + millis(5) < millis(least));
            let long = wait.max_ms.is_some_and(|most| gap > millis(most) + LATE);
            if short || long {
                found.push(format!("waited {gap:?}, expected {wait:?}"));
            }
        }
        let told = call
            .failed()
            .and_then(|failed| failed.verdict.as_ref()?.retry_after);
        if wait.source.as_deref() == Some("own_backoff") && told.is_some() {
            found.push(format!("{told:?} is told, and was not asked for"));
        }
    }
    found
}

fn requests(assert: &AssertRequest, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    for request in &outcome.requests {
        for (name, value) in &assert.header_equals {
            let header = request.headers.iter().filter(|(known, _)| known == name);
            let values: Vec<&String> = header.map(|(_, value)| value).collect();
            if values != [value] {
                found.push(format!("header {name} is {values:?}, not {value:?}"));
            }
        }
        let body: Value = serde_json::from_slice(&request.body.bytes).unwrap_or_default();
        for (name, value) in &assert.body_contains {
            if body.get(name) != Some(value) {
                found.push(format!("body.{name} is {:?}, not {value}", body.get(name)));
            }
        }
    }
    let (count, first) = (outcome.requests.len(), outcome.requests.first());
    if assert.count.is_some_and(|expected| expected != count) {
        found.push(format!("{count} requests, not {:?}", assert.count));
    }
    let same = |one: &redrive::simulator::Received| {
        first.is_none_or(|first| first.body.bytes == one.body.bytes)
    };
    if assert.bodies_identical && !outcome.requests.iter().all(same) {
        found.push("the bodies are not identical".to_owned());
    }
    found
}

/// What an attempt showed.
#[derive(Debug, Default)]
struct Shown {
    text: String,
    reasoning: String,
    anything: bool,
    reset: Option<redrive::proto::VerdictClass>,
}

/// What each attempt showed, and whether it was reset.
fn previews(call: &Call, want: &Want) -> Vec<String> {
    let mut found = Vec::new();
    let mut shown: BTreeMap<usize, Shown> = BTreeMap::new();
    for frame in call.told() {
        match frame {
            Frame::AttemptStarted(started) => {
                shown.entry(started.attempt as usize).or_default();
            }
            Frame::Delta(delta) => {
                let shown = shown.entry(delta.attempt as usize).or_default();
                shown.anything = true;
                match &delta.content {
                    Some(Content::Text(text)) => shown.text.push_str(text),
                    Some(Content::Reasoning(text)) => shown.reasoning.push_str(text),
                    _ => {}
                }
            }
            Frame::PreviewReset(reset) => {
                let verdict = reset.verdict.as_ref().unwrap();
                shown.entry(reset.attempt as usize).or_default().reset = Some(verdict.class());
            }
            _ => {}
        }
    }
    let left = call.left.is_some();
    let count = want.attempts.len();
    if shown.keys().copied().ne(1..=count) && !left {
        found.push(format!("attempts {:?}, not {count}", shown.keys()));
    }
    for (number, attempt) in (1..).zip(&want.attempts) {
        let Some(shown) = shown.get(&number) else {
            continue;
        };
        // What was not yet delivered is dropped when an attempt becomes void.
        let part = left || number < count || !matches!(want.end, End::Committed(_));
        for (seen, expected) in [
            (&shown.text, &attempt.text),
            (&shown.reasoning, &attempt.reasoning),
        ] {
            if !expected.is(seen, part) {
                found.push(format!("attempt {number} showed {}", brief(seen)));
            }
        }
        match (&attempt.reset, shown.reset) {
            (None, Some(class)) => found.push(format!("attempt {number} was reset: {class:?}")),
            (Some(reset), None) if !reset.maybe && shown.anything => {
                found.push(format!("attempt {number} was not reset"));
            }
            (Some(reset), Some(class)) if class != names::class(&reset.class) => {
                found.push(format!(
                    "attempt {number} was reset by {class:?}, not {}",
                    reset.class
                ));
            }
            _ => {}
        }
    }
    found
}

fn end(call: &Call, expected: &End) -> Vec<String> {
    match (expected, call.committed(), call.failed()) {
        (End::Cancelled, None, None) if call.left.is_some() => Vec::new(),
        (End::Committed(value), Some(committed), None) => message(value, &committed),
        (End::Failed(value), None, Some(_)) => failure(value, call),
        (expected, committed, failed) => {
            let text = committed.map(|committed| brief(&text_of(&committed.message)));
            let verdict = failed.and_then(|failed| failed.verdict.as_ref());
            vec![format!(
                "ended with {text:?} or {verdict:?}, not {expected:?}"
            )]
        }
    }
}

/// Fields of `value` that are not known here would not be checked.
fn only(value: &Value, known: &[&str]) {
    for field in value.as_object().unwrap().keys() {
        assert!(known.contains(&field.as_str()), "an expectation of {field}");
    }
}

fn message(value: &Value, committed: &Committed) -> Vec<String> {
    only(
        value,
        &[
            "text",
            "reasoning",
            "finish",
            "tool_calls",
            "usage",
            "incomplete_tool_calls",
            "withheld_tool_calls",
            "empty_completion",
            "continuation_required",
            "raw_finish",
            // How many frames the message came in is checked with the frames.
            "chunked",
        ],
    );
    let mut found = Vec::new();
    let mut expect = |holds: bool, seen: String| {
        if !holds {
            found.push(seen);
        }
    };
    let text = text_of(&committed.message);
    let right = want::Text::read(value["text"].as_str().unwrap()).is(&text, false);
    expect(right, format!("committed {}", brief(&text)));
    if let Some(reasoning) = value["reasoning"].as_str() {
        let seen = reasoning_of(&committed.message);
        expect(
            seen == reasoning,
            format!("committed the reasoning {}", brief(&seen)),
        );
    }
    let native = value["raw_finish"].as_str();
    let finish = names::finish(value["finish"].as_str().unwrap(), native);
    let seen = committed.finish_reason();
    expect(seen == finish, format!("finish {seen:?}, not {finish:?}"));
    let seen = &committed.native_finish_reason;
    expect(
        native.is_none_or(|native| native == seen),
        format!("native finish {seen:?}, not {native:?}"),
    );
    let calls = calls(&committed.message);
    let wanted = value["tool_calls"].as_array().unwrap();
    let same = calls.len() == wanted.len()
        && wanted
            .iter()
            .zip(&calls)
            .all(|(wanted, call)| is_call(wanted, call));
    expect(same, format!("tool calls {calls:?}, not {wanted:?}"));
    let withheld = committed.withheld_tool_calls.len() as u64;
    let wanted: u64 = ["incomplete_tool_calls", "withheld_tool_calls"]
        .map(|field| value[field].as_u64().unwrap_or(0))
        .iter()
        .sum();
    expect(
        withheld == wanted,
        format!("{withheld} calls are withheld, not {wanted}"),
    );
    for (flag, wanted) in [
        (Flag::Empty, value["empty_completion"].as_bool()),
        (Flag::ToolCallsWithheld, Some(wanted > 0)),
        (
            Flag::ContinuationRequired,
            Some(value["continuation_required"] == true),
        ),
    ] {
        let told = committed.flags().any(|told| told == flag);
        expect(
            wanted.is_none_or(|wanted| wanted == told),
            format!("flag {flag:?}: {told}"),
        );
    }
    if value["usage"].is_object() {
        let seen = committed.usage.unwrap_or_default();
        let right = value["usage"]["input"] == seen.input_tokens
            && value["usage"]["output"] == seen.output_tokens;
        expect(right, format!("usage {seen:?}"));
    }
    found
}

fn calls(message: &[Part]) -> Vec<&redrive::proto::ToolCall> {
    let calls = message.iter().filter_map(|part| match &part.part {
        Some(part::Part::ToolCall(call)) => Some(call),
        _ => None,
    });
    calls.collect()
}

/// Arguments are compared as text: exactly as streamed.
fn is_call(wanted: &Value, call: &redrive::proto::ToolCall) -> bool {
    let id = wanted["id"].as_str().unwrap();
    let made_up = id.starts_with("<synth") && !call.id.is_empty();
    wanted["name"] == call.name.as_str()
        && wanted["arguments"] == call.arguments_json.as_str()
        && (made_up || id == call.id)
}

fn failure(value: &Value, call: &Call) -> Vec<String> {
    only(
        value,
        &[
            "class",
            "last",
            "retryable",
            "provider_status",
            "retry_after_ms",
            "resets_in_ms",
            "by",
            "reason",
        ],
    );
    let mut found = Vec::new();
    let mut expect = |holds: bool, seen: String| {
        if !holds {
            found.push(seen);
        }
    };
    let failed = call.failed().unwrap();
    let verdict = failed.verdict.as_ref().unwrap();
    let exhausted = value["class"] == "attempts_exhausted";
    let class = if exhausted {
        &value["last"]
    } else {
        &value["class"]
    };
    let class = names::class(class.as_str().unwrap());
    expect(
        verdict.class() == class,
        format!("{:?}, not {class:?}", verdict.class()),
    );
    let by = failed.stopped_by();
    let wanted = match value["by"].as_str() {
        _ if exhausted => Some(StoppedBy::Allowance),
        Some("wait_exceeds_deadline") => Some(StoppedBy::WaitTooLong),
        Some("x-should-retry") => Some(StoppedBy::NotRetryable),
        Some("gate") => Some(StoppedBy::Gate),
        Some("limiter") => Some(StoppedBy::Limiter),
        Some("not_retryable") => Some(StoppedBy::NotRetryable),
        Some(other) => panic!("stopped by {other}"),
        None => None,
    };
    expect(
        wanted.is_none_or(|wanted| wanted == by),
        format!("stopped by {by:?}"),
    );
    expect(
        value["retryable"] == verdict.retryable,
        format!("retryable {}", verdict.retryable),
    );
    let reason = &verdict.gate_reason;
    expect(
        value["reason"].as_str().unwrap_or_default() == reason,
        format!("rejected for {reason:?}"),
    );
    if !value["provider_status"].is_null() {
        let status = verdict.http_status;
        expect(
            value["provider_status"] == status,
            format!("provider status {status}"),
        );
    }
    let wait = verdict
        .retry_after
        .and_then(|wait| Duration::try_from(wait).ok());
    let wanted = value["retry_after_ms"].as_u64().map(Duration::from_millis);
    let resets = value["resets_in_ms"].as_u64().map(Duration::from_millis);
    let right = match resets {
        Some(resets) => wait.is_some_and(|wait| wait.abs_diff(resets) <= RESETS),
        None => wait == wanted,
    };
    expect(right, format!("retry after {wait:?}, not {wanted:?}"));
    expect(
        call.status
            .as_ref()
            .is_some_and(|status| status.code() != Code::Ok),
        "no status".into(),
    );
    found
}

fn brief(text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    format!("{start:?} ({} bytes)", text.len())
}
