//! The cases of the turn gate: that they are about it, and that a wrong outcome of one does not pass.

use redrive::{
    proto::{Mode, generate_response::Frame},
    simulator::Received,
};
use serde_json::{Value, json};

use crate::{
    case::{self, Case, Line},
    expect,
    outcome::{Call, Outcome},
    promises,
    run::{case_of, play, play_all},
};

/// How many cases run at once.
const AT_ONCE: usize = 6;

/// Whether the gate rejects an answer in it. Of a client that leaves there is only what it was shown.
fn is_rejected(line: &Line) -> bool {
    let expect = &line.value()["expect"];
    let reset = |frame: &Value| frame["PreviewReset"]["why"] == "gate_rejected";
    expect.get("gate_reasons").is_some() || expect["frames"].as_array().unwrap().iter().any(reset)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_gate_each_case_in_which_it_rejects_ends_otherwise() {
    let lines = case::of_file("gate.jsonl").into_iter().filter(is_rejected);
    let without = lines.map(|line| {
        let mut case = line.case();
        assert!(case.input.config.gate.take().is_some(), "{}", case.id);
        case
    });
    let cases: Vec<Case> = without.collect();
    assert_eq!(cases.len(), 36);
    for (id, _, found) in play_all(cases, AT_ONCE).await {
        assert!(!found.is_empty(), "{id} passes without the gate");
    }
}

/// Each case in which it must not reject is one step from a case in which it must.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_the_gate_from_rejecting_counts() {
    let tools = json!([{"type": "function", "function": {"name": "tide_table"}}]);
    let mut cases = Vec::new();
    for (id, pointer, value) in [
        ("GATE19", "/input/config/gate/max_attempts", json!(2)),
        ("GATE29", "/client_actions", json!([])),
        ("GATE30", "/input/requests/0/delivery", Value::Null),
        (
            "GATE43",
            "/input/requests",
            json!([{"body": {"tools": tools}}]),
        ),
        (
            "GATE44",
            "/input/requests/0/body/tool_choice",
            json!("auto"),
        ),
    ] {
        let line = case::all().into_iter().find(|line| line.id == id);
        let mut changed = line.unwrap().into_value();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[name] = value;
        cases.push(Line::of(changed).case());
    }
    for (id, _, found) in play_all(cases, AT_ONCE).await {
        let again = found.iter().any(|one| one.contains("2 sends, not 1"));
        assert!(again, "{id}: {found:?}");
    }
}

#[track_caller]
fn noticed(found: Vec<String>, what: &str) {
    assert!(
        found.iter().any(|one| one.contains(what)),
        "{what:?} is not in {found:?}"
    );
}

#[tokio::test]
async fn a_wrong_word_about_a_rejection_does_not_pass() {
    for (id, pointer, wrong, what) in [
        (
            "GATE07",
            "/expect/gate_reasons/0",
            json!("empty"),
            "rejected for [\"missing_tool\"]",
        ),
        ("GATE07", "/expect/gate_reasons", json!([]), "rejected for"),
        (
            "GATE07",
            "/expect/frames/2/PreviewReset/why",
            json!("stall"),
            "reset by GateRejected",
        ),
        (
            "GATE16",
            "/expect/frames/3/Failed/by",
            json!("limiter"),
            "stopped by Gate",
        ),
        (
            "GATE16",
            "/expect/frames/3/Failed/reason",
            json!("bare"),
            "rejected for \"empty\"",
        ),
        (
            "GATE16",
            "/expect/frames/3/Failed/class",
            json!("stall"),
            "GateRejected, not Stall",
        ),
        (
            "GATE36",
            "/expect/frames/1/Failed/resets_in_ms",
            json!(9),
            "retry after",
        ),
        (
            "GATE36",
            "/expect/frames/1/Failed/by",
            json!("gate"),
            "stopped by Limiter",
        ),
    ] {
        let line = case::all().into_iter().find(|line| line.id == id).unwrap();
        let mut changed = line.value().clone();
        let (outcome, found) = play(&line.case()).await;
        assert_eq!(found, Vec::<String>::new(), "{id}");
        *changed.pointer_mut(pointer).unwrap() = wrong;
        noticed(
            expect::complaints(&Line::of(changed).case(), &outcome),
            what,
        );
    }
}

/// The hint, and nothing else, is what requests of a generation differ by.
#[tokio::test]
async fn a_wrong_body_after_a_rejection_does_not_pass() {
    // An empty answer, a reset, a good answer: the third request is the second one again.
    let (outcome, found) = play(&case_of("GATE21")).await;
    assert_eq!(found, Vec::<String>::new());
    let body = |request: &mut Received, change: fn(String) -> String| {
        let text = String::from_utf8(request.body.bytes.to_vec()).unwrap();
        request.body.bytes = change(text).into();
    };
    let changed = |change: &dyn Fn(&mut [Received])| {
        let mut outcome: Outcome = outcome.clone();
        change(&mut outcome.requests);
        promises::complaints(&outcome)
    };
    let first = outcome.requests[0].body.bytes.clone();
    let none = changed(&|requests| requests[1].body.bytes = first.clone());
    noticed(none, "request 2 has another body");
    let lost = changed(&|requests| requests[2].body.bytes = first.clone());
    noticed(lost, "request 3 has another body");
    let twice = |text: String| {
        text.replacen("[call:0]", "[call:0] x", 1)
            .replace("\"m\"", "\"n\"")
    };
    let other = changed(&|requests| body(&mut requests[1], twice));
    noticed(other, "request 2 has another body");
    let early = changed(&|requests| {
        body(&mut requests[2], |text| {
            text.replace("[call:0]", "[call:0] x")
        })
    });
    noticed(early, "request 3 has another body");
    let unhinted = |call: &mut Call| {
        for frame in &mut call.frames {
            if let Some(Frame::AttemptStarted(started)) = &mut frame.frame {
                started.set_mode(Mode::Restart);
            }
        }
    };
    let mut same = outcome.clone();
    unhinted(&mut same.calls[0]);
    for request in &mut same.requests {
        request.body.bytes = first.clone();
    }
    noticed(promises::complaints(&same), "request 2 has another body");
    let torn = changed(&|requests| requests[1].complete = false);
    noticed(torn, "cannot be told");
}

/// After an answer that was whole there is no backoff, however its connection ended.
#[tokio::test]
async fn only_a_rejected_answer_is_asked_for_again_at_once() {
    for (id, turn, backs_off) in [("GATE54", 0, false), ("GATE21", 1, true)] {
        let (mut outcome, found) = play(&case_of(id)).await;
        assert_eq!(found, Vec::<String>::new(), "{id}");
        let answered = outcome.requests[turn].head.unwrap();
        outcome.requests[turn + 1].arrived = answered;
        let found = promises::complaints(&outcome);
        let early = found.iter().any(|one| one.contains("after the answer"));
        assert_eq!(early, backs_off, "{id}: {found:?}");
    }
}
