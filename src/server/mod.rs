//! IO. Everything that listens: the gRPC service, and the small HTTP listeners beside it.
//!
//! Owns the opening and the end of every RPC, the checks of what clients send, and the drain. Decides
//! nothing about recovery.

pub mod admin;
mod admission;
mod connections;
mod deadline;
mod http;
mod options;
pub mod overview;
mod paced;
pub mod public;
mod readiness;
mod refusal;
mod rpc;
mod service;
mod start;
mod status;
mod takings;
mod targets;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use self::{admission::Admission, paced::Paced};
pub use readiness::{Readiness, State};
pub use rpc::Rpc;
pub use service::{Grpc, Service};

use crate::{
    budgets::{Budgets, shared::BadOptions},
    clock::Clock,
    config::Config,
    limits::tokens,
    proto::{FILE_DESCRIPTOR_SET, generation_service_server::GenerationServiceServer},
    recovery::Commons,
    session::{Environment, Registry},
    telemetry::Telemetry,
    upstream::Upstream,
};

/// After the grace: how long RPCs have to take their terminal frames, and connections to close. Fixed.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// The largest header list of a client's request. Fixed.
const MAX_HEADER_LIST: u32 = 16 << 10;

/// Streams that a client opened and reset before they were accepted; above it the connection is a
/// rapid-reset attack. Fixed.
const MAX_PENDING_RESETS: usize = 20;

/// How long the end waits for the engine of shared budgets to hear what ended. Fixed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Streams that the sidecar itself had to refuse or reset for a breach of protocol, over the life of a
/// connection; above it the client makes it work for nothing. Fixed.
const MAX_ERROR_RESETS: usize = 1024;

/// The sidecar, without its sockets.
pub struct Server {
    service: Arc<Service>,
    /// What probes see.
    pub readiness: Readiness,
    /// Nobody waits for the drain's grace any more.
    hurried: CancellationToken,
}

impl Server {
    /// A server that takes no RPCs yet. Where budgets are shared, to be called inside a runtime.
    ///
    /// # Errors
    /// What the configuration says of the engine of shared budgets cannot be. Whether it is there is not
    /// looked at.
    pub fn new(
        config: Arc<Config>,
        upstream: Arc<dyn Upstream>,
        clock: Clock,
        telemetry: Telemetry,
    ) -> Result<Self, BadOptions> {
        let budgets = Budgets::of(clock, &config)?;
        if !config.budgets.is_empty() {
            let budgets = budgets.clone();
            telemetry.observe_budgets(move || overview::readings(&budgets));
        }
        if config.budgets.iter().any(|budget| budget.is_shared) {
            let budgets = budgets.clone();
            budgets.measure(&telemetry);
            telemetry.observe_engine(move || overview::engine_reading(&budgets));
        }
        let commons = Commons::new(config.retry_budget);
        let max_total_bytes = config.limits.max_total_bytes;
        let environment = Arc::new(Environment::new(
            clock,
            upstream,
            budgets,
            commons,
            telemetry,
            max_total_bytes,
        ));
        let registry = Registry::new(Arc::clone(&environment), config.limits.retention);
        let service = Service {
            admission: Admission::new(clock, &config.listen.admission),
            config,
            environment,
            registry: Arc::new(registry),
        };
        Ok(Self {
            service: Arc::new(service),
            readiness: Readiness::new(),
            hurried: CancellationToken::new(),
        })
    }

    /// Serves gRPC on `incoming`. `drain` begins the drain: no new generations, and what runs has the
    /// grace to end. Returns when that is over and `stop` is cancelled too; until then new generations
    /// are refused by word, not by a closed port.
    pub async fn serve<S, IO, E>(
        &self,
        incoming: S,
        drain: CancellationToken,
        stop: CancellationToken,
    ) -> Result<(), tonic::transport::Error>
    where
        S: Stream<Item = Result<IO, E>> + Send,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        load_tokenizers(&self.service.config);
        let listen = &self.service.config.listen;
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<GenerationServiceServer<Grpc>>().await;
        let grpc = GenerationServiceServer::new(Grpc(Arc::clone(&self.service)))
            .max_decoding_message_size(listen.max_request_bytes)
            .max_encoding_message_size(4 << 20);
        let reflection = listen.reflection.then(reflection).flatten();
        let keepalive = |length: Duration| (!length.is_zero()).then_some(length);
        let admission = &self.service.admission;
        let incoming = incoming.map(|io| {
            let streams = admission.connection();
            io.map(|io| Paced { io, streams })
        });
        let drained = CancellationToken::new();
        let serving = tonic::transport::Server::builder()
            .max_concurrent_streams(listen.max_streams_per_connection)
            .http2_keepalive_interval(keepalive(listen.keepalive_interval))
            .http2_keepalive_timeout(keepalive(listen.keepalive_timeout))
            .http2_max_header_list_size(MAX_HEADER_LIST)
            .http2_max_pending_accept_reset_streams(Some(MAX_PENDING_RESETS))
            .http2_max_local_error_reset_streams(Some(MAX_ERROR_RESETS))
            .tcp_nodelay(true)
            .add_service(health_service)
            .add_service(grpc)
            .add_optional_service(reflection)
            .serve_with_incoming_shutdown(incoming, drained.clone().cancelled_owned());
        let sweeper = self.service.registry.sweep();
        let shutdown = async {
            self.readiness.advance(State::Ready);
            drain.cancelled().await;
            self.readiness.advance(State::Draining);
            health
                .set_not_serving::<GenerationServiceServer<Grpc>>()
                .await;
            health
                .set_service_status("", tonic_health::ServingStatus::NotServing)
                .await;
            self.drain().await;
            stop.cancelled().await;
            drained.cancel();
            tokio::time::sleep(LAST_FRAMES).await;
        };
        let result = tokio::select! {
            result = serving => result,
            () = shutdown => Ok(()),
            () = sweeper => Ok(()),
        };
        // Nobody sweeps any more, and sessions know their registry.
        self.service.registry.clear();
        // What ended last is told, too: others need not wait then for its leases to end by themselves.
        let told = self.service.environment.budgets.told();
        if tokio::time::timeout(LAST_WORDS, told).await.is_err() {
            tracing::warn!("the engine of shared budgets has not heard of all that ended");
        }
        result
    }

    /// No new generations; returns when the running ones have ended, by themselves or by the grace,
    /// and their RPCs have taken the end.
    async fn drain(&self) {
        let grace = self.service.config.drain_grace;
        let environment = &self.service.environment;
        let until = environment.clock.now() + grace;
        self.service.registry.drain(until);
        let everything_ended = async {
            self.service.registry.idle().await;
            while environment.telemetry.gauges().grpc_streams.value() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let too_late = async {
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                () = self.hurried.cancelled() => {}
            }
            tokio::time::sleep(LAST_FRAMES).await;
        };
        tokio::select! {
            () = everything_ended => {}
            () = too_late => tracing::warn!("RPCs were still open after the drain's grace"),
        }
    }

    /// Ends the grace of a drain that has begun: what still runs ends as draining now.
    pub fn hurry(&self) {
        self.hurried.cancel();
        self.service
            .registry
            .drain(self.service.environment.clock.now());
    }

    /// The budgets of all generations.
    pub fn budgets(&self) -> Budgets {
        self.service.environment.budgets.clone()
    }

    /// How many generations run.
    pub fn running(&self) -> usize {
        self.service.registry.running()
    }
}

/// Loads what counting tokens needs before anybody asks, beside the runtime: 45 ms that no generation
/// waits for.
fn load_tokenizers(config: &Config) {
    let mut budgets = config.budgets.iter();
    if !budgets.any(|budget| budget.settings.limits_tokens()) {
        return;
    }
    let routes = config.routes.values();
    let models = routes.flat_map(|route| {
        let targets = route.targets.iter().map(|target| &target.model);
        targets.chain(&route.models).cloned()
    });
    let models: BTreeSet<String> = models.collect();
    tokio::task::spawn_blocking(move || models.iter().for_each(|model| tokens::load(model)));
}

fn reflection() -> Option<
    tonic_reflection::server::v1::ServerReflectionServer<
        impl tonic_reflection::server::v1::ServerReflection,
    >,
> {
    let built = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1();
    built
        .inspect_err(|error| tracing::warn!(%error, "reflection is off"))
        .ok()
}

pub use connections::{Bounds, Connection, incoming};
