//! `redrive drain`: what a pod's preStop hook runs.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use http::{Method, StatusCode};
use tokio::time;

use super::loopback::{self, Answer, LoopbackError};
use crate::server::admin::DrainStatus;

/// Between two looks at a drain.
const POLL: Duration = Duration::from_millis(200);

/// For one answer of the admin listener.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Tell a running sidecar to drain: it takes no new generations, running ones finish.
///
/// The process stays until it gets SIGTERM, so that the application beside it can use what it has
/// under way. Draining twice is the same as once, and cannot be taken back. With --wait the command
/// returns when the last generation has ended, or with exit status 1 when the time is up.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  redrive drain                    start draining and return
  redrive drain --wait 90s         a preStop hook: hold the pod's end back while work is under way")]
pub struct DrainArgs {
    /// The admin listener (listen.admin in the configuration).
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:15091")]
    pub address: String,

    /// How long to wait for running generations, for example 90s or 2m. Without it: not at all.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub wait: Option<Duration>,
}

/// Drains, prints one line and returns the exit status.
pub async fn run(args: DrainArgs) -> ExitCode {
    match drain(&args).await {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("redrive drain: {line}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the drain and waits for it as asked. Either way the answer is one line for people.
pub async fn drain(args: &DrainArgs) -> Result<String, String> {
    let answer = loopback::ask(Method::POST, &args.address, "/drain", TIMEOUT)
        .await
        .map_err(|error| error.to_string())?;
    let status = read(&args.address, &answer, StatusCode::ACCEPTED)?;
    match args.wait {
        Some(wait) => until_idle(&args.address, wait, status).await,
        None => Ok(format!(
            "draining, generations under way: {}",
            status.generations
        )),
    }
}

async fn until_idle(
    address: &str,
    wait: Duration,
    mut status: DrainStatus,
) -> Result<String, String> {
    let watch = async {
        while status.generations > 0 {
            time::sleep(POLL).await;
            status = match loopback::ask(Method::GET, address, "/drain", TIMEOUT).await {
                Ok(answer) => read(address, &answer, StatusCode::OK)?,
                // It answered before: the process has ended meanwhile, its generations with it.
                Err(LoopbackError::Connect { .. }) => return Ok("the sidecar has ended".to_owned()),
                Err(error) => return Err(error.to_string()),
            };
        }
        Ok("drained".to_owned())
    };
    match time::timeout(wait, watch).await {
        Ok(end) => end,
        Err(_) => Err(format!(
            "after {} there are still generations under way: {}",
            humantime::format_duration(wait),
            status.generations
        )),
    }
}

fn read(address: &str, answer: &Answer, expected: StatusCode) -> Result<DrainStatus, String> {
    if answer.status == expected
        && let Ok(status) = serde_json::from_str(&answer.body)
    {
        return Ok(status);
    }
    Err(format!(
        "{address} answers {} to /drain; is it the admin listener of a sidecar?",
        answer.status
    ))
}
