//! `redrive serve`: the sidecar.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use tokio::{net::TcpListener, signal::unix};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    config::{Config, Process},
    server::{self, Server, admin, public},
    telemetry::{Telemetry, log},
    upstream::http::Door,
};

/// Run the sidecar.
///
/// Listens for gRPC on `listen.grpc` (127.0.0.1:50051), for health probes and metrics on
/// `listen.public` (0.0.0.0:15090), and for `redrive drain` on `listen.admin` (127.0.0.1:15091).
///
/// SIGTERM or SIGINT drains: no new generations are taken, running ones have `drain.grace` to finish,
/// the rest end as draining, then the process exits with 0. A second signal ends the grace at once.
/// SIGHUP changes nothing: the configuration is not read again.
///
/// Exits with 2 if the configuration cannot be used, with 1 if a listener cannot be opened.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// The configuration file; `redrive check` explains it
    #[arg(long, env = "REDRIVE_CONFIG", value_name = "FILE")]
    pub config: PathBuf,
}

/// Runs until it has drained; returns the exit code.
pub async fn run(args: ServeArgs) -> ExitCode {
    let config = match Config::load(&args.config, &Process) {
        Ok(config) => config,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(2);
        }
    };
    match serve(config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            eprintln!("redrive: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: Config) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let rust_log = std::env::var("RUST_LOG").ok();
    log::install(&config.telemetry, rust_log.as_deref())?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let targets = config.routes.values().flat_map(|route| &route.targets);
    let telemetry = Telemetry::new(&config.telemetry, targets.map(|target| target.name.clone()))?;
    let grpc = bind("listen.grpc", config.listen.grpc).await?;
    let public = bind("listen.public", config.listen.public).await?;
    let admin = bind("listen.admin", config.listen.admin).await?;
    let gauges = telemetry.gauges().clone();
    let door = Arc::new(Door::counting(gauges.provider_connections.shared()));
    let config = Arc::new(config);
    let server = Server::new(Arc::clone(&config), door, Clock::start(), telemetry.clone())?;
    let server = Arc::new(server);

    let drain = CancellationToken::new();
    let terminate = CancellationToken::new();
    let stop = CancellationToken::new();
    let on_signal = drain_on_signal(drain.clone(), terminate.clone(), Arc::clone(&server))?;
    let on_signal = tokio::spawn(on_signal);
    let readiness = server.readiness.clone();
    let public = public::serve(public, readiness.clone(), telemetry.clone(), stop.clone());
    let about = admin::Admin {
        readiness,
        drain: drain.clone(),
        generations: gauges.generations.clone(),
        budgets: server.budgets(),
    };
    let side = [
        tokio::spawn(public),
        tokio::spawn(admin::serve(admin, about, stop.clone())),
    ];
    let connections = gauges.grpc_connections.clone();
    let incoming = server::incoming(grpc, (&config.listen).into(), connections);
    tracing::info!(grpc = %config.listen.grpc, public = %config.listen.public, "listening");
    server.serve(incoming, drain, terminate).await?;

    stop.cancel();
    on_signal.abort();
    for task in side {
        task.await?;
    }
    telemetry.shutdown().await;
    tracing::info!("drained");
    Ok(())
}

async fn bind(
    key: &str,
    address: std::net::SocketAddr,
) -> Result<TcpListener, Box<dyn std::error::Error + Send + Sync>> {
    TcpListener::bind(address)
        .await
        .map_err(|error| format!("{key}: cannot listen on {address}: {error}").into())
}

/// Both signals are caught from here on, so that none is lost before the future runs.
fn drain_on_signal(
    drain: CancellationToken,
    terminate: CancellationToken,
    server: Arc<Server>,
) -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut term = unix::signal(unix::SignalKind::terminate())?;
    let mut interrupt = unix::signal(unix::SignalKind::interrupt())?;
    let mut hangup = unix::signal(unix::SignalKind::hangup())?;
    Ok(async move {
        let mut signal = async || {
            loop {
                tokio::select! {
                    _ = term.recv() => return,
                    _ = interrupt.recv() => return,
                    _ = hangup.recv() => {
                        tracing::warn!("SIGHUP is ignored: the configuration is not read again");
                    }
                }
            }
        };
        signal().await;
        tracing::info!("draining; a second signal ends the grace at once");
        drain.cancel();
        terminate.cancel();
        signal().await;
        server.hurry();
    })
}
