//! The three of the demo: provider, sidecar, client.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinHandle,
    time,
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
    proto::{
        Conversation, Message, Part, RecoveryOptions, Role, Start, generate_request, part,
        start::Input,
    },
    server::{self, Server},
    simulator::{self, After, Library, Options, Playlist, Simulator},
    telemetry::Telemetry,
    upstream::http::Door,
};

/// What the sidecar runs on, but for the ports.
const YAML: &str = include_str!("demo.yaml");

/// A scene that lasts longer has gone wrong.
const LONGEST_SCENE: Duration = Duration::from_secs(20);

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
        let mut library = Library::default();
        for scene in scenes {
            let playlist = Playlist::new(scene.scripts.clone(), After::RepeatLast);
            library.insert(scene.route, playlist);
        }
        let provider = Simulator::start(Options::default(), library).await?;
        let dead = simulator::refusing(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let yaml = YAML
            .replace("PROVIDER", &provider.address().to_string())
            .replace("DEAD", &dead.local_addr()?.to_string());
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
        let start = generate_request::Frame::Start(start(scene));
        let status = |status: tonic::Status| DemoError::Stage(Box::new(status));
        let mut stream = Stream::open(self.channel.clone(), start)
            .await
            .map_err(status)?;
        let frames = async {
            // After a terminal `Failed` comes its status, which says nothing new.
            while let Ok(Some(response)) = stream.next().await {
                let Some(frame) = response.frame else {
                    continue;
                };
                witness.saw(&frame);
                view.frame(&frame)?;
            }
            Ok::<_, io::Error>(())
        };
        // One that does not end is complained of below: it was not committed.
        if let Ok(shown) = time::timeout(LONGEST_SCENE, frames).await {
            shown?;
        }
        view.ledger(&witness.ledger)?;
        let received = self.provider.received();
        let requests = received
            .iter()
            .filter(|one| one.script.as_deref() == Some(scene.route));
        let requests = requests.count();
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

async fn start_sidecar(
    config: Config,
    drain: CancellationToken,
) -> Result<(SocketAddr, JoinHandle<Result<(), tonic::transport::Error>>), Error> {
    let targets = config.routes.values().flat_map(|route| &route.targets);
    let telemetry = Telemetry::new(&config.telemetry, targets.map(|target| target.name.clone()))?;
    let listener = TcpListener::bind(config.listen.grpc).await?;
    let address = listener.local_addr()?;
    let connections = telemetry.gauges().grpc_connections.clone();
    let incoming = server::incoming(listener, (&config.listen).into(), connections);
    let door = Arc::new(Door::new());
    let server = Server::new(Arc::new(config), door, Clock::start(), telemetry)?;
    let serving = tokio::spawn(async move { server.serve(incoming, drain.clone(), drain).await });
    Ok((address, serving))
}

fn start(scene: &Scene) -> Start {
    let prompt = Part {
        part: Some(part::Part::Text("Tell me something.".to_owned())),
    };
    let message = Message {
        role: Role::User.into(),
        parts: vec![prompt],
    };
    Start {
        route: scene.route.to_owned(),
        // A scene that goes wrong ends, instead of going on as long as a route may.
        recovery: Some(RecoveryOptions {
            max_attempts: u32::try_from(scene.attempts.len()).ok(),
            ..RecoveryOptions::default()
        }),
        input: Some(Input::Conversation(Conversation {
            messages: vec![message],
            ..Conversation::default()
        })),
        ..Start::default()
    }
}
