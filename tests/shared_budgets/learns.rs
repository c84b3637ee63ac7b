//! For how long nothing of a budget is granted after an epoch began: for as long as what was granted before
//! may matter to it.

use std::time::Duration;

use redrive::{
    budgets::shared::*,
    limits::{DailyLimit, Measure, Settings},
};

use crate::{domain::*, server::with_each};

/// A window of a minute without a margin, and a lease that is unsent for its longest.
const WINDOW: u64 = 60 * SECOND + 10 * SECOND;

/// A life.
const LIFE: u64 = 15 * SECOND;

fn named(name: &str, settings: Settings) -> Settings {
    Settings {
        name: name.into(),
        ..settings
    }
}

/// Windows, sends at a time, both, and a day's cap.
fn budgets() -> [Settings; 4] {
    let concurrent = Some(1);
    let daily = vec![DailyLimit {
        measure: Measure::Requests,
        limit: 9,
    }];
    [
        requests(9, 60),
        Settings {
            concurrent,
            ..settings("b", &[])
        },
        Settings {
            concurrent,
            ..named("c", requests(9, 60))
        },
        Settings {
            daily,
            ..settings("d", &[])
        },
    ]
}

/// For how long nothing of each budget is granted.
async fn learning(domain: &Domain) -> Vec<u64> {
    let status = domain.status(&[0, 1, 2, 3]).await.budgets;
    let learning = status.iter().map(|budget| budget.learning.as_micros());
    learning.map(|time| u64::try_from(time).unwrap()).collect()
}

async fn ask_of(shared: &Shared, id: u128, budgets: &[usize]) -> Answer {
    let ask = Ask { budgets, ..one(id) };
    shared.acquire(ask, PATIENCE).await.unwrap()
}

fn learns(budget: usize, wait: u64) -> Answer {
    let wait = Duration::from_micros(wait);
    Answer::Learning { budget, wait }
}

#[test]
fn where_nobody_was_before_only_windows_learn() {
    with_each(async |server| {
        let mut domain = Domain::learning(&server, options(&server), &budgets()).await;
        assert_eq!(learning(&domain).await, [WINDOW, 0, WINDOW, 0]);
        for (id, budget) in [(1, 1), (2, 3)] {
            let answer = ask_of(&domain.shared, id, &[budget]).await;
            assert_eq!(answer, Answer::Granted, "{budget}");
        }
        let answer = ask_of(&domain.shared, 3, &[3, 0]).await;
        assert_eq!(answer, learns(0, WINDOW));
        domain.pass(WINDOW - 1);
        let answer = ask_of(&domain.shared, 3, &[3, 0]).await;
        assert_eq!(answer, learns(0, 1));
        domain.pass(1);
        let answer = ask_of(&domain.shared, 3, &[3, 0]).await;
        assert_eq!(answer, Answer::Granted);
    });
}

#[test]
fn flushed_under_a_pod_that_lives_sends_at_a_time_learn_too() {
    with_each(async |server| {
        let mut domain = Domain::learning(&server, options(&server), &budgets()).await;
        domain.beside.run::<()>(&["FLUSHALL"]);
        domain.pass(0);
        assert_eq!(learning(&domain).await, [WINDOW, LIFE, WINDOW, 0]);
        domain.pass(LIFE - 1);
        let answer = ask_of(&domain.shared, 1, &[1]).await;
        assert_eq!(answer, learns(1, 1));
        domain.pass(1);
        let answer = ask_of(&domain.shared, 1, &[1]).await;
        assert_eq!(answer, Answer::Granted);
    });
}

#[test]
fn what_is_lost_in_part_was_somebodys() {
    with_each(async |server| {
        for part in ["meta", "log", "leases", "due"] {
            let mut domain = Domain::learning(&server, options(&server), &budgets()).await;
            let key = domain.key(part);
            domain.beside.run::<()>(&["DEL", &key]);
            // One who has never heard of it.
            let new = domain.pod(options(&server), &budgets());
            let answer = ask_of(&new, 1, &[1]).await;
            assert_eq!(answer, learns(1, LIFE), "{part}");
        }
    });
}

#[test]
fn another_server_with_what_was_saved_may_have_lost_the_last() {
    with_each(async |mut server| {
        let mut domain = Domain::learning(&server, options(&server), &budgets()).await;
        domain.beside.run::<()>(&["SAVE"]);
        server.kill();
        server.start_again();
        domain.beside = server.beside();
        domain.pass(0);
        let new = domain.pod(options(&server), &budgets());
        let answer = ask_of(&new, 1, &[1]).await;
        assert_eq!(answer, learns(1, LIFE));
    });
}

#[test]
fn one_who_knew_better_and_comes_second_makes_them_learn() {
    with_each(async |server| {
        let mut domain = Domain::learning(&server, options(&server), &budgets()).await;
        let answer = ask_of(&domain.shared, 1, &[1]).await;
        assert_eq!(answer, Answer::Granted);
        assert!(domain.shared.leave(1.into()));
        domain.shared.tell(1.into(), PATIENCE).await.unwrap();
        domain.beside.run::<()>(&["FLUSHALL"]);
        domain.pass(0);
        // It begins with one who knows of nothing, and grants.
        let new = domain.pod(options(&server), &budgets());
        let answer = ask_of(&new, 2, &[2]).await;
        assert_eq!(answer, learns(2, WINDOW));
        assert_eq!(ask_of(&new, 3, &[1]).await, Answer::Granted);
        new.release(3.into(), PATIENCE).await.unwrap();
        domain.pass(5 * SECOND);
        assert_eq!(learning(&domain).await[1], LIFE - 5 * SECOND);
        let answer = ask_of(&new, 4, &[1]).await;
        assert_eq!(answer, learns(1, LIFE - 5 * SECOND));
        // What it held is told again, and counts.
        let mut tries = 0;
        while domain.status(&[1]).await.budgets[0].running == 0 {
            tries += 1;
            assert!(tries < 1_000, "it is never told");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        domain.pass(LIFE - 5 * SECOND - 1);
        domain.shared.renew(PATIENCE).await.unwrap();
        domain.pass(1);
        let answer = ask_of(&new, 4, &[1]).await;
        assert_eq!(wait_of(&answer), None, "another runs");
    });
}

#[test]
fn a_short_window_is_not_held_up_by_a_long_one() {
    with_each(async |server| {
        let hour = named("hour", requests(9, 3_600));
        let both = [requests(9, 1), hour];
        let mut domain = Domain::learning(&server, options(&server), &both).await;
        assert_eq!(domain.ask(1).await, learns(0, 11 * SECOND));
        let answer = ask_of(&domain.shared, 1, &[0, 1]).await;
        assert_eq!(answer, learns(1, 3_610 * SECOND));
        domain.pass(11 * SECOND);
        assert_eq!(domain.ask(1).await, Answer::Granted);
        let answer = ask_of(&domain.shared, 2, &[0, 1]).await;
        assert_eq!(answer, learns(1, 3_599 * SECOND));
    });
}

#[test]
fn the_stricter_of_two_configurations_is_learnt_and_the_longest_time_unsent() {
    with_each(async |server| {
        let domain = Domain::learning(&server, options(&server), &[requests(9, 60)]).await;
        let other = Settings {
            margin: SECOND,
            ..requests(9, 3_600)
        };
        let slow = Options {
            longest_unsent: Duration::from_secs(30),
            ..options(&server)
        };
        let other = domain.pod(slow, &[other]);
        other.status(&[0], &[], PATIENCE).await.unwrap();
        let both = learns(0, 3_600 * SECOND + SECOND + 30 * SECOND);
        assert_eq!(domain.ask(1).await, both);
        assert_eq!(ask(&other, 2).await.unwrap(), both);
    });
}
