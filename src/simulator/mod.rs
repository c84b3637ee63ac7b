//! IO. A provider that does as it is told: it answers each request with a [`Script`], over a real
//! socket.
//!
//! Owns a listener on a free loopback port and a count of what was asked. Knows nothing of the sidecar,
//! which must not be able to tell it from a real provider. Which script answers which request is the
//! caller's: a function from [`Asked`] to [`Script`].

pub mod chat;
mod playback;
mod script;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::playback::Playback;
pub use self::script::{Script, Step};

/// The largest request body, in bytes. Fixed.
const MAX_REQUEST: usize = 16 << 20;

/// The most models whose requests are counted apart. Fixed; there are no answers for further ones.
const MAX_MODELS: usize = 1024;

/// The most connections at a time. Fixed; further ones wait.
const MAX_CONNECTIONS: usize = 1024;

/// A request that is to be answered.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The model in its body.
    pub model: String,
    /// How many requests for this model have come, this one included.
    pub nth: usize,
    /// The body.
    pub body: Bytes,
}

/// A running provider. It ends, with all its connections, when this is dropped.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    log: Arc<Log>,
    _stop: DropGuard,
}

impl Simulator {
    /// Listens on a free port of 127.0.0.1 and answers `POST /v1/chat/completions` as `answer` says.
    ///
    /// # Errors
    /// If no port can be opened.
    pub async fn start(
        answer: impl Fn(&Asked) -> Script + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let log = Arc::new(Log::default());
        let stop = CancellationToken::new();
        let desk = Arc::new(Desk {
            log: Arc::clone(&log),
            answer: Box::new(answer),
        });
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(accept(listener, desk, stop.clone())),
        );
        Ok(Self {
            address,
            log,
            _stop: stop.drop_guard(),
        })
    }

    /// Where it listens. Its API is below `/v1`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests for `model` have come.
    pub fn requests(&self, model: &str) -> usize {
        self.log.count(model)
    }
}

/// How many requests have come, by model.
#[derive(Debug, Default)]
struct Log(Mutex<BTreeMap<String, usize>>);

impl Log {
    /// Counts one more; which it is. `None`: too many models.
    fn add(&self, model: &str) -> Option<usize> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_MODELS && !counts.contains_key(model) {
            return None;
        }
        let count = counts.entry(model.to_owned()).or_default();
        *count += 1;
        Some(*count)
    }

    fn count(&self, model: &str) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(model).copied().unwrap_or_default()
    }
}

struct Desk {
    log: Arc<Log>,
    answer: Box<dyn Fn(&Asked) -> Script + Send + Sync>,
}

async fn accept(listener: TcpListener, desk: Arc<Desk>, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // A listener that fails for want of descriptors would fail again at once: it ends instead.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await
        && let Ok((stream, _)) = listener.accept().await
    {
        let desk = Arc::clone(&desk);
        let service = service_fn(move |request| {
            let desk = Arc::clone(&desk);
            async move { Ok::<_, Infallible>(desk.respond(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let stop = stop.clone();
        tokio::spawn(async move {
            // A script that cuts its stream is an error of the connection, and meant.
            let _ = stop.run_until_cancelled(connection).await;
            drop(place);
        });
    }
}

impl Desk {
    async fn respond(&self, request: Request<Incoming>) -> Response<Playback> {
        match self.script(request).await {
            Ok(script) => playback::response(script),
            Err((status, message)) => playback::response(chat::error(status, message)),
        }
    }

    async fn script(
        &self,
        request: Request<Incoming>,
    ) -> Result<Script, (StatusCode, &'static str)> {
        let path = request.uri().path();
        if path != "/v1/chat/completions" {
            return Err((StatusCode::NOT_FOUND, "only /v1/chat/completions is here"));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only POST is answered"));
        }
        let body = Limited::new(request.into_body(), MAX_REQUEST).collect();
        let too_large = (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is cut or too large",
        );
        let body = body.await.map_err(|_| too_large)?.to_bytes();
        let wrong = (StatusCode::BAD_REQUEST, "the body is no chat request");
        let Wanted { model } = serde_json::from_slice(&body).map_err(|_| wrong)?;
        let too_many = (StatusCode::BAD_REQUEST, "too many models were asked for");
        let nth = self.log.add(&model).ok_or(too_many)?;
        Ok((self.answer)(&Asked { model, nth, body }))
    }
}

/// What is read of a request.
#[derive(Deserialize)]
struct Wanted {
    model: String,
}
