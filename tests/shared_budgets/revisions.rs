//! Pods that disagree, as while a configuration is rolled out: the stricter of both counts.

use redrive::{budgets::shared::*, limits::Settings};

use crate::{common::each_in_common, domain::*};

#[test]
fn a_pod_with_an_old_configuration_cannot_overshoot_the_new_one() {
    each_in_common(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(5, 60)]).await;
        assert!(!domain.shared.disagrees());
        let new = domain.pod(options(&server), &[requests(3, 60)]);
        new.status(&[0], &[], PATIENCE).await.unwrap();
        for id in 0..3 {
            domain.send(id).await;
        }
        assert!(domain.shared.disagrees() && new.disagrees());
        for pod in [&domain.shared, &new] {
            let denied = ask(pod, 9).await.unwrap();
            assert_eq!(wait_of(&denied), Some(60 * SECOND));
        }
        // The new pods are idle, and say that they are there.
        for _ in 0..12 {
            domain.pass(5 * SECOND);
            new.renew(PATIENCE).await.unwrap();
        }
        domain.shared.renew(PATIENCE).await.unwrap();
        for id in 20..23 {
            domain.send(id).await;
        }
        assert!(matches!(domain.ask(23).await, Answer::Denied { .. }));
        // They are gone: rolled back.
        drop(new);
        domain.pass(61 * SECOND);
        for id in 30..35 {
            domain.send(id).await;
        }
        assert!(!domain.shared.disagrees());
        assert!(matches!(domain.ask(35).await, Answer::Denied { .. }));
    });
}

#[test]
fn a_limit_that_only_one_of_them_knows_counts_for_both() {
    each_in_common(async |server| {
        let domain = Domain::new(&server, options(&server), &[requests(5, 60)]).await;
        let mut budget = requests(5, 60);
        budget.windows.extend(requests(1, 1).windows);
        let new = domain.pod(options(&server), &[budget]);
        new.status(&[0], &[], PATIENCE).await.unwrap();
        domain.send(1).await;
        assert_eq!(wait_of(&domain.ask(2).await), Some(SECOND));
    });
}

#[test]
fn the_smaller_number_of_sends_at_a_time_and_the_longer_margin_count() {
    each_in_common(async |server| {
        let old = Settings {
            concurrent: Some(3),
            ..requests(2, 60)
        };
        let mut domain = Domain::new(&server, options(&server), &[old]).await;
        let new = Settings {
            concurrent: Some(1),
            margin: SECOND,
            ..requests(2, 60)
        };
        let new = domain.pod(options(&server), &[new]);
        new.status(&[0], &[], PATIENCE).await.unwrap();
        domain.learn().await;
        domain.send(1).await;
        assert_eq!(wait_of(&domain.ask(2).await), None);
        let settled = domain.shared.settle(1.into(), tokens(0, 0), PATIENCE).await;
        assert_eq!(settled, Ok(Heard::Done));
        domain.send(2).await;
        domain
            .shared
            .settle(2.into(), tokens(0, 0), PATIENCE)
            .await
            .unwrap();
        assert_eq!(wait_of(&domain.ask(3).await), Some(61 * SECOND));
    });
}
