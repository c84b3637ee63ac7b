//! Many threads at once: the sum never exceeds the limit, and every lease is accounted for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use redrive::{budgets::*, limits::Spent};

use crate::support::*;

const THREADS: u64 = 8;
const TURNS: u64 = 400;
const LIMIT: u64 = 3;

/// Wakes the thread that waits.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A lease, parking the thread until there is one.
fn block(asking: &mut Asking) -> Lease {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match asking.poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(Answer::Granted { lease, .. }) => return lease,
            Poll::Ready(Answer::Waiting(_)) => {}
            Poll::Ready(Answer::Refused(refusal)) => panic!("{refusal:?}"),
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn threads_never_exceed_the_limit_and_every_lease_is_accounted_for() {
    let budgets = budgets([
        fair(concurrent("all", LIMIT), &[]),
        requests("many", u64::MAX >> 20, SECOND),
    ]);
    let running = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let (budgets, running) = (budgets.clone(), Arc::clone(&running));
            thread::spawn(move || work(&budgets, &running, n))
        })
        .collect();
    let sent: u64 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    let (account, held) = budgets.account();
    assert_eq!(held, 0);
    assert_eq!(account.sent, sent);
    assert_eq!(
        account.granted,
        account.sent + account.returned + account.expired
    );
    assert_eq!(waiting(&budgets), 0);
}

/// Asks, sends, settles, gives back and gives up, by turns; how many it sent.
fn work(budgets: &Budgets, running: &AtomicU64, n: u64) -> u64 {
    let tenant = ["a", "b", "c"][n as usize % 3];
    let mut sent = 0;
    for turn in 0..TURNS {
        let mut asking = budgets.ask(of(tenant, &[0, 1]));
        if (turn + n).is_multiple_of(5) {
            // Gives up, granted or not.
            let _ = poll(&mut asking);
            continue;
        }
        let lease = block(&mut asking);
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(now <= LIMIT, "{now} at once");
        thread::yield_now();
        running.fetch_sub(1, Ordering::SeqCst);
        if (turn + n).is_multiple_of(7) {
            drop(lease);
            continue;
        }
        assert!(lease.permit().unwrap().leave());
        sent += 1;
        lease.settle(Spent::default());
    }
    sent
}
