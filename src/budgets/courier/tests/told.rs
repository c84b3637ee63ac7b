//! What happens to a lease is told, and what providers say.

use super::{server::with_each, *};
use crate::limits::{Account, Limit};

#[test]
fn what_happens_to_leases_is_told() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let both = [0, AT_A_TIME, WINDOWS];
        let settled = pod.sent(&both).await;
        let released = pod.sent(&both).await;
        // Not of the window: it is too short to take back what left.
        let stayed = pod.sent(&[0, AT_A_TIME]).await;
        let unsent = pod.granted(&both).await;
        pod.courier.stayed(stayed);
        pod.told().await;
        let account = |sent, returned| Account {
            granted: 4,
            sent,
            returned,
            expired: 0,
        };
        let status = pod.status().await;
        assert_eq!(status.account, account(2, 0));
        assert_eq!(status.budgets[0].running, 4);
        pod.courier.answered(settled);
        pod.courier.settle(settled, tokens(40));
        for id in [released, stayed, unsent] {
            pod.courier.release(id);
        }
        pod.told().await;
        let status = pod.status().await;
        assert_eq!(status.account, account(2, 2));
        assert_eq!(status.budgets[0].running, 0);
        let mut freed = pod.heard.freed.lock().unwrap().clone();
        freed.sort();
        let mut expected = vec![vec![AT_A_TIME, WINDOWS]; 4];
        expected[0] = vec![AT_A_TIME];
        assert_eq!(freed, expected);
        assert_eq!(pod.courier.inner.shared.held(), 0);
    });
}

#[test]
fn a_send_that_is_settled_at_once_is_told_with_one_word() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.granted(&[AT_A_TIME]).await;
        // No chance to tell between.
        assert!(pod.courier.leave(id));
        pod.courier.settle(id, tokens(1));
        pod.told().await;
        let status = pod.status().await;
        assert_eq!((status.account.sent, status.account.returned), (1, 0));
        assert!(!pod.courier.leave(id), "it is over");
    });
}

#[test]
fn what_left_and_goes_back_at_once_counts_as_sent() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.sent(&[AT_A_TIME]).await;
        pod.courier.release(id);
        pod.told().await;
        let status = pod.status().await;
        assert_eq!((status.account.sent, status.account.returned), (1, 0));
    });
}

#[test]
fn what_stayed_leaves_again_once_the_engine_knows() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.sent(&[AT_A_TIME]).await;
        assert!(!pod.courier.leave(id), "it has left");
        pod.courier.stayed(id);
        assert!(!pod.courier.leave(id), "the engine does not know");
        pod.told().await;
        assert!(pod.courier.leave(id));
        pod.told().await;
        assert_eq!(pod.status().await.account.sent, 1);
    });
}

#[test]
fn hundreds_of_leases_are_told_of_and_renewed() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        pod.granted(&[AT_A_TIME]).await;
        let mut ids = Vec::new();
        for _ in 0..350 {
            ids.push(pod.sent(&[AT_A_TIME]).await);
        }
        pod.told().await;
        assert_eq!(pod.status().await.account.sent, 350);
        // Longer than an unrenewed one lives.
        tokio::time::sleep(LIFE + SECOND).await;
        assert_eq!(pod.running().await, 350);
        assert_eq!(pod.courier.status().cut, 0);
        for id in ids {
            pod.courier.settle(id, NOTHING);
        }
        pod.told().await;
        assert_eq!(pod.running().await, 0);
        assert_eq!(pod.status().await.account.expired, 1);
    });
}

#[test]
fn what_a_provider_says_reaches_all_pods() {
    with_each(async |server| {
        let engine = engine(&server, OnLoss::Closed);
        let (pod, other) = (Pod::of(&engine), Pod::of(&engine));
        pod.granted(&[WINDOWS]).await;
        pod.courier.penalise(&[0, AT_A_TIME], 60 * SECOND);
        pod.courier.brake(&[WINDOWS], 40 * SECOND);
        pod.courier.brake(&[WINDOWS], 20 * SECOND);
        pod.told().await;
        let ask = async |budget| {
            let (id, asked) = (Id::random(), [budget]);
            let answer = other.courier.acquire(id, &asked, NOTHING, SECOND, None);
            match answer.await.unwrap() {
                Answer::Denied {
                    budget,
                    limit: Limit::Cooldown,
                    wait: Some(wait),
                } => (budget, wait),
                answer => panic!("{answer:?}"),
            }
        };
        let (budget, wait) = ask(AT_A_TIME).await;
        assert_eq!(budget, AT_A_TIME);
        assert!(wait > 30 * SECOND && wait <= 60 * SECOND, "{wait:?}");
        let (budget, wait) = ask(WINDOWS).await;
        assert_eq!(budget, WINDOWS);
        assert!(wait > 20 * SECOND && wait <= 40 * SECOND, "{wait:?}");
    });
}

#[test]
fn the_status_says_what_is_known() {
    with_each(async |server| {
        let pod = Pod::start(&server);
        let id = pod.sent(&[AT_A_TIME, WINDOWS]).await;
        pod.told().await;
        pod.courier.refresh().await;
        let status = pod.courier.status();
        assert_eq!(status.lost, None);
        assert_eq!(status.server, format!("{:?}", server.kind).to_lowercase());
        assert!(!status.version.is_empty() && status.warnings.is_empty());
        assert!(status.round_trip.is_some_and(|took| took < SECOND));
        assert_eq!((status.held, status.untold, status.cut), (1, 0, 0));
        let fleet = pod.courier.fleet();
        assert!(fleet.iter().all(|(_, status)| status.age < 5 * SECOND));
        let running = fleet
            .iter()
            .map(|(budget, status)| (*budget, status.running));
        let expected = [(AT_A_TIME, 1), (WINDOWS, 1)];
        assert_eq!(running.collect::<Vec<_>>(), expected);
        pod.courier.release(id);
    });
}

#[test]
fn pods_that_disagree_are_noticed_until_they_agree() {
    with_each(async |server| {
        let engine = engine(&server, OnLoss::Closed);
        let pod = Pod::of(&engine);
        let mut others = budgets();
        others[AT_A_TIME].settings.concurrent = Some(5);
        let other = Pod::with(&engine, &others);
        let disagrees = |pod: &Pod| pod.courier.status().disagrees;
        until("both know", || disagrees(&pod) && disagrees(&other)).await;
    });
}
