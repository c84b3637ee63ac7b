//! Budgets in a table, and the engine in words.

use std::{fmt::Write as _, time::Duration};

use crate::cli::terminal::clean;
use crate::server::overview::{Budget, Engine, EngineState, Limit, Loss, Overview, Place};

/// The fleet's figures are older than they should be: pods ask for them every few seconds at most.
const OLD: Duration = Duration::from_secs(15);

const HEAD: [&str; COLUMNS] = [
    "budget", "engine", "limit", "used", "fleet", "running", "waiting", "resting",
];
const COLUMNS: usize = 8;

/// The columns that are written to the right.
const FIGURES: std::ops::Range<usize> = 3..COLUMNS;

/// All of it, each line with its end.
pub(super) fn table(overview: &Overview) -> String {
    let mut text = String::new();
    if overview.budgets.is_empty() {
        text.push_str("no budgets are configured\n");
    } else {
        let rows: Vec<_> = overview.budgets.iter().flat_map(rows).collect();
        lay_out(&rows, &mut text);
    }
    for budget in &overview.budgets {
        notes(budget, &mut text);
    }
    if let Some(engine) = &overview.engine {
        describe(engine, &mut text);
    }
    clean(&text).into_owned()
}

/// A row for each limit; what is said of the whole budget stands in the first.
fn rows(budget: &Budget) -> Vec<[String; COLUMNS]> {
    let rows = budget.limits.iter().enumerate().map(|(index, limit)| {
        let first = index == 0;
        let once = |text: String| if first { text } else { String::new() };
        let engine = match budget.engine {
            Place::Local => "local",
            Place::Redis => "redis",
        };
        let resting = match budget.resting_ms {
            0 => "-".to_owned(),
            ms => length(ms),
        };
        [
            once(budget.name.clone()),
            once(engine.to_owned()),
            limit.limit.clone(),
            fill(limit),
            fleet(budget, limit),
            once(budget.running.to_string()),
            once(budget.waiting.to_string()),
            once(resting),
        ]
    });
    rows.collect()
}

/// What all pods have taken of `limit`: `-` of a local budget, `?` where the engine did not say yet.
fn fleet(budget: &Budget, limit: &Limit) -> String {
    if budget.engine == Place::Local {
        return "-".to_owned();
    }
    let mut told = budget.fleet.iter().flat_map(|fleet| &fleet.limits);
    let same = told.find(|of_fleet| of_fleet.limit == limit.limit);
    same.map_or("?".to_owned(), fill)
}

/// `120/500 (24%)`; whole percents, rounded down, so that 100% is full.
fn fill(limit: &Limit) -> String {
    let Limit { used, most, .. } = limit;
    let percent = u128::from(*used) * 100 / u128::from(*most).max(1);
    format!("{used}/{most} ({percent}%)")
}

fn lay_out(rows: &[[String; COLUMNS]], text: &mut String) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max();
        let head = HEAD.get(column).map_or(0, |head| head.len());
        widest.unwrap_or(0).max(head)
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut line = |cells: &[&str]| {
        let mut written = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let _ = if FIGURES.contains(&column) {
                write!(written, "{cell:>width$}  ")
            } else {
                write!(written, "{cell:<width$}  ")
            };
        }
        text.push_str(written.trim_end());
        text.push('\n');
    };
    line(&HEAD);
    for row in rows {
        line(&row.each_ref().map(String::as_str));
    }
}

/// What cannot be told from its rows.
fn notes(budget: &Budget, text: &mut String) {
    let Some(fleet) = &budget.fleet else {
        return;
    };
    let name = &budget.name;
    if fleet.learning_ms > 0 {
        let _ = writeln!(
            text,
            "{name}: learning: the engine does not know what was sent before, so nothing is sent for another {}",
            length(fleet.learning_ms)
        );
    }
    if u128::from(fleet.age_ms) > OLD.as_millis() {
        let age = length(fleet.age_ms);
        let _ = writeln!(text, "{name}: the fleet's figures are {age} old");
    }
}

fn describe(engine: &Engine, text: &mut String) {
    let since = length(engine.since_ms);
    let state = match engine.state {
        EngineState::Up => format!("up for {since}"),
        EngineState::Lost => {
            let why = engine.why.as_deref().unwrap_or("unknown");
            format!(
                "lost for {since}: {why}; meanwhile {}",
                meanwhile(engine.on_loss)
            )
        }
    };
    let server = match (&*engine.server, &*engine.version) {
        ("", _) => String::new(),
        (server, version) => format!(", {server} {version}"),
    };
    let round_trip = match engine.round_trip_us {
        None => String::new(),
        // Of a server's answer, in milliseconds: 0.31 ms.
        Some(micros) => format!(
            ", round trip {}.{:02} ms",
            micros / 1000,
            micros % 1000 / 10
        ),
    };
    let strict = if engine.strict {
        "strict"
    } else {
        "NOT STRICT"
    };
    let _ = writeln!(text, "engine redis: {state}{server}{round_trip}, {strict}");
    let untold = match engine.untold {
        0 => String::new(),
        untold => format!("; {untold} changes are not told to the engine yet"),
    };
    let _ = writeln!(text, "  this pod holds {} leases{untold}", engine.held);
    if engine.disagrees {
        text.push_str("  warning: pods have different limits; the stricter of both counts\n");
    }
    for warning in &engine.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
}

fn meanwhile(on_loss: Loss) -> &'static str {
    match on_loss {
        Loss::Closed => "nothing of shared budgets is sent (on_loss: closed)",
        Loss::LocalShare => "this pod sends within its share (on_loss: local_share)",
        Loss::Open => "this pod sends as if it were alone (on_loss: open)",
    }
}

/// Whole seconds above one, so that it can be read while it changes.
fn length(ms: u64) -> String {
    let length = match ms {
        ..1000 => Duration::from_millis(ms),
        _ => Duration::from_secs(ms / 1000),
    };
    humantime::format_duration(length).to_string()
}
