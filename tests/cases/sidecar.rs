//! The sidecar of a case: in this process, or in one of its own where signals or memory are looked at.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use redrive::{
    clock::Clock,
    config::{Config, Process as Environment},
    server::{self, Server},
    telemetry::Telemetry,
    upstream::http::Door,
};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Endpoint};

use crate::{case::Case, limits, names, provider::Provider};

/// How much longer than its grace a process may take to end.
const AFTER_GRACE: Duration = Duration::from_secs(3);

/// The grace of a shutdown where a case says nothing.
const GRACE_MS: u64 = 30_000;

/// A running sidecar.
pub struct Sidecar {
    address: SocketAddr,
    grace: Duration,
    folder: TempDir,
    kind: Kind,
}

enum Kind {
    Here {
        spans: InMemorySpanExporter,
        telemetry: Telemetry,
        _drain: DropGuard,
        _serving: Serving,
    },
    Process {
        child: Child,
        resident: u64,
    },
}

type Serving = JoinHandle<Result<(), tonic::transport::Error>>;

impl Sidecar {
    /// One in this process, or in its own. `engine` is where that of its budgets is.
    pub async fn start(
        case: &Case,
        provider: &Provider,
        own_process: bool,
        engine: Option<&str>,
    ) -> Sidecar {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "test-key").unwrap();
        let port = if own_process { free_port().await } else { 0 };
        let yaml = yaml(case, provider, port, folder.path(), engine);
        let grace = Duration::from_millis(case.input.config.drain_ms.unwrap_or(GRACE_MS));
        let (address, kind) = match own_process {
            true => spawn(&yaml, port, folder.path()).await,
            false => serve(&yaml).await,
        };
        Sidecar {
            address,
            grace,
            folder,
            kind,
        }
    }

    pub async fn connect(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address))
            .unwrap()
            .initial_stream_window_size(65_535)
            .initial_connection_window_size(1 << 20)
            .connect()
            .await
            .unwrap()
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// SIGKILL.
    pub fn kill(&self) {
        self.signal("-KILL");
    }

    fn signal(&self, signal: &str) {
        let Kind::Process { child, .. } = &self.kind else {
            panic!("not a process")
        };
        let kill = Command::new("kill")
            .arg(signal)
            .arg(child.id().to_string())
            .status();
        assert!(kill.unwrap().success());
    }

    /// How the process ends after SIGTERM.
    pub async fn exit(&mut self) -> ExitStatus {
        let limit = self.grace + AFTER_GRACE;
        let Kind::Process { child, .. } = &mut self.kind else {
            panic!("not a process")
        };
        let wait = async {
            loop {
                if let Some(status) = child.try_wait().unwrap() {
                    return status;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(limit, wait)
            .await
            .expect("the process does not end")
    }

    /// By how much the resident memory has grown at its highest, in MiB.
    pub fn growth(&self) -> Option<u64> {
        let Kind::Process { child, resident } = &self.kind else {
            return None;
        };
        let highest = memory(child, "VmHWM").expect("the process has gone");
        Some(highest.saturating_sub(*resident) >> 10)
    }

    /// The finished spans, and the metrics as text.
    pub fn telemetry(&self) -> (&InMemorySpanExporter, String) {
        let Kind::Here {
            spans, telemetry, ..
        } = &self.kind
        else {
            panic!("a process")
        };
        (spans, telemetry.render_metrics().unwrap())
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if let Kind::Process { child, .. } = &mut self.kind {
            let _ = child.kill();
            let _ = child.wait();
            if std::thread::panicking() {
                let log = std::fs::read_to_string(self.folder.path().join("log"));
                eprintln!("{}", log.unwrap_or_default());
            }
        }
    }
}

async fn serve(yaml: &str) -> (SocketAddr, Kind) {
    let config = Config::parse(yaml, Path::new("case.yaml"), &Environment);
    let config = config.unwrap_or_else(|errors| panic!("{errors}\n{yaml}"));
    let spans = InMemorySpanExporter::default();
    let tracer = SdkTracerProvider::builder()
        .with_simple_exporter(spans.clone())
        .build();
    let targets = config.routes.values().flat_map(|route| &route.targets);
    let targets = targets.map(|target| target.name.clone());
    let telemetry = Telemetry::with_tracer_provider(targets, tracer).unwrap();
    let listener = TcpListener::bind(config.listen.grpc).await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = telemetry.gauges().grpc_connections.clone();
    let incoming = server::incoming(listener, (&config.listen).into(), connections);
    let door = Arc::new(Door::new());
    let server = Server::new(Arc::new(config), door, Clock::start(), telemetry.clone()).unwrap();
    let drain = CancellationToken::new();
    let stop = drain.clone();
    let serving = tokio::spawn(async move { server.serve(incoming, stop.clone(), stop).await });
    let kind = Kind::Here {
        spans,
        telemetry,
        _drain: drain.drop_guard(),
        _serving: serving,
    };
    (address, kind)
}

async fn spawn(yaml: &str, port: u16, folder: &Path) -> (SocketAddr, Kind) {
    let file = folder.join("redrive.yaml");
    std::fs::write(&file, yaml).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .arg("serve")
        .arg("--config")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let listens = async {
        while TcpStream::connect(address).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    if timeout(Duration::from_secs(15), listens).await.is_err() {
        let log = std::fs::read_to_string(folder.join("log"));
        panic!("it does not listen: {}", log.unwrap_or_default());
    }
    let resident = memory(&child, "VmRSS").unwrap();
    (address, Kind::Process { child, resident })
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// A line of the process's status, in KiB.
fn memory(child: &Child, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The settings of a case: at scale 1:100 the default timers are divided by 100. Backoff always is, as
/// no case is about the length of our own; circuits and the retry budget stay out of the way.
fn yaml(
    case: &Case,
    provider: &Provider,
    port: u16,
    folder: &Path,
    engine: Option<&str>,
) -> String {
    let config = &case.input.config;
    let scaled = config.is_scaled();
    let scale = if scaled { 100 } else { 1 };
    let silence = config.inactivity_ms.unwrap_or(45_000 / scale);
    let block = (300_000 / scale).max(config.inactivity_ms.unwrap_or(0));
    let connect = if scaled { 1_000 } else { 10_000 };
    let first_token = 600_000 / scale;
    let tail = config.tail_ms.unwrap_or(if scaled { 200 } else { 2_000 });
    let attempts = config.max_sends.unwrap_or(11);
    let deadline = config
        .admission_backoff_deadline_ms
        .unwrap_or(limits::DEADLINE.as_millis() as u64);
    let message = config.max_message_bytes.unwrap_or(8 << 20);
    let grace = config.drain_ms.unwrap_or(GRACE_MS);
    let http2 = if provider.http2 {
        "prior_knowledge"
    } else {
        "auto"
    };
    let (_, protocol) = names::protocol(&case.protocol);
    let (base_url, key) = (&provider.base_url, folder.join("key"));
    let key = key.display();
    let budgets = limits::yaml(case, engine);
    let gate = match config.gate() {
        Some((preset, most)) => {
            format!("    gate: {{preset: {preset:?}, max_attempts: {most}}}\n")
        }
        None => String::new(),
    };
    let route = format!(
        "    targets: [{{provider: provider, model: m}}]
    max_message_bytes: {message}
    recovery:
      max_attempts: {attempts}
      deadline: {deadline}ms
      backoff: {{base: 10ms, max: 600ms}}
    timers:
      connect: {connect}ms
      first_token: {first_token}ms
      inter_delta: {silence}ms
      open_block: {block}ms
      no_progress: {block}ms
      tail: {tail}ms
{gate}"
    );
    let other = match case.input.limits.also_route_without_shared_limit {
        true => format!("  local_only:\n{route}"),
        false => String::new(),
    };
    format!(
        "\
listen: {{grpc: '127.0.0.1:{port}', admin: '127.0.0.1:0', public: '127.0.0.1:0'}}
drain: {{grace: {grace}ms}}
retry_budget: {{ratio: 1.0, floor: 100000, per: 10s}}
{budgets}limits: {{max_total_bytes: 1GiB}}
providers:
  provider:
    protocol: {protocol}
    base_url: '{base_url}'
    profile: hosted
    connections: {{http2: {http2}}}
    credentials: [{{name: main, api_key: {{file: '{key}'}}}}]
routes:
  case:
{route}{other}"
    )
}
