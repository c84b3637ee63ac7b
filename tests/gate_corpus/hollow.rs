//! The recorder refuses rows that say nothing, and the check tells what differs.

use crate::{
    file::{compare, recorded},
    row::{Row, Seen, scrubbed},
    scenario::SCENARIOS,
};

fn accepted() -> Row {
    Row {
        name: "a row".into(),
        declared: vec![],
        seen: Some(Seen {
            status: "Ok".into(),
            sends: 1,
            message: vec!["text \"Hello\"".into()],
            ..Seen::default()
        }),
    }
}

fn rejected() -> Row {
    let mut row = accepted();
    row.declared = vec!["empty".into()];
    let seen = row.seen.as_mut().unwrap();
    seen.sends = 2;
    seen.hints = vec!["Go on.".into()];
    seen.reasons = vec!["empty".into()];
    row
}

fn bent(mut row: Row, bend: impl FnOnce(&mut Seen)) -> Row {
    bend(row.seen.as_mut().unwrap());
    row
}

fn refused(row: Row, why: &str) {
    let told = recorded(&[accepted(), row]).unwrap_err();
    assert_eq!(told, format!("hollow rows:\n[a row] {why}"));
}

#[test]
fn whole_rows_are_recorded() {
    let not_applicable = Row {
        seen: None,
        ..accepted()
    };
    let rows = [accepted(), rejected(), not_applicable];
    assert_eq!(recorded(&rows).unwrap().matches("[a row]").count(), 3);
}

#[test]
fn a_reason_without_its_hint_is_hollow() {
    let row = bent(rejected(), |seen| seen.hints.clear());
    refused(row, "declares 1 reasons and shows 0 hints");
}

#[test]
fn a_hint_without_its_reason_is_hollow() {
    let row = Row {
        declared: vec![],
        ..rejected()
    };
    refused(row, "declares 0 reasons and shows 1 hints");
}

#[test]
fn a_hint_of_nothing_is_hollow() {
    let row = bent(rejected(), |seen| seen.hints = vec![" ".into()]);
    refused(row, "a hint says nothing");
}

#[test]
fn another_reason_than_declared_is_hollow() {
    let row = bent(rejected(), |seen| seen.reasons = vec!["bare".into()]);
    refused(row, r#"was rejected for ["bare"]"#);
}

#[test]
fn an_accepted_answer_takes_one_send() {
    let row = bent(accepted(), |seen| seen.sends = 2);
    refused(row, "2 sends instead of 1");
    let continued = bent(accepted(), |seen| {
        seen.sends = 2;
        seen.continuations = 1;
    });
    assert_eq!(continued.hollow(), None);
}

#[test]
fn a_success_that_delivers_nothing_is_hollow() {
    refused(
        bent(accepted(), |seen| seen.message.clear()),
        "nothing was delivered",
    );
    let thought = bent(accepted(), |seen| {
        seen.message = vec!["reasoning \"Hm.\"".into()];
    });
    refused(thought.clone(), "nothing was delivered");
    // The client acted on it, so it has to stay.
    let acted_on = bent(thought, |seen| seen.acted_on = true);
    assert_eq!(acted_on.hollow(), None);
}

#[test]
fn what_is_not_applicable_declares_nothing() {
    let row = Row {
        seen: None,
        ..rejected()
    };
    refused(row, "not applicable, and declares 1 reasons");
}

#[test]
fn the_check_names_every_row_that_differs() {
    let file = recorded(&[accepted()]).unwrap();
    assert_eq!(compare(&file, &[accepted()]), Ok(()));
    let failed = bent(accepted(), |seen| seen.status = "Aborted".into());
    let told = compare(&file, &[failed]).unwrap_err();
    assert!(
        told.contains("[a row]\n  - status:  Ok\n  + status:  Aborted"),
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
    let hollow = bent(accepted(), |seen| seen.sends = 2);
    let told = compare(&file, &[hollow]).unwrap_err();
    assert!(
        told.contains("[a row] hollow: 2 sends instead of 1"),
        "{told}"
    );
}

#[test]
fn every_scenario_is_there_once() {
    let mut names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    assert_eq!(names.len(), 22);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 22);
}

#[test]
fn ids_are_scrubbed_to_their_shape() {
    assert_eq!(
        scrubbed("accepted 0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b call_12 call_x, ü."),
        "accepted <id> call_<n> call_x, ü."
    );
}
