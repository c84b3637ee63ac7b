//! A client by hand, on HTTP/2 frames: for what a real gRPC client never does.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};
use prost::Message;
use redrive::proto::Start;

use super::bench::Bench;

/// How a stream ended.
#[derive(Debug)]
pub struct Answer {
    pub status: i32,
    pub message: String,
    pub body: Vec<u8>,
}

/// A connection, which ends when this is dropped.
pub struct Connection {
    requests: SendRequest<Bytes>,
    pub task: tokio::task::JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A stream of `Generate`.
pub struct Stream {
    pub send: h2::SendStream<Bytes>,
    pub response: h2::client::ResponseFuture,
}

impl Connection {
    pub async fn open(bench: &Bench) -> Connection {
        let (requests, connection) = h2::client::handshake(bench.pipe()).await.unwrap();
        let task = tokio::spawn(async move {
            // Its end is the test's.
            let _ = connection.await;
        });
        Connection {
            requests: requests.ready().await.unwrap(),
            task,
        }
    }

    pub fn generate(&mut self) -> Stream {
        self.call("redrive.v1.GenerationService/Generate")
    }

    /// Opens a stream of any method.
    pub fn call(&mut self, method: &str) -> Stream {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://sidecar.test/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (response, send) = self.requests.send_request(request, false).unwrap();
        Stream { send, response }
    }
}

/// Bytes of one gRPC message.
pub fn framed(message: &[u8]) -> Bytes {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes.into()
}

/// The frame that starts `start`.
pub fn start(start: &Start) -> Bytes {
    let frame = super::start::request(super::start::generate(start.clone()));
    framed(&frame.encode_to_vec())
}

/// Sends `body` on one stream of `method`, half-closes it and reads to its end.
pub async fn call(bench: &Bench, method: &str, body: &[u8]) -> Answer {
    let mut connection = Connection::open(bench).await;
    let mut stream = connection.call(method);
    stream
        .send
        .send_data(Bytes::copy_from_slice(body), true)
        .unwrap();
    let (head, mut responses) = stream.response.await.unwrap().into_parts();
    let mut body = Vec::new();
    while let Some(data) = responses.data().await {
        let data = data.unwrap();
        body.extend_from_slice(&data);
        let _ = responses.flow_control().release_capacity(data.len());
    }
    // A response without a body has its status in its head.
    let trailers = responses.trailers().await.unwrap().unwrap_or(head.headers);
    let text = |name: &str| {
        trailers
            .get(name)
            .map_or("", |v| v.to_str().unwrap())
            .to_owned()
    };
    Answer {
        status: text("grpc-status").parse().unwrap(),
        message: text("grpc-message"),
        body,
    }
}
