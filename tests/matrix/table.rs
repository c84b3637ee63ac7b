//! The table: one line a row, one column a protocol.

use std::{fmt, fs, path::Path};

use redrive::proto::{Ledger, Verdict, generate_response::Frame};

use crate::{letters, support::Ended};

/// What one fault comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The first attempt's verdict: its class, `!` if it is permanent, `/2s` with the supplied wait; or
    /// `accepted`.
    pub verdict: String,
    /// Requests that may have left.
    pub sends: usize,
    /// The frames, a letter each.
    pub frames: String,
}

/// One fault at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub fault: String,
    pub place: String,
    pub cells: Vec<Cell>,
}

impl Cell {
    pub fn of(ended: &Ended, sends: usize) -> Cell {
        let ledger: &Ledger = match ended.told().last() {
            Some(Frame::Committed(committed)) => committed.ledger.as_ref().unwrap(),
            Some(Frame::Failed(failed)) => failed.ledger.as_ref().unwrap(),
            other => panic!("{other:?} is no end"),
        };
        assert_eq!(ledger.sends as usize, sends, "the ledger's sends");
        Cell {
            verdict: words(ledger.entries[0].verdict.as_ref()),
            sends,
            frames: letters(ended),
        }
    }

    fn parse(text: &str) -> Cell {
        let mut words = text.split_whitespace();
        let mut word = || {
            words
                .next()
                .unwrap_or_else(|| panic!("half a cell: {text}"))
        };
        Cell {
            verdict: word().to_owned(),
            sends: word().parse().unwrap(),
            frames: word().to_owned(),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verdict, self.sends, self.frames)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<String> = self.cells.iter().map(Cell::to_string).collect();
        write!(f, "{} | {} | {}", self.fault, self.place, cells.join(" | "))
    }
}

fn words(verdict: Option<&Verdict>) -> String {
    let Some(verdict) = verdict else {
        return "accepted".to_owned();
    };
    let class = verdict.class().as_str_name();
    let class = class.strip_prefix("VERDICT_CLASS_").unwrap().to_lowercase();
    let permanent = if verdict.retryable { "" } else { "!" };
    let wait = verdict.retry_after.as_ref().map(|wait| {
        let seconds = wait.seconds as f64 + f64::from(wait.nanos) / 1e9;
        format!("/{seconds}s")
    });
    format!("{class}{permanent}{}", wait.unwrap_or_default())
}

pub fn read() -> Vec<Row> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matrix/table.txt");
    let text = fs::read_to_string(file).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut columns = line.split('|').map(str::trim);
            Row {
                fault: columns.next().unwrap().to_owned(),
                place: columns
                    .next()
                    .unwrap_or_else(|| panic!("{line}"))
                    .to_owned(),
                cells: columns.map(Cell::parse).collect(),
            }
        })
        .collect()
}

/// What is not as expected, a line each; an expectation stands before what was found.
pub fn differences(expected: &[Row], found: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in expected {
        if !found.contains(row) {
            lines.push(format!("- {row}"));
        }
    }
    for row in found {
        if !expected.contains(row) {
            lines.push(format!("+ {row}"));
        }
    }
    let twice = |row: &&Row| expected.iter().filter(|other| other == row).count() > 1;
    lines.extend(
        expected
            .iter()
            .filter(twice)
            .map(|row| format!("twice: {row}")),
    );
    lines
}
