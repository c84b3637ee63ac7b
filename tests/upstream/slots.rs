//! Places among the connections: how many, in which order, and when they come back.

use std::{future::poll_fn, sync::Arc, task::Poll};

use redrive::upstream::{Endpoint, Http2, QueueFull, Signal, SlotFuture, Upstream, http::Door};

use crate::{
    frames::Frames,
    support::{OK_CHUNKED, Peer, Server, call, chunk, endpoint, next, open, read, request, settle},
};

async fn is_ready(future: &mut SlotFuture) -> Option<bool> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(slot) => Poll::Ready(Some(slot.is_ok())),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn narrow(max_connections: usize) -> Arc<Endpoint> {
    Arc::new(Endpoint {
        max_connections,
        ..endpoint("http://127.0.0.1:1")
    })
}

#[tokio::test]
async fn slots_are_given_in_order_of_asking() {
    let (door, endpoint) = (Door::new(), narrow(1));
    let first = door.slot(&endpoint).await.unwrap();
    let mut second = door.slot(&endpoint);
    let mut third = door.slot(&endpoint);
    assert_eq!(is_ready(&mut second).await, None);
    assert_eq!(is_ready(&mut third).await, None);
    drop(first);
    assert_eq!(is_ready(&mut third).await, None, "the second asked before");
    assert_eq!(is_ready(&mut second).await, Some(true));
    assert_eq!(
        is_ready(&mut third).await,
        Some(true),
        "the second was dropped at once"
    );
}

#[tokio::test]
async fn the_queue_is_bounded_and_places_in_it_come_back() {
    let (door, endpoint) = (Door::new(), narrow(1));
    let _held = door.slot(&endpoint).await.unwrap();
    let mut waiting: Vec<_> = (0..1024).map(|_| door.slot(&endpoint)).collect();
    for slot in &mut waiting {
        assert_eq!(is_ready(slot).await, None);
    }
    assert_eq!(door.slot(&endpoint).await.err(), Some(QueueFull));
    waiting.pop();
    assert_eq!(
        is_ready(&mut door.slot(&endpoint)).await,
        None,
        "one place is free again"
    );
}

#[tokio::test]
async fn endpoints_do_not_share_slots() {
    let (door, one, other) = (Door::new(), narrow(1), narrow(1));
    let _held = door.slot(&one).await.unwrap();
    assert_eq!(is_ready(&mut door.slot(&other)).await, Some(true));
}

async fn answers_when_asked_to(mut peer: Peer, _: usize) {
    while peer.request().await {
        settle().await;
        peer.answer("data: hello\n\n").await;
    }
}

#[tokio::test]
async fn no_more_connections_are_open_than_allowed() {
    let server = Server::start(answers_when_asked_to).await;
    let endpoint = Arc::new(Endpoint {
        max_connections: 3,
        ..server.endpoint()
    });
    let door = Arc::new(Door::new());
    let calls = (0..12).map(|_| {
        let (door, endpoint) = (door.clone(), endpoint.clone());
        tokio::spawn(async move { call(&door, &endpoint).await.end })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), Ok(()));
    }
    assert_eq!((server.log.connections(), server.log.requests()), (3, 12));
}

#[tokio::test]
async fn a_slot_comes_back_when_its_exchange_ends_although_it_is_still_held() {
    let server = Server::start(answers_when_asked_to).await;
    let endpoint = Arc::new(Endpoint {
        max_connections: 1,
        ..server.endpoint()
    });
    let door = Door::new();
    let mut ended = open(&door, &endpoint, request()).await;
    assert_eq!(read(&mut ended).await.end, Ok(()));
    assert_eq!(is_ready(&mut door.slot(&endpoint)).await, Some(true));
}

#[tokio::test]
async fn a_slot_comes_back_when_its_exchange_fails_although_it_is_still_held() {
    let (door, endpoint) = (Door::new(), narrow(1));
    let mut failed = open(&door, &endpoint, request()).await;
    assert!(read(&mut failed).await.end.is_err());
    assert_eq!(is_ready(&mut door.slot(&endpoint)).await, Some(true));
}

#[tokio::test]
async fn a_slot_comes_back_when_its_exchange_is_dropped() {
    let server = Server::start(answers_when_asked_to).await;
    let endpoint = Arc::new(Endpoint {
        max_connections: 1,
        ..server.endpoint()
    });
    let door = Door::new();
    let mut dropped = open(&door, &endpoint, request()).await;
    assert!(matches!(next(&mut dropped).await, Signal::Sent));
    assert_eq!(is_ready(&mut door.slot(&endpoint)).await, None);
    drop(dropped);
    assert_eq!(is_ready(&mut door.slot(&endpoint)).await, Some(true));
}

#[tokio::test]
async fn a_drain_holds_its_slot_until_it_is_done() {
    let server = Server::start(|mut peer: Peer, _| async move {
        peer.request().await;
        peer.write(format!("{OK_CHUNKED}{}", chunk("data: [DONE]\n\n")))
            .await;
        settle().await;
        peer.write("0\r\n\r\n").await;
        peer.gone().await;
    })
    .await;
    let endpoint = Arc::new(Endpoint {
        max_connections: 1,
        ..server.endpoint()
    });
    let door = Door::new();
    let mut accepted = open(&door, &endpoint, request()).await;
    while !matches!(next(&mut accepted).await, Signal::Data(_)) {}
    accepted.drain();
    let mut slot = door.slot(&endpoint);
    assert_eq!(is_ready(&mut slot).await, None);
    settle().await;
    settle().await;
    assert_eq!(is_ready(&mut slot).await, Some(true));
}

/// Exchanges given up after any number of signals, over both versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaks_however_far_an_exchange_had_come_when_it_was_dropped() {
    let http1 = Server::start(answers_at_once).await;
    let http2 = Server::start(|peer, _| async {
        let mut frames = Frames::accept(peer, &[]).await;
        while let Some(stream) = frames.request().await {
            frames.answer(stream, "data: hello\n\n").await;
        }
    })
    .await;
    for (server, version) in [(http1, Http2::Off), (http2, Http2::PriorKnowledge)] {
        let endpoint = Endpoint {
            max_connections: 2,
            http2: version,
            ..server.endpoint()
        };
        let (door, endpoint) = (Arc::new(Door::new()), Arc::new(endpoint));
        let given_up = (0..200).map(|i| {
            let (door, endpoint) = (door.clone(), endpoint.clone());
            tokio::spawn(async move {
                let mut exchange = open(&door, &endpoint, request()).await;
                for _ in 0..i % 5 {
                    if matches!(next(&mut exchange).await, Signal::End | Signal::Failed(_)) {
                        break;
                    }
                }
            })
        });
        for task in given_up.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        settle().await;
        let all = if version == Http2::Off { 2 } else { 32 };
        let mut slots = Vec::new();
        for _ in 0..all {
            let mut slot = door.slot(&endpoint);
            slots.push(poll_fn(|cx| slot.as_mut().poll(cx)).await.ok().unwrap());
        }
        assert_eq!(is_ready(&mut door.slot(&endpoint)).await, None);
        drop(slots);
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
        settle().await;
        assert!(server.log.requests() <= 201);
        assert!(
            server.log.open() <= 2,
            "{} connections are open",
            server.log.open()
        );
    }
}

async fn answers_at_once(mut peer: Peer, _: usize) {
    while peer.request().await {
        let _ = peer
            .stream
            .try_write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    }
}
