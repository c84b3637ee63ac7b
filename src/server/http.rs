//! The HTTP/1.1 server under the public and the admin listener: small, and bounded in every way.
//!
//! A connection carries one request and lives for ten seconds at most, whether its client is slow to
//! ask, slow to read, or gone. Where all places are taken the oldest one makes room, so that slow
//! clients do not shut out a probe. Request bodies are never read.

use std::{collections::VecDeque, io, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time,
};
use tokio_util::sync::CancellationToken;

/// Connections of one listener at once.
const MAX_CONNECTIONS: usize = 32;

/// From accepting a connection to closing it.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a request head. The smallest hyper allows.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// Headers of a request.
const MAX_HEADERS: usize = 32;

/// Pause after a failed accept, mostly for want of file descriptors: trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` until `shutdown`, then drops the connections that are left.
pub(super) async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(_) = connections.join_next() => by_age.retain(|c| !c.is_finished()),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if connections.len() >= MAX_CONNECTIONS
                        && let Some(oldest) = by_age.pop_front()
                    {
                        oldest.abort();
                    }
                    by_age.push_back(connections.spawn(connection(stream, router.clone())));
                }
                Err(error) => pause(&error).await,
            },
        }
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    time::sleep(ACCEPT_PAUSE).await;
}

async fn connection(stream: TcpStream, router: Router) {
    let exchange = http1::Builder::new()
        .keep_alive(false)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that is late, rude or gone concerns nobody else.
    let _ = time::timeout(CONNECTION_TIMEOUT, exchange).await;
}
