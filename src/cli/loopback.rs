//! One HTTP request to our own listeners, for `redrive health`, `redrive drain` and `redrive
//! budgets`. It goes to the sidecar itself, never to a provider: nothing here costs money or needs an account.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time};

/// The longest answer that is read, in bytes: the status of as many budgets and limits as there may be.
const MAX_ANSWER: usize = 1 << 20;

/// An answer of the sidecar.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoopbackError {
    #[error(
        "nothing answers at {address} ({source}); is the sidecar running, and is this its address?"
    )]
    Connect {
        address: String,
        source: std::io::Error,
    },
    #[error("no answer from {address} within {}", humantime::format_duration(*.timeout))]
    Timeout { address: String, timeout: Duration },
    #[error("what listens at {address} is not the sidecar ({reason})")]
    NotHttp { address: String, reason: String },
}

/// Asks the listener at `address` (`HOST:PORT`) within `timeout`.
pub(super) async fn ask(
    method: Method,
    address: &str,
    path: &str,
    timeout: Duration,
) -> Result<Answer, LoopbackError> {
    time::timeout(timeout, exchange(method, address, path))
        .await
        .unwrap_or_else(|_| {
            Err(LoopbackError::Timeout {
                address: address.to_owned(),
                timeout,
            })
        })
}

#[allow(
    clippy::disallowed_methods,
    reason = "asks this sidecar's own health or admin listener; no provider is reached this way"
)]
async fn exchange(method: Method, address: &str, path: &str) -> Result<Answer, LoopbackError> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|source| LoopbackError::Connect {
            address: address.to_owned(),
            source,
        })?;
    let not_http = |reason: String| LoopbackError::NotHttp {
        address: address.to_owned(),
        reason,
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address)
        .body(Empty::<Bytes>::new())
        .map_err(|error| not_http(error.to_string()))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| not_http(error.to_string()))?;
    let answer = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(Answer {
            status,
            body: String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
        })
    };
    tokio::select! {
        answer = answer => answer.map_err(not_http),
        Err(error) = connection => Err(not_http(error.to_string())),
    }
}
