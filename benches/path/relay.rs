//! The floor: the same gRPC server and the same HTTP client as the sidecar, and between them nothing
//! but copying. Each `data:` line becomes one message. It decodes nothing, keeps nothing, recovers
//! nothing.

use std::{
    future::Future,
    net::Ipv4Addr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use http::{Request, header};
use http_body::Body;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, SendRequest},
};
use hyper_util::rt::TokioIo;
use redrive::proto::{
    CompleteRequest, CompleteResponse, Delta, GenerateRequest, GenerateResponse,
    delta::Content,
    generate_request,
    generate_response::Frame,
    generation_service_server::{GenerationService, GenerationServiceServer},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::{Stream, StreamExt, wrappers::TcpListenerStream};
use tonic::{Response, Status, Streaming};

/// Serves until the process is killed; the first line of its output is its port.
pub async fn run(provider: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let incoming = TcpListenerStream::new(listener).map(|stream| {
        let stream = stream?;
        stream.set_nodelay(true)?;
        Ok::<_, std::io::Error>(stream)
    });
    let relay = Relay(Arc::new(Provider {
        address: provider.to_owned(),
        idle: Mutex::default(),
    }));
    // As in src/server/mod.rs.
    tonic::transport::Server::builder()
        .max_concurrent_streams(1024)
        .http2_keepalive_interval(Some(Duration::from_secs(20)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_header_list_size(16 << 10)
        .http2_max_pending_accept_reset_streams(Some(20))
        .add_service(
            GenerationServiceServer::new(relay)
                .max_decoding_message_size(16 << 20)
                .max_encoding_message_size(4 << 20),
        )
        .serve_with_incoming(incoming)
        .await
        .unwrap();
}

type Sender = SendRequest<Full<Bytes>>;

/// Connections to the provider.
struct Provider {
    address: String,
    idle: Mutex<Vec<Sender>>,
}

impl Provider {
    async fn connection(&self) -> Sender {
        loop {
            let idle = self.idle.lock().unwrap().pop();
            match idle {
                Some(sender) if sender.is_ready() => return sender,
                Some(_) => {}
                None => break,
            }
        }
        let stream = TcpStream::connect(&self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        // As in src/upstream/http/h1.rs.
        let (sender, connection) = Builder::new()
            .max_headers(128)
            .max_header_size(64 << 10)
            .max_buf_size(128 << 10)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        sender
    }
}

struct Relay(Arc<Provider>);

#[tonic::async_trait]
impl GenerationService for Relay {
    type GenerateStream = Rpc;

    async fn generate(
        &self,
        request: tonic::Request<Streaming<GenerateRequest>>,
    ) -> Result<Response<Rpc>, Status> {
        let opening = open(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(Rpc::Opening(Box::pin(opening))))
    }

    async fn complete(
        &self,
        _: tonic::Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        Err(Status::unimplemented("only Generate is measured"))
    }
}

async fn open(provider: Arc<Provider>, mut inbound: Streaming<GenerateRequest>) -> Lines {
    let first = inbound.message().await.unwrap().unwrap();
    let Some(generate_request::Frame::Start(start)) = first.frame else {
        panic!("no start");
    };
    let body = format!("{{\"model\":\"{}\"}}", start.model);
    let mut sender = provider.connection().await;
    let request = Request::post("/v1/chat/completions")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    Lines {
        provider,
        sender: Some(sender),
        body: response.into_body(),
        buffer: BytesMut::new(),
        sequence: 0,
        _inbound: inbound,
    }
}

/// The response stream of one RPC.
enum Rpc {
    Opening(Pin<Box<dyn Future<Output = Lines> + Send>>),
    Open(Box<Lines>),
}

struct Lines {
    provider: Arc<Provider>,
    sender: Option<Sender>,
    body: Incoming,
    buffer: BytesMut,
    sequence: u64,
    _inbound: Streaming<GenerateRequest>,
}

impl Stream for Rpc {
    type Item = Result<GenerateResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut *self {
                Self::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Ready(lines) => *self = Self::Open(Box::new(lines)),
                    Poll::Pending => return Poll::Pending,
                },
                Self::Open(lines) => return lines.poll_message(cx),
            }
        }
    }
}

impl Lines {
    fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<GenerateResponse, Status>>> {
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let mut line = self.buffer.split_to(end);
                self.buffer.advance(1);
                if line.starts_with(b"data: ") {
                    line.advance(6);
                    return Poll::Ready(Some(Ok(self.message(line.freeze()))));
                }
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(Status::unavailable(error.to_string()))));
                }
                Poll::Ready(None) => {
                    let idle = self.sender.take();
                    self.provider.idle.lock().unwrap().extend(idle);
                    return Poll::Ready(None);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn message(&mut self, line: Bytes) -> GenerateResponse {
        self.sequence += 1;
        GenerateResponse {
            sequence: self.sequence,
            frame: Some(Frame::Delta(Delta {
                attempt: 1,
                block: 0,
                content: Some(Content::NativeEvent(line)),
            })),
        }
    }
}
