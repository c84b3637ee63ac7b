//! HTTP/2: what is sent, that it is sent once, and how streams end.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use redrive::{
    upstream::{Endpoint, Http2, Signal, http::Door},
    verdict::{Stage, transport::TransportKind},
};
use tokio::sync::mpsc;

use crate::{
    frames::{
        CANCEL, CONTINUATION, END_HEADERS, Frames, HEADERS, INTERNAL_ERROR, NO_ERROR, PING,
        REFUSED_STREAM, RST_STREAM, literal,
    },
    support::{Peer, Server, Told, call, call_once, next, open, read, request, settle, told},
};

const MAX_CONCURRENT_STREAMS: u16 = 3;

/// An endpoint that is spoken to in cleartext HTTP/2.
fn endpoint(server: &Server) -> Endpoint {
    Endpoint {
        http2: Http2::PriorKnowledge,
        ..server.endpoint()
    }
}

/// A server that plays `script` on each connection.
async fn serve<F>(script: impl Fn(Frames, usize) -> F + Copy + Send + Sync + 'static) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    Server::start(move |peer: Peer, number| async move {
        script(Frames::accept(peer, &[]).await, number).await;
    })
    .await
}

/// One exchange against `script`, which must have seen one connection and one request in all.
async fn call_one<F>(script: impl Fn(Frames, usize) -> F + Copy + Send + Sync + 'static) -> Told
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = serve(script).await;
    let told = call_once(endpoint(&server)).await;
    settle().await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
    told
}

async fn answers_forever(mut frames: Frames, _: usize) {
    while let Some(stream) = frames.request().await {
        frames.answer(stream, "data: hello\n\n").await;
    }
}

#[tokio::test]
async fn exchanges_in_a_row_share_one_connection() {
    let server = serve(answers_forever).await;
    let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
    for _ in 0..5 {
        assert_eq!(call(&door, &endpoint).await.body, "data: hello\n\n");
    }
    assert_eq!((server.log.connections(), server.log.requests()), (1, 5));
}

#[tokio::test]
async fn a_refused_stream_fails_as_maybe_sent_and_is_not_sent_again() {
    let told = call_one(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames.reset(stream, REFUSED_STREAM).await;
        frames.gone().await;
    })
    .await;
    assert!(told.sent);
    assert_eq!(
        told.failure(),
        (TransportKind::RefusedStream, Stage::Request)
    );
}

#[tokio::test]
async fn a_goaway_below_our_stream_fails_it_and_the_next_exchange_connects_anew() {
    let server = serve(|mut frames, number| async move {
        let stream = frames.request().await.unwrap();
        match number {
            0 => frames.go_away(0, NO_ERROR).await,
            _ => frames.answer(stream, "data: hello\n\n").await,
        }
        frames.gone().await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
    let told = call(&door, &endpoint).await;
    assert_eq!(told.failure(), (TransportKind::GoAway, Stage::Request));
    settle().await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
    assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    assert_eq!((server.log.connections(), server.log.requests()), (2, 2));
}

#[tokio::test]
async fn a_goaway_below_our_stream_with_a_close_right_behind_is_still_one_send() {
    let told = call_one(|mut frames, _| async move {
        frames.request().await.unwrap();
        frames.go_away(0, NO_ERROR).await;
    })
    .await;
    assert_eq!(told.failure(), (TransportKind::GoAway, Stage::Request));
}

#[tokio::test]
async fn a_stream_that_a_goaway_covers_goes_on_while_new_ones_go_elsewhere() {
    let server = serve(|mut frames, number| async move {
        let stream = frames.request().await.unwrap();
        if number == 0 {
            frames.ok(stream).await;
            frames.data(stream, "data: one\n\n").await;
            frames.go_away(stream, NO_ERROR).await;
            settle().await;
            settle().await;
            frames.data(stream, "data: two\n\n").await;
            frames.end(stream).await;
        } else {
            frames.answer(stream, "data: hello\n\n").await;
        }
        frames.gone().await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
    let mut first = open(&door, &endpoint, request()).await;
    while !matches!(next(&mut first).await, Signal::Data(_)) {}
    settle().await;
    assert_eq!(call(&door, &endpoint).await.body, "data: hello\n\n");
    let mut rest = Vec::new();
    while let Signal::Data(data) = next(&mut first).await {
        rest.extend_from_slice(&data);
    }
    assert_eq!(rest, b"data: two\n\n");
    assert_eq!((server.log.connections(), server.log.requests()), (2, 2));
}

#[tokio::test]
async fn a_stream_reset_within_the_body_never_ends_cleanly() {
    for code in [INTERNAL_ERROR, CANCEL, NO_ERROR] {
        let server = Server::start(move |peer, _| async move {
            let mut frames = Frames::accept(peer, &[]).await;
            let stream = frames.request().await.unwrap();
            frames.ok(stream).await;
            frames.data(stream, "data: one\n\n").await;
            settle().await;
            frames.reset(stream, code).await;
            frames.gone().await;
        })
        .await;
        let told = call_once(endpoint(&server)).await;
        assert_eq!(told.body, "data: one\n\n");
        assert_eq!(
            told.failure(),
            (TransportKind::StreamReset, Stage::Stream),
            "code {code}"
        );
        assert_eq!(server.log.requests(), 1);
    }
}

#[tokio::test]
async fn a_connection_closed_within_the_body_never_ends_cleanly() {
    let told = call_one(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames.ok(stream).await;
        frames.data(stream, "data: one\n\n").await;
        settle().await;
    })
    .await;
    assert_eq!(told.body, "data: one\n\n");
    assert_eq!(told.failure(), (TransportKind::Reset, Stage::Stream));
}

#[tokio::test]
async fn a_goaway_for_an_error_within_the_body_never_ends_cleanly() {
    let told = call_one(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames.ok(stream).await;
        frames.data(stream, "data: one\n\n").await;
        settle().await;
        frames.go_away(0, INTERNAL_ERROR).await;
        frames.gone().await;
    })
    .await;
    assert_eq!(told.failure(), (TransportKind::GoAway, Stage::Stream));
}

#[tokio::test]
async fn a_body_short_of_its_content_length_never_ends_cleanly() {
    let told = call_one(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        let head = [&[0x88], &literal("content-length", "100")[..]].concat();
        frames.send(HEADERS, END_HEADERS, stream, &head).await;
        frames.data(stream, "data: one\n\n").await;
        frames.end(stream).await;
        frames.gone().await;
    })
    .await;
    assert_eq!(told.failure().1, Stage::Stream);
}

#[tokio::test]
async fn interim_responses_are_passed_over() {
    let told = call_one(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames
            .send(HEADERS, END_HEADERS, stream, &literal(":status", "103"))
            .await;
        frames.answer(stream, "data: hello\n\n").await;
        frames.gone().await;
    })
    .await;
    assert_eq!(
        (told.status.unwrap().as_u16(), told.body.as_str()),
        (200, "data: hello\n\n")
    );
}

#[tokio::test]
async fn a_head_of_more_than_64_kib_is_too_large() {
    let told = call_one(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames.send(HEADERS, 0, stream, &[0x88]).await;
        for i in 0..6 {
            let line = literal(&format!("x-{i}"), &"x".repeat(12 << 10));
            let flags = if i == 5 { END_HEADERS } else { 0 };
            frames.send(CONTINUATION, flags, stream, &line).await;
        }
        frames.gone().await;
    })
    .await;
    assert_eq!(
        told.failure(),
        (TransportKind::HeadTooLarge, Stage::Request)
    );
}

#[tokio::test]
async fn a_server_that_does_not_speak_http2_is_a_breach_of_protocol() {
    let server = Server::start(|mut peer, _| async move {
        peer.write("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
            .await;
        peer.gone().await;
    })
    .await;
    let told = call_once(endpoint(&server)).await;
    let (kind, _) = told.failure();
    assert_eq!(kind, TransportKind::Protocol);
    assert_eq!(server.log.connections(), 1);
}

/// A server that answers all requests of a connection once `together` have come.
async fn answers_together(peer: Peer, together: usize, settings: &[(u16, u32)]) {
    let mut frames = Frames::accept(peer, settings).await;
    let mut streams = Vec::new();
    while let Some(stream) = frames.request().await {
        streams.push(stream);
        if streams.len() == together {
            for stream in streams.drain(..) {
                frames.answer(stream, "data: hello\n\n").await;
            }
        }
    }
}

async fn call_at_once(endpoint: Endpoint, calls: usize) {
    let (door, endpoint) = (Arc::new(Door::new()), Arc::new(endpoint));
    let calls: Vec<_> = (0..calls)
        .map(|_| {
            let (door, endpoint) = (door.clone(), endpoint.clone());
            tokio::spawn(async move { call(&door, &endpoint).await.end })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn sixteen_exchanges_share_one_connection() {
    let server = Server::start(|peer, _| answers_together(peer, 16, &[])).await;
    call_at_once(
        Endpoint {
            max_connections: 1,
            ..endpoint(&server)
        },
        32,
    )
    .await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 32));
}

#[tokio::test]
async fn connections_stay_within_their_limit() {
    let server = Server::start(|peer, _| answers_together(peer, 1, &[])).await;
    call_at_once(
        Endpoint {
            max_connections: 2,
            ..endpoint(&server)
        },
        64,
    )
    .await;
    assert!(server.log.connections() <= 2);
    assert_eq!(server.log.requests(), 64);
}

/// A stream beyond the limit would wait inside h2, told as sent although nothing of it has left.
#[tokio::test]
async fn an_exchange_beyond_the_servers_limit_on_streams_waits_unsent() {
    let server = Server::start(|peer: Peer, _| async move {
        let mut frames = Frames::accept(peer, &[(MAX_CONCURRENT_STREAMS, 1)]).await;
        while let Some(stream) = frames.request().await {
            frames.ok(stream).await;
            settle().await;
            frames.end(stream).await;
        }
    })
    .await;
    let endpoint = Arc::new(Endpoint {
        max_connections: 1,
        ..endpoint(&server)
    });
    let door = Door::new();
    // The first exchange brings the settings.
    assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    let mut first = open(&door, &endpoint, request()).await;
    assert!(matches!(next(&mut first).await, Signal::Sent));
    let mut second = open(&door, &endpoint, request()).await;
    for _ in 0..3 {
        let poll = poll_fn(|cx| Poll::Ready(second.poll_signal(cx))).await;
        assert!(poll.is_pending(), "{poll:?}");
        tokio::task::yield_now().await;
    }
    assert!(matches!(next(&mut first).await, Signal::Head { .. }));
    assert!(matches!(next(&mut first).await, Signal::End));
    assert_eq!(read(&mut second).await.end, Ok(()));
    assert_eq!((server.log.connections(), server.log.requests()), (1, 3));
}

/// A server that tells when a stream of its first connection is reset, and serves on.
async fn tells_when_reset(head: bool) -> (Server, mpsc::Receiver<Instant>) {
    let (reset, when) = mpsc::channel(1);
    let server = Server::start(move |peer, _| {
        let reset = reset.clone();
        async move {
            let mut frames = Frames::accept(peer, &[]).await;
            let stream = frames.request().await.unwrap();
            if head {
                frames.ok(stream).await;
                frames.data(stream, "data: one\n\n").await;
            }
            while let Some(frame) = frames.next_of_a_stream().await {
                if frame.kind == RST_STREAM && frame.stream == stream {
                    reset.send(Instant::now()).await.unwrap();
                    break;
                }
            }
            answers_forever(frames, 0).await;
        }
    })
    .await;
    (server, when)
}

#[tokio::test]
async fn a_dropped_exchange_resets_its_stream_within_100_ms_and_spares_the_connection() {
    for head in [false, true] {
        let (server, mut when) = tells_when_reset(head).await;
        let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
        let mut exchange = open(&door, &endpoint, request()).await;
        while !matches!(
            (head, next(&mut exchange).await),
            (false, Signal::Sent) | (true, Signal::Data(_))
        ) {}
        settle().await;
        let dropped = Instant::now();
        drop(exchange);
        let seen = told(&mut when).await;
        assert!(
            seen - dropped < Duration::from_millis(100),
            "after {:?}",
            seen - dropped
        );
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
        assert_eq!((server.log.connections(), server.log.requests()), (1, 2));
    }
}

#[tokio::test]
async fn a_condemned_connection_takes_no_new_stream_and_ends_with_its_last() {
    let server = serve(|mut frames, number| async move {
        let stream = frames.request().await.unwrap();
        frames.ok(stream).await;
        frames.data(stream, "data: one\n\n").await;
        if number == 0 {
            settle().await;
            settle().await;
        }
        frames.end(stream).await;
        frames.gone().await;
        frames.log.requested("closed".into());
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
    let mut stalled = open(&door, &endpoint, request()).await;
    while !matches!(next(&mut stalled).await, Signal::Data(_)) {}
    stalled.condemn();
    assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    assert!(matches!(next(&mut stalled).await, Signal::End));
    settle().await;
    assert_eq!(server.log.connections(), 2);
    assert_eq!(server.log.heads(), ["stream 1", "stream 1", "closed"]);
}

#[tokio::test]
async fn an_idle_connection_that_went_away_is_not_used() {
    let server = serve(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames.answer(stream, "data: hello\n\n").await;
        frames.go_away(stream, NO_ERROR).await;
        frames.gone().await;
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
    for _ in 0..3 {
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
        settle().await;
    }
    assert_eq!((server.log.connections(), server.log.requests()), (3, 3));
}

#[tokio::test]
async fn an_error_that_is_answered_early_is_whole_although_its_stream_is_reset() {
    let server = serve(|mut frames, _| async move {
        let request = frames.next_of_a_stream().await.unwrap();
        assert_eq!(request.kind, HEADERS);
        frames
            .send(
                HEADERS,
                END_HEADERS,
                request.stream,
                &literal(":status", "413"),
            )
            .await;
        frames.data(request.stream, "too large").await;
        frames.end(request.stream).await;
        frames.reset(request.stream, NO_ERROR).await;
        frames.gone().await;
    })
    .await;
    let mut request = request();
    request.body = vec![b'y'; 1 << 20].into();
    let told = read(&mut open(&Door::new(), &Arc::new(endpoint(&server)), request).await).await;
    assert_eq!(told.status.unwrap().as_u16(), 413);
    assert_eq!((told.body.as_str(), told.end), ("too large", Ok(())));
}

/// Both directions pass many flow-control windows.
#[tokio::test]
async fn large_bodies_pass_the_windows_of_both_sides() {
    const LARGE: usize = 8 << 20;
    let server = Server::start(|peer: Peer, _| async move {
        let mut connection = h2::server::handshake(peer.stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            tokio::spawn(async move {
                let mut body = request.into_body();
                let mut received = 0;
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    received += data.len();
                    body.flow_control().release_capacity(data.len()).unwrap();
                }
                assert_eq!(received, LARGE);
                let mut answer = respond
                    .send_response(http::Response::new(()), false)
                    .unwrap();
                answer.send_data(vec![b'x'; LARGE].into(), true).unwrap();
                poll_fn(|cx| answer.poll_reset(cx)).await.ok();
            });
        }
    })
    .await;
    let mut request = request();
    request.body = vec![b'y'; LARGE].into();
    let told = read(&mut open(&Door::new(), &Arc::new(endpoint(&server)), request).await).await;
    assert_eq!((told.body.len(), told.end), (LARGE, Ok(())));
}

/// The clock is paused once the socket is idle: 20 s and 10 s pass at once.
#[tokio::test]
async fn a_peer_that_answers_no_ping_is_given_up() {
    let server = serve(|mut frames, _| async move {
        let stream = frames.request().await.unwrap();
        frames.ok(stream).await;
        while frames.next().await.is_some() {}
    })
    .await;
    let mut exchange = open(&Door::new(), &Arc::new(endpoint(&server)), request()).await;
    while !matches!(next(&mut exchange).await, Signal::Head { .. }) {}
    settle().await;
    tokio::time::pause();
    let Signal::Failed(error) = poll_fn(|cx| exchange.poll_signal(cx)).await else {
        panic!("the exchange should have failed");
    };
    assert_eq!(
        (error.kind, error.stage),
        (TransportKind::Reset, Stage::Stream)
    );
}

#[tokio::test]
async fn an_idle_connection_is_pinged_too() {
    let (pinged, mut seen) = mpsc::channel(8);
    let server = Server::start(move |peer, _| {
        let pinged = pinged.clone();
        async move {
            let mut frames = Frames::accept(peer, &[]).await;
            let stream = frames.request().await.unwrap();
            frames.answer(stream, "data: hello\n\n").await;
            while let Some(frame) = frames.next().await {
                if frame.kind == PING {
                    pinged.send(()).await.unwrap();
                    break;
                }
            }
        }
    })
    .await;
    let (door, endpoint) = (Door::new(), Arc::new(endpoint(&server)));
    assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    settle().await;
    tokio::time::pause();
    assert_eq!(seen.recv().await, Some(()));
}
