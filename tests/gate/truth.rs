//! The truth table: T1 to T34. T35 to T37 are in `hints`, T38 with the protocols that append a hint
//! (`tests/requests/hints.rs`).

use redrive::gate::{Decision, Policy, Snapshot, decide};

use crate::truth_rows::rows;

/// One line of the table.
pub struct Row {
    /// Its number.
    pub number: u32,
    /// What it says.
    pub says: &'static str,
    pub snapshot: Snapshot<'static>,
    pub policy: Policy,
    pub expected: Decision,
}

#[test]
fn every_row_of_the_truth_table_holds() {
    let wrong: Vec<String> = rows()
        .iter()
        .filter_map(|row| {
            let found = decide(&row.snapshot, &row.policy);
            let (number, says, expected) = (row.number, row.says, row.expected);
            (found != expected).then(|| format!("T{number} {says}: {found:?}, not {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn no_number_of_the_truth_table_is_missing() {
    let mut numbers: Vec<u32> = rows().iter().map(|row| row.number).collect();
    numbers.dedup();
    assert_eq!(numbers, (1..=34).collect::<Vec<_>>());
}
