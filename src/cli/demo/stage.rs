//! The three of the demo: provider, sidecar, client.

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};

use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Channel;

use super::{DemoError, scenes::Scene, witness::Witness};
use crate::{
    cli::{
        generate::client::{Stream, connect},
        terminal::View,
    },
    clock::Clock,
    config::{Config, Process},
    proto::{Conversation, Message, Part, Role, Start, generate_request, part, start::Input},
    server::{self, Server},
    simulator::{Asked, Script, Simulator, chat},
    telemetry::Telemetry,
    upstream::http::Door,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A provider, a sidecar and a connection to it.
pub(super) struct Stage {
    yaml: String,
    provider: Simulator,
    /// A port that is taken, and on which nobody listens.
    _dead: TcpSocket,
    channel: Channel,
    sidecar: JoinHandle<Result<(), tonic::transport::Error>>,
    drain: DropGuard,
}

impl Stage {
    /// Starts all three.
    pub(super) async fn set(scenes: &[Scene]) -> Result<Self, Error> {
        let scripts: Vec<(&'static str, Vec<Script>)> = scenes
            .iter()
            .map(|scene| (scene.route, scene.scripts.clone()))
            .collect();
        let provider = Simulator::start(move |asked| choose(&scripts, asked)).await?;
        let dead = TcpSocket::new_v4()?;
        dead.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let yaml = yaml(&provider.base_url(), dead.local_addr()?);
        let config = Config::parse(&yaml, Path::new("demo.yaml"), &Process)?;
        let drain = CancellationToken::new();
        let (address, sidecar) = start_sidecar(config, drain.clone()).await?;
        let channel = connect(&format!("http://{address}")).await?;
        Ok(Self {
            yaml,
            provider,
            _dead: dead,
            channel,
            sidecar,
            drain: drain.drop_guard(),
        })
    }

    /// What the sidecar runs on.
    pub(super) fn yaml(&self) -> &str {
        &self.yaml
    }

    /// Plays `scene` into `view`; what was not as it should be.
    pub(super) async fn play(
        &self,
        scene: &Scene,
        view: &mut View<impl Write>,
    ) -> Result<Vec<String>, DemoError> {
        let mut witness = Witness::default();
        let start = generate_request::Frame::Start(start(scene.route));
        let status = |status: tonic::Status| DemoError::Stage(Box::new(status));
        let mut stream = Stream::open(self.channel.clone(), start)
            .await
            .map_err(status)?;
        // After a terminal `Failed` comes its status, which says nothing new.
        while let Ok(Some(response)) = stream.next().await {
            let Some(frame) = response.frame else {
                continue;
            };
            witness.saw(&frame);
            view.frame(&frame)?;
        }
        view.ledger(&witness.ledger)?;
        let requests = self.provider.requests(scene.route);
        let complaints = witness.complaints(scene, requests);
        if complaints.is_empty() {
            view.say(&witness.praise(requests))?;
        }
        Ok(complaints)
    }

    /// Drains the sidecar and waits for its end.
    pub(super) async fn clear(self) {
        drop(self.channel);
        self.drain.disarm().cancel();
        // It has served all scenes; how it ends is of no interest any more.
        let _ = self.sidecar.await;
    }
}

/// The script of the `nth` request for a route.
fn choose(scripts: &[(&'static str, Vec<Script>)], asked: &Asked) -> Script {
    let scripts = scripts.iter().find(|(route, _)| *route == asked.model);
    let script = scripts.and_then(|(_, scripts)| scripts.get(asked.nth - 1).or(scripts.last()));
    let unknown = || chat::error(http::StatusCode::NOT_FOUND, "no such model");
    script.cloned().unwrap_or_else(unknown)
}

async fn start_sidecar(
    config: Config,
    drain: CancellationToken,
) -> Result<(SocketAddr, JoinHandle<Result<(), tonic::transport::Error>>), Error> {
    let targets = config.routes.values().flat_map(|route| &route.targets);
    let telemetry = Telemetry::new(&config.telemetry, targets.map(|target| target.name.clone()))?;
    let listener = TcpListener::bind(config.listen.grpc).await?;
    let address = listener.local_addr()?;
    let connections = telemetry.gauges().grpc_connections.clone();
    let incoming = server::incoming(listener, config.listen.max_connections, connections);
    let door = Arc::new(Door::new());
    let server = Server::new(Arc::new(config), door, Clock::start(), telemetry);
    let serving = tokio::spawn(async move { server.serve(incoming, drain.clone(), drain).await });
    Ok((address, serving))
}

fn yaml(base_url: &str, dead: SocketAddr) -> String {
    format!(
        "\
listen: {{grpc: \"127.0.0.1:0\", public: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}}   # any free ports
providers:
  provider: {{protocol: openai_chat, base_url: \"{base_url}\"}}
  dead: {{protocol: openai_chat, base_url: \"http://{dead}/v1\"}}   # nobody listens there
routes:
  healthy:
    targets: [{{provider: provider, model: healthy}}]
  stalls:
    targets: [{{provider: provider, model: stalls}}]
    timers: {{inter_delta: 1s}}                       # the longest silence between two events
    recovery: {{backoff: {{base: 300ms}}}}
  limited:
    targets: [{{provider: provider, model: limited}}]
  fallback:
    targets:
      - {{provider: dead, model: fallback}}
      - {{provider: provider, model: fallback}}       # next, when the failure says so
    recovery: {{backoff: {{base: 300ms}}}}
"
    )
}

fn start(route: &str) -> Start {
    let prompt = Part {
        part: Some(part::Part::Text("Tell me something.".to_owned())),
    };
    let message = Message {
        role: Role::User.into(),
        parts: vec![prompt],
    };
    Start {
        route: route.to_owned(),
        input: Some(Input::Conversation(Conversation {
            messages: vec![message],
            ..Conversation::default()
        })),
        ..Start::default()
    }
}
