//! Sends are cut when their leases may end, and not before.

use std::task::Poll;

use super::{server::with_each, *};
use crate::budgets::shared::Heard as Told;

/// How long after it was asked for a lease's send is cut.
const CUT_AFTER: Duration = Duration::from_secs(2);

#[test]
fn a_send_that_nobody_can_renew_is_cut_before_its_lease_may_end() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        pod.granted(&[AT_A_TIME]).await;
        let asked = Instant::now();
        let sent = pod.sent(&[AT_A_TIME, WINDOWS]).await;
        let (unsent, windows) = (pod.granted(&[AT_A_TIME]).await, pod.sent(&[WINDOWS]).await);
        let [mut cut, mut uncut] = [sent, windows].map(|id| pod.courier.cut(id));
        signal(&server, "-STOP");
        told_to_cut(&mut cut).await;
        let after = asked.elapsed();
        signal(&server, "-CONT");
        // It may have been renewed once before the server stood still.
        let latest = LIFE / 3 + CUT_AFTER + SECOND / 2;
        assert!(after >= CUT_AFTER && after < latest, "{after:?}");
        assert!(!pod.courier.leave(unsent), "it is late");
        assert!(!is_cut(&mut uncut), "of windows only");
        assert_eq!(pod.courier.status().cut, 1);
    });
}

#[test]
fn where_the_limits_need_not_hold_nothing_is_cut() {
    with_each(async |server| {
        let pod = Pod::of(&engine(&server, OnLoss::Open));
        let sent = pod.sent(&[AT_A_TIME]).await;
        let mut watch = pod.courier.cut(sent);
        pod.told().await;
        signal(&server, "-STOP");
        tokio::time::sleep(LIFE + SECOND).await;
        signal(&server, "-CONT");
        until("the engine is back", || pod.is_up()).await;
        assert!(!is_cut(&mut watch));
        assert_eq!(pod.courier.status().cut, 0);
    });
}

#[test]
fn sends_that_leave_late_are_renewed_in_time() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        pod.granted(&[AT_A_TIME]).await;
        let (mut leases, mut watches) = (Vec::new(), Vec::new());
        // Whenever the last renewal was: one is granted each fifth of a second, and leaves after six.
        for fifth in 0..7 + 6 {
            if fifth < 7 {
                leases.push(pod.granted(&[AT_A_TIME]).await);
            }
            if let Some(&id) = leases.get(fifth.max(6) - 6).filter(|_| fifth >= 6) {
                assert!(pod.courier.leave(id));
                watches.push(pod.courier.cut(id));
            }
            tokio::time::sleep(SECOND / 5).await;
        }
        tokio::time::sleep(CUT_AFTER).await;
        assert!(!watches.iter_mut().any(is_cut));
        assert_eq!(pod.courier.status().cut, 0);
    });
}

#[test]
fn a_process_that_wakes_up_late_cuts_before_it_renews() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.sent(&[AT_A_TIME]).await;
        let mut watch = pod.courier.cut(id);
        pod.told().await;
        tokio::time::sleep(SECOND / 10).await;
        assert!(!is_cut(&mut watch));
        // All of it stands still: there is one thread. The lease still lives when it goes on.
        std::thread::sleep(CUT_AFTER + SECOND);
        tokio::task::yield_now().await;
        tokio::time::sleep(SECOND / 2).await;
        assert!(is_cut(&mut watch), "although a renewal would have kept it");
        assert_eq!(pod.running().await, 1, "the engine still had it");
    });
}

async fn told_to_cut(watch: &mut CutWatch) {
    let told = std::future::poll_fn(|cx| watch.poll_cut(cx));
    let told = tokio::time::timeout(LONG, told).await;
    told.expect("the send is to be cut");
}

/// Whatever the timers say: that they have passed may be another thread's to notice.
#[test]
fn no_renewal_keeps_what_is_late() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let inner = &pod.courier.inner;
        // Renews by hand, and stands still before the call is made, or before its answer is looked at.
        for stops_before in [true, false] {
            let id = pod.sent(&[AT_A_TIME]).await;
            let mut watch = pod.courier.cut(id);
            if stops_before {
                pod.told().await;
                pod.courier.keeper.abort();
                std::thread::sleep(CUT_AFTER + SECOND / 2);
            }
            let mut renewal = std::pin::pin!(inner.renew(LONG));
            let begun = std::future::poll_fn(|cx| Poll::Ready(renewal.as_mut().poll(cx)));
            assert!(begun.await.is_pending());
            assert_eq!(is_cut(&mut watch), stops_before);
            if !stops_before {
                std::thread::sleep(CUT_AFTER + SECOND / 2);
            }
            assert_eq!(renewal.await, Ok(false));
            assert!(is_cut(&mut watch));
            // The engine still had it.
            let released = inner.shared.release(id, LONG).await;
            assert_eq!(released, Ok(Told::Done));
        }
    });
}

#[test]
fn a_send_whose_lease_is_over_is_cut_at_the_next_renewal() {
    with_each(async |server| {
        let engine = engine(&server, OnLoss::Closed);
        let (pod, other) = (Pod::of(&engine), Pod::of(&engine));
        let [over, windows] = [pod.sent(&[AT_A_TIME]).await, pod.sent(&[WINDOWS]).await];
        let [mut cut, mut uncut] = [over, windows].map(|id| pod.courier.cut(id));
        pod.told().await;
        for id in [over, windows] {
            let released = other.courier.inner.shared.release(id, LONG).await;
            assert_eq!(released, Ok(Told::Done));
        }
        let inner = &pod.courier.inner;
        let due = || inner.state().book.cut_at(over);
        let mut unrenewed = Duration::ZERO;
        while !is_cut(&mut cut) {
            unrenewed = due().unwrap_or(unrenewed);
            tokio::time::sleep(SECOND / 200).await;
        }
        assert!(inner.now() < unrenewed, "for its age it would be cut later");
        assert!(!is_cut(&mut uncut), "of windows only");
        assert_eq!(pod.courier.status().cut, 1);
        pod.courier.release(over);
        pod.courier.release(windows);
        pod.told().await;
    });
}
