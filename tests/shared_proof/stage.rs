//! An engine, a fleet on it, and the engine's first grant.

use std::time::Duration;

use super::{
    fleet::{Fleet, Limits},
    load::{Call, Clients, Load},
    proof::lasts,
    server::{Kind, Server, program},
};

/// Short windows, so that many are seen.
pub const LIMITS: Limits = Limits {
    requests: 20,
    window: Duration::from_secs(1),
    concurrent: Some(12),
};

/// What is said where the engine is lost.
pub const CLOSED: &str = "on_loss: closed";

pub struct Stage {
    pub server: Server,
    pub fleet: Fleet,
    /// The call that showed that the engine grants.
    pub first: Vec<Call>,
}

/// Whether there is such a server; says so if not.
pub fn has(kind: Kind) -> bool {
    let program = program(kind);
    if let Err(why) = program {
        eprintln!("SKIPPED: no {kind:?} server: {why}");
    }
    program.is_ok()
}

/// The keys of the engine behind `port`.
pub fn engine(port: u16, on_loss: &str) -> String {
    format!("url: 'redis://127.0.0.1:{port}', timeout: 100ms, {on_loss}")
}

impl Stage {
    pub async fn of(kind: Kind, limits: Limits, on_loss: &str) -> Self {
        Self::on(Server::start(kind), limits, on_loss).await
    }

    pub async fn on(server: Server, limits: Limits, on_loss: &str) -> Self {
        let fleet = Fleet::start(limits, &engine(server.port, on_loss)).await;
        let first = fleet.granted().await;
        Self {
            server,
            fleet,
            first,
        }
    }

    /// Clients of the shared budget at every pod.
    pub fn load(&self) -> Load {
        all(&self.fleet, Clients::new("default"))
    }
}

/// Clients at every pod.
pub fn all(fleet: &Fleet, clients: Clients) -> Load {
    fleet.load(0..fleet.pods.len(), clients)
}

/// Lets the load run for a while.
pub async fn a_while() {
    tokio::time::sleep(lasts(Duration::from_secs(4), Duration::from_secs(60))).await;
}
