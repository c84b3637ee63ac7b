//! Scripted byte servers, and the client's side of an exchange.

use std::{
    future::{Future, poll_fn},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use redrive::{
    upstream::{Endpoint, Exchange, Http2, Request, Signal, Upstream, http::Door},
    verdict::{
        Stage,
        transport::{TransportError, TransportKind},
    },
};
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the servers of one test have seen.
#[derive(Clone, Default)]
pub struct Log(Arc<Counts>);

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    closed: AtomicUsize,
    requests: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

impl Log {
    /// A connection was accepted.
    pub fn connected(&self) {
        self.0.connections.fetch_add(1, Ordering::SeqCst);
    }

    /// A request has begun to arrive.
    pub fn requested(&self, head: String) {
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        self.0.heads.lock().unwrap().push(head);
    }

    pub fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }

    /// Connections whose script has not ended.
    pub fn open(&self) -> usize {
        self.connections() - self.0.closed.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.0.requests.load(Ordering::SeqCst)
    }

    /// The heads of the requests, in order.
    pub fn heads(&self) -> Vec<String> {
        self.0.heads.lock().unwrap().clone()
    }
}

/// A server that plays one script per connection.
pub struct Server {
    pub address: SocketAddr,
    pub log: Log,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// On 127.0.0.1; `script` gets each connection and its number from 0.
    pub async fn start<F>(script: impl Fn(Peer, usize) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start_on("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub async fn start_on<F>(
        address: SocketAddr,
        script: impl Fn(Peer, usize) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Log::default();
        let seen = log.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = seen.connections();
                seen.connected();
                let run = script(Peer::new(stream, seen.clone()), number);
                let seen = seen.clone();
                tokio::spawn(async move {
                    // A script may panic where the client is gone; its connection is closed all the same.
                    let _ = tokio::spawn(run).await;
                    seen.0.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, log, task }
    }

    pub fn endpoint(&self) -> Endpoint {
        endpoint(&format!("http://{}/v1", self.address))
    }
}

/// The server's end of one connection.
pub struct Peer<S = TcpStream> {
    pub stream: S,
    pub log: Log,
    read: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub fn new(stream: S, log: Log) -> Self {
        Self {
            stream,
            log,
            read: Vec::new(),
        }
    }

    /// Waits for one whole request; `false` if the peer closes first.
    pub async fn request(&mut self) -> bool {
        let Some(head) = self.head().await else {
            return false;
        };
        let length = head
            .lines()
            .find_map(|line| {
                line.strip_prefix("content-length: ")?
                    .trim()
                    .parse::<usize>()
                    .ok()
            })
            .unwrap_or(0);
        while self.read.len() < length {
            if !self.more().await {
                return false;
            }
        }
        self.read.drain(..length);
        true
    }

    /// Waits for a request head and counts it.
    pub async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.read.drain(..end + 4).collect();
                let head = String::from_utf8(head).unwrap();
                self.log.requested(head.clone());
                return Some(head);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn more(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.read).await;
        matches!(read, Ok(n) if n > 0)
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Answers 200 with `body` in one chunk, and its end.
    pub async fn answer(&mut self, body: &str) {
        self.write(format!("{OK_CHUNKED}{}0\r\n\r\n", chunk(body)))
            .await;
    }

    /// Waits until the other side has closed; bytes before that are dropped.
    pub async fn gone(&mut self) {
        while self.more().await {
            self.read.clear();
        }
    }
}

impl Peer {
    /// Closes with RST instead of FIN.
    pub fn reset(self) {
        SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
}

pub const OK_CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
pub fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

pub fn endpoint(base_url: &str) -> Endpoint {
    Endpoint {
        name: "test".into(),
        base_url: base_url.parse().unwrap(),
        max_connections: 4,
        http2: Http2::Auto,
        extra_ca: None,
        proxy: None,
    }
}

pub fn request() -> Request {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert(
        "authorization",
        HeaderValue::from_static("Bearer sk-secret"),
    );
    Request {
        method: http::Method::POST,
        path: "/chat/completions".into(),
        headers,
        body: Bytes::from_static(b"{\"model\":\"m\"}"),
        connect_timeout: Duration::from_secs(10),
    }
}

/// Waits for what a server tells.
pub async fn told<T>(channel: &mut tokio::sync::mpsc::Receiver<T>) -> T {
    let message = tokio::time::timeout(Duration::from_secs(20), channel.recv());
    message
        .await
        .expect("a word from the server within 20 s")
        .unwrap()
}

/// What an exchange told, whole.
#[derive(Debug)]
pub struct Told {
    pub sent: bool,
    pub status: Option<StatusCode>,
    pub body: String,
    pub end: Result<(), TransportError>,
}

impl Told {
    /// The failure's kind and stage.
    pub fn failure(&self) -> (TransportKind, Stage) {
        let error = self
            .end
            .as_ref()
            .expect_err("the exchange should have failed");
        (error.kind, error.stage)
    }
}

pub async fn next(exchange: &mut Box<dyn Exchange>) -> Signal {
    let signal = poll_fn(|cx| exchange.poll_signal(cx));
    tokio::time::timeout(Duration::from_secs(20), signal)
        .await
        .expect("a signal within 20 s")
}

/// Reads an exchange to its end and checks the order of its signals.
pub async fn read(exchange: &mut Box<dyn Exchange>) -> Told {
    let mut told = Told {
        sent: false,
        status: None,
        body: String::new(),
        end: Ok(()),
    };
    let mut body = Vec::new();
    loop {
        match next(exchange).await {
            Signal::Sent => {
                assert!(
                    !told.sent && told.status.is_none(),
                    "Sent comes once, and first"
                );
                told.sent = true;
            }
            Signal::Head { status, .. } => {
                assert!(
                    told.sent && told.status.is_none(),
                    "Head comes once, after Sent"
                );
                told.status = Some(status);
            }
            Signal::Data(data) => {
                assert!(
                    told.status.is_some() && !data.is_empty(),
                    "Data comes after Head"
                );
                body.extend_from_slice(&data);
            }
            Signal::End => break,
            Signal::Failed(error) => {
                if error.stage == Stage::Connect {
                    assert!(!told.sent, "nothing was told sent that was not: {error:?}");
                }
                told.end = Err(error);
                break;
            }
        }
    }
    told.body = String::from_utf8(body).unwrap();
    told
}

/// Opens an exchange without reading it.
pub async fn open(door: &Door, endpoint: &Arc<Endpoint>, request: Request) -> Box<dyn Exchange> {
    let slot = door.slot(endpoint).await.unwrap();
    door.open(endpoint, slot, request, None)
}

/// One exchange, whole.
pub async fn call(door: &Door, endpoint: &Arc<Endpoint>) -> Told {
    read(&mut open(door, endpoint, request()).await).await
}

/// One exchange through a door of its own.
pub async fn call_once(endpoint: Endpoint) -> Told {
    call(&Door::new(), &Arc::new(endpoint)).await
}

/// Lets every task that can run do so, and the kernel deliver what was sent on loopback.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
