//! Providers that are never out of bytes.

use std::{
    io::Write,
    net::SocketAddr,
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use redrive::proto::VerdictClass as Class;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    sidecar::Sidecar,
    support::{DONE, KEEPALIVE, finish, text},
};

/// A provider that answers the first bytes of every connection with `response`.
pub async fn answering(response: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let response = response.clone();
            tokio::spawn(async move {
                let mut request = [0; 16 << 10];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(&response).await;
                while matches!(stream.read(&mut request).await, Ok(count) if count > 0) {}
            });
        }
    });
    address
}

/// A whole answer.
pub fn whole() -> Vec<u8> {
    response("", [&text("Hello"), &finish("stop"), DONE].concat().into())
}

fn response(headers: &str, body: Vec<u8>) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}\
         content-length: {length}\r\n\r\n"
    );
    [head.into_bytes(), body].concat()
}

/// 256 MiB of keepalives in less than 1 MiB.
fn flood() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let keepalives = KEEPALIVE.repeat((1 << 20) / KEEPALIVE.len());
    encoder.write_all(keepalives.as_bytes()).unwrap();
    encoder.finish().unwrap().repeat(256)
}

#[tokio::test]
async fn a_gzip_flood_of_keepalives_does_not_stop_the_clock() {
    let provider = answering(response("content-encoding: gzip\r\n", flood())).await;
    let sidecar = Sidecar::start(provider, 1024).await;
    let from = Instant::now();
    let ended = sidecar.generate().await;
    assert_eq!(ended.class(), Class::TimeoutFirstToken);
    let took = from.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let busy = sidecar.busy_for().await;
    assert!(busy < Duration::from_millis(100), "{busy:?} of a second");
}
