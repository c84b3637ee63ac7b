//! The public listener: health and metrics, for the kubelet and for Prometheus, which dial the pod's
//! address. It shows nothing that is not meant for everyone who can reach it, and changes nothing.
//!
//! | path | answers |
//! |---|---|
//! | `GET /healthz` | 200 as long as the process can answer at all |
//! | `GET /readyz` | 200 where new generations are taken, else 503 and what stands in the way |
//! | `GET /metrics` | Prometheus text, or 404 where `telemetry.metrics.prometheus` is off |

use axum::{
    Router,
    extract::State as With,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Readiness, State, http};
use crate::telemetry::Telemetry;

/// The content type of Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the public listener until `shutdown`. It outlives a drain: until the end somebody wants to
/// know how it goes.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    telemetry: Telemetry,
    shutdown: CancellationToken,
) {
    let router = Router::new()
        .route("/healthz", routing::get("ok\n"))
        .route("/metrics", routing::get(metrics).with_state(telemetry))
        .merge(readyz(readiness));
    http::serve(listener, router, shutdown).await;
}

/// `GET /readyz`, for both listeners.
pub(super) fn readyz(readiness: Readiness) -> Router {
    Router::new().route("/readyz", routing::get(ready).with_state(readiness))
}

async fn ready(With(readiness): With<Readiness>) -> Response {
    let state = readiness.state();
    let status = match state {
        State::Ready => StatusCode::OK,
        State::Starting | State::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{}\n", state.name())).into_response()
}

async fn metrics(With(telemetry): With<Telemetry>) -> Response {
    match telemetry.render_metrics() {
        Some(text) => ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
        None => (StatusCode::NOT_FOUND, "metrics are switched off\n").into_response(),
    }
}
