//! The engine is lost, and comes back.

use super::{
    server::{Kind, each, with_each},
    *,
};
use crate::limits::Limit;

#[test]
fn a_loss_and_its_end_are_noticed_and_told() {
    with_each(async |mut server| {
        let pod = Pod::start(&server);
        until("it is there", || pod.heard.up.load(Ordering::SeqCst) == 1).await;
        server.kill();
        // Nobody asks: the next renewal tells.
        let took = until("it is lost", || !pod.is_up()).await;
        assert!(took < 2 * SECOND, "{took:?}");
        let status = pod.courier.status();
        let why = status.lost.unwrap_or_default();
        assert!(why.starts_with("no connection to the engine"), "{why}");
        until("it is told", || pod.heard.lost.lock().unwrap().len() == 1).await;
        server.start_again();
        until("it is back", || pod.heard.up.load(Ordering::SeqCst) == 2).await;
        let status = pod.courier.status();
        assert_eq!((status.losses, status.lost), (1, None));
    });
}

#[test]
fn one_who_asks_in_vain_notices_it_first() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        pod.granted(&[AT_A_TIME]).await;
        until("it is there", || pod.is_up()).await;
        signal(&server, "-STOP");
        let answer = pod
            .courier
            .acquire(Id::random(), &[AT_A_TIME], NOTHING, SECOND, None);
        assert!(answer.await.is_err());
        assert!(!pod.is_up());
        until("it is told", || !pod.heard.lost.lock().unwrap().is_empty()).await;
        signal(&server, "-CONT");
        until("it is back", || pod.is_up()).await;
    });
}

#[test]
fn one_that_refuses_is_lost_as_well_and_says_what_to_do() {
    with_each(async |server| {
        let (pod, idle) = (Pod::start(&server), Pod::start(&server));
        until("it is there", || pod.is_up() && idle.is_up()).await;
        let mut beside = server.beside();
        beside.run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        let answer = pod
            .courier
            .acquire(Id::random(), &[AT_A_TIME], NOTHING, SECOND, None);
        assert!(answer.await.is_err());
        let why = pod.courier.status().lost.unwrap_or_default();
        assert!(why.contains("raise `maxmemory`"), "{why}");
        until("the next renewal tells", || !idle.is_up()).await;
        // The connection stands: only another renewal can tell.
        beside.run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        until("it is back", || pod.is_up() && idle.is_up()).await;
        assert_eq!(pod.courier.status().losses, 1);
    });
}

#[test]
fn an_engine_that_is_not_there_yet_is_lost_until_it_is() {
    each(|kind: Kind| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut server = Server::start(kind);
            server.kill();
            let pod = Pod::start(&server);
            until("it is lost", || !pod.heard.lost.lock().unwrap().is_empty()).await;
            assert_eq!(pod.heard.up.load(Ordering::SeqCst), 0);
            server.start_again();
            until("it is there", || pod.heard.up.load(Ordering::SeqCst) == 1).await;
            assert_eq!(pod.courier.status().losses, 1);
        });
    });
}

#[test]
fn an_engine_that_forgot_is_not_lost_and_is_told_again() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.sent(&[AT_A_TIME]).await;
        let mut watch = pod.courier.cut(id);
        pod.told().await;
        until("it is there", || pod.is_up()).await;
        server.beside().run::<()>(&["FLUSHALL"]);
        // Longer than an unrenewed lease lives.
        tokio::time::sleep(LIFE + SECOND).await;
        assert!(!is_cut(&mut watch));
        assert_eq!(pod.running().await, 1);
        let status = pod.courier.status();
        assert_eq!((status.lost, status.losses), (None, 0));
        pod.courier.settle(id, NOTHING);
        pod.told().await;
        assert_eq!(pod.running().await, 0);
    });
}

#[test]
fn what_happened_meanwhile_is_told_when_it_is_back() {
    with_each(async |server| {
        // What is unsent lives for no longer than it takes to notice this.
        let engine = SharedEngine {
            timeout: SECOND / 5,
            ..engine(&server, OnLoss::Closed)
        };
        let (pod, other) = (Pod::of(&engine), Pod::of(&engine));
        let leases = [
            pod.sent(&[AT_A_TIME]).await,
            pod.granted(&[AT_A_TIME]).await,
        ];
        pod.told().await;
        until("it is there", || pod.is_up()).await;
        signal(&server, "-STOP");
        until("it is lost", || !pod.is_up()).await;
        pod.courier.settle(leases[0], NOTHING);
        pod.courier.release(leases[1]);
        pod.courier.penalise(&[AT_A_TIME], 60 * SECOND);
        assert_eq!(pod.courier.status().untold, 2);
        tokio::time::sleep(SECOND).await;
        signal(&server, "-CONT");
        pod.told().await;
        let status = pod.status().await;
        assert_eq!(status.budgets[0].running, 0);
        assert_eq!((status.account.sent, status.account.returned), (1, 1));
        let asked = other
            .courier
            .acquire(Id::random(), &[AT_A_TIME], NOTHING, SECOND, None);
        let answer = asked.await.unwrap();
        let Answer::Denied {
            limit: Limit::Cooldown,
            wait: Some(wait),
            ..
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert!(wait < 59 * SECOND, "what is left of it: {wait:?}");
        assert_eq!(pod.courier.status().dropped, 0);
    });
}

#[test]
fn what_cannot_be_told_for_a_life_is_dropped() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.sent(&[AT_A_TIME]).await;
        until("it is there", || pod.is_up()).await;
        signal(&server, "-STOP");
        until("it is lost", || !pod.is_up()).await;
        pod.courier.settle(id, NOTHING);
        pod.courier.brake(&[AT_A_TIME], SECOND);
        until("it is dropped", || pod.courier.status().dropped == 1).await;
        assert_eq!(pod.courier.status().untold, 0);
        assert_eq!(pod.courier.inner.shared.held(), 0);
        signal(&server, "-CONT");
        pod.told().await;
    });
}

#[test]
fn its_end_is_the_end_of_its_tasks() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        pod.sent(&[AT_A_TIME]).await;
        let inner = Arc::downgrade(&pod.courier.inner);
        drop(pod.courier);
        until("nothing is left", || inner.strong_count() == 0).await;
    });
}

#[test]
fn one_late_answer_is_no_loss() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        pod.granted(&[AT_A_TIME]).await;
        until("it is there", || pod.is_up()).await;
        signal(&server, "-STOP");
        let asking = pod
            .courier
            .acquire(Id::random(), &[AT_A_TIME], NOTHING, SECOND, None);
        // More than a time-out, less than three.
        let going = async {
            tokio::time::sleep(7 * SECOND / 10).await;
            signal(&server, "-CONT");
        };
        let (answer, ()) = tokio::join!(asking, going);
        assert_eq!(answer, Ok(Answer::Granted));
        assert_eq!(pod.courier.status().losses, 0);
        assert!(pod.is_up());
    });
}

#[test]
fn what_was_sent_without_it_is_unknown_to_it_for_a_window() {
    with_each(async |mut server| {
        let minute = WindowLimit {
            measure: Measure::Requests,
            limit: 9,
            window: 60_000_000,
        };
        let budgets = [budget("b", true, None, &[minute])];
        let pods = [OnLoss::Open, OnLoss::LocalShare]
            .map(|on_loss| Pod::with(&engine(&server, on_loss), &budgets));
        let are_up = |up| pods.iter().all(|pod| pod.is_up() == up);
        let strict = || pods.each_ref().map(|pod| pod.courier.status().is_strict);
        until("it is there", || are_up(true)).await;
        assert_eq!(strict(), [true, true]);
        server.kill();
        until("it is lost", || are_up(false)).await;
        assert_eq!(strict(), [false, true]);
        server.start_again();
        until("it is back", || are_up(true)).await;
        assert_eq!(strict(), [false, true]);
    });
}
