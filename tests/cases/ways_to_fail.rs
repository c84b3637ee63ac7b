//! Other ways in which the engine of a budget fails, each a change of a case: what a script is answered
//! with, who is cut off from what, and who dies.

use std::time::Duration;

use redrive::proto::{Failed, GenerateResponse, StoppedBy, generate_response::Frame};
use serde_json::{Value, json};

use crate::{
    case::{self, Case, Line},
    outcome::Call,
    run::{case_of, play},
    shared,
};

/// In this time comes what has room. A place that is taken for nobody is missing until its lease ends, in
/// 15 s.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Case `id`, otherwise.
fn like(id: &str, change: impl FnOnce(&mut Value)) -> Case {
    let line = case::all().into_iter().find(|line| line.id == id);
    let mut value = line.unwrap().into_value();
    change(&mut value);
    value["id"] = json!(format!("like {id}"));
    Line::of(value).case()
}

/// Plays it; it ends as it should. How long each call waited for its attempt.
async fn passes(case: Case) -> Vec<Option<Duration>> {
    if !shared::can_be_played() {
        return Vec::new();
    }
    let (outcome, found) = play(&case).await;
    assert_eq!(found, Vec::<String>::new(), "{outcome:#?}");
    outcome.calls.iter().map(Call::began_after).collect()
}

/// Its first `count` upstreams stay open in the midst of their answer.
fn never_end(case: &mut Value, count: usize) {
    let upstream = case["input"]["upstream"].as_array_mut().unwrap();
    upstream.drain(..2 - count);
}

fn committed() -> Value {
    json!([
        {"AttemptStarted": 1},
        {"Delta": {"text": "The answer is 42."}},
        {"Committed": {"text": "The answer is 42.", "finish": "stop", "tool_calls": []}}
    ])
}

fn unavailable() -> Value {
    json!([{"Failed": {"class": "limiter_unavailable", "retryable": true}}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_fails_is_no_permission() {
    passes(like("C129", |case| {
        case["input"]["redis"] = json!({"script_error": "ERR Error running script: user_script:1"});
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_never_answers_gives_no_permission() {
    passes(like("C131", |case| {
        case["input"]["redis"] = json!({"accepts_but_never_replies": true});
        case["input"]["limits"] = json!({"shared": "redis", "concurrent": 2});
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_shared_budget_counts_needs_no_engine() {
    passes(like("C129", |case| {
        case["input"]["limits"]["also_route_without_shared_limit"] = json!(true);
        case["input"]["requests"] = json!([
            {"broker": "i mod 2", "count": 2, "at_ms": 0},
            {"broker": "i mod 2", "count": 2, "at_ms": 100, "route": "local_only"}
        ]);
        case["expect"] = json!({
            "frames": [
                {"call_1": unavailable()},
                {"call_2": unavailable()},
                {"call_3": committed()},
                {"call_4": committed()}
            ],
            "physical_sends": 2
        });
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_has_forgotten_its_scripts_is_told_them_again() {
    passes(like("C133", |case| {
        case["input"]["redis"] = json!({"before_second_call": "SCRIPT FLUSH"});
        case["input"]["limits"] = json!({"shared": "redis", "concurrent": 1});
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_whose_answer_is_lost_takes_no_place_of_others() {
    let waited = passes(like("C133", |case| {
        case["input"]["limits"] = json!({"shared": "redis", "concurrent": 1});
    }))
    .await;
    let in_time = |after: &Option<Duration>| after.is_some_and(|after| after < AT_ONCE);
    assert!(waited.iter().all(in_time), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_before_there_is_an_answer_takes_no_place_of_others() {
    let waited = passes(like("C135", |case| {
        for upstream in &mut case["input"]["upstream"].as_array_mut().unwrap()[..2] {
            *upstream = json!({"connect": "accept_read_request_never_reply"});
        }
    }))
    .await;
    let in_time = |after: &Option<Duration>| after.is_some_and(|after| after < AT_ONCE);
    assert!(waited.iter().all(in_time), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_sidecar_held_is_free_before_others_have_waited_in_vain() {
    passes(like("C135", |case| {
        never_end(case, 1);
        case["client_actions"] = json!([]);
        case["input"]["brokers"] = json!(2);
        case["input"]["kill_broker"] = json!({"broker": 0, "at_ms": 1_000});
        case["input"]["config"] = json!({"admission_backoff_deadline_ms": 15_000});
        case["input"]["limits"]["concurrent"] = json!(1);
        case["input"]["requests"] = json!([
            {"count": 1, "at_ms": 0, "broker": 0},
            {"count": 1, "at_ms": 700, "broker": 1}
        ]);
        case["expect"] = json!({
            "frames": [{"call_2": committed()}],
            "physical_sends": 2
        });
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_that_the_engine_cannot_be_told_of_is_cut() {
    passes(like("C135", |case| {
        never_end(case, 1);
        case["client_actions"] = json!([]);
        case["input"]["redis"] = json!({"down_from_ms": 1_500});
        case["input"]["requests"] = json!([{"count": 1, "at_ms": 0}]);
        case["expect"] = json!({
            "frames": [
                {"AttemptStarted": 1},
                {"Delta": {"text": "The"}},
                {"Failed": {"class": "limiter_unavailable", "retryable": true}}
            ],
            "physical_sends": 1,
            "attempt_failure_classes": ["limiter_unavailable"]
        });
    }))
    .await;
}

/// A comparison that lets a wrong end pass would prove nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ends_otherwise_than_for_its_engine_does_not_pass() {
    if !shared::can_be_played() {
        return;
    }
    let case = case_of("C129");
    let (outcome, found) = play(&case).await;
    assert_eq!(found, Vec::<String>::new());
    let noticed = |change: fn(&mut Call)| {
        let mut outcome = outcome.clone();
        change(&mut outcome.calls[7]);
        let found = shared::complaints(&case, &outcome);
        assert!(found.len() == 1 && found[0].contains("call 7"), "{found:?}");
    };
    noticed(|call| call.ended = call.times[0]);
    noticed(|call| call.ended += Duration::from_secs(1));
    noticed(|call| call.status = None);
    noticed(|call| {
        let is_wait = |frame: &GenerateResponse| matches!(frame.frame, Some(Frame::Waiting(_)));
        call.frames.retain(|frame| !is_wait(frame));
    });
    let verdict = |call: &mut Call, change: fn(&mut Failed)| {
        for frame in &mut call.frames {
            if let Some(Frame::Failed(failed)) = &mut frame.frame {
                change(failed);
            }
        }
    };
    let noticed = |change: fn(&mut Failed)| {
        let mut outcome = outcome.clone();
        verdict(&mut outcome.calls[7], change);
        let found = shared::complaints(&case, &outcome);
        assert!(found.len() == 1 && found[0].contains("call 7"), "{found:?}");
    };
    noticed(|failed| failed.set_stopped_by(StoppedBy::Deadline));
    noticed(|failed| failed.verdict.as_mut().unwrap().budget.clear());
    noticed(|failed| failed.verdict.as_mut().unwrap().limit.clear());
}
