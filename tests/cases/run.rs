//! Runs them, several at once.

use std::{sync::Arc, time::Duration};

use redrive::{proto::generate_response::Frame, simulator::Received};
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    case::{self, Case, Sends},
    check::{Seen, check},
    drive::{self, EXTRA_CALL},
    expect, limits,
    outcome::Outcome,
    promises,
    provider::{Provider, call_of},
    shared,
    sidecar::Sidecar,
};

/// Cases that run at once: they mostly wait.
const AT_ONCE: usize = 6;

/// Cases whose memory is looked at, and by how many MiB it may grow. Each has a process of its own.
const MEMORY: &[(&str, u64)] = &[("C079", 64), ("C151", 160)];

/// Cases whose note says that the first delta does not wait, and how long after the head it may come.
const TIMELY: &[(&str, Duration)] = &[
    ("C069", Duration::from_millis(250)),
    ("C081", Duration::from_millis(250)),
];

/// How long spans and memory may take to be told.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Plays a case; what is wrong.
pub async fn play(case: &Case) -> (Outcome, Vec<String>) {
    if case.input.is_shared() {
        let outcome = shared::play(case).await;
        let mut found = judge(case, &outcome);
        found.extend(shared::complaints(case, &outcome));
        return (outcome, found);
    }
    let cap = MEMORY.iter().find(|(id, _)| *id == case.id);
    let signalled = case
        .client_actions
        .iter()
        .any(|action| action.signal.is_some());
    let provider = Provider::start(case).await;
    let mut sidecar = Sidecar::start(case, &provider, cap.is_some() || signalled, None).await;
    let outcome = drive::drive(case, &provider, &sidecar).await;
    let mut found = judge(case, &outcome);
    if let Some((_, most)) = cap {
        let growth = sidecar.growth().unwrap();
        if growth > *most {
            found.push(format!("resident memory grew by {growth} MiB, over {most}"));
        }
    }
    if signalled {
        let status = sidecar.exit().await;
        if status.code() != Some(0) {
            found.push(format!("{status} after SIGTERM"));
        }
    }
    if let Some(otel) = &case.input.otel {
        found.extend(telemetry(&otel["assert"], &sidecar, &outcome).await);
    }
    (outcome, found)
}

/// Everything that is looked at once a case is over.
fn judge(case: &Case, outcome: &Outcome) -> Vec<String> {
    for call in &outcome.calls {
        let seen = match call.left {
            Some(_) => Seen::SoFar,
            None => Seen::Ended(call.status.as_ref()),
        };
        check(&call.frames, seen);
    }
    let mut found = promises::complaints(outcome);
    found.extend(expect::complaints(case, outcome));
    found.extend(limits::complaints(case, outcome));
    let extra = |request: &&Received| call_of(request) == Some(EXTRA_CALL);
    if outcome.requests.iter().any(|request| extra(&request)) {
        found.push("a call that came while draining was sent".to_owned());
    }
    if let Some((_, most)) = TIMELY.iter().find(|(id, _)| *id == case.id) {
        let call = &outcome.calls[0];
        let first = call
            .told()
            .position(|frame| matches!(frame, Frame::Delta(_)));
        let took = call.times[first.unwrap()].saturating_sub(outcome.requests[0].head.unwrap());
        if took > *most {
            found.push(format!("the first delta came {took:?} after the head"));
        }
    }
    found
}

/// Spans and metrics.
async fn telemetry(wanted: &Value, sidecar: &Sidecar, outcome: &Outcome) -> Vec<String> {
    let sends = outcome.requests.len();
    let begun = Instant::now();
    let spans = loop {
        let spans = sidecar.telemetry().0.get_finished_spans().unwrap();
        // One of the RPC, one of the generation, one of each send.
        if spans.len() >= sends + 2 || begun.elapsed() > TOLD_WITHIN {
            break spans;
        }
        sleep(Duration::from_millis(10)).await;
    };
    let mut found = Vec::new();
    if spans.len() != sends + 2 {
        let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
        found.push(format!("the spans that have ended are {names:?}"));
    }
    let trace = spans[0].span_context.trace_id();
    if spans
        .iter()
        .any(|span| span.span_context.trace_id() != trace)
    {
        found.push("spans of several traces".to_owned());
    }
    let text = sidecar.telemetry().1;
    for (name, value) in wanted["metrics"].as_object().into_iter().flatten() {
        let (metric, label) = match name.as_str() {
            "calls{outcome=committed}" => ("redrive_generations_total", "outcome=\"committed\""),
            "attempts" => ("redrive_sends_total", ""),
            "attempts{outcome=transport_reset}" => ("redrive_sends_total", "verdict=\"transport\""),
            "tokens{type=output,scope=committed}" => {
                ("redrive_tokens_total", "disposition=\"committed\"")
            }
            "tokens{type=output,scope=failed_attempts}" => {
                ("redrive_tokens_total", "disposition=\"void\"")
            }
            other => panic!("a metric called {other}"),
        };
        let series = text
            .lines()
            .filter(|line| line.starts_with(metric) && line.contains(label));
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let sum: f64 = values.sum();
        if value.as_f64() != Some(sum) {
            found.push(format!("{name} is {sum}, not {value}"));
        }
    }
    found
}

/// The cases to run, fewer if the environment names some.
fn chosen() -> Vec<Case> {
    let only = std::env::var("REDRIVE_CASES").unwrap_or_default();
    let not_run = case::not_run();
    let lines = case::all().into_iter().filter(|line| {
        !not_run.contains_key(&line.id)
            && (only.is_empty() || only.split(',').any(|id| id == line.id))
    });
    lines.map(case::Line::case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_ends_as_it_should() {
    let cases = chosen();
    let count = cases.len();
    assert!(count > 0, "no case has such an id");
    // Large messages keep a core busy; timers of others would notice.
    let is_large = |case: &Case| MEMORY.iter().any(|(id, _)| *id == case.id);
    let (large, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(is_large);
    // An engine learns for longer than all others take together.
    let (shared, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|case| case.input.is_shared());
    let shared = match shared::can_be_played() {
        true => shared,
        false => Vec::new(),
    };
    let places = shared.len().max(1);
    let one_by_one = async {
        let mut ended = play_all(large, 1).await;
        ended.extend(play_all(others, AT_ONCE).await);
        ended
    };
    let (shared, others) = tokio::join!(play_all(shared, places), one_by_one);
    let mut ended = [shared, others].concat();
    ended.sort();
    for (id, took, found) in &ended {
        let word = if found.is_empty() {
            "as expected"
        } else {
            "WRONG"
        };
        println!("{id}  {:>5.1} s  {word}", took.as_secs_f64());
    }
    let wrong = ended.into_iter().filter(|(_, _, found)| !found.is_empty());
    let wrong: Vec<_> = wrong
        .map(|(id, _, found)| format!("{id}: {}", found.join("; ")))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Plays them. Each case, how long it took, and what was wrong.
pub async fn play_all(cases: Vec<Case>, at_once: usize) -> Vec<(String, Duration, Vec<String>)> {
    let places = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    for case in cases {
        let places = Arc::clone(&places);
        running.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            let begun = Instant::now();
            let id = case.id.clone();
            // A panic of the checks is a complaint about this case, not the end of all.
            let played = tokio::spawn(async move { play(&case).await.1 }).await;
            let found = played.unwrap_or_else(|error| vec![format!("{error}")]);
            (id, begun.elapsed(), found)
        });
    }
    running.join_all().await
}

/// A comparison that lets a wrong outcome pass would prove nothing: each of these changes is noticed.
#[tokio::test]
async fn a_wrong_outcome_does_not_pass() {
    let again = || case_of("C027");
    let (outcome, found) = play(&again()).await;
    assert_eq!(found, Vec::<String>::new());

    let changed = |change: fn(&mut Case)| {
        let mut case = again();
        change(&mut case);
        expect::complaints(&case, &outcome)
    };
    let noticed = |found: Vec<String>, what: &str| {
        assert!(
            found.iter().any(|one| one.contains(what)),
            "{what:?} is not in {found:?}"
        );
    };
    noticed(
        changed(|case| case.expect.physical_sends = Sends::Exactly(1)),
        "2 sends, not 1",
    );
    noticed(
        changed(|case| case.expect.attempt_failure_classes.clear()),
        "failed attempts",
    );
    noticed(
        changed(|case| case.expect.attempt_failure_classes = vec!["stall".into()]),
        "[Stall]",
    );
    noticed(
        changed(|case| drop(case.expect.frames.remove(2))),
        "attempt 1 was reset",
    );
    let why = |case: &mut Case| case.expect.frames[2]["PreviewReset"]["why"] = json!("stall");
    noticed(changed(why), "reset by Transport, not stall");
    let text = |case: &mut Case| case.expect.frames[4]["Delta"]["text"] = json!("other");
    noticed(changed(text), "attempt 2 showed");
    let text = |case: &mut Case| case.expect.frames[1]["Delta"]["text"] = json!("Here is no");
    noticed(changed(text), "attempt 1 showed");
    let text = |case: &mut Case| case.expect.frames[5]["Committed"]["text"] = json!("other");
    noticed(changed(text), "committed");
    let finish = |case: &mut Case| case.expect.frames[5]["Committed"]["finish"] = json!("length");
    noticed(changed(finish), "finish Stop, not Length");
    let failed =
        |case: &mut Case| case.expect.frames[5] = json!({"Failed": {"class": "transport"}});
    noticed(changed(failed), "ended with");
    noticed(
        changed(|case| case.expect.retry_wait.min_ms = Some(60_000)),
        "waited",
    );
    let mut late = outcome.clone();
    late.requests[1].arrived += Duration::from_secs(60);
    let mut case = again();
    case.expect.retry_wait.max_ms = Some(1_000);
    noticed(expect::complaints(&case, &late), "waited");
}

/// The same for how messages and failures of some protocols end.
#[tokio::test]
async fn a_wrong_end_does_not_pass() {
    for (id, kind, field, wrong, what) in [
        (
            "C189",
            "Committed",
            "finish",
            json!("stop"),
            "finish Refusal, not Stop",
        ),
        (
            "C189",
            "Committed",
            "raw_finish",
            json!("stop"),
            "native finish \"refusal\"",
        ),
        (
            "C189",
            "Committed",
            "withheld_tool_calls",
            json!(2),
            "1 calls are withheld, not 2",
        ),
        (
            "C189",
            "Committed",
            "withheld_tool_calls",
            json!(0),
            "flag ToolCallsWithheld: true",
        ),
        (
            "C191",
            "Committed",
            "continuation_required",
            json!(false),
            "flag ContinuationRequired: true",
        ),
        (
            "C193",
            "Committed",
            "continuation_required",
            json!(true),
            "flag ContinuationRequired: false",
        ),
        (
            "C193",
            "Committed",
            "raw_finish",
            json!("other"),
            "native finish \"some_future_reason\"",
        ),
        (
            "C225",
            "Failed",
            "retryable",
            json!(true),
            "retryable false",
        ),
        (
            "C225",
            "Failed",
            "by",
            json!("wait_exceeds_deadline"),
            "stopped by NotRetryable",
        ),
    ] {
        let mut case = case_of(id);
        let (outcome, found) = play(&case).await;
        assert_eq!(found, Vec::<String>::new(), "{id}");
        case.expect.frames.last_mut().unwrap()[kind][field] = wrong;
        let found = expect::complaints(&case, &outcome);
        assert!(
            found.iter().any(|one| one.contains(what)),
            "{id}: {what:?} is not in {found:?}"
        );
    }
}

/// The same for what is checked whatever a case expects.
#[tokio::test]
async fn a_broken_promise_does_not_pass() {
    let (outcome, found) = play(&case_of("C001")).await;
    assert_eq!(found, Vec::<String>::new());
    let changed = |change: fn(&mut Outcome)| {
        let mut outcome = outcome.clone();
        change(&mut outcome);
        promises::complaints(&outcome)
    };
    let noticed = |found: Vec<String>, what: &str| {
        assert!(
            found.iter().any(|one| one.contains(what)),
            "{what:?} is not in {found:?}"
        );
    };
    let doubled = |outcome: &mut Outcome| {
        let mut again = outcome.requests[1].clone();
        again.number = 3;
        again.arrived += Duration::from_secs(1);
        outcome.requests.push(again);
    };
    noticed(changed(doubled), "2 attempts announced, 3 requests came");
    noticed(changed(doubled), "the ledger has 2 sends");
    let other = |outcome: &mut Outcome| outcome.requests[1].body.bytes = "[call:0]".into();
    noticed(changed(other), "another body");
    let early = |outcome: &mut Outcome| {
        outcome.requests[1].arrived = outcome.requests[0].head.unwrap();
    };
    noticed(changed(early), "request 2 came");
    let open = |outcome: &mut Outcome| outcome.requests[0].end = None;
    noticed(changed(open), "request 1 was open when 2 came");
    noticed(changed(open), "request 1 is open after the end");
    let late = |outcome: &mut Outcome| outcome.requests[0].ended = Some(Duration::from_secs(99));
    noticed(changed(late), "after the end");
    let left = |outcome: &mut Outcome| outcome.calls[0].left = outcome.requests[0].head;
    noticed(changed(left), "came after the client had left");
    let asked = |outcome: &mut Outcome| {
        outcome.requests[0].status = Some(429);
        outcome.requests[0].served = vec![("retry-after".to_owned(), "60".to_owned())];
    };
    noticed(changed(asked), "not 60s");
}

pub fn case_of(id: &str) -> Case {
    let line = case::all().into_iter().find(|line| line.id == id);
    line.unwrap().case()
}
