//! The whole sidecar on a paused clock, with a client of its own.

use std::{
    collections::HashMap,
    io,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use redrive::{
    clock::Clock,
    config::{Config, Process},
    proto::{
        CompleteRequest, CompleteResponse, Start, generate_request::Frame,
        generation_service_client::GenerationServiceClient,
    },
    server::Server,
    telemetry::{Guard, Telemetry},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf},
    runtime::Handle,
    sync::mpsc,
    task::JoinHandle,
    time::{self, Instant},
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{
    Status,
    transport::{Channel, Endpoint, Uri},
};

use super::{
    provider::Provider,
    rpc::{self, Rpc},
};

/// One target on route `default`, two on `pair`; short enough to be read at a glance.
pub const CONFIG: &str = "\
providers:
  a: {base_url: 'http://a.test/v1', profile: hosted}
  b: {base_url: 'http://b.test/v1', profile: hosted}
routes:
  default:
    targets: [{provider: a, model: m}]
    models: ['m-*']
  pair:
    targets: [{provider: a, model: m}, {provider: b, model: n}]
";

/// How long [`CONFIG`] keeps what has ended.
const RETENTION: Duration = Duration::from_secs(60);

/// A running sidecar. Every test ends it with [`Bench::finish`].
pub struct Bench {
    pub provider: Provider,
    pub telemetry: Telemetry,
    pub server: Arc<Server>,
    /// Cancelled to drain.
    pub drain: CancellationToken,
    serving: Mutex<Option<JoinHandle<()>>>,
    channel: Option<Channel>,
    connections: mpsc::UnboundedSender<io::Result<Pipe>>,
    tasks_before: usize,
}

impl Bench {
    pub async fn start() -> Bench {
        Bench::configured(CONFIG).await
    }

    /// [`CONFIG`] with more at its end.
    pub async fn start_and(more: &str) -> Bench {
        Bench::configured(&format!("{CONFIG}{more}")).await
    }

    pub async fn configured(config: &str) -> Bench {
        Bench::with_slots(config, 64).await
    }

    pub async fn with_slots(config: &str, slots: usize) -> Bench {
        let tasks_before = Handle::current().metrics().num_alive_tasks();
        let config = Config::parse(config, Path::new("redrive.yaml"), &Process);
        let config = Arc::new(config.unwrap_or_else(|errors| panic!("{errors}")));
        let provider = Provider::new(slots);
        let targets = config.routes.values().flat_map(|route| &route.targets);
        let targets = targets.map(|target| target.name.clone());
        let telemetry = Telemetry::new(&config.telemetry, targets).unwrap();
        let door = Arc::new(provider.clone());
        let server = Server::new(config, door, Clock::start(), telemetry.clone());
        let server = Arc::new(server.unwrap());
        let (connections, incoming) = mpsc::unbounded_channel();
        let drain = CancellationToken::new();
        let serving = {
            let (server, drain) = (Arc::clone(&server), drain.clone());
            tokio::spawn(async move {
                let incoming = UnboundedReceiverStream::new(incoming);
                server.serve(incoming, drain.clone(), drain).await.unwrap();
            })
        };
        let channel = Some(connect(&connections, &telemetry).await);
        Bench {
            provider,
            telemetry,
            server,
            drain,
            serving: Mutex::new(Some(serving)),
            channel,
            connections,
            tasks_before,
        }
    }

    /// Another connection.
    pub async fn connect(&self) -> Channel {
        connect(&self.connections, &self.telemetry).await
    }

    /// A raw byte connection.
    pub fn pipe(&self) -> DuplexStream {
        pipe(&self.connections, &self.telemetry)
    }

    /// The connection of the calls below.
    pub fn channel(&self) -> &Channel {
        self.channel.as_ref().unwrap()
    }

    /// Opens a stream and sends nothing.
    pub async fn open(&self) -> Rpc {
        rpc::open(self.channel(), None).await
    }

    pub async fn generate(&self, start: Start) -> Rpc {
        self.first(Frame::Start(start)).await
    }

    /// Opens a stream with any first frame.
    pub async fn first(&self, frame: Frame) -> Rpc {
        let rpc = self.open().await;
        rpc.send(frame);
        rpc
    }

    pub async fn generate_within(&self, deadline: Duration, start: Start) -> Rpc {
        let rpc = rpc::open(self.channel(), Some(deadline)).await;
        rpc.send(Frame::Start(start));
        rpc
    }

    pub async fn complete(&self, start: Start) -> Result<CompleteResponse, Status> {
        let mut client = GenerationServiceClient::new(self.channel().clone())
            .max_decoding_message_size(16 << 20);
        let request = CompleteRequest { start: Some(start) };
        client
            .complete(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// A gauge or counter of the metrics text, all its series together.
    pub fn metric(&self, name: &str) -> f64 {
        metric(&self.telemetry, name)
    }

    /// Returns when the server has drained.
    pub async fn serving_ends(&self) {
        let serving = self.serving.lock().unwrap().take();
        let Some(serving) = serving else { return };
        let ends = time::timeout(Duration::from_secs(3600), serving).await;
        ends.expect("the server does not end").unwrap();
    }

    /// Everything is back to where it was before the test.
    pub async fn finish(mut self) {
        self.channel = None;
        // What ended is kept for a while; connections close.
        time::sleep(RETENTION + Duration::from_secs(5)).await;
        if self.serving.lock().unwrap().is_some() {
            assert_at_rest(&self.telemetry);
            self.drain.cancel();
            self.serving_ends().await;
        }
        self.provider.assert_at_rest();
        // Every request in the provider's log is a send in ours.
        let text = self.telemetry.render_metrics().unwrap();
        let counted = series(&text, "redrive_sends_total").sum::<f64>();
        let received = self.provider.may_have_received();
        assert_eq!(counted, received as f64, "sends");
        drop(self.server);
        assert_at_rest(&self.telemetry);
        time::sleep(Duration::from_secs(1)).await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, self.tasks_before, "tasks of the runtime");
    }
}

/// Asserts by the metrics text that nothing is alive.
pub fn assert_at_rest(telemetry: &Telemetry) {
    let left: HashMap<&str, f64> = GAUGES
        .iter()
        .map(|name| (*name, metric(telemetry, name)))
        .filter(|(_, value)| *value != 0.0)
        .collect();
    assert!(left.is_empty(), "still alive: {left:?}");
}

/// What counts what is alive.
pub const GAUGES: [&str; 5] = [
    "redrive_generations_active",
    "redrive_grpc_connections_active",
    "redrive_grpc_streams_active",
    "redrive_tasks_active",
    "redrive_transcript_bytes",
];

pub fn metric(telemetry: &Telemetry, name: &str) -> f64 {
    sum_of(&telemetry.render_metrics().expect("metrics are on"), name)
}

/// The sum of all series of `name`; there must be one.
pub fn sum_of(text: &str, name: &str) -> f64 {
    assert!(series(text, name).next().is_some(), "no {name} in {text}");
    series(text, name).sum()
}

/// The values of all series of `name`.
fn series(text: &str, name: &str) -> impl Iterator<Item = f64> {
    let lines = text.lines().filter(move |line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '{']))
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
}

/// Lets everything that can happen now happen, without time passing.
pub async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// How long `work` takes, by the paused clock.
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let from = Instant::now();
    let result = work.await;
    (result, from.elapsed())
}

async fn connect(
    connections: &mpsc::UnboundedSender<io::Result<Pipe>>,
    telemetry: &Telemetry,
) -> Channel {
    let (connections, telemetry) = (connections.clone(), telemetry.clone());
    let connector = tower::service_fn(move |_: Uri| {
        let client = pipe(&connections, &telemetry);
        async move { Ok::<_, io::Error>(TokioIo::new(client)) }
    });
    Endpoint::from_static("http://sidecar.test")
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(1 << 20)
        .connect_with_connector(connector)
        .await
        .unwrap()
}

fn pipe(
    connections: &mpsc::UnboundedSender<io::Result<Pipe>>,
    telemetry: &Telemetry,
) -> DuplexStream {
    let (client, server) = tokio::io::duplex(64 << 10);
    let alive = Guard::new(&telemetry.gauges().grpc_connections);
    // Fails only when the server is gone: the client then sees its end closed.
    let _ = connections.send(Ok(Pipe {
        server,
        _alive: alive,
    }));
    client
}

/// The server's end of a connection, counted.
pub struct Pipe {
    server: DuplexStream,
    _alive: Guard,
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.server).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.server).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.server).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.server).poll_shutdown(cx)
    }
}
