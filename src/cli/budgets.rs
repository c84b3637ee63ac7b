//! `redrive budgets`: how much of each limit is used, and how the engine of shared ones stands.

mod table;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use http::{Method, StatusCode};
use tokio::time;

use super::loopback::{self, LoopbackError};
use crate::server::overview::Overview;

/// For one answer of the admin listener.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The shortest and the longest time between two looks.
const WATCH: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(3600)];

/// Clears a terminal and goes to its first place: Erase in Display and Cursor Position, ECMA-48 8.3.39
/// and 8.3.21.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Show how much of each budget's limits is used, who waits, and how the engine stands.
///
/// Asks a running sidecar. One row for each limit: `used` is what this sidecar has taken of it, `fleet`
/// what all pods have, for budgets with `engine: redis`. `running` are sends under way, leases that are
/// not sent yet included; `waiting` are attempts in line; `resting` is for how long a provider's word holds
/// the budget back. The last lines tell of the engine: whether it is there, and what puts limits at risk.
///
/// Exits with 1 if no sidecar answers.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  redrive budgets                      once, for people
  redrive budgets --watch 2s           again every two seconds, until Ctrl-C
  redrive budgets --json | jq '.budgets[] | select(.waiting > 0) | .name'
                                       for scripts: what GET /status of the admin listener answers
  kubectl exec POD -c redrive -- redrive budgets
                                       in a pod: the admin listener is on its loopback only

What to do about what you see: docs/limits.md, \"When something is wrong\".")]
pub struct BudgetsArgs {
    /// The admin listener (listen.admin in the configuration).
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:15091")]
    pub address: String,

    /// Print JSON instead: all that the sidecar tells, on one line.
    #[arg(long)]
    pub json: bool,

    /// Look again after this long, 200ms to 1h, until Ctrl-C.
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub watch: Option<Duration>,
}

/// Prints what it saw and returns the exit status.
pub async fn run(args: BudgetsArgs) -> ExitCode {
    let Some(interval) = args.watch else {
        return match show(&args).await {
            Ok(text) => super::written(print(&text)),
            Err(line) => failed(&line),
        };
    };
    let mut shown = false;
    let is_terminal = io::stdout().is_terminal() && !args.json;
    loop {
        match show(&args).await {
            Ok(text) => {
                let apart = match (is_terminal, shown && !args.json) {
                    (true, _) => CLEAR,
                    (false, true) => "\n",
                    (false, false) => "",
                };
                if let Err(error) = print(&format!("{apart}{text}")) {
                    return super::written(Err(error));
                }
                shown = true;
            }
            // It was there before: it may come back.
            Err(line) if shown => eprintln!("redrive budgets: {line}"),
            Err(line) => return failed(&line),
        }
        time::sleep(interval).await;
    }
}

/// What is printed of one look at the sidecar, or why there is nothing to print, in one line.
///
/// # Errors
/// If no sidecar answers at the address.
pub async fn show(args: &BudgetsArgs) -> Result<String, String> {
    let answer = loopback::ask(Method::GET, &args.address, "/status", TIMEOUT)
        .await
        .map_err(|error: LoopbackError| error.to_string())?;
    match serde_json::from_str::<Overview>(&answer.body) {
        Ok(_) if answer.status == StatusCode::OK && args.json => Ok(format!("{}\n", answer.body)),
        Ok(overview) if answer.status == StatusCode::OK => Ok(table::table(&overview)),
        _ => Err(format!(
            "{} answers {} to /status; is it the admin listener of a sidecar of this version?",
            args.address, answer.status
        )),
    }
}

fn print(text: &str) -> io::Result<u8> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(0)
}

fn failed(line: &str) -> ExitCode {
    eprintln!("redrive budgets: {line}");
    ExitCode::FAILURE
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let [least, most] = WATCH;
    if (least..=most).contains(&interval) {
        Ok(interval)
    } else {
        Err("expected 200ms to 1h".to_owned())
    }
}
