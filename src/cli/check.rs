//! `redrive check`: everything that is wrong with a configuration file, or what it amounts to.

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;

use crate::{
    config::{
        Admission, Budget, Config, EnginePlace, Environment, LabelRate, Listen, OnLoss, Route,
        SharedEngine, StreamRate, Target, in_words,
    },
    limits::{Measure, Refund},
    protocol::{Dialect, Protocol},
    recovery::settings::{Replay, Timers},
};

/// Exit code: the file can be used.
const VALID: u8 = 0;
/// Exit code: the file cannot be used.
const REFUSED: u8 = 2;

/// Check a configuration file.
///
/// Reads the file as `redrive serve` would, and the secrets it refers to. If it can be used, prints the
/// routes with their targets and the timers that are in force, the budgets and their engine, and exits with 0. If not, prints
/// everything that is wrong with it on standard error, one `FILE:LINE:COLUMN: key: message` a line, and
/// exits with 2. Nothing is connected to, and no secret is ever printed.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// The configuration file
    pub file: PathBuf,

    /// Do not read secrets and certificates
    ///
    /// For checking a file elsewhere than where it is used, in CI for example.
    #[arg(long)]
    pub no_secrets: bool,
}

/// Checks the file; returns the exit code.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn run(
    args: &CheckArgs,
    environment: &impl Environment,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<u8> {
    let loaded = if args.no_secrets {
        Config::load_without_secrets(&args.file, environment)
    } else {
        Config::load(&args.file, environment)
    };
    match loaded {
        Ok(config) => {
            writeln!(out, "{} can be used.", args.file.display())?;
            summary(&config, out)?;
            Ok(VALID)
        }
        Err(errors) => {
            writeln!(err, "{errors}")?;
            Ok(REFUSED)
        }
    }
}

fn summary(config: &Config, out: &mut impl Write) -> io::Result<()> {
    let Listen {
        grpc,
        admin,
        public,
        ..
    } = config.listen;
    writeln!(
        out,
        "\nlistens on {grpc} (gRPC), {admin} (admin), {public} (health, metrics)"
    )?;
    if !grpc.ip().to_canonical().is_loopback() {
        writeln!(
            out,
            "  note: other hosts can reach gRPC, which asks for no credentials"
        )?;
    }
    describe_admission(&config.listen.admission, out)?;
    for route in config.routes.values() {
        describe_route(route, out)?;
    }
    for budget in config.budgets.iter() {
        describe_budget(budget, out)?;
    }
    if let Some(engine) = &config.engine {
        describe_engine(engine, out)?;
    }
    for warning in config.warnings() {
        writeln!(out, "  note: {warning}")?;
    }
    Ok(())
}

fn describe_admission(admission: &Admission, out: &mut impl Write) -> io::Result<()> {
    let words = |rate: &StreamRate| {
        let per = in_words(rate.per);
        format!("{} in {per}, {} at once", rate.streams, rate.burst)
    };
    if let Some(rate) = &admission.per_connection {
        writeln!(out, "  streams per connection: {}", words(rate))?;
    }
    if let Some(LabelRate { label, rate }) = &admission.per_label {
        writeln!(out, "  streams per {label}: {}", words(rate))?;
    }
    Ok(())
}

fn describe_route(route: &Route, out: &mut impl Write) -> io::Result<()> {
    let attempts = match (route.policy.replay, route.policy.max_attempts) {
        (Replay::None, _) | (Replay::Restart, 1) => "1 attempt".to_owned(),
        (Replay::Restart, attempts) => format!("{attempts} attempts"),
    };
    let deadline = in_words(route.policy.deadline);
    writeln!(
        out,
        "\nroute {}: at most {attempts} within {deadline}",
        route.name
    )?;
    if !route.models.is_empty() {
        writeln!(out, "  clients may ask for {}", route.models.join(", "))?;
    }
    for (index, target) in route.targets.iter().enumerate() {
        describe_target(index + 1, target, out)?;
    }
    Ok(())
}

fn describe_target(number: usize, target: &Target, out: &mut impl Write) -> io::Result<()> {
    let provider = &target.provider;
    let base_url = &provider.endpoint.base_url;
    let dialect = provider.dialect.name();
    let credentials: Vec<&str> = provider.credentials.iter().map(|c| &*c.name).collect();
    let credentials = match credentials.as_slice() {
        [] => "no credentials".to_owned(),
        names => format!("credentials {}", names.join(", ")),
    };
    writeln!(out, "  {number}. {}", target.name)?;
    let speaks = match (provider.protocol, provider.dialect) {
        (Protocol::OpenaiChat, _) => format!("dialect {dialect}"),
        (protocol, Dialect::Openai) => protocol_name(protocol),
        (protocol, _) => format!("{}, dialect {dialect}", protocol_name(protocol)),
    };
    writeln!(out, "     at {base_url}, {speaks}, {credentials}")?;
    writeln!(out, "     {}", describe_timers(&target.timers))
}

/// Its name in the configuration.
fn protocol_name(protocol: Protocol) -> String {
    let name = protocol.as_str_name();
    name.trim_start_matches("PROTOCOL_").to_ascii_lowercase()
}

fn describe_timers(timers: &Timers) -> String {
    let timers = [
        ("connect", timers.connect),
        ("first_token", timers.first_token),
        ("inter_delta", timers.inter_delta),
        ("open_block", timers.open_block),
        ("no_progress", timers.no_progress),
        ("tail", timers.tail),
    ];
    let words = timers.map(|(name, span)| match span {
        Duration::ZERO => format!("{name} off"),
        span => format!("{name} {}", in_words(span)),
    });
    words.join(", ")
}

fn describe_budget(budget: &Budget, out: &mut impl Write) -> io::Result<()> {
    let settings = &budget.settings;
    let selector = match budget.selector.to_string() {
        empty if empty.is_empty() => "everything".to_owned(),
        selector => selector,
    };
    let counted = if budget.is_shared {
        ", counted for all pods together"
    } else {
        ""
    };
    writeln!(out, "\nbudget {}: {selector}{counted}", settings.name)?;
    for window in &settings.windows {
        let length = in_words(Duration::from_micros(window.window));
        writeln!(
            out,
            "  {} {} in any {length}",
            window.limit,
            measure(window.measure)
        )?;
    }
    for daily in &settings.daily {
        let zone = budget.zone.iana_name().unwrap_or("UTC");
        let measure = measure(daily.measure);
        writeln!(out, "  {} {measure} a day ({zone})", daily.limit)?;
    }
    if let Some(concurrent) = settings.concurrent {
        writeln!(out, "  {concurrent} at a time")?;
    }
    let windows = settings.windows.iter().map(|window| window.measure);
    let days = settings.daily.iter().map(|daily| daily.measure);
    if windows.chain(days).any(|m| m != Measure::Requests) {
        let back = match settings.refund {
            Refund::Never => "stay taken",
            Refund::InputOnly => "come back, of prompts alone",
            Refund::All => "come back",
        };
        writeln!(out, "  reserved tokens that were not used {back}")?;
    }
    if let Some(fairness) = &budget.fairness {
        writeln!(out, "  fair between the values of {}", fairness.label)?;
    }
    if let Some(pace) = &budget.smoothing {
        let per = in_words(pace.per);
        writeln!(
            out,
            "  paced: {} in {per}, {} at once",
            pace.requests, pace.burst
        )?;
    }
    Ok(())
}

fn describe_engine(engine: &SharedEngine, out: &mut impl Write) -> io::Result<()> {
    let place = match &engine.place {
        EnginePlace::One(url) => url.clone(),
        EnginePlace::Cluster(urls) => format!("cluster of {}", urls.join(", ")),
        EnginePlace::Sentinel { urls, master } => {
            format!("{master}, as told by {}", urls.join(", "))
        }
    };
    let user = engine.username.as_deref().unwrap_or("default");
    let domain = &engine.domain;
    writeln!(out, "\nengine redis: {place}, domain {domain}, user {user}")?;
    let timeout = in_words(engine.timeout);
    let share = &engine.local_share;
    let lost = match engine.on_loss {
        OnLoss::Closed => "nothing is sent".to_owned(),
        OnLoss::LocalShare => format!(
            "each of {} pods sends of each limit its part of {}, which the engine never grants",
            share.max_pods, share.fraction
        ),
        OnLoss::Open => "each pod sends as if it were alone, which is not strict".to_owned(),
    };
    writeln!(out, "  answers within {timeout}; while it is lost, {lost}")
}

fn measure(measure: Measure) -> &'static str {
    match measure {
        Measure::Requests => "requests",
        Measure::InputTokens => "input tokens",
        Measure::OutputTokens => "output tokens",
    }
}
