//! The recorded file.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use crate::row::Row;

const HEAD: &str = "\
# What the turn gate makes of each scenario. Recorded: see docs/contributing/gate.md.
# [scenario protocol policy delivery], all that show the same above what they show; ids and times are
# scrubbed to their shape.
";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/gate_corpus/corpus.txt")
}

/// Writes `rows`, if none is hollow.
pub fn record(rows: &[Row]) -> Result<(), String> {
    let text = recorded(rows)?;
    fs::write(path(), text).map_err(|error| error.to_string())
}

/// Compares `rows` with the file.
pub fn check(rows: &[Row]) -> Result<(), String> {
    let file = fs::read_to_string(path()).map_err(|error| error.to_string())?;
    compare(&file, rows)
}

/// The file of `rows`; which are hollow, if any are.
pub fn recorded(rows: &[Row]) -> Result<String, String> {
    let hollow = rows
        .iter()
        .filter_map(|row| Some(format!("[{}] {}", row.name, row.hollow()?)));
    let hollow: Vec<String> = hollow.collect();
    if !hollow.is_empty() {
        return Err(format!("hollow rows:\n{}", hollow.join("\n")));
    }
    let blocks = alike(rows)
        .into_iter()
        .map(|(names, body)| format!("\n{names}{body}"));
    Ok(format!("{HEAD}{}", blocks.collect::<String>()))
}

/// The names of the rows of a scenario that show the same, and what that is: once it is read, the eye goes
/// to what differs.
fn alike(rows: &[Row]) -> Vec<(String, String)> {
    let scenario = |row: &Row| row.name.split(' ').next().map(str::to_owned);
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut begun = 0;
    for (index, row) in rows.iter().enumerate() {
        if index == 0 || scenario(&rows[index - 1]) != scenario(row) {
            begun = blocks.len();
        }
        let (name, body) = (format!("[{}]\n", row.name), row.body());
        match blocks[begun..].iter_mut().find(|block| block.1 == body) {
            Some(block) => block.0.push_str(&name),
            None => blocks.push((name, body)),
        }
    }
    blocks
}

/// What of `rows` is not as `file` says: each row's name and its first line that differs.
pub fn compare(file: &str, rows: &[Row]) -> Result<(), String> {
    let mut said = by_name(file);
    let mut differs = String::new();
    for row in rows {
        let now = row.body();
        if let Some(hollow) = row.hollow() {
            let _ = writeln!(differs, "[{}] hollow: {hollow}", row.name);
        }
        let Some(then) = said.remove(row.name.as_str()) else {
            let _ = writeln!(differs, "[{}] is not in the file", row.name);
            continue;
        };
        if let Some((then, now)) = first_difference(then, &now) {
            let _ = writeln!(differs, "[{}]\n  - {then}\n  + {now}", row.name);
        }
    }
    for name in said.keys() {
        let _ = writeln!(differs, "[{name}] is not run");
    }
    match differs.is_empty() {
        true => Ok(()),
        false => Err(format!("differs from the corpus:\n{differs}")),
    }
}

fn by_name(file: &str) -> BTreeMap<&str, &str> {
    let mut named = BTreeMap::new();
    for block in file.split("\n\n") {
        let mut body = block.trim_start_matches('\n');
        let mut names = Vec::new();
        while let Some((name, rest)) = body.strip_prefix('[').and_then(|row| row.split_once("]\n"))
        {
            names.push(name);
            body = rest;
        }
        named.extend(names.into_iter().map(|name| (name, body)));
    }
    named
}

fn first_difference(then: &str, now: &str) -> Option<(String, String)> {
    let (mut then, mut now) = (then.trim_end().lines(), now.trim_end().lines());
    loop {
        match (then.next(), now.next()) {
            (None, None) => return None,
            (then, now) if then != now => {
                return Some((or_end(then), or_end(now)));
            }
            _ => {}
        }
    }
}

fn or_end(line: Option<&str>) -> String {
    line.unwrap_or("(nothing more)").to_owned()
}
