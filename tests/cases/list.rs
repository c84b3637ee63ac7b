//! What is run, and what is not.

use std::collections::BTreeSet;

use redrive::simulator::Playlist;

use crate::case;

/// How many cases there are from public reports, and of the turn gate.
const CASES: [usize; 2] = [116, 55];

/// The most cases that may be listed as not run. Lower it when the list shrinks; it may not grow.
const MOST_NOT_RUN: usize = 14;

#[test]
fn the_list_of_what_is_not_run_names_known_cases_and_only_shrinks() {
    let listed = case::not_run();
    let known: Vec<String> = case::all().into_iter().map(|line| line.id).collect();
    for (id, reason) in &listed {
        assert!(known.contains(id), "{id} is listed and does not exist");
        assert!(reason.len() > 10, "{id}: {reason:?} is no reason");
    }
    assert_eq!(listed.len(), MOST_NOT_RUN);
    let counts = case::FILES.map(|file| case::of_file(file).len());
    assert_eq!(counts, CASES);
    let ids: BTreeSet<_> = known.iter().collect();
    assert_eq!(ids.len(), known.len(), "an id is given twice");
}

#[test]
fn every_case_that_is_run_is_understood_in_every_field() {
    let listed = case::not_run();
    let run = case::all()
        .into_iter()
        .filter(|line| !listed.contains_key(&line.id));
    let cases: Vec<_> = run.map(case::Line::case).collect();
    assert_eq!(cases.len() + listed.len(), CASES.iter().sum::<usize>());
    for case in cases {
        crate::want::of(&case.expect.frames, 0);
        crate::names::protocol(&case.protocol);
    }
}

/// Also those that are not run yet.
#[test]
fn the_simulator_can_read_every_script() {
    for line in case::all() {
        let id = line.id.clone();
        Playlist::read(line.into_value()).unwrap_or_else(|error| panic!("{id}: {error}"));
    }
}
