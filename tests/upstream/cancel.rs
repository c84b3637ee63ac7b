//! A dropped exchange ends with the provider at once: the one bound in time, 100 ms.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redrive::upstream::{Exchange, Signal, http::Door};
use tokio::sync::mpsc;

use crate::support::{OK_CHUNKED, Server, chunk, next, open, request, settle, told};

const BOUND: Duration = Duration::from_millis(100);

/// A server that answers with `response`, and tells when the other side closed.
async fn tells_when_closed(response: String) -> (Server, mpsc::Receiver<Instant>) {
    let (closed, when) = mpsc::channel(1);
    let server = Server::start(move |mut peer, _| {
        let (response, closed) = (response.clone(), closed.clone());
        async move {
            peer.request().await;
            peer.write(response).await;
            peer.gone().await;
            closed.send(Instant::now()).await.unwrap();
        }
    })
    .await;
    (server, when)
}

async fn drop_and_measure(exchange: Box<dyn Exchange>, mut when: mpsc::Receiver<Instant>) {
    let dropped = Instant::now();
    drop(exchange);
    let seen = told(&mut when).await;
    assert!(seen - dropped < BOUND, "seen after {:?}", seen - dropped);
}

#[tokio::test]
async fn before_the_head_the_server_sees_the_close_within_100_ms() {
    let (server, when) = tells_when_closed(String::new()).await;
    let mut exchange = open(&Door::new(), &Arc::new(server.endpoint()), request()).await;
    assert!(matches!(next(&mut exchange).await, Signal::Sent));
    settle().await;
    drop_and_measure(exchange, when).await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
}

#[tokio::test]
async fn within_the_body_the_server_sees_the_close_within_100_ms() {
    let (server, when) = tells_when_closed(format!("{OK_CHUNKED}{}", chunk("data: one\n\n"))).await;
    let mut exchange = open(&Door::new(), &Arc::new(server.endpoint()), request()).await;
    while !matches!(next(&mut exchange).await, Signal::Data(_)) {}
    drop_and_measure(exchange, when).await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
}

#[tokio::test]
async fn an_exchange_dropped_before_its_hand_over_sends_nothing() {
    let (server, _when) = tells_when_closed(String::new()).await;
    let exchange = open(&Door::new(), &Arc::new(server.endpoint()), request()).await;
    drop(exchange);
    settle().await;
    assert_eq!((server.log.connections(), server.log.requests()), (0, 0));
}
