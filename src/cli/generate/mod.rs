//! `redrive generate`: a terminal client of a running sidecar.

pub mod client;
mod json;
mod output;
mod request;

use std::{
    io::{self, IsTerminal, stdin},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use tokio::{
    signal::unix::{self, Signal, SignalKind},
    time,
};
use tonic::Status;

use super::INTERRUPTED;
use crate::{
    proto::{Delivery, Protocol, generate_request, generate_response::Frame},
    protocol::adapter::ADAPTERS,
};
use client::Stream;
use output::Output;

/// After Ctrl-C: how long the end of the generation is waited for. Fixed.
const AFTER_CANCEL: Duration = Duration::from_secs(2);

/// Ask a running sidecar for one generation and show it as it comes.
///
/// The prompt is the argument, or standard input; --file sends a provider's own request as it is. On a
/// terminal preview is dim, void text is struck through, and the committed text is plain. If standard
/// output is no terminal, only the committed text goes there, byte for byte, and everything else to
/// standard error.
///
/// Exit status: 0 committed, 1 failed (class, cause and retry-after are told), 2 wrong usage,
/// 130 after Ctrl-C, which cancels the generation.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  redrive generate \"Why is the sky blue?\"
  redrive generate --route fast --ledger < prompt.txt > answer.txt
  redrive generate --file request.json                 a Chat body; model and stream are set for you
  redrive generate --json \"Hi\" | jq -j '.delta.text // empty'
  redrive generate --attach 0198f0c2-5c1e-7b63-8a1f-0f5f6f1f9a10")]
pub struct GenerateArgs {
    /// The prompt. Without it, and without --file: standard input
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,

    /// The sidecar
    #[arg(
        long,
        env = "REDRIVE_ADDRESS",
        value_name = "URL",
        default_value = "http://127.0.0.1:50051"
    )]
    pub address: String,

    /// The route of the sidecar's configuration
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub route: String,

    /// A model other than that of the route's first target, if the route allows it
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// A request body in a provider's own protocol, to send as it is; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "system", "max_output_tokens"])]
    pub file: Option<PathBuf>,

    /// What the file is written in
    #[arg(long, value_name = "NAME", default_value = "openai_chat", value_parser = protocols())]
    pub protocol: Protocol,

    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// The longest answer, in tokens
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_output_tokens: Option<u32>,

    /// What is shown before it is final
    #[arg(long, value_enum, default_value_t = Shown::Preview)]
    pub delivery: Shown,

    /// Makes repetition harmless: a second call with the same id shows the first one's generation
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,

    /// Share allowance and deadline with other generations of this scope
    #[arg(long, value_name = "ID")]
    pub scope: Option<String>,

    /// A label that budgets may go by, for example tenant=gold; may be given again
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,

    /// At most this many attempts; the route's number is the most
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: Option<u32>,

    /// Judge completed answers and ask again for better ones; the route's gate is the most lenient.
    /// Announcements and calls are judged only where the request offers tools, as only a --file can
    #[arg(long, value_name = "PRESET", value_parser = ["off", "lenient", "agent"])]
    pub gate: Option<String>,

    /// How long attempts may begin, for example 30s; the route's deadline is the longest
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub deadline: Option<Duration>,

    /// How long the generation lives on if this client is lost, for example 1m
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub detach_grace: Option<Duration>,

    /// Take over a generation by its id instead of starting one
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = [
            "prompt", "file", "system", "max_output_tokens", "model", "request_id", "scope",
            "labels", "max_attempts", "gate", "deadline", "detach_grace",
        ]
    )]
    pub attach: Option<String>,

    /// Show the account of all attempts at the end
    #[arg(long, conflicts_with = "json")]
    pub ledger: bool,

    /// Write every frame as one line of JSON: protobuf's JSON form of GenerateResponse, with the
    /// contract's field names, and 64-bit numbers as numbers
    #[arg(long)]
    pub json: bool,
}

/// Reads `NAME=VALUE`.
fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a label is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads the name of a protocol that is built.
fn protocols() -> impl TypedValueParser<Value = Protocol> {
    let names = ADAPTERS.iter().map(|(_, name, _)| *name);
    PossibleValuesParser::new(names).map(|chosen| {
        let named = ADAPTERS.iter().find(|(_, name, _)| *name == chosen);
        named.map_or(Protocol::Unspecified, |(protocol, ..)| *protocol)
    })
}

/// What is shown before it is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// Text as it comes; a failure takes it back
    Preview,
    /// Text as it comes; a failure after it ends the generation
    PreviewNoReset,
    /// Only what is final
    CommittedOnly,
}

impl From<Shown> for Delivery {
    fn from(shown: Shown) -> Self {
        match shown {
            Shown::Preview => Self::Preview,
            Shown::PreviewNoReset => Self::PreviewNoReset,
            Shown::CommittedOnly => Self::CommittedOnly,
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Committed,
    Failed,
    Interrupted,
}

/// Asks once, shows it, and returns the exit status.
pub async fn run(args: GenerateArgs) -> ExitCode {
    let first = match request::first_frame(&args, &mut stdin(), stdin().is_terminal()) {
        Ok(first) => first,
        Err(usage) => {
            eprintln!("redrive generate: {usage}");
            return ExitCode::from(2);
        }
    };
    match generate(&args, first).await {
        Ok(End::Committed) => ExitCode::SUCCESS,
        Ok(End::Failed) => ExitCode::FAILURE,
        Ok(End::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(GenerateError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("redrive generate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why there was no end to show.
#[derive(Debug, thiserror::Error)]
enum GenerateError {
    #[error(transparent)]
    Connect(#[from] client::ConnectError),
    #[error("the sidecar ended the stream without a terminal frame ({}: {})", .0.code(), .0.message())]
    Lost(Box<Status>),
    #[error(transparent)]
    Output(#[from] io::Error),
}

async fn generate(
    args: &GenerateArgs,
    first: generate_request::Frame,
) -> Result<End, GenerateError> {
    let mut interrupt = unix::signal(SignalKind::interrupt())?;
    let mut output = Output::new(args)?;
    let opening = async {
        let channel = client::connect(&args.address).await?;
        let lost = |status| GenerateError::Lost(Box::new(status));
        Stream::open(channel, first).await.map_err(lost)
    };
    let mut stream = tokio::select! {
        stream = opening => stream?,
        _ = interrupt.recv() => return Ok(End::Interrupted),
    };
    tokio::select! {
        end = follow(&mut stream, &mut output) => return end,
        _ = interrupt.recv() => {}
    }
    stream.cancel("interrupted at the terminal");
    cancelled(&mut stream, &mut output, &mut interrupt).await?;
    Ok(End::Interrupted)
}

/// Shows frames up to the terminal one.
async fn follow(stream: &mut Stream, output: &mut Output) -> Result<End, GenerateError> {
    loop {
        let response = match stream.next().await {
            Ok(Some(response)) => response,
            Ok(None) => {
                let status = Status::unknown("it just ended");
                return Err(GenerateError::Lost(Box::new(status)));
            }
            Err(status) => return Err(GenerateError::Lost(Box::new(status))),
        };
        output.show(&response)?;
        match response.frame {
            Some(Frame::Committed(committed)) if committed.r#final => return Ok(End::Committed),
            Some(Frame::Failed(_)) => return Ok(End::Failed),
            _ => {}
        }
    }
}

/// Shows how a cancelled generation ends, unless that takes too long or Ctrl-C comes again.
async fn cancelled(
    stream: &mut Stream,
    output: &mut Output,
    interrupt: &mut Signal,
) -> Result<(), GenerateError> {
    tokio::select! {
        end = time::timeout(AFTER_CANCEL, follow(stream, output)) => match end {
            Ok(end) => end.map(|_| ()),
            Err(_) => Ok(()),
        },
        _ = interrupt.recv() => Ok(()),
    }
}
