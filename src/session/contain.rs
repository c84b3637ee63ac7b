//! A driver's life: what it leaves when it is done, and when it dies.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
};

use super::{
    Session, Work,
    driver::{Done, Driver},
};
use crate::telemetry::Guard;

/// Drives a session until it is settled. A panic, which is a bug of ours, ends the generation and
/// nothing else; the account of what was sent is the core's, and stays.
///
/// A future by hand: the compiler's would hold the driver several times over, for as long as the
/// generation runs.
pub(super) struct Task {
    driver: Driver,
    panicked: bool,
    guard: CrashGuard,
    _alive: Guard,
}

impl Task {
    pub(super) fn new(session: Arc<Session>, work: Option<Work>) -> Self {
        Self {
            guard: CrashGuard(Arc::downgrade(&session)),
            _alive: session.environment.count_task(),
            driver: Driver::new(session, work),
            panicked: false,
        }
    }

    fn poll_driver(&mut self, cx: &mut Context<'_>) -> Poll<Done> {
        if self.panicked {
            return self.driver.poll(cx);
        }
        if let Ok(poll) = catch_unwind(AssertUnwindSafe(|| self.driver.poll(cx))) {
            return poll;
        }
        // What the driver held is dropped; the core stays in its session.
        let session = Arc::clone(&self.driver.session);
        self.driver = Driver::new(Arc::clone(&session), None);
        self.panicked = true;
        match session.end_crashed() {
            true => self.driver.poll(cx),
            false => Poll::Ready(Done::Crashed),
        }
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if ready!(self.poll_driver(cx)) == Done::Settled {
            self.guard.disarm();
        }
        Poll::Ready(())
    }
}

/// Tells the session when nothing drives it any more, so that its RPC still gets an end.
struct CrashGuard(Weak<Session>);

impl CrashGuard {
    fn disarm(&mut self) {
        self.0 = Weak::new();
    }
}

impl Drop for CrashGuard {
    fn drop(&mut self) {
        if let Some(session) = self.0.upgrade() {
            session.crashed();
        }
    }
}
