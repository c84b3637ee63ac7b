//! The admin listener, on loopback only: what an operator or a pod's hook may do to this process.
//!
//! | path | answers |
//! |---|---|
//! | `POST /drain` | starts the drain, 202; again: the same |
//! | `GET /drain` | how the drain goes |
//! | `GET /status` | how generations, leases and budgets stand, as JSON |
//! | `GET /readyz` | as on the public listener |

use axum::{
    Json, Router,
    extract::State as With,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing,
};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Readiness, State, http, overview::Overview, public};
use crate::{budgets::Budgets, telemetry::Gauge};

/// What the admin listener acts on.
#[derive(Clone)]
pub struct Admin {
    /// The state of the process.
    pub readiness: Readiness,
    /// Cancelled to start the drain.
    pub drain: CancellationToken,
    /// Generations that have not ended.
    pub generations: Gauge,
    /// Who may send.
    pub budgets: Budgets,
}

/// How a drain goes; the body of both `/drain` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStatus {
    /// No new generations are taken.
    pub draining: bool,
    /// Generations that have not ended.
    pub generations: i64,
}

/// Serves the admin listener until `shutdown`.
pub async fn serve(listener: TcpListener, admin: Admin, shutdown: CancellationToken) {
    let drain = routing::get(status).post(start).with_state(admin.clone());
    let overview = routing::get(overview).with_state(admin.clone());
    let router = Router::new()
        .route("/drain", drain)
        .route("/status", overview)
        .merge(public::readyz(admin.readiness));
    http::serve(listener, router, shutdown).await;
}

impl Admin {
    fn status(&self) -> DrainStatus {
        DrainStatus {
            draining: self.readiness.state() == State::Draining,
            generations: self.generations.value(),
        }
    }
}

async fn status(With(admin): With<Admin>) -> Json<DrainStatus> {
    Json(admin.status())
}

async fn overview(With(admin): With<Admin>) -> Json<Overview> {
    admin.budgets.refresh().await;
    Json(Overview::new(admin.status(), &admin.budgets))
}

async fn start(With(admin): With<Admin>, headers: HeaderMap) -> Response {
    // Loopback is in reach of every web page that is open on a developer's machine. Browsers name
    // the page; nobody else does.
    if headers.contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "not from a web page\n").into_response();
    }
    admin.readiness.advance(State::Draining);
    admin.drain.cancel();
    (StatusCode::ACCEPTED, Json(admin.status())).into_response()
}
