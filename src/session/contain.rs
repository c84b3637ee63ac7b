//! A driver's life: what it leaves when it is done, and when it dies.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Weak},
    task::Poll,
    thread,
};

use super::{
    Session, Work,
    driver::{Done, Driver},
};

/// Drives `session` until it is settled. A panic, which is a bug of ours, ends the generation and
/// nothing else; the account of what was sent is the core's, and stays.
pub(super) async fn drive(session: Arc<Session>, work: Option<Work>) {
    let mut guard = CrashGuard(Arc::downgrade(&session));
    let driver = Driver::new(Arc::clone(&session), work);
    let done = match contained(driver.run()).await {
        Ok(done) => done,
        Err(_) if session.end_crashed() => Driver::new(session, None).run().await,
        Err(_) => Done::Crashed,
    };
    if done == Done::Settled {
        guard.disarm();
    }
}

/// `work`, its panic caught.
async fn contained<T>(work: impl Future<Output = T>) -> thread::Result<T> {
    let mut work = pin!(work);
    // What `work` holds is dropped; the core stays in its session.
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
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
