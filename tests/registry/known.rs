//! Which sessions there are.

use redrive::{
    proto::{Delivery, generate_response::Frame},
    recovery::Event,
    session::{RequestKey, StartOutcome},
};

use crate::{
    rig::{Rig, poll},
    support::{Provider, answer, settle},
};

fn key(body_hash: u64) -> RequestKey {
    RequestKey {
        id: "r".to_owned(),
        body_hash,
    }
}

fn nothing() -> Result<std::sync::Arc<redrive::session::Session>, ()> {
    panic!("created, so it has joined a scope that nobody leaves")
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_request_is_known_creates_nothing() {
    let rig = Rig::new(Provider::new(1));
    let session = rig.session_of("g", Some(key(1)), None);
    let new = rig.registry.insert(Some(&key(1)), || Ok::<_, ()>(session));
    assert!(matches!(new, Ok(StartOutcome::New(_))));
    let same = rig.registry.insert(Some(&key(1)), nothing);
    assert!(matches!(same, Ok(StartOutcome::Known(known)) if known.id == "g"));
    let other = rig.registry.insert(Some(&key(2)), nothing);
    assert!(matches!(other, Ok(StartOutcome::Conflict)));
    assert_eq!(rig.registry.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_in_a_drain_creates_nothing() {
    let rig = Rig::new(Provider::new(1));
    rig.registry.drain(rig.now());
    let outcome = rig.registry.insert(None, nothing);
    assert!(matches!(outcome, Ok(StartOutcome::Draining)));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_told_twice_counts_once() {
    let rig = Rig::new(Provider::new(1));
    let (ended, running) = (rig.session("a", None), rig.session("b", None));
    rig.insert(&ended);
    rig.insert(&running);
    rig.registry.ended(&ended);
    rig.registry.ended(&ended);
    assert_eq!(rig.registry.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attach_that_comes_before_the_start_is_accepted_once() {
    let provider = Provider::new(1);
    provider.then(answer("Hello"));
    let rig = Rig::new(provider);
    let session = rig.session("g", None);
    rig.insert(&session);
    assert_eq!(session.attach(Delivery::Preview, None), Some(2));
    session.handle(Event::Start);
    settle().await;
    let mut told = Vec::new();
    while let Some(frame) = poll(&session, 2) {
        told.push(frame.frame.unwrap());
    }
    let accepted = |frame: &&Frame| matches!(frame, Frame::Accepted(_));
    assert_eq!(told.iter().filter(accepted).count(), 1, "{told:?}");
    assert!(matches!(&told[0], Frame::Accepted(a) if a.attached));
    assert!(matches!(&told[1], Frame::AttemptStarted(_)));
}
