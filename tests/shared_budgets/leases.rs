//! What becomes of leases when answers are lost and pods die.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use redrive::{
    budgets::shared::*,
    config::EnginePlace,
    limits::{DailyLimit, Limit, Measure, Settings, Weights},
};

use crate::{
    common::each_in_common,
    domain::*,
    proxy::Proxy,
    server::{Kind, Server, with_each},
};

#[test]
fn asked_again_takes_nothing_and_is_answered_the_same() {
    each_in_common(async |server| {
        let domain = Domain::new(&server, options(&server), &[requests(2, 60)]).await;
        assert_eq!(domain.ask(1).await, Answer::Granted);
        let before = domain.status(&[0]).await;
        assert_eq!(domain.ask(1).await, Answer::Granted);
        assert_eq!(domain.status(&[0]).await, before);
        assert_eq!(domain.ask(2).await, Answer::Granted);
        assert!(matches!(domain.ask(3).await, Answer::Denied { .. }));
    });
}

#[test]
fn a_lease_that_is_over_is_not_granted_again() {
    each_in_common(async |server| {
        let domain = Domain::new(&server, options(&server), &[requests(9, 60)]).await;
        domain.send(1).await;
        let settled = domain
            .shared
            .settle(1.into(), Weights::default(), PATIENCE)
            .await;
        assert_eq!(settled, Ok(Heard::Done));
        assert_eq!(domain.ask(1).await, Answer::Over);
        assert_eq!(domain.ask(2).await, Answer::Granted);
        assert_eq!(
            domain.shared.release(2.into(), PATIENCE).await,
            Ok(Heard::Done)
        );
        assert_eq!(domain.ask(2).await, Answer::Over);
        assert_eq!(domain.status(&[0]).await.account.granted, 2);
    });
}

#[test]
fn a_lost_answer_is_asked_for_again_and_takes_nothing_twice() {
    each_in_common(async |server| {
        // Settled twice, what was taken on top would count twice.
        let windows = [
            (Measure::Requests, 9, 60 * SECOND),
            (Measure::InputTokens, 9, 60 * SECOND),
        ];
        let budget = settings("a", &windows);
        let proxy = Proxy::to(server.port);
        let through = Options {
            place: EnginePlace::One(proxy.url()),
            ..options(&server)
        };
        let domain = Domain::new(&server, through, &[budget]).await;
        proxy.lose_one();
        assert_eq!(domain.ask(1).await, Answer::Granted);
        assert!(domain.shared.leave(1.into()));
        proxy.lose_one();
        assert_eq!(
            domain.shared.tell(1.into(), PATIENCE).await,
            Ok(Heard::Done)
        );
        proxy.lose_one();
        // Its answer says that it was over before: it is.
        let settled = domain.shared.settle(1.into(), tokens(1, 1), PATIENCE).await;
        assert_eq!(settled, Ok(Heard::Over));
        let status = domain.status(&[0]).await;
        assert_eq!((status.account.granted, status.account.sent), (1, 1));
        assert_eq!(
            (status.budgets[0].running, status.budgets[0].entries),
            (0, 2)
        );
    });
}

#[test]
fn one_who_gives_up_gives_back() {
    each_in_common(async |server| {
        let domain = Domain::new(&server, options(&server), &[requests(1, 60)]).await;
        {
            // The question is out, and nobody waits for the answer.
            let mut asking = pin!(domain.shared.acquire(one(1), PATIENCE));
            let polled = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await;
            assert!(polled.is_pending(), "{polled:?}");
            tokio::task::yield_now().await;
        }
        let mut tries = 0;
        while domain.ask(2).await != Answer::Granted {
            tries += 1;
            assert!(tries < 1_000, "it never comes back");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let account = domain.status(&[0]).await.account;
        assert!(account.granted - account.returned == 1, "{account:?}");
    });
}

#[test]
fn an_unsent_lease_counts_in_full_however_long_it_takes() {
    each_in_common(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 1)]).await;
        assert_eq!(domain.ask(1).await, Answer::Granted);
        domain.pass(9 * SECOND);
        assert!(matches!(domain.ask(2).await, Answer::Denied { .. }));
        assert!(domain.shared.leave(1.into()));
        domain.shared.tell(1.into(), PATIENCE).await.unwrap();
        assert_eq!(wait_of(&domain.ask(2).await), Some(SECOND));
        domain.pass(SECOND);
        assert_eq!(domain.ask(2).await, Answer::Granted);
    });
}

#[test]
fn what_a_dead_pod_did_not_send_counts_as_sent_at_its_end() {
    each_in_common(async |server| {
        let settings = Settings {
            concurrent: Some(1),
            ..requests(1, 60)
        };
        let mut domain = Domain::new(&server, options(&server), &[settings]).await;
        assert_eq!(domain.ask(1).await, Answer::Granted);
        // A life is 15 s, and it is over: now it no longer runs, but it may have left.
        domain.pass(15 * SECOND);
        assert_eq!(wait_of(&domain.ask(2).await), Some(60 * SECOND));
        let status = domain.status(&[0]).await;
        assert_eq!((status.budgets[0].running, status.account.expired), (0, 1));
        domain.pass(60 * SECOND);
        assert_eq!(domain.ask(2).await, Answer::Granted);
    });
}

#[test]
fn the_sends_of_a_dead_pod_no_longer_run_after_a_life() {
    each_in_common(async |server| {
        let settings = Settings {
            concurrent: Some(1),
            ..settings("a", &[])
        };
        let mut domain = Domain::new(&server, options(&server), &[settings]).await;
        domain.send(1).await;
        domain.pass(10 * SECOND);
        assert_eq!(domain.shared.renew(PATIENCE).await, Ok(Vec::new()));
        domain.pass(14 * SECOND);
        let full = Answer::Denied {
            budget: 0,
            limit: Limit::Concurrent(1),
            wait: None,
        };
        assert_eq!(domain.ask(2).await, full, "it was renewed");
        domain.pass(SECOND);
        assert_eq!(domain.ask(2).await, Answer::Granted);
        // The pod is told when it comes back.
        assert_eq!(domain.shared.renew(PATIENCE).await, Ok(vec![1.into()]));
        assert_eq!(domain.shared.held(), 1);
    });
}

#[test]
fn what_stayed_after_it_was_renewed_counts_until_its_new_end_and_as_sent_then() {
    each_in_common(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 60)]).await;
        domain.send(1).await;
        domain.pass(10 * SECOND);
        assert_eq!(domain.shared.renew(PATIENCE).await, Ok(Vec::new()));
        domain.shared.stayed(1.into());
        let told = domain.shared.tell(1.into(), PATIENCE).await;
        assert_eq!(told, Ok(Heard::Done));
        domain.pass(15 * SECOND - 1);
        let wait = wait_of(&domain.ask(2).await).unwrap();
        assert!(wait <= 60 * SECOND + 1, "{wait}");
        let status = domain.status(&[0]).await;
        assert_eq!((status.budgets[0].running, status.account.expired), (1, 0));
        domain.pass(1);
        assert_eq!(wait_of(&domain.ask(2).await), Some(60 * SECOND));
        let status = domain.status(&[0]).await;
        assert_eq!((status.budgets[0].running, status.account.expired), (0, 1));
    });
}

#[test]
fn what_was_told_late_or_lost_is_told_by_renewing() {
    each_in_common(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 60)]).await;
        assert_eq!(domain.ask(1).await, Answer::Granted);
        assert!(domain.shared.leave(1.into()));
        domain.pass(SECOND);
        assert_eq!(domain.shared.renew(PATIENCE).await, Ok(Vec::new()));
        assert_eq!(domain.status(&[0]).await.account.sent, 1);
        // And it lives on.
        domain.pass(14 * SECOND);
        assert_eq!(domain.status(&[0]).await.budgets[0].running, 1);
    });
}

#[test]
fn what_stayed_since_its_batch_was_made_is_not_prolonged() {
    with_each(async |server| {
        let domain = Domain::new(&server, options(&server), &[requests(9, 60)]).await;
        domain.send(1).await;
        let batches = domain.shared.batches();
        let renewed = domain.shared.prolong(&batches[0], PATIENCE).await.unwrap();
        assert_eq!(renewed.prolonged, [Id::from(1)]);
        domain.shared.stayed(1.into());
        let heard = domain.shared.tell(1.into(), PATIENCE).await;
        assert_eq!(heard, Ok(Heard::Done));
        let renewed = domain.shared.prolong(&batches[0], PATIENCE).await;
        assert_eq!(renewed, Ok(Renewed::default()));
    });
}

#[test]
fn what_is_granted_too_late_to_be_sent_goes_back() {
    with_each(async |server| {
        let budgets = [requests(9, 60)];
        let mut domain = Domain::new(&server, options(&server), &budgets).await;
        let ask = Ask {
            send_within: Duration::from_millis(1),
            ..one(1)
        };
        assert_eq!(
            domain.shared.acquire(ask, PATIENCE).await,
            Ok(Answer::Granted)
        );
        domain.pass(SECOND);
        // One that asked in vain before, and did not hear of it.
        let other = domain.pod(options(&server), &budgets);
        assert_eq!(other.acquire(ask, PATIENCE).await, Ok(Answer::Over));
        let mut tries = 0;
        while domain.status(&[0]).await.account.returned == 0 {
            tries += 1;
            assert!(tries < 1_000, "it never comes back");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn the_script_may_be_forgotten() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 60)]).await;
        domain.beside.run::<()>(&["SCRIPT", "FLUSH"]);
        domain.send(1).await;
        domain.beside.run::<()>(&["SCRIPT", "FLUSH"]);
        assert!(matches!(domain.ask(2).await, Answer::Denied { .. }));
    });
}

#[test]
fn a_day_that_has_not_begun_by_the_servers_clock_is_not_believed() {
    each_in_common(async |server| {
        let mut settings = settings("a", &[]);
        settings.daily = vec![DailyLimit {
            measure: Measure::Requests,
            limit: 1,
        }];
        let mut domain = Domain::new(&server, options(&server), &[settings]).await;
        let day = 1_000 * SECOND;
        let midnight = domain.now() + 100 * SECOND;
        let days = |number: u64| Today {
            number: i64::try_from(number).unwrap(),
            starts: midnight - day + (number - 7) * day,
            ends: midnight + (number - 7) * day,
        };
        let ask = async |domain: &Domain, id, number| {
            let days = [days(number)];
            let ask = Ask {
                days: &days,
                ..one(id)
            };
            domain.shared.acquire(ask, PATIENCE).await.unwrap()
        };
        assert_eq!(ask(&domain, 1, 7).await, Answer::Granted);
        let denied = ask(&domain, 2, 8).await;
        assert_eq!(wait_of(&denied), Some(100 * SECOND), "its clock is ahead");
        assert!(domain.shared.leave(1.into()));
        domain.shared.tell(1.into(), PATIENCE).await.unwrap();
        domain.pass(100 * SECOND);
        assert_eq!(ask(&domain, 2, 8).await, Answer::Granted);
    });
}

#[test]
fn a_server_says_what_it_is_and_what_is_wrong_with_it() {
    with_each(async |server: Server| {
        let domain = Domain::new(&server, options(&server), &[requests(1, 1)]).await;
        let said = domain.shared.server().unwrap();
        let name = if server.kind == Kind::Redis {
            "redis"
        } else {
            "valkey"
        };
        assert_eq!((&*said.name, said.warnings()), (name, Vec::new()));
    });
    crate::server::each(|kind| {
        let server = Server::start_with(kind, &["--maxmemory-policy", "allkeys-lru"]);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let domain = Domain::new(&server, options(&server), &[requests(1, 1)]).await;
            let warnings = domain.shared.server().unwrap().warnings();
            assert!(warnings[0].contains("allkeys-lru"), "{warnings:?}");
        });
    });
}

#[test]
fn what_was_asked_for_and_not_answered_is_over_once_it_is_back() {
    each_in_common(async |server| {
        let proxy = Proxy::to(server.port);
        let through = Options {
            place: EnginePlace::One(proxy.url()),
            ..options(&server)
        };
        let domain = Domain::new(&server, through, &[requests(9, 60)]).await;
        {
            let mut asking = pin!(domain.shared.acquire(one(1), PATIENCE));
            let polled = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await;
            assert!(polled.is_pending(), "{polled:?}");
        }
        // Whether it is still to be given back or was: nothing may be sent with it.
        assert_eq!(domain.ask(1).await, Answer::Over);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!domain.shared.leave(1.into()));
    });
}
