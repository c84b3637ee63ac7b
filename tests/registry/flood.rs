//! A provider that never pauses. In real time: a paused clock stands still while there is work.

use std::{
    future::ready,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use redrive::{
    proto::{VerdictClass as Class, generate_response::Frame},
    recovery::Event,
    upstream::{Endpoint, Exchange, Permit, Request, Signal, Slot, SlotFuture, Upstream},
};
use tokio::time;

use crate::rig::{Rig, poll};

struct Flood;

struct Free;

impl Slot for Free {}

impl Upstream for Flood {
    fn slot(&self, _: &Arc<Endpoint>) -> SlotFuture {
        Box::pin(ready(Ok(Box::new(Free) as Box<dyn Slot>)))
    }

    fn open(
        &self,
        _: &Arc<Endpoint>,
        _: Box<dyn Slot>,
        _: Request,
        _: Option<Box<dyn Permit>>,
    ) -> Box<dyn Exchange> {
        Box::new(Comments { told: 0 })
    }
}

struct Comments {
    told: usize,
}

impl Exchange for Comments {
    fn poll_signal(&mut self, _: &mut Context<'_>) -> Poll<Signal> {
        self.told += 1;
        Poll::Ready(match self.told {
            1 => Signal::Sent,
            2 => Signal::Head {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
            },
            _ => Signal::Data(Bytes::from_static(b": still here\n\n")),
        })
    }

    fn condemn(&mut self) {}

    fn drain(self: Box<Self>) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_never_pauses_does_not_put_off_the_callers_deadline() {
    let rig = Rig::new(Flood);
    let deadline = rig.now() + Duration::from_millis(100);
    let session = rig.session("g", Some(deadline));
    rig.insert(&session);
    session.handle(Event::Start);
    let failed = async {
        loop {
            match poll(&session, 1).and_then(|frame| frame.frame) {
                Some(Frame::Failed(failed)) => return failed,
                Some(_) => {}
                None => time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let failed = time::timeout(Duration::from_secs(10), failed).await;
    let class = failed.expect("it never ends").verdict.unwrap().class();
    assert_eq!(class, Class::Deadline);
}
