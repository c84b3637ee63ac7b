//! The table for people.

use std::fmt::Write as _;

use crate::table::{Cell, Row};

const HEAD: &str = "\
# What happens when a provider fails

Each fault, at each place of a response, in each protocol: what the first attempt comes to, and what the
client is told. One target, two attempts, the second of which is healthy. Made from `tests/matrix/table.txt`,
each line of which is played by `cargo test --test matrix`; not written by hand.

*Replayed*: the failed attempt is void (a reset is told if the client had seen any of it), and the next one
is committed. *Fails*: the same request is not sent again, and the generation ends with the verdict's status.
A time is the wait that the provider asked for. The classes are explained in [verdicts.md](verdicts.md), the
frames in [frames.md](frames.md).

| fault | where | OpenAI Chat Completions | OpenAI Responses | Anthropic Messages |
|---|---|---|---|---|
";

pub fn render(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let alike = |row: &&Row| row.fault == first.fault && words(row) == words(first);
        let count = rest.iter().take_while(alike).count();
        let places: Vec<&str> = rest[..count].iter().map(|row| row.place.as_str()).collect();
        let cells = words(first).join(" | ");
        writeln!(
            page,
            "| {} | {} | {cells} |",
            first.fault,
            places.join(", ")
        )
        .unwrap();
        rest = &rest[count..];
    }
    page
}

fn words(row: &Row) -> Vec<String> {
    row.cells.iter().map(word).collect()
}

fn word(cell: &Cell) -> String {
    if cell.verdict == "accepted" {
        return "committed".to_owned();
    }
    let (class, wait) = match cell.verdict.split_once('/') {
        Some((class, wait)) => (class, format!(" after {wait}")),
        None => (cell.verdict.as_str(), String::new()),
    };
    let class = class.trim_end_matches('!');
    let told = if cell.frames.ends_with('c') {
        "replayed"
    } else {
        "fails"
    };
    let wait = if told == "replayed" {
        wait
    } else {
        String::new()
    };
    format!("`{class}`, {told}{wait}")
}
