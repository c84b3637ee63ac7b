//! A server that forgets: nothing is granted until what was sent before can no longer matter.

use std::time::Duration;

use redrive::{
    budgets::shared::*,
    limits::{Limit, Settings, Weights},
};

use crate::{domain::*, server::with_each};

/// The window, its margin, and the longest time that an unsent lease may take.
const LEARNS: u64 = 60 * SECOND + 250_000 + 10 * SECOND;

fn budget() -> Settings {
    Settings {
        margin: 250_000,
        ..requests(1, 60)
    }
}

/// For how long nothing is granted.
async fn learning(domain: &Domain, id: u128) -> u64 {
    match domain.ask(id).await {
        Answer::Learning { budget: 0, wait } => u64::try_from(wait.as_micros()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// One that was sent and is over: nothing of it is held.
async fn sent_and_over(domain: &Domain) {
    domain.send(1).await;
    let settled = domain.shared.settle(1.into(), Weights::default(), PATIENCE);
    assert_eq!(settled.await, Ok(Heard::Done));
}

/// Nothing is granted for a while, then it is.
async fn must_learn(domain: &mut Domain) {
    assert_eq!(learning(domain, 90).await, LEARNS);
    domain.pass(LEARNS - 1);
    assert_eq!(learning(domain, 91).await, 1);
    domain.pass(1);
    assert_eq!(domain.ask(92).await, Answer::Granted);
}

#[test]
fn a_new_domain_knows_nothing() {
    with_each(async |server| {
        let mut domain = Domain::learning(&server, options(&server), &[budget()]).await;
        must_learn(&mut domain).await;
    });
}

#[test]
fn a_flushed_server_grants_nothing_for_a_while() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[budget()]).await;
        sent_and_over(&domain).await;
        domain.beside.run::<()>(&["FLUSHALL"]);
        domain.pass(0);
        must_learn(&mut domain).await;
    });
}

#[test]
fn a_part_of_a_domain_that_is_lost_is_all_of_it() {
    with_each(async |server| {
        for part in ["meta", "log", "leases", "due"] {
            let mut domain = Domain::new(&server, options(&server), &[budget()]).await;
            sent_and_over(&domain).await;
            let key = domain.key(part);
            assert_eq!(domain.beside.run::<u64>(&["DEL", &key]), 1);
            must_learn(&mut domain).await;
        }
    });
}

#[test]
fn an_entry_that_is_lost_is_noticed() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[budget()]).await;
        sent_and_over(&domain).await;
        let key = domain.key("log");
        assert_eq!(domain.beside.run::<u64>(&["HDEL", &key, "a:0"]), 1);
        let answer = ask(&domain.shared, 2).await;
        let Err(Lost::Refused(Refused::Other(why))) = &answer else {
            panic!("{answer:?}");
        };
        assert!(why.contains("the log has lost an entry"), "{why}");
        must_learn(&mut domain).await;
    });
}

#[test]
fn a_server_that_comes_back_empty_grants_nothing_for_a_while() {
    with_each(async |mut server| {
        let mut domain = Domain::new(&server, options(&server), &[budget()]).await;
        sent_and_over(&domain).await;
        server.kill();
        server.start_again();
        domain.beside = server.beside();
        domain.pass(0);
        must_learn(&mut domain).await;
    });
}

#[test]
fn a_server_that_comes_back_with_what_it_saved_may_have_lost_the_last() {
    with_each(async |mut server| {
        let mut domain = Domain::new(&server, options(&server), &[budget()]).await;
        domain.beside.run::<()>(&["SAVE"]);
        sent_and_over(&domain).await;
        server.kill();
        server.start_again();
        domain.beside = server.beside();
        domain.pass(0);
        must_learn(&mut domain).await;
    });
}

#[test]
fn sends_that_run_are_told_again_and_end_no_sooner() {
    with_each(async |server| {
        let budget = Settings {
            concurrent: Some(2),
            ..budget()
        };
        let mut domain = Domain::new(&server, options(&server), &[budget]).await;
        domain.send(1).await;
        domain.beside.run::<()>(&["FLUSHALL"]);
        domain.pass(0);
        assert_eq!(learning(&domain, 2).await, LEARNS);
        // The pod noticed; what it held is known again.
        let mut tries = 0;
        while domain.shared.renew(PATIENCE).await != Ok(Vec::new()) {
            tries += 1;
            assert!(tries < 1_000, "it is never told");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let status = domain.status(&[0]).await;
        let learning = status.budgets[0].learning.as_micros();
        assert_eq!(learning, u128::from(LEARNS));
        assert_eq!((status.budgets[0].running, status.account.sent), (1, 1));
        assert_eq!(domain.shared.held(), 1);
        // Renewed, it outlives that, and runs.
        for _ in 0..LEARNS / (10 * SECOND) + 1 {
            domain.pass(10 * SECOND);
            assert_eq!(domain.shared.renew(PATIENCE).await, Ok(Vec::new()));
        }
        assert_eq!(domain.ask(3).await, Answer::Granted);
        let full = domain.ask(4).await;
        let Answer::Denied { limit, .. } = full else {
            panic!("{full:?}");
        };
        assert!(
            matches!(limit, Limit::Window(_) | Limit::Concurrent(2)),
            "{limit:?}"
        );
        assert_eq!(
            domain
                .shared
                .settle(1.into(), Weights::default(), PATIENCE)
                .await,
            Ok(Heard::Done)
        );
    });
}

#[test]
fn an_idle_domain_is_kept_until_nothing_in_it_matters() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[budget()]).await;
        sent_and_over(&domain).await;
        for part in ["meta", "log", "leases", "due"] {
            let key = domain.key(part);
            let left: i64 = domain.beside.run(&["PTTL", &key]);
            // Twice, and a day: by so much the server's clock may step.
            let lives = 2 * 15 * SECOND;
            let keep = i64::try_from((60 * SECOND + 250_000 + lives) / 1_000).unwrap();
            let most = 2 * keep + 24 * 3_600_000 + 1;
            assert!((most - 5_000..=most).contains(&left), "{part}: {left}");
        }
    });
}

#[test]
fn what_is_told_again_tries_no_rest() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(9, 1)]).await;
        domain.send(1).await;
        let rest = Duration::from_secs(1);
        domain.shared.penalise(&[0], rest, PATIENCE).await.unwrap();
        // A replica that missed the grant took over.
        let id = Id::from(1).to_string();
        let [meta, leases, due] = ["meta", "leases", "due"].map(|part| domain.key(part));
        domain.beside.run::<()>(&["HDEL", &leases, &id]);
        domain.beside.run::<()>(&["ZREM", &due, &id]);
        domain.beside.run::<()>(&["HSET", &meta, "run", "0"]);
        domain.pass(2 * SECOND);
        let mut tries = 0;
        while domain.status(&[0]).await.account.granted < 2 {
            tries += 1;
            assert!(tries < 1_000, "it is never told again");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        domain.learn().await;
        // Its answer may have begun long ago, and nobody says so again.
        assert_eq!(domain.ask(2).await, Answer::Granted);
    });
}
