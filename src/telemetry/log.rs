//! Log lines: JSON or text on standard error.
//!
//! The configured level is for our own lines. Everything below us (HTTP/2, TLS, the exporters) only
//! warns, whatever the level: at `debug` those crates print headers, and headers carry credentials.
//! `h2` does not even warn: it has a warning for a frame that its peer may send as often as it likes.
//! `RUST_LOG` replaces the whole filter, for those who know what they ask for.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::{SubscriberInitExt, TryInitError},
};

use crate::config::{self, LogFormat};

/// The log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// `RUST_LOG` or the configured level cannot be read.
    #[error("{origin}: {source}")]
    Filter {
        /// Where the filter came from.
        origin: &'static str,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Another log is installed in this process.
    #[error(transparent)]
    Installed(#[from] TryInitError),
}

/// Installs the log of the process, once. `rust_log` is the value of that variable, if it is set.
pub fn install(settings: &config::Telemetry, rust_log: Option<&str>) -> Result<(), LogError> {
    subscriber(settings, rust_log, io::stderr, io::stderr().is_terminal())?.try_init()?;
    Ok(())
}

/// A log that writes to `writer`; `ansi` colours its text format.
pub fn subscriber<W>(
    settings: &config::Telemetry,
    rust_log: Option<&str>,
    writer: W,
    ansi: bool,
) -> Result<impl Subscriber + Send + Sync + use<W>, LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer);
    let lines = match settings.log_format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        LogFormat::Text => lines.with_ansi(ansi).boxed(),
    };
    Ok(tracing_subscriber::registry()
        .with(filter(settings, rust_log)?)
        .with(lines))
}

fn filter(settings: &config::Telemetry, rust_log: Option<&str>) -> Result<EnvFilter, LogError> {
    let (origin, directives) = match rust_log {
        Some(directives) if !directives.is_empty() => ("RUST_LOG", directives.to_owned()),
        _ => (
            "telemetry.logs.level",
            format!("warn,h2=error,redrive={}", settings.log_level),
        ),
    };
    EnvFilter::builder()
        .parse(directives)
        .map_err(|source| LogError::Filter { origin, source })
}
