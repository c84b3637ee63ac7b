//! What one call may take of the server's time: other domains wait for it.

use redrive::{budgets::shared::*, limits::Weights};

use crate::{common::each_in_common, domain::*};

/// How many entries of a window one call looks at.
const MOST: u128 = 500;

#[test]
fn a_call_lets_go_of_so_many_entries_and_grants_nothing_until_all_are_gone() {
    each_in_common(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(5_000, 60)]).await;
        let count = 2 * MOST + MOST / 2;
        for id in 0..count {
            domain.send(id).await;
            let settled = domain
                .shared
                .settle(id.into(), Weights::default(), PATIENCE);
            assert_eq!(settled.await, Ok(Heard::Done));
        }
        domain.pass(60 * SECOND);
        for left in [count - MOST, count - 2 * MOST] {
            assert_eq!(wait_of(&domain.ask(9_999).await), Some(1_000));
            let key = domain.key("log");
            let entries: u64 = domain.beside.run(&["HLEN", &key]);
            assert_eq!(u128::from(entries), left + 1);
        }
        assert_eq!(domain.ask(9_999).await, Answer::Granted);
    });
}

#[test]
fn a_window_that_is_new_is_summed_up_so_many_entries_a_call() {
    each_in_common(async |server| {
        let domain = Domain::new(&server, options(&server), &[requests(5_000, 60)]).await;
        let count = MOST + MOST / 2;
        for id in 0..count {
            domain.send(id).await;
            domain
                .shared
                .settle(id.into(), Weights::default(), PATIENCE)
                .await
                .unwrap();
        }
        let limit = u64::try_from(count).unwrap();
        let other = domain.pod(options(&server), &[requests(limit, 30)]);
        assert_eq!(wait_of(&ask(&other, 9_999).await.unwrap()), Some(1_000));
        assert_eq!(
            wait_of(&ask(&other, 9_999).await.unwrap()),
            Some(30 * SECOND)
        );
    });
}

#[test]
fn a_call_ends_so_many_leases() {
    each_in_common(async |server| {
        let mut budget = settings("a", &[]);
        budget.concurrent = Some(1_000);
        let mut domain = Domain::new(&server, options(&server), &[budget]).await;
        for id in 0..250 {
            assert_eq!(domain.ask(id).await, Answer::Granted);
        }
        domain.pass(60 * SECOND);
        let mut running = Vec::new();
        for _ in 0..4 {
            running.push(domain.status(&[0]).await.budgets[0].running);
        }
        assert_eq!(running, [150, 50, 0, 0]);
    });
}
