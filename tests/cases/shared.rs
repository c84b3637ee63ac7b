//! Cases whose budget an engine keeps for several sidecars: each is a process of its own, and what all of
//! them let through is looked at together.

use std::{ops::Range, sync::Arc, time::Duration};

use redrive::proto::{StoppedBy, VerdictClass, Waiting, generate_response::Frame, waiting::Reason};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};
use tonic::Code;

use crate::{
    case::{Broker, Case, Requests},
    drive,
    engine::Engine,
    limits,
    outcome::{Call, Outcome},
    provider::Provider,
    server::{Kind, program},
    sidecar::Sidecar,
};

/// No case takes as long: an engine that is new to its budgets learns for 70 s.
const LIMIT: Duration = Duration::from_secs(150);

/// Calls for which there is room, and how long after its beginning the attempt of such a call may come.
/// What a client gave back when it left is free before the third call of C135 comes; what was counted
/// twice in C133 would be missing for a minute.
const ROOM: &[(&str, usize, Duration)] = &[
    ("C133", 1, Duration::from_secs(20)),
    ("C135", 2, Duration::from_secs(3)),
];

/// How much earlier or later than its deadline a call may look to end.
const SLACK: Duration = Duration::from_millis(700);

/// Whether there is a server; says why there is none.
pub fn can_be_played() -> bool {
    let server = program(Kind::Redis);
    if let Err(why) = server {
        eprintln!("SKIPPED: no Redis server: {why}");
    }
    server.is_ok()
}

/// Plays a case, without what is looked at in every one.
pub async fn play(case: &Case) -> Outcome {
    let provider = Provider::start(case).await;
    let engine = Arc::new(Engine::start(&case.input.redis).await);
    let url = engine.url();
    let mut sidecars = Vec::new();
    for _ in 0..case.input.brokers.unwrap_or(1) {
        sidecars.push(Sidecar::start(case, &provider, true, Some(&url)).await);
    }
    let calls = timeout(LIMIT, run_calls(case, &provider, &engine, &sidecars));
    let calls = calls.await.expect("the case does not end");
    drive::settle(case, &provider.simulator, &calls).await;
    Outcome {
        calls,
        requests: provider.simulator.received(),
        scripts: provider.scripts.clone(),
    }
}

/// Calls of one `requests` that come one after the other, or one that comes for itself.
struct Chain {
    calls: Range<usize>,
    requests: Requests,
}

fn chains(case: &Case) -> Vec<Chain> {
    let mut chains = Vec::new();
    let mut index = 0;
    for requests in &case.input.requests {
        let all = requests.count.unwrap_or(1);
        let count = if requests.sequential { all } else { 1 };
        for first in (index..index + all).step_by(count) {
            chains.push(Chain {
                calls: first..first + count,
                requests: requests.clone(),
            });
        }
        index += all;
    }
    chains
}

async fn run_calls(
    case: &Case,
    provider: &Provider,
    engine: &Arc<Engine>,
    sidecars: &[Sidecar],
) -> Vec<Call> {
    let mut channels = Vec::new();
    for sidecar in sidecars {
        channels.push(sidecar.connect().await);
    }
    let begun = Instant::now();
    engine.begin();
    let mut running = JoinSet::new();
    for Chain { calls, requests } in chains(case) {
        let (case, simulator) = (case.clone(), Arc::clone(&provider.simulator));
        let (engine, channels) = (Arc::clone(engine), channels.clone());
        running.spawn(async move {
            sleep_until(begun + Duration::from_millis(requests.at_ms)).await;
            let mut done = Vec::new();
            for index in calls {
                engine.before_call(index).await;
                let channel = channels[broker(&case, index)].clone();
                done.push(drive::run_call(&case, &simulator, channel, index).await);
                sleep(Duration::from_millis(requests.gap_ms)).await;
            }
            done
        });
    }
    let kill = async {
        let kill = case.input.kill_broker.as_ref()?;
        sleep_until(begun + Duration::from_millis(kill.at_ms)).await;
        sidecars[kill.broker].kill();
        Some(provider.simulator.now())
    };
    let (calls, killed) = tokio::join!(running.join_all(), kill);
    let mut calls = calls.concat();
    // A client that lost its sidecar is none that waits for an end.
    for call in &mut calls {
        let killed = killed.filter(|at| call.ended >= *at);
        let has_end = call.committed().is_some() || call.failed().is_some();
        if let Some(at) = killed
            && Some(broker(case, call.index)) == case.input.kill_broker.as_ref().map(|k| k.broker)
            && !has_end
        {
            call.left = Some(at);
            call.status = None;
        }
    }
    calls.sort_by_key(|call| call.index);
    calls
}

/// Which sidecar a call comes to.
fn broker(case: &Case, index: usize) -> usize {
    let requests = case.input.requests_of(index);
    match requests.map(|requests| &requests.broker) {
        None => 0,
        Some(Broker::Number(number)) => *number,
        Some(Broker::Turn(turn)) => {
            let brokers = case.input.brokers.unwrap_or(1);
            assert_eq!(*turn, format!("i mod {brokers}"));
            index % brokers
        }
    }
}

/// What is wrong with what the engine let through.
pub fn complaints(case: &Case, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let waits = |frame: &serde_json::Value| frame.get("admitted_within_first_60s").is_some();
    if case.expect.frames.iter().any(waits) {
        // They are looked at for less than two windows, of which the engine learns for one.
        let most = case.input.limits.tokens_per_minute.unwrap();
        found.extend(limits::admitted(outcome, most));
    }
    for (_, index, most) in ROOM.iter().filter(|(id, ..)| *id == case.id) {
        let after = outcome.calls[*index].began_after();
        if after.is_none_or(|after| after > *most) {
            found.push(format!("the attempt of call {index} came after {after:?}"));
        }
    }
    found.extend(outcome.calls.iter().filter_map(|call| away(case, call)));
    found
}

/// What is wrong with a call that ended because the engine was away.
fn away(case: &Case, call: &Call) -> Option<String> {
    let failed = call.failed()?;
    let verdict = failed.verdict.clone().unwrap_or_default();
    if verdict.class() != VerdictClass::LimiterUnavailable {
        return None;
    }
    let waits = |waiting: &Waiting| {
        waiting.reason() == Reason::LimiterUnavailable && waiting.budget == "case"
    };
    let told = call
        .told()
        .any(|frame| matches!(frame, Frame::Waiting(waiting) if waits(waiting)));
    let deadline = case.input.config.admission_backoff_deadline_ms;
    let deadline = deadline.map_or(limits::DEADLINE, Duration::from_millis);
    let took = call.ended.saturating_sub(call.times[0]);
    let lasted = took + SLACK > deadline && took < deadline + SLACK;
    let was_cut = verdict.attempt > 0;
    let unavailable = call.status.as_ref().map(|status| status.code()) == Some(Code::Unavailable);
    let right = unavailable
        && failed.stopped_by() == StoppedBy::Limiter
        && verdict.budget == "case"
        && verdict.limit.contains("engine")
        && (was_cut || (told && lasted));
    (!right).then(|| {
        let (index, status) = (call.index, &call.status);
        format!(
            "call {index} ended after {took:?}, told of its wait: {told}: {failed:?}, {status:?}"
        )
    })
}
