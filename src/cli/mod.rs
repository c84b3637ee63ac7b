//! IO. The commands.

pub mod budgets;
pub mod check;
pub mod demo;
pub mod drain;
pub mod generate;
pub mod health;
mod loopback;
pub mod schema;
pub mod serve;
pub mod simulate;
pub mod terminal;

use std::{
    io::{stderr, stdout},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use crate::config::Process;

/// Exit status of a command that Ctrl-C ended, as shells have it.
const INTERRUPTED: u8 = 130;

/// A gRPC sidecar that keeps LLM generations whole.
///
/// An application opens a `Generate` stream to the sidecar beside it. The sidecar owns the connection to
/// the provider: it accounts for every request before it leaves, notices when a stream stalls or dies,
/// replays it, and tells the client the truth: `PreviewReset` (what you saw is void) and `Committed`
/// (this is final).
///
/// Start with `redrive demo`, which needs nothing, then write a configuration (`redrive schema`,
/// `redrive check FILE`) and run `redrive serve --config FILE`.
#[derive(Debug, Parser)]
#[command(
    name = "redrive",
    version,
    max_term_width = 100,
    subcommand_required = true
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(
    missing_docs,
    reason = "words here would take the place of the longer help of each command's arguments"
)]
pub enum Command {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Generate(Box<generate::GenerateArgs>),
    Simulate(simulate::SimulateArgs),
    Check(check::CheckArgs),
    Schema(schema::SchemaArgs),
    Health(health::HealthArgs),
    Budgets(budgets::BudgetsArgs),
    Drain(drain::DrainArgs),
}

/// Runs a command; returns the exit code of the process.
pub async fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Serve(args) => serve::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Generate(args) => generate::run(*args).await,
        Command::Simulate(args) => simulate::run(args).await,
        Command::Check(args) => written(check::run(&args, &Process, &mut stdout(), &mut stderr())),
        Command::Schema(args) => written(schema::run(&args, &mut stdout())),
        Command::Health(args) => health::run(args).await,
        Command::Budgets(args) => budgets::run(args).await,
        Command::Drain(args) => drain::run(args).await,
    }
}

/// A closed pipe behind us is not a failure of the command.
fn written(result: std::io::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("redrive: {error}");
            ExitCode::FAILURE
        }
    }
}
