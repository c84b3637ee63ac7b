//! The whole sidecar on loopback, and what is left of it at the end.

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
    proto::Start,
    server::{self, Server, public},
    telemetry::Telemetry,
    upstream::http::Door,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    task::JoinHandle,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use super::{
    provider::Provider,
    support::{self, Rpc, assert_at_rest, generate, rpc, sum_of},
};

/// One test at a time: file descriptors are counted.
static ALONE: Mutex<()> = Mutex::new(());

/// How long things may take to settle; nothing here takes nearly that long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a test in a runtime of its own, while no other test of this process has one.
pub fn alone(test: impl Future<Output = ()>) {
    alone_on(Builder::new_multi_thread().worker_threads(2), test);
}

/// The same on a paused clock: for tests in which nothing is sent, so that time passes as soon as
/// everybody waits for it.
pub fn alone_and_paused(test: impl Future<Output = ()>) {
    alone_on(Builder::new_current_thread().start_paused(true), test);
}

fn alone_on(runtime: &mut Builder, test: impl Future<Output = ()>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    runtime.enable_all().build().unwrap().block_on(test);
}

/// A running sidecar, its provider and a client. Every test ends it with [`Bench::finish`].
pub struct Bench {
    pub provider: Provider,
    pub grpc: std::net::SocketAddr,
    public: std::net::SocketAddr,
    telemetry: Telemetry,
    channel: Channel,
    drain: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    descriptors: usize,
}

impl Bench {
    pub async fn start() -> Bench {
        Bench::start_and("").await
    }

    /// With more of a configuration.
    pub async fn start_and(more: &str) -> Bench {
        let descriptors = descriptors();
        let provider = Provider::start().await;
        let config = format!(
            "providers:\n  a: {{base_url: 'http://{}/v1'}}\nroutes:\n  default:\n    \
             targets: [{{provider: a, model: m}}]\n    recovery: {{max_attempts: 1}}\n    \
             client_idle: 1s\nlimits: {{retention: 100ms}}\n{more}",
            provider.address
        );
        let config = Config::parse(&config, Path::new("redrive.yaml"), &Process);
        let config = Arc::new(config.unwrap_or_else(|errors| panic!("{errors}")));
        let telemetry = Telemetry::new(&config.telemetry, ["a/m".to_owned()]).unwrap();
        let gauges = telemetry.gauges().clone();
        let door = Arc::new(Door::counting(gauges.provider_connections.shared()));
        let bounds = server::Bounds::from(&config.listen);
        let server = Server::new(config, door, Clock::start(), telemetry.clone()).unwrap();
        let (listener, grpc) = listen().await;
        let (metrics, public) = listen().await;
        let drain = CancellationToken::new();
        let readiness = server.readiness.clone();
        let incoming = server::incoming(listener, bounds, gauges.grpc_connections);
        let (draining, stop) = (drain.clone(), drain.clone());
        let tasks = vec![
            tokio::spawn(async move { server.serve(incoming, draining, stop).await.unwrap() }),
            tokio::spawn(public::serve(
                metrics,
                readiness,
                telemetry.clone(),
                drain.clone(),
            )),
        ];
        let channel = connect(grpc).await;
        Bench {
            provider,
            grpc,
            public,
            telemetry,
            channel,
            drain,
            tasks,
            descriptors,
        }
    }

    pub async fn connect(&self) -> Channel {
        connect(self.grpc).await
    }

    pub async fn generate(&self, start: Start) -> Rpc {
        generate_on(&self.channel, start).await
    }

    /// The metrics, as they are scraped.
    pub async fn scrape(&self) -> String {
        let mut stream = TcpStream::connect(self.public).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    pub async fn metric(&self, name: &str) -> f64 {
        sum_of(&self.scrape().await, name)
    }

    /// Waits until `name` is `value`.
    pub async fn until(&self, name: &str, value: f64) {
        let reached = async || self.metric(name).await == value;
        eventually(name, reached).await;
    }

    /// Everything is back to where it was before the test.
    pub async fn finish(self) {
        drop(self.channel);
        self.provider.stop().await;
        eventually("nothing alive", async || {
            let text = self.telemetry.render_metrics().unwrap();
            let mut gauges = support::GAUGES.iter();
            gauges.all(|name| sum_of(&text, name) == 0.0)
                && sum_of(&text, "redrive_provider_connections_active") == 0.0
        })
        .await;
        assert_at_rest(&self.telemetry);
        self.drain.cancel();
        for task in self.tasks {
            time::timeout(PATIENCE, task)
                .await
                .expect("the server does not end")
                .unwrap();
        }
        let before = self.descriptors;
        eventually("descriptors", async || descriptors() <= before).await;
    }
}

pub async fn generate_on(channel: &Channel, start: Start) -> Rpc {
    let rpc = rpc::open(channel, None).await;
    rpc.send(generate(start));
    rpc
}

/// Waits until `reached`, and fails if it never is.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut reached: impl FnMut() -> F) {
    let until = Instant::now() + PATIENCE;
    while !reached().await {
        assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}");
        time::sleep(Duration::from_millis(5)).await;
    }
}

/// Open file descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn listen() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn connect(address: std::net::SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint.connect().await.unwrap()
}
