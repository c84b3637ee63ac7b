//! Budgets of this process alone, on a paused clock: what is granted is granted at once.

use std::{
    future::poll_fn,
    num::NonZeroU32,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use redrive::{
    budgets::{Answer, Ask, Asking, Budgets, Lease, Wait},
    clock::Clock,
    config::{Budget, Smoothing},
};

use crate::words::Keeper;
pub use crate::words::{SECOND, budget, concurrent, fair, of, requests, through, waiting};

/// This process alone.
pub struct Alone;

impl Keeper for Alone {
    const EXACT: bool = true;

    async fn budgets(&self, configured: Vec<Budget>) -> Budgets {
        budgets(configured)
    }

    async fn held(&self, budgets: &Budgets) -> u64 {
        budgets.account().1 as u64
    }
}

pub fn smooth(mut budget: Budget, requests: u32, per: Duration, burst: u32) -> Budget {
    budget.smoothing = Some(Smoothing {
        requests: NonZeroU32::new(requests).unwrap(),
        per,
        burst: NonZeroU32::new(burst).unwrap(),
    });
    budget
}

pub fn budgets(configured: impl Into<Arc<[Budget]>>) -> Budgets {
    Budgets::new(Clock::start(), configured)
}

/// What it is told by now, without waiting.
pub fn poll(asking: &mut Asking) -> Poll<Answer> {
    asking.poll(&mut Context::from_waker(Waker::noop()))
}

/// The next answer.
pub async fn answer(asking: &mut Asking) -> Answer {
    poll_fn(|cx| asking.poll(cx)).await
}

/// A lease, however long that takes.
pub async fn lease(asking: &mut Asking) -> Lease {
    loop {
        match answer(asking).await {
            Answer::Granted { lease, .. } => return lease,
            Answer::Waiting(_) => {}
            Answer::Refused(refusal) => panic!("{refusal:?}"),
        }
    }
}

/// A lease at once.
pub fn at_once(budgets: &Budgets, ask: Ask) -> Lease {
    match poll(&mut budgets.ask(ask)) {
        Poll::Ready(Answer::Granted { lease, .. }) => lease,
        other => panic!("{other:?}"),
    }
}

/// Sent at once; the lease of a send that runs.
pub fn sent(budgets: &Budgets, ask: Ask) -> Lease {
    let lease = at_once(budgets, ask);
    assert!(lease.permit().unwrap().leave());
    lease
}

/// One that has to wait, and what for.
pub fn waits(budgets: &Budgets, ask: Ask) -> (Asking, Wait) {
    let mut asking = budgets.ask(ask);
    match poll(&mut asking) {
        Poll::Ready(Answer::Waiting(wait)) => (asking, wait),
        other => panic!("{other:?}"),
    }
}
