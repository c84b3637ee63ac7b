//! Clients that take what a listener has: file descriptors, and places.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, net::TcpStream, time};

use crate::{
    providers::{answering, whole},
    sidecar::Sidecar,
};

async fn connections(address: std::net::SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(TcpStream::connect(address).await.unwrap());
    }
    open
}

#[tokio::test]
async fn out_of_descriptors_the_grpc_listener_waits_without_spinning_and_recovers() {
    let provider = answering(whole()).await;
    let sidecar = Sidecar::start(provider, 64).await;
    let taken = connections(sidecar.grpc, 100).await;
    time::sleep(Duration::from_millis(300)).await;
    let busy = sidecar.busy_for().await;
    assert!(busy < Duration::from_millis(100), "{busy:?} of a second");
    drop(taken);
    assert_eq!(sidecar.generate().await.message(), "Hello");
}

#[tokio::test]
async fn slow_clients_of_the_public_listener_do_not_shut_out_a_probe() {
    let sidecar = Sidecar::start(answering(whole()).await, 1024).await;
    let mut slow = connections(sidecar.public, 40).await;
    for stream in &mut slow {
        // Those that had to make room for others are closed already.
        let _ = stream.write_all(b"GET /readyz HT").await;
    }
    assert!(sidecar.is_ready().await);
}
