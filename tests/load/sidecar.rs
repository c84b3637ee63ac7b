//! The sidecar of this process, and what is left in it.

use std::{
    fs,
    future::Future,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redrive::{
    clock::Clock,
    config::{Config, Process},
    server::{self, Server},
    telemetry::Telemetry,
    upstream::http::Door,
};
use tokio::{net::TcpListener, runtime::Builder, task::JoinHandle, time};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use super::provider;

/// One test at a time: each has the machine to itself.
static ALONE: Mutex<()> = Mutex::new(());

/// How long things may take to settle.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test in a runtime of its own, while no other test of this process has one.
pub fn alone(test: impl Future<Output = ()>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

/// Resident memory of this process: sidecar, provider and clients.
pub fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

pub struct Sidecar {
    port: u16,
    telemetry: Telemetry,
    drain: CancellationToken,
    serving: JoinHandle<()>,
}

impl Sidecar {
    pub async fn start() -> Self {
        let provider = provider::start().await;
        let yaml = format!(
            "providers: {{load: {{base_url: 'http://{provider}/v1', connections: {{max: 2000}}}}}}\n\
             routes: {{default: {{targets: [{{provider: load, model: none}}], models: ['*']}}}}\n\
             limits: {{retention: 100ms}}\n"
        );
        let config = Config::parse(&yaml, Path::new("load.yaml"), &Process);
        let config = Arc::new(config.unwrap_or_else(|errors| panic!("{errors}")));
        let telemetry = Telemetry::new(&config.telemetry, []).unwrap();
        let door = Arc::new(Door::new());
        let bounds = server::Bounds::from(&config.listen);
        let server = Server::new(config, door, Clock::start(), telemetry.clone()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = telemetry.gauges().grpc_connections.clone();
        let incoming = server::incoming(listener, bounds, connections);
        let drain = CancellationToken::new();
        let stop = drain.clone();
        let serving = tokio::spawn({
            let drain = drain.clone();
            async move { server.serve(incoming, drain, stop).await.unwrap() }
        });
        Self {
            port,
            telemetry,
            drain,
            serving,
        }
    }

    /// So many connections.
    pub async fn connect(&self, count: usize) -> Vec<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{}", self.port)).unwrap();
        let mut channels = Vec::new();
        for _ in 0..count {
            channels.push(endpoint.connect().await.unwrap());
        }
        channels
    }

    /// Nothing is alive and nothing is kept; the connections to the provider may stay.
    pub async fn at_rest(&self) {
        let gauges = self.telemetry.gauges();
        let alive = || {
            [
                gauges.generations.value(),
                gauges.grpc_connections.value(),
                gauges.grpc_streams.value(),
                gauges.tasks.value(),
                gauges.transcript_bytes.value(),
            ]
        };
        let settled = async {
            while alive() != [0; 5] {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        let settled = time::timeout(PATIENCE, settled).await;
        assert!(settled.is_ok(), "still there: {:?}", alive());
    }

    pub async fn finish(self) {
        self.drain.cancel();
        self.serving.await.unwrap();
    }
}
