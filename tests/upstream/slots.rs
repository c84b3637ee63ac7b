//! Places among the connections: how many, in which order, and when they come back.

use std::{future::poll_fn, sync::Arc, task::Poll};

use redrive::upstream::{Endpoint, QueueFull, Signal, SlotFuture, Upstream, http::Door};

use crate::support::{Peer, Server, call, endpoint, next, open, read, request, settle};

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
