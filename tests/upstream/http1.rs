//! HTTP/1.1: what is sent, and that it is sent once.

use std::sync::Arc;

use redrive::{
    upstream::http::Door,
    verdict::{Stage, transport::TransportKind},
};

use crate::support::{
    OK_CHUNKED, Peer, Server, call, call_once, chunk, next, open, read, request, settle,
};

async fn answers_forever(mut peer: Peer, _: usize) {
    while peer.request().await {
        peer.answer("data: hello\n\n").await;
    }
}

#[tokio::test]
async fn the_request_stands_on_the_wire_as_it_was_given() {
    let server = Server::start(answers_forever).await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(told.body, "data: hello\n\n");
    let head = server
        .log
        .heads()
        .remove(0)
        .replace(&server.address.to_string(), "ADDRESS");
    let mut lines: Vec<_> = head.trim_end().lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "POST /v1/chat/completions HTTP/1.1",
            "accept-encoding: identity",
            "authorization: Bearer sk-secret",
            "content-length: 13",
            "content-type: application/json",
            "host: ADDRESS",
            concat!("user-agent: redrive/", env!("CARGO_PKG_VERSION")),
        ]
    );
}

#[tokio::test]
async fn headers_that_belong_to_the_connection_are_not_the_callers() {
    let server = Server::start(answers_forever).await;
    let mut request = request();
    for (name, value) in [
        ("host", "elsewhere"),
        ("content-length", "999"),
        ("transfer-encoding", "chunked"),
        ("accept-encoding", "br"),
        ("connection", "upgrade"),
    ] {
        request.headers.insert(name, value.parse().unwrap());
    }
    let told = read(&mut open(&Door::new(), &Arc::new(server.endpoint()), request).await).await;
    assert_eq!(told.end, Ok(()));
    let head = server.log.heads().remove(0);
    assert!(head.contains("content-length: 13\r\n") && head.contains("accept-encoding: identity"));
    assert!(!head.contains("elsewhere") && !head.contains("chunked") && !head.contains("upgrade"));
}

#[tokio::test]
async fn redirects_are_told_and_never_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Server::start(answers_forever).await;
        let location = elsewhere.address;
        let server = Server::start(move |mut peer, _| async move {
            while peer.request().await {
                let head = format!("HTTP/1.1 {status} Moved\r\nlocation: http://{location}/\r\n");
                peer.write(head + "content-length: 0\r\n\r\n").await;
            }
        })
        .await;
        let told = call_once(server.endpoint()).await;
        assert_eq!(told.status.unwrap().as_u16(), status);
        settle().await;
        assert_eq!((server.log.requests(), elsewhere.log.connections()), (1, 0));
    }
}

#[tokio::test]
async fn exchanges_in_a_row_share_one_connection() {
    let server = Server::start(answers_forever).await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..5 {
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    }
    assert_eq!((server.log.connections(), server.log.requests()), (1, 5));
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_used() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.answer("data: hello\n\n").await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..3 {
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
        settle().await;
    }
    assert_eq!((server.log.connections(), server.log.requests()), (3, 3));
}

/// The close races the next exchange: whichever wins, a request is sent at most once, and what is told
/// unsent never arrived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_closed_at_the_hand_over_never_costs_a_second_send() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.answer("data: hello\n\n").await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    let (mut complete, mut maybe) = (0, 0);
    for _ in 0..300 {
        let before = server.log.requests();
        let told = call(&door, &endpoint).await;
        match told.end {
            Ok(()) => complete += 1,
            Err(error) => {
                assert_eq!(
                    (error.kind, error.stage),
                    (TransportKind::Reset, Stage::Request)
                );
                maybe += 1;
            }
        }
        assert!(server.log.requests() - before <= 1);
    }
    assert_eq!(
        complete,
        server.log.requests(),
        "{maybe} may have been sent"
    );
    assert!(complete >= 150, "{complete} complete, {maybe} cut off");
}

#[tokio::test]
async fn a_reused_connection_that_dies_under_the_request_fails_it_as_maybe_sent() {
    for reset in [true, false] {
        let server = Server::start(move |mut peer, _| async move {
            peer.request().await;
            peer.answer("data: hello\n\n").await;
            if peer.request().await && reset {
                peer.reset();
            }
        })
        .await;
        let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
        let told = call(&door, &endpoint).await;
        assert!(told.sent);
        assert_eq!(told.failure(), (TransportKind::Reset, Stage::Request));
        settle().await;
        assert_eq!((server.log.connections(), server.log.requests()), (1, 2));
    }
}

#[tokio::test]
async fn a_connection_reset_before_the_head_fails_as_maybe_sent() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(told.failure(), (TransportKind::Reset, Stage::Request));
    settle().await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
}

#[tokio::test]
async fn an_error_that_is_answered_before_the_request_was_read_is_told() {
    let server = Server::start(|mut peer, _| async move {
        peer.head().await.unwrap();
        peer.write("HTTP/1.1 413 Too Large\r\ncontent-length: 9\r\n\r\ntoo large")
            .await;
        peer.gone().await;
    })
    .await;
    let mut request = request();
    request.body = vec![b'y'; 8 << 20].into();
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    let told = read(&mut open(&door, &endpoint, request).await).await;
    assert_eq!(told.status.unwrap().as_u16(), 413);
    assert_eq!((told.body.as_str(), told.end), ("too large", Ok(())));
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
}

#[tokio::test]
async fn interim_responses_are_passed_over() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
            .await;
        peer.answer("data: hello\n\n").await;
    })
    .await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(
        (told.status.unwrap().as_u16(), told.body.as_str()),
        (200, "data: hello\n\n")
    );
}

#[tokio::test]
async fn a_switch_of_protocols_is_a_failure() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")
            .await;
        peer.gone().await;
    })
    .await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(told.failure(), (TransportKind::Protocol, Stage::Request));
}

#[tokio::test]
async fn an_http_1_0_body_ends_with_its_connection() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.write("HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nold but whole")
            .await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..2 {
        let told = call(&door, &endpoint).await;
        assert_eq!((told.body.as_str(), told.end), ("old but whole", Ok(())));
    }
    assert_eq!(server.log.connections(), 2);
}

#[tokio::test]
async fn connection_close_is_kept_to() {
    let server = Server::start(|mut peer, _| async move {
        while peer.request().await {
            peer.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")
                .await;
        }
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..2 {
        assert_eq!(call(&door, &endpoint).await.body, "ok");
    }
    assert_eq!((server.log.connections(), server.log.requests()), (2, 2));
}

#[tokio::test]
async fn bytes_after_the_end_cost_the_connection_and_not_the_exchange() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await;
        peer.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
            .await;
        peer.gone().await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..2 {
        let told = call(&door, &endpoint).await;
        assert_eq!((told.body.as_str(), told.end), ("ok", Ok(())));
        settle().await;
    }
    assert_eq!(server.log.connections(), 2);
}

#[tokio::test]
async fn a_condemned_connection_serves_nobody_else() {
    let server = Server::start(answers_forever).await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    let mut exchange = open(&door, &endpoint, request()).await;
    next(&mut exchange).await;
    exchange.condemn();
    assert_eq!(read_rest(exchange).await, "data: hello\n\n");
    call(&door, &endpoint).await;
    assert_eq!(server.log.connections(), 2);
}

async fn read_rest(mut exchange: Box<dyn redrive::upstream::Exchange>) -> String {
    let mut body = Vec::new();
    loop {
        match next(&mut exchange).await {
            redrive::upstream::Signal::Data(data) => body.extend_from_slice(&data),
            redrive::upstream::Signal::End => return String::from_utf8(body).unwrap(),
            redrive::upstream::Signal::Head { .. } => {}
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_drained_response_gives_its_connection_back() {
    let server = Server::start(|mut peer, _| async move {
        while peer.request().await {
            peer.write(format!("{OK_CHUNKED}{}", chunk("data: [DONE]\n\n")))
                .await;
            settle().await;
            peer.write(format!("{}0\r\n\r\n", chunk(": bye\n\n"))).await;
        }
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..2 {
        accepted_early(&door, &endpoint).await.drain();
        settle().await;
        settle().await;
    }
    assert_eq!((server.log.connections(), server.log.requests()), (1, 2));
}

#[tokio::test]
async fn a_rest_that_is_too_large_costs_the_connection() {
    let server = Server::start(|mut peer, _| async move {
        while peer.request().await {
            peer.write(format!("{OK_CHUNKED}{}", chunk("data: [DONE]\n\n")))
                .await;
            settle().await;
            peer.write(format!("{}0\r\n\r\n", chunk(&"x".repeat(65 << 10))))
                .await;
        }
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    for _ in 0..2 {
        accepted_early(&door, &endpoint).await.drain();
        settle().await;
        settle().await;
    }
    assert_eq!((server.log.connections(), server.log.requests()), (2, 2));
}

#[tokio::test]
async fn a_rest_that_never_comes_costs_the_connection() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.write(format!("{OK_CHUNKED}{}", chunk("data: [DONE]\n\n")))
            .await;
        peer.gone().await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    accepted_early(&door, &endpoint).await.drain();
    settle().await;
    assert_eq!(server.log.open(), 1, "the drain waits for it");
    while server.log.open() > 0 {
        settle().await;
    }
}

/// An exchange whose first data has come.
async fn accepted_early(
    door: &Door,
    endpoint: &Arc<redrive::upstream::Endpoint>,
) -> Box<dyn redrive::upstream::Exchange> {
    let mut exchange = open(door, endpoint, request()).await;
    while !matches!(
        next(&mut exchange).await,
        redrive::upstream::Signal::Data(_)
    ) {}
    exchange
}
