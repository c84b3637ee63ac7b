//! Of tasks and runtimes: none outlives those who wait, and only who is granted is woken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
};

use redrive::budgets::*;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_lease_too_old_lets_nothing_leave() {
    let budgets = budgets([requests("b", 1, 60 * SECOND)]);
    let lease = at_once(&budgets, through(&[0]));
    let mut permit = lease.permit().unwrap();
    tokio::time::advance(11 * SECOND).await;
    assert!(!permit.leave());
    drop(lease);
    assert_eq!(budgets.account().0.expired, 1);
}

#[tokio::test(start_paused = true)]
async fn no_task_is_left_when_nobody_waits() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let budgets = budgets([requests("b", 1, 60 * SECOND)]);
    drop(sent(&budgets, through(&[0])));
    let all: Vec<_> = (0..10).map(|_| waits(&budgets, through(&[0])).0).collect();
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before + 1, "one keeper of time");
    drop(all);
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before);
    // The next who waits has a keeper again.
    let (mut asking, _) = waits(&budgets, through(&[0]));
    drop(lease(&mut asking).await);
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tasks(), before);
}

#[test]
fn one_that_waits_is_dropped_after_its_runtime() {
    let clocked = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let runtime = clocked();
    let (budgets, first, second) = runtime.block_on(async {
        let budgets = budgets([requests("b", 1, 60 * SECOND)]);
        drop(sent(&budgets, through(&[0])));
        let (first, _) = waits(&budgets, through(&[0]));
        let (second, _) = waits(&budgets, through(&[0]));
        tokio::task::yield_now().await;
        (budgets, first, second)
    });
    drop(runtime);
    drop(first);
    assert_eq!(waiting(&budgets), 1);
    // In another runtime there is a keeper again.
    let mut second = second;
    clocked().block_on(async {
        let lease = tokio::time::timeout(120 * SECOND, lease(&mut second));
        assert!(lease.await.is_ok());
    });
    drop(second);
    assert_eq!(waiting(&budgets), 0);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn only_who_is_granted_is_woken_and_by_its_last_waker() {
    let budgets = budgets([concurrent("b", 1)]);
    let running = sent(&budgets, through(&[0]));
    let (mut first, _) = waits(&budgets, through(&[0]));
    let (mut second, _) = waits(&budgets, through(&[0]));
    let wakers: [Arc<Woken>; 3] = Default::default();
    let watch = |asking: &mut Asking, waker: usize| {
        let waker = Waker::from(Arc::clone(&wakers[waker]));
        assert!(asking.poll(&mut Context::from_waker(&waker)).is_pending());
    };
    watch(&mut first, 0);
    watch(&mut first, 1);
    watch(&mut second, 2);
    drop(running);
    let woken = wakers
        .each_ref()
        .map(|woken| woken.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1, 0]);
    assert_eq!(Arc::strong_count(&wakers[0]), 1, "old wakers are let go");
}
