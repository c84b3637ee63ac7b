//! Everything before the hand-over: whatever fails there has provably sent nothing.

use std::{net::TcpListener as StdListener, sync::Arc, time::Duration};

use redrive::{
    upstream::http::Door,
    verdict::{Stage, transport::TransportKind},
};
use socket2::{Domain, Socket, Type};

use crate::support::{Server, call, call_once, endpoint, open, read, request};

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let port = {
        let closed = StdListener::bind("127.0.0.1:0").unwrap();
        closed.local_addr().unwrap().port()
    };
    let told = call_once(endpoint(&format!("http://127.0.0.1:{port}"))).await;
    assert_eq!(told.failure(), (TransportKind::Connect, Stage::Connect));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_sent() {
    let told = call_once(endpoint("http://no-such-host.invalid")).await;
    assert_eq!(told.failure(), (TransportKind::Dns, Stage::Connect));
    assert!(
        told.end
            .unwrap_err()
            .detail
            .contains("no-such-host.invalid")
    );
}

#[tokio::test]
async fn a_base_url_that_cannot_be_used_is_not_sent() {
    for url in ["ftp://127.0.0.1/", "/v1"] {
        let told = call_once(endpoint(url)).await;
        assert_eq!(told.failure(), (TransportKind::Connect, Stage::Connect));
    }
}

/// A listener whose queue of unaccepted connections is full: the kernel drops further SYNs.
struct BlackHole {
    address: std::net::SocketAddr,
    _held: (Socket, Vec<std::net::TcpStream>),
}

fn black_hole() -> BlackHole {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(
            &"127.0.0.1:0"
                .parse::<std::net::SocketAddr>()
                .unwrap()
                .into(),
        )
        .unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let full = std::iter::from_fn(|| {
        std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok()
    });
    let held = full.take(16).collect();
    BlackHole {
        address,
        _held: (socket, held),
    }
}

#[tokio::test]
async fn the_connect_timer_ends_an_attempt_that_was_not_sent() {
    let hole = black_hole();
    let mut request = request();
    request.connect_timeout = Duration::from_millis(200);
    let endpoint = Arc::new(endpoint(&format!("http://{}", hole.address)));
    let told = read(&mut open(&Door::new(), &endpoint, request).await).await;
    assert!(!told.sent);
    assert_eq!(
        told.failure(),
        (TransportKind::NotSentInTime, Stage::Connect)
    );
}

#[tokio::test]
async fn without_a_connect_timer_the_connection_has_all_the_time_it_needs() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.answer("data: hello\n\n").await;
    })
    .await;
    let mut request = request();
    request.connect_timeout = Duration::ZERO;
    let told = read(&mut open(&Door::new(), &Arc::new(server.endpoint()), request).await).await;
    assert_eq!(told.end, Ok(()));
}

#[tokio::test]
async fn a_name_with_a_dead_address_of_the_other_family_is_reached_all_the_same() {
    // localhost resolves to ::1 as well on most machines, where nothing listens on this port.
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.answer("data: hello\n\n").await;
    })
    .await;
    let told = call_once(endpoint(&format!(
        "http://localhost:{}",
        server.address.port()
    )))
    .await;
    assert_eq!(told.end, Ok(()));
    assert_eq!(server.log.requests(), 1);
}

#[tokio::test]
async fn an_ipv6_literal_is_reached() {
    if StdListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: no IPv6 loopback here");
        return;
    }
    let server = Server::start_on("[::1]:0".parse().unwrap(), |mut peer, _| async move {
        peer.request().await;
        peer.answer("data: hello\n\n").await;
    })
    .await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(told.end, Ok(()));
    assert!(server.log.heads()[0].contains(&format!("host: [::1]:{}", server.address.port())));
}

#[tokio::test]
async fn a_request_path_that_is_not_a_path_is_not_sent() {
    let server = Server::start(|_, _| async {}).await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    let mut request = request();
    request.path = "/a b\r\nx: y".into();
    let told = read(&mut open(&door, &endpoint, request).await).await;
    assert_eq!(told.failure(), (TransportKind::Protocol, Stage::Connect));
    assert_eq!(server.log.connections(), 0);
    // The slot came back.
    for _ in 0..endpoint.max_connections {
        call(&door, &endpoint).await;
    }
}
