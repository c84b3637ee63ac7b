//! The right to send: asked for at the hand-over, in the same step, and for each hand-over anew.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use redrive::{
    upstream::{Endpoint, Exchange, Http2, Permit, Signal, Upstream, http::Door},
    verdict::{Stage, transport::TransportKind},
};
use tokio::sync::mpsc;

use crate::{
    frames::Frames,
    support::{Server, call, read, request, settle},
};

/// What the door asked and said, in order.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<&'static str>>>);

impl Asked {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn all(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// Answers as it is told to, and then yes.
struct Scripted {
    asked: Asked,
    answers: VecDeque<bool>,
    /// Lets the server go away at the first question, and gives it the time to.
    go_away: Option<mpsc::Sender<()>>,
}

impl Permit for Scripted {
    fn leave(&mut self) -> bool {
        let may = self.answers.pop_front().unwrap_or(true);
        self.asked.note(if may { "may leave" } else { "may not" });
        if let Some(go_away) = self.go_away.take() {
            go_away.try_send(()).unwrap();
            std::thread::sleep(Duration::from_millis(200));
        }
        may
    }

    fn stayed(&mut self) {
        self.asked.note("stayed");
    }
}

async fn open(
    door: &Door,
    endpoint: &Arc<Endpoint>,
    answers: &[bool],
    go_away: Option<mpsc::Sender<()>>,
) -> (Box<dyn Exchange>, Asked) {
    let asked = Asked::default();
    let permit = Scripted {
        asked: asked.clone(),
        answers: answers.iter().copied().collect(),
        go_away,
    };
    let slot = door.slot(endpoint).await.unwrap();
    let exchange = door.open(endpoint, slot, request(), Some(Box::new(permit)));
    (exchange, asked)
}

/// A server of each version of HTTP that answers whatever it is asked.
async fn servers() -> [(Server, Endpoint); 2] {
    let http1 = Server::start(|mut peer, _| async move {
        while peer.request().await {
            peer.answer("data: hello\n\n").await;
        }
    });
    let http2 = Server::start(|peer, _| async move {
        let mut frames = Frames::accept(peer, &[]).await;
        while let Some(stream) = frames.request().await {
            frames.answer(stream, "data: hello\n\n").await;
        }
    });
    let (http1, http2) = (http1.await, http2.await);
    let endpoints = [
        http1.endpoint(),
        Endpoint {
            http2: Http2::PriorKnowledge,
            ..http2.endpoint()
        },
    ];
    let [first, second] = endpoints;
    [(http1, first), (http2, second)]
}

#[tokio::test]
async fn it_is_asked_for_in_the_step_that_hands_the_request_over_and_in_none_before() {
    for (server, endpoint) in servers().await {
        let (mut exchange, asked) = open(&Door::new(), &Arc::new(endpoint), &[], None).await;
        assert!(asked.all().is_empty());
        let signal = poll_fn(|cx| {
            assert!(asked.all().is_empty(), "asked before the step");
            match exchange.poll_signal(cx) {
                Poll::Ready(signal) => Poll::Ready(signal),
                Poll::Pending => {
                    assert!(asked.all().is_empty(), "asked, and nothing handed over");
                    Poll::Pending
                }
            }
        });
        let signal = tokio::time::timeout(Duration::from_secs(20), signal).await;
        assert!(matches!(signal, Ok(Signal::Sent)));
        assert_eq!(asked.all(), ["may leave"]);
        settle().await;
        assert_eq!(server.log.requests(), 1);
    }
}

#[tokio::test]
async fn without_it_nothing_is_on_the_wire_and_the_request_is_known_not_to_be_sent() {
    for (server, endpoint) in servers().await {
        let (mut exchange, asked) = open(&Door::new(), &Arc::new(endpoint), &[false], None).await;
        let told = read(&mut exchange).await;
        assert!(!told.sent);
        assert_eq!(
            told.failure(),
            (TransportKind::NotSentInTime, Stage::Connect)
        );
        assert_eq!(asked.all(), ["may not"]);
        settle().await;
        assert_eq!(server.log.requests(), 0);
    }
}

#[tokio::test]
async fn an_exchange_that_is_dropped_before_its_hand_over_never_asks() {
    for (server, endpoint) in servers().await {
        let (exchange, asked) = open(&Door::new(), &Arc::new(endpoint), &[], None).await;
        drop(exchange);
        settle().await;
        assert!(asked.all().is_empty());
        assert_eq!(server.log.requests(), 0);
    }
}

/// A server whose first connection goes away between the question and the hand-over.
async fn goes_away() -> (Server, mpsc::Sender<()>) {
    let (go_away, told) = mpsc::channel(1);
    let told = Arc::new(tokio::sync::Mutex::new(told));
    let server = Server::start(move |mut peer, number| {
        let told = Arc::clone(&told);
        async move {
            peer.request().await;
            peer.answer("data: hello\n\n").await;
            if number == 0 {
                told.lock().await.recv().await.unwrap();
            } else {
                peer.gone().await;
            }
        }
    })
    .await;
    (server, go_away)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_that_is_given_back_stayed_and_the_next_one_asks_again() {
    let (server, go_away) = goes_away().await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    let (mut exchange, asked) = open(&door, &endpoint, &[], Some(go_away)).await;
    let told = read(&mut exchange).await;
    assert_eq!(told.end, Ok(()));
    assert_eq!(asked.all(), ["may leave", "stayed", "may leave"]);
    assert_eq!((server.log.connections(), server.log.requests()), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_hand_over_that_comes_too_late_does_not_happen() {
    let (server, go_away) = goes_away().await;
    let (door, endpoint) = (Door::new(), Arc::new(server.endpoint()));
    assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    let (mut exchange, asked) = open(&door, &endpoint, &[true, false], Some(go_away)).await;
    let told = read(&mut exchange).await;
    assert_eq!(
        told.failure(),
        (TransportKind::NotSentInTime, Stage::Connect)
    );
    assert_eq!(asked.all(), ["may leave", "stayed", "may not"]);
    settle().await;
    assert_eq!(server.log.requests(), 1);
}
