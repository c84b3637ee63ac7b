//! The turn gate: its truth table, what holds for any attempt, what a model is told, and the attempts of
//! one generation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod announced;
mod attempts;
mod hints;
mod natives;
mod policies;
mod properties;
mod reading;
mod schema_expressions;
mod schema_oracle;
mod schemas;
mod schemas_not_looked_at;
mod truth;
mod truth_rows;
mod turns;

use redrive::gate::{Choice, Decision, Fault, Finish, Reason, Snapshot, ToolError, Tools};

/// An attempt that nothing is wrong with; each case bends what it needs.
fn attempt() -> Snapshot<'static> {
    Snapshot {
        visible_text: "answer".into(),
        ..Snapshot::default()
    }
}

/// The attempt, bent.
fn bent(bend: impl FnOnce(&mut Snapshot<'static>)) -> Snapshot<'static> {
    let mut snapshot = attempt();
    bend(&mut snapshot);
    snapshot
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn one_call() -> Vec<String> {
    names(&["Bash"])
}

/// A request that offers two tools.
fn offered() -> Tools {
    Tools {
        names: Some(names(&["Bash", "Read"])),
        choice: Choice::Free,
        ..Tools::default()
    }
}

fn error(name: &str, fault: Fault) -> ToolError {
    ToolError {
        name: name.to_owned(),
        fault,
        members: Vec::new(),
    }
}

/// A call whose arguments the schema does not permit.
fn mismatch(name: &str, members: &[&str]) -> ToolError {
    ToolError {
        members: names(members),
        ..error(name, Fault::SchemaMismatch)
    }
}

fn unknown_tool() -> Vec<ToolError> {
    vec![error("Bsh", Fault::UnknownTool)]
}

fn stop() -> Decision {
    accept(Finish::Stop, false)
}

fn calls() -> Decision {
    accept(Finish::ToolCalls, false)
}

fn calls_without_text() -> Decision {
    accept(Finish::ToolCalls, true)
}

fn accept(finish: Finish, suppress_text: bool) -> Decision {
    Decision::Accept {
        finish,
        suppress_text,
    }
}

fn retry(reason: Reason) -> Decision {
    Decision::Retry { reason }
}
