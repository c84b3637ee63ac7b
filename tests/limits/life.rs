//! Leases with a life: renewed, or over.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    a_sent_lease_that_is_not_renewed_runs_no_longer_and_stays_counted
    a_renewed_lease_lives_on
    no_lease_ends_while_it_may_still_be_sent
}

fn living<E: Engine>() -> E {
    let mut settings = budget(&[(Measure::InputTokens, 10, 10_000)]);
    settings.concurrent = Some(1);
    E::living([settings], 1_000)
}

fn a_sent_lease_that_is_not_renewed_runs_no_longer_and_stays_counted<E: Engine>() {
    let mut limits: E = living();
    let id = send(&mut limits, 10, input(6));
    assert_eq!(until(&mut limits, 1_009, input(4)), None, "it runs");
    assert_eq!(until(&mut limits, 1_010, input(4)), Some(1_010));
    assert_eq!(until(&mut limits, 1_010, input(5)), Some(10_010));
    limits.settle(1_011, id, input(0));
    assert_eq!(
        until(&mut limits, 1_011, input(5)),
        Some(10_010),
        "too late"
    );
    assert_eq!((limits.account().sent, limits.account().expired), (1, 0));
    assert_eq!(limits.gauges(0).unwrap().0, 0);
}

fn a_renewed_lease_lives_on<E: Engine>() {
    let mut limits: E = living();
    let id = send(&mut limits, 10, input(6));
    assert!(limits.renew(900, &[id], 1_900).is_empty());
    assert_eq!(until(&mut limits, 1_899, input(4)), None, "it runs");
    assert_eq!(limits.renew(1_900, &[id], 2_900), [id], "too late");
    assert_eq!(until(&mut limits, 1_900, input(4)), Some(1_900));
}

fn no_lease_ends_while_it_may_still_be_sent<E: Engine>() {
    let mut limits = E::living([requests(1, 100)], 10);
    let id = take(&mut limits, 10, Weights::default()).unwrap();
    assert!(limits.sent(510, id), "its life would have ended at 20");
    assert_eq!(until(&mut limits, 511, Weights::default()), Some(610));
    assert_eq!(limits.account().sent, 1);
}
