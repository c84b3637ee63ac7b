//! The sidecar of a run: the library's server with the real door and all its listeners.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use redrive::{
    clock::Clock,
    config::{Config, Process},
    server::{self, Server, admin},
    telemetry::Telemetry,
    upstream::http::Door,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use super::support::sum_of;

/// How long things may take to settle.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Sidecar {
    grpc: SocketAddr,
    admin: SocketAddr,
    telemetry: Telemetry,
    drain: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Sidecar {
    /// On this configuration, whose provider is called `p`.
    pub async fn start(yaml: &str) -> Self {
        let config = Config::parse(yaml, Path::new("redrive.yaml"), &Process);
        let config = Arc::new(config.unwrap_or_else(|errors| panic!("{errors}\n{yaml}")));
        let telemetry = Telemetry::new(&config.telemetry, ["p/m".to_owned()]).unwrap();
        let gauges = telemetry.gauges().clone();
        let bounds = server::Bounds::from(&config.listen);
        let door = Arc::new(Door::counting(gauges.provider_connections.shared()));
        let server = Server::new(config, door, Clock::start(), telemetry.clone()).unwrap();
        let (listener, grpc) = listen().await;
        let (admin_listener, admin) = listen().await;
        let drain = CancellationToken::new();
        let about = admin::Admin {
            readiness: server.readiness.clone(),
            drain: drain.clone(),
            generations: gauges.generations.clone(),
            budgets: server.budgets(),
        };
        let incoming = server::incoming(listener, bounds, gauges.grpc_connections);
        let (draining, stop) = (drain.clone(), drain.clone());
        let tasks = vec![
            tokio::spawn(async move { server.serve(incoming, draining, stop).await.unwrap() }),
            tokio::spawn(admin::serve(admin_listener, about, drain.clone())),
        ];
        Self {
            grpc,
            admin,
            telemetry,
            drain,
            tasks,
        }
    }

    pub async fn connect(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap();
        endpoint.connect().await.unwrap()
    }

    /// What the admin listener answers to `GET /status`.
    pub async fn status(&self) -> Value {
        let mut stream = TcpStream::connect(self.admin).await.unwrap();
        let request = b"GET /status HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    /// The sum of all series of a metric; 0 where nothing was counted.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.telemetry.render_metrics().unwrap();
        match text.contains(&format!("\n{name}")) {
            true => sum_of(&text, name),
            false => 0.0,
        }
    }

    /// Nothing runs any more and no lease is held; how that looks.
    pub async fn at_rest(&self) -> Value {
        let at_rest = async {
            loop {
                let status = self.status().await;
                let generations = self.telemetry.gauges().generations.value();
                if generations == 0 && status["leases"]["held"] == 0 {
                    return status;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        match timeout(PATIENCE, at_rest).await {
            Ok(status) => status,
            Err(_) => panic!("still there: {}", self.status().await),
        }
    }

    pub async fn finish(self) {
        self.drain.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}
