//! Budgets: how a case's is configured, and what it let through.

use std::time::Duration;

use redrive::{
    limits::tokens,
    proto::{StoppedBy, VerdictClass, Waiting, generate_response::Frame, waiting::Reason},
};
use serde_json::json;
use tonic::Code;

use crate::{
    case::{Case, Sends, at_most},
    expect,
    outcome::{Call, Outcome},
    run::{case_of, play},
};

/// Cases in which more calls come than a minute lets through: who is admitted is so at once, and the others
/// would wait for a minute. They leave after this.
/// In C119 its engine learns first.
const LOOKED_AT: &[(&str, Duration)] = &[
    ("C121", Duration::from_secs(10)),
    ("C119", Duration::from_secs(80)),
];

/// The deadline of a case that says nothing of it.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// How long after its beginning a call may ask its budget.
const SLACK: Duration = Duration::from_millis(700);

/// When the clients of a case have seen enough.
pub fn looked_at(case: &Case) -> Option<Duration> {
    let found = LOOKED_AT.iter().find(|(id, _)| *id == case.id);
    found.map(|(_, after)| *after)
}

/// How long an answer of the engine may take where a case says nothing of it.
const ENGINE_TIMEOUT_MS: u64 = 500;

/// The budgets of a case, as a section of the configuration, and the engine that keeps them, if one does.
/// The limit of a case is one for input and output; here each has it. Cases count what is reserved, so
/// nothing of it is given back.
pub fn yaml(case: &Case, engine: Option<&str>) -> String {
    let limits = &case.input.limits;
    let mut members = Vec::new();
    if let Some(tokens) = limits.tokens_per_minute {
        for name in ["input_tokens", "output_tokens"] {
            members.push(format!("{name}: [{{limit: {tokens}, window: 60s}}]"));
        }
    }
    let windows = [
        (limits.requests_per_minute, "60s"),
        (limits.requests_per_second, "1s"),
    ];
    let windows = windows
        .iter()
        .filter_map(|(limit, window)| Some(format!("{{limit: {}, window: {window}}}", (*limit)?)));
    let windows: Vec<_> = windows.collect();
    if !windows.is_empty() {
        members.push(format!("requests: [{}]", windows.join(", ")));
    }
    if let Some(concurrent) = limits.concurrent {
        members.push(format!("concurrent: {concurrent}"));
    }
    if members.is_empty() {
        return String::new();
    }
    assert_ne!(limits.local, engine.is_some(), "{}: which engine?", case.id);
    let kind = if limits.local { "local" } else { "redis" };
    let budget = format!(
        "budgets: [{{name: case, match: {{route: case}}, engine: {kind}, {}}}]\n",
        members.join(", ")
    );
    let timeout = case.input.config.redis_timeout_ms;
    let timeout = timeout.unwrap_or(ENGINE_TIMEOUT_MS);
    let engine = engine.map(|url| {
        format!("engines: {{redis: {{url: '{url}', on_loss: closed, timeout: {timeout}ms}}}}\n")
    });
    budget + &engine.unwrap_or_default()
}

/// What is wrong with what a budget let through.
pub fn complaints(case: &Case, outcome: &Outcome) -> Vec<String> {
    let expected = case.expect.frames.iter().find_map(|frame| {
        let bound = frame.get("tokens_reserved_in_any_60s_window")?;
        bound.as_str()
    });
    let Some(most) = expected.map(at_most) else {
        return Vec::new();
    };
    admitted(outcome, most)
}

/// What is wrong with calls that a budget of `most` tokens in a minute lets through: as many as it has room
/// for, and no call is sent that it does not.
pub fn admitted(outcome: &Outcome, most: u64) -> Vec<String> {
    let mut found = Vec::new();
    // No case is looked at for as long as a window: all sends are in one.
    let bodies = outcome.requests.iter().map(|request| &request.body.bytes);
    let reserved: Vec<u64> = bodies.map(|body| tokens::input("m", body, 1)).collect();
    let sum: u64 = reserved.iter().sum();
    let largest = reserved.iter().max().copied().unwrap_or(0);
    // Bodies differ by a digit or two.
    if sum > most || sum + largest + 2 <= most {
        found.push(format!("{sum} tokens are reserved of {most}"));
    }
    for call in &outcome.calls {
        let sent = !outcome.requests_of(call).is_empty();
        let ends = [
            sent && call.committed().is_some(),
            waits(call),
            is_refused(call),
        ];
        if ends.iter().filter(|holds| **holds).count() != 1 || (sent && !ends[0]) {
            let last = call.told().last();
            found.push(format!(
                "call {} is sent: {sent}; it ends with {last:?}",
                call.index
            ));
        }
    }
    found
}

/// Whether a call was still waiting for the budget when its client left.
fn waits(call: &Call) -> bool {
    let last = call.told().last();
    let budget = |waiting: &Waiting| waiting.reason() == Reason::Budget && waiting.budget == "case";
    call.left.is_some() && matches!(last, Some(Frame::Waiting(waiting)) if budget(waiting))
}

/// Whether a call was told at once that the budget has no room for it before its deadline, and when it has.
fn is_refused(call: &Call) -> bool {
    let Some(failed) = call.failed() else {
        return false;
    };
    let verdict = failed.verdict.clone().unwrap_or_default();
    let wait = verdict
        .retry_after
        .and_then(|wait| Duration::try_from(wait).ok());
    failed.stopped_by() == StoppedBy::Limiter
        && verdict.class() == VerdictClass::RateLimited
        && verdict.budget == "case"
        && wait.is_some_and(|wait| wait + SLACK >= DEADLINE)
        && call
            .status
            .as_ref()
            .is_some_and(|status| status.code() == Code::ResourceExhausted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_that_lets_too_much_or_too_little_through_does_not_pass() {
    let case = case_of("C121");
    let (outcome, found) = play(&case).await;
    assert_eq!(found, Vec::<String>::new());
    let noticed = |case: &Case, outcome: &Outcome, what: &str| {
        let found = [complaints(case, outcome), expect::complaints(case, outcome)].concat();
        assert!(
            found.iter().any(|one| one.contains(what)),
            "{what:?} is not in {found:?}"
        );
    };
    let mut less = case.clone();
    less.expect.frames = vec![json!({"tokens_reserved_in_any_60s_window": "<=1000"})];
    noticed(&less, &outcome, "are reserved of 1000");
    less.expect.frames = vec![json!({"tokens_reserved_in_any_60s_window": "<=2400"})];
    noticed(&less, &outcome, "are reserved of 2400");
    less.expect.physical_sends = Sends::Some("<=2 in the first minute".to_owned());
    noticed(&less, &outcome, "sends, not <=2");
    let mut none = outcome.clone();
    none.requests.clear();
    noticed(&case, &none, "0 sends, not <=120");
    noticed(&case, &none, "is sent: false");
    let mut unnamed = outcome.clone();
    let frames = unnamed.calls.iter_mut().flat_map(|call| &mut call.frames);
    for frame in frames {
        if let Some(Frame::Failed(failed)) = &mut frame.frame {
            failed.verdict.as_mut().unwrap().budget.clear();
        }
        if let Some(Frame::Waiting(waiting)) = &mut frame.frame {
            waiting.budget.clear();
        }
    }
    noticed(&case, &unnamed, "it ends with");
}
