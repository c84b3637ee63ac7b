//! A client that cancels just as its request is handed over, from another thread. A paused clock has only
//! one: the door itself plays both.

use std::{
    future::ready,
    sync::{Arc, Mutex, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use redrive::{
    proto::{Executed, generate_response::Frame},
    recovery::Event,
    session::Session,
    upstream::{Endpoint, Exchange, Permit, Request, Signal, Slot, SlotFuture, Upstream},
    verdict::{
        Stage,
        transport::{TransportError, TransportKind},
    },
};

use crate::rig::{Rig, poll};

/// What happened at the hand-over, and what a driver can do to it.
#[derive(Clone, Default)]
struct Door {
    session: Arc<OnceLock<Arc<Session>>>,
    /// When the client cancels: before it is asked whether the request may leave, or after.
    cancels: Cancels,
    may_leave: Arc<Mutex<Vec<bool>>>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Cancels {
    #[default]
    Never,
    Before,
    After,
}

struct Free;

impl Slot for Free {}

impl Upstream for Door {
    fn slot(&self, _: &Arc<Endpoint>) -> SlotFuture {
        Box::pin(ready(Ok(Box::new(Free) as Box<dyn Slot>)))
    }

    fn open(
        &self,
        _: &Arc<Endpoint>,
        _: Box<dyn Slot>,
        _: Request,
        permit: Option<Box<dyn Permit>>,
    ) -> Box<dyn Exchange> {
        let door = self.clone();
        Box::new(HandOver { door, permit })
    }
}

struct HandOver {
    door: Door,
    permit: Option<Box<dyn Permit>>,
}

impl HandOver {
    fn cancel(&self) {
        let session = self.door.session.get().unwrap();
        session.handle(Event::Cancel { reason: "enough" });
    }
}

impl Exchange for HandOver {
    fn poll_signal(&mut self, _: &mut Context<'_>) -> Poll<Signal> {
        let Some(mut permit) = self.permit.take() else {
            return Poll::Pending;
        };
        if self.door.cancels == Cancels::Before {
            self.cancel();
        }
        let may_leave = permit.leave();
        self.door.may_leave.lock().unwrap().push(may_leave);
        match self.door.cancels {
            Cancels::After => self.cancel(),
            // As if the connection had given the request back, and no other could be opened.
            Cancels::Never => {
                permit.stayed();
                return Poll::Ready(Signal::Failed(TransportError {
                    kind: TransportKind::Connect,
                    stage: Stage::Connect,
                    detail: "closed".into(),
                }));
            }
            Cancels::Before => {}
        }
        Poll::Ready(Signal::Sent)
    }

    fn condemn(&mut self) {}

    fn drain(self: Box<Self>) {}
}

/// Whether the request might leave each time, and whether the ledger has each as executed.
async fn hand_over(cancels: Cancels) -> (Vec<bool>, Vec<Executed>, u32) {
    let door = Door {
        cancels,
        ..Door::default()
    };
    let rig = Rig::new(door.clone());
    let session = rig.session("g", None);
    rig.insert(&session);
    assert!(door.session.set(Arc::clone(&session)).is_ok());
    session.handle(Event::Start);
    let ledger = loop {
        match poll(&session, 1).and_then(|frame| frame.frame) {
            Some(Frame::Failed(failed)) => break failed.ledger.unwrap(),
            Some(_) => {}
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    let executed = ledger.entries.iter().map(|entry| entry.executed());
    let may_leave = door.may_leave.lock().unwrap().clone();
    (may_leave, executed.collect(), ledger.sends)
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_first_lets_nothing_leave() {
    let (may_leave, executed, sends) = hand_over(Cancels::Before).await;
    assert_eq!(
        (may_leave, executed, sends),
        (vec![false], vec![Executed::No], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_first_is_a_send_of_the_ledger() {
    let (may_leave, executed, sends) = hand_over(Cancels::After).await;
    assert_eq!(
        (may_leave, executed, sends),
        (vec![true], vec![Executed::Maybe], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stayed_is_no_send() {
    let (may_leave, executed, sends) = hand_over(Cancels::Never).await;
    assert!(may_leave.iter().all(|may| *may));
    assert!(executed.len() > 1, "{executed:?}");
    assert!(
        executed.iter().all(|executed| *executed == Executed::No),
        "{executed:?}"
    );
    assert_eq!(sends, 0);
}
