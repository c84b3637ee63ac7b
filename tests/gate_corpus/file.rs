//! The recorded file.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use crate::row::Row;

const HEAD: &str = "\
# What the turn gate makes of each scenario. Recorded: see docs/contributing/gate.md.
# [scenario protocol policy delivery]; ids and times are scrubbed to their shape.
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
    let rows = rows.iter().map(|row| format!("\n{row}"));
    Ok(format!("{HEAD}{}", rows.collect::<String>()))
}

/// What of `rows` is not as `file` says: each row's name and its first line that differs.
pub fn compare(file: &str, rows: &[Row]) -> Result<(), String> {
    let mut said = by_name(file);
    let mut differs = String::new();
    for row in rows {
        let now = row.to_string();
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
    let rows = file.split("\n\n").map(|row| row.trim_start_matches('\n'));
    let named = rows.filter_map(|row| Some((row.strip_prefix('[')?.split_once(']')?.0, row)));
    named.collect()
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
