//! A ledger as a table.

use super::words;
use crate::{
    proto::{Ledger, LedgerEntry},
    verdict::class,
};

const HEAD: [&str; 7] = [
    "#",
    "target",
    "executed",
    "verdict",
    "wait",
    "tokens",
    "first token",
];

/// The lines of the table, and one with the sums.
pub(super) fn table(ledger: &Ledger) -> Vec<String> {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(ledger.entries.iter().map(row));
    let mut widths = [0; HEAD.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, &widths)).collect();
    lines.push(sums(ledger));
    lines
}

fn row(entry: &LedgerEntry) -> [String; HEAD.len()] {
    let verdict = match &entry.verdict {
        Some(verdict) => class::label(verdict.class()).to_owned(),
        None => "accepted".to_owned(),
    };
    let waited = match words::wait_source(entry.wait_source()) {
        source if source.is_empty() => "-".to_owned(),
        source => format!("{} {source}", words::duration(entry.waited.as_ref())),
    };
    let tokens = match &entry.usage {
        Some(usage) => {
            let about = if entry.usage_estimated { "~" } else { "" };
            let void = if entry.verdict.is_some() { " void" } else { "" };
            format!("{about}{}{void}", usage.output_tokens)
        }
        None => "-".to_owned(),
    };
    let first_token = match &entry.time_to_first_token {
        Some(time) => words::duration(Some(time)),
        None => "-".to_owned(),
    };
    [
        entry.attempt.to_string(),
        entry.target.clone(),
        words::executed(entry.executed()),
        verdict,
        waited,
        tokens,
        first_token,
    ]
}

fn line(row: &[String; HEAD.len()], widths: &[usize; HEAD.len()]) -> String {
    let mut line = String::from(" ");
    for (cell, width) in row.iter().zip(widths) {
        line.push_str(&format!(" {cell:width$} "));
    }
    line.trim_end().to_owned()
}

fn sums(ledger: &Ledger) -> String {
    format!(
        "  attempts {}, sends {}, void tokens {}, waited {}",
        ledger.attempts,
        ledger.sends,
        ledger.void_output_tokens,
        words::duration(ledger.waited.as_ref()),
    )
}
