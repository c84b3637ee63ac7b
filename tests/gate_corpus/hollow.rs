//! The recorder refuses rows that do not show what they declare, and the check tells what differs.

use redrive::proto::{StoppedBy, VerdictClass};

use crate::{
    file::{compare, recorded},
    row::{Row, Seen, scrubbed},
    scenario::{ACCEPTED, Course, Delivery, Ending, retried},
    scenarios::SCENARIOS,
};

const FAILED: Course = Course {
    retried: &["empty"],
    end: Ending::Failed("empty", VerdictClass::GateRejected, StoppedBy::Gate),
};

const DELIVERED: Course = Course {
    retried: &[],
    end: Ending::Delivered("empty"),
};

fn accepted() -> Row {
    Row {
        name: "a row".into(),
        declared: ACCEPTED,
        seen: Some(Seen {
            status: "Ok".into(),
            sends: 1,
            frames: vec!["accepted <id>".into(), "committed".into()],
            message: vec!["text \"Hello\"".into()],
            ..Seen::default()
        }),
    }
}

fn rejected() -> Row {
    let mut row = accepted();
    row.declared = retried(&["empty"]);
    let seen = row.seen.as_mut().unwrap();
    seen.sends = 2;
    seen.hints = vec!["Go on.".into()];
    seen.reasons = vec!["empty".into()];
    seen.rejected = vec!["empty retried 1".into()];
    row
}

fn failed() -> Row {
    let mut row = rejected();
    row.declared = FAILED;
    let seen = row.seen.as_mut().unwrap();
    seen.status = "Aborted".into();
    seen.class = "VERDICT_CLASS_GATE_REJECTED empty".into();
    seen.stopped_by = "STOPPED_BY_GATE".into();
    seen.frames = vec!["failed".into()];
    seen.message.clear();
    seen.reasons.push("empty".into());
    seen.rejected.push("empty failed 1".into());
    row
}

fn bent(mut row: Row, bend: impl FnOnce(&mut Seen)) -> Row {
    bend(row.seen.as_mut().unwrap());
    row
}

fn declaring(declared: Course, row: Row) -> Row {
    Row { declared, ..row }
}

/// Both ways: it is not recorded, and the check fails although the file says the same.
fn refused(row: &Row, why: &str) {
    let told = recorded(&[accepted(), row.clone()]).unwrap_err();
    assert_eq!(told, format!("hollow rows:\n[a row] {why}"));
    let file = format!("\n[a row]\n{}", row.body());
    let told = compare(&file, std::slice::from_ref(row)).unwrap_err();
    let expected = format!("differs from the corpus:\n[a row] hollow: {why}\n");
    assert_eq!(told, expected);
}

#[test]
fn whole_rows_are_recorded() {
    let not_applicable = Row {
        seen: None,
        ..accepted()
    };
    let rows = [accepted(), rejected(), failed(), not_applicable];
    assert_eq!(recorded(&rows).unwrap().matches("[a row]").count(), 4);
}

#[test]
fn a_retry_without_its_hint_is_refused() {
    let row = bent(rejected(), |seen| seen.hints.clear());
    refused(&row, "declares 1 retries and shows 0 hints");
}

#[test]
fn a_hint_that_is_not_declared_is_refused() {
    let row = declaring(ACCEPTED, rejected());
    refused(&row, "declares 0 retries and shows 1 hints");
}

#[test]
fn a_hint_of_nothing_is_refused() {
    let row = bent(rejected(), |seen| seen.hints = vec![" ".into()]);
    refused(&row, "a hint says nothing");
}

#[test]
fn another_reason_than_declared_is_refused() {
    let row = bent(rejected(), |seen| seen.reasons = vec!["bare".into()]);
    refused(&row, r#"was rejected for ["bare"]"#);
    let row = bent(failed(), |seen| seen.reasons.truncate(1));
    refused(&row, r#"was rejected for ["empty"]"#);
}

#[test]
fn a_rejection_that_is_not_counted_as_declared_is_refused() {
    let row = bent(rejected(), |seen| seen.rejected.clear());
    refused(&row, "counts as rejected []");
    let row = bent(rejected(), |seen| {
        seen.rejected = vec!["empty retried 2".into()]
    });
    refused(&row, r#"counts as rejected ["empty retried 2"]"#);
    // One that was delivered shows nowhere else.
    let row = bent(accepted(), |seen| {
        seen.rejected = vec!["empty delivered 1".into()]
    });
    refused(&row, r#"counts as rejected ["empty delivered 1"]"#);
    assert_eq!(declaring(DELIVERED, row).hollow(), None);
    refused(&declaring(DELIVERED, accepted()), "counts as rejected []");
}

#[test]
fn other_sends_than_one_and_the_retries_are_refused() {
    let row = bent(accepted(), |seen| seen.sends = 2);
    refused(&row, "2 sends instead of 1");
    let continued = bent(row, |seen| seen.continuations = 1);
    assert_eq!(continued.hollow(), None);
    let row = bent(rejected(), |seen| seen.sends = 1);
    refused(&row, "1 sends instead of 2");
}

#[test]
fn a_success_that_delivers_nothing_is_refused() {
    let row = bent(accepted(), |seen| seen.message.clear());
    refused(&row, "nothing was delivered");
    let thought = bent(accepted(), |seen| {
        seen.message = vec!["reasoning \"Hm.\"".into()];
    });
    refused(&thought, "nothing was delivered");
    // The client has it, so it has to stay.
    let kept = bent(thought, |seen| seen.is_kept = true);
    assert_eq!(kept.hollow(), None);
    refused(
        &bent(kept, |seen| seen.message.clear()),
        "nothing was delivered",
    );
}

#[test]
fn a_failure_that_is_not_declared_is_refused() {
    let row = bent(accepted(), |seen| seen.frames = vec!["failed".into()]);
    refused(&row, r#"ends with ["failed"] instead of committed"#);
    let row = bent(accepted(), |seen| seen.status = "Aborted".into());
    refused(&row, "the status of committed is Aborted");
    let row = bent(accepted(), |seen| seen.class = "VERDICT_CLASS_STALL".into());
    refused(&row, r#"failed with "VERDICT_CLASS_STALL" by """#);
}

#[test]
fn a_success_where_a_failure_is_declared_is_refused() {
    let row = bent(failed(), |seen| seen.frames = vec!["committed".into()]);
    refused(&row, r#"ends with ["committed"] instead of failed"#);
    let row = bent(failed(), |seen| seen.status = "Ok".into());
    refused(&row, "the status of failed is Ok");
}

#[test]
fn another_terminal_than_declared_is_refused() {
    let row = bent(accepted(), |seen| seen.frames.clear());
    refused(&row, "ends with [] instead of committed");
    let row = bent(accepted(), |seen| seen.frames.push("committed".into()));
    refused(
        &row,
        r#"ends with ["committed", "committed"] instead of committed"#,
    );
    let row = bent(accepted(), |seen| seen.frames.push("delta".into()));
    refused(&row, r#"ends with ["committed"] instead of committed"#);
}

#[test]
fn another_failure_than_declared_is_refused() {
    let row = bent(failed(), |seen| seen.class = "VERDICT_CLASS_STALL".into());
    refused(
        &row,
        r#"failed with "VERDICT_CLASS_STALL" by "STOPPED_BY_GATE""#,
    );
    let row = bent(failed(), |seen| {
        seen.stopped_by = "STOPPED_BY_ALLOWANCE".into()
    });
    refused(
        &row,
        r#"failed with "VERDICT_CLASS_GATE_REJECTED empty" by "STOPPED_BY_ALLOWANCE""#,
    );
}

#[test]
fn what_is_not_applicable_declares_nothing() {
    let row = Row {
        seen: None,
        ..rejected()
    };
    refused(&row, "not applicable, and declares what becomes of it");
}

#[test]
fn rows_that_show_the_same_stand_together() {
    let named = |name: &str, row: Row| Row {
        name: name.into(),
        ..row
    };
    let rows = [
        named("s a", accepted()),
        named("s b", rejected()),
        named("s c", accepted()),
        named("t a", accepted()),
    ];
    let file = recorded(&rows).unwrap();
    assert!(file.contains("\n\n[s a]\n[s c]\nstatus:"), "{file}");
    assert!(file.contains("\n\n[s b]\nstatus:"), "{file}");
    assert!(file.contains("\n\n[t a]\nstatus:"), "{file}");
    assert_eq!(compare(&file, &rows), Ok(()));
    let [a, b, c, other] = rows;
    let c = bent(c, |seen| seen.finish = "X".into());
    let told = compare(&file, &[a, b, c, other]).unwrap_err();
    let expected = "differs from the corpus:\n[s c]\n  - finish:\n  + finish:  X\n";
    assert_eq!(told, expected);
}

#[test]
fn the_check_names_every_row_that_differs() {
    let file = recorded(&[accepted()]).unwrap();
    assert_eq!(compare(&file, &[accepted()]), Ok(()));
    let other = bent(accepted(), |seen| seen.flags = vec!["FLAG".into()]);
    let told = compare(&file, &[other]).unwrap_err();
    assert!(
        told.contains("[a row]\n  - flags:   none\n  + flags:   FLAG"),
        "{told}"
    );
    let other = Row {
        name: "b".into(),
        ..accepted()
    };
    let told = compare(&file, &[other]).unwrap_err();
    assert!(
        told.contains("[b] is not in the file\n[a row] is not run"),
        "{told}"
    );
}

#[test]
fn every_scenario_has_a_name_of_its_own() {
    let mut names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn every_scenario_is_run_with_every_preview() {
    for scenario in SCENARIOS {
        for &protocol in scenario.protocols {
            let deliveries = scenario.deliveries(protocol);
            for wanted in [
                Delivery::Preview,
                Delivery::NoReset,
                Delivery::CommittedOnly,
            ] {
                assert!(deliveries.contains(&wanted), "{}", scenario.name);
            }
        }
    }
}

#[test]
fn ids_are_scrubbed_to_their_shape() {
    assert_eq!(
        scrubbed("accepted 0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b call_12 call_x, ü."),
        "accepted <id> call_<n> call_x, ü."
    );
}
