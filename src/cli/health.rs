//! `redrive health`: a probe for container images that have no shell and no curl.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use http::{Method, StatusCode};

use super::loopback;

/// Ask a running sidecar how it is: exit status 0 if it is well, 1 if not.
///
/// By default it asks for readiness: are new generations taken? While the sidecar starts or drains
/// they are not. With --liveness it asks only whether the process still answers; use that for a
/// livenessProbe, or a long drain will be cut short by a restart.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  redrive health                                  readiness, at the default address
  redrive health --liveness --timeout 1s          liveness
  redrive health --address 10.0.0.7:15090         another pod")]
pub struct HealthArgs {
    /// The public listener (listen.public in the configuration).
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:15090")]
    pub address: String,

    /// Ask whether the process answers at all, not whether it takes new work.
    #[arg(long)]
    pub liveness: bool,

    /// How long the answer may take, for example 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
}

/// Asks once, prints one line and returns the exit status.
pub async fn run(args: HealthArgs) -> ExitCode {
    match probe(&args).await {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(line) => {
            eprintln!("redrive health: {line}");
            ExitCode::FAILURE
        }
    }
}

/// The sidecar's answer: `Ok` where it is well. Either way it is one line for people.
pub async fn probe(args: &HealthArgs) -> Result<String, String> {
    let path = match args.liveness {
        true => "/healthz",
        false => "/readyz",
    };
    let answer = loopback::ask(Method::GET, &args.address, path, args.timeout)
        .await
        .map_err(|error| error.to_string())?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        StatusCode::SERVICE_UNAVAILABLE => Err(format!("not ready: {}", answer.body)),
        other => Err(format!(
            "{} answers {other} to {path}; is it the public listener of a sidecar?",
            args.address
        )),
    }
}
