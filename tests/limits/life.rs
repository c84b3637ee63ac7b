//! Leases with a life: renewed, or over.

use redrive::limits::*;

use crate::support::*;

fn living() -> Limits {
    let mut settings = budget(&[(Measure::InputTokens, 10, 10_000)]);
    settings.concurrent = Some(1);
    Limits::new([settings]).with_life(1_000)
}

#[test]
fn a_sent_lease_that_is_not_renewed_runs_no_longer_and_stays_counted() {
    let mut limits = living();
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
    assert_eq!(limits.held(), 0);
}

#[test]
fn an_unsent_lease_that_is_not_renewed_goes_back_as_expired() {
    let mut limits = living();
    let id = take(&mut limits, 10, input(6)).unwrap();
    assert_eq!(until(&mut limits, 1_010, input(10)), Some(1_010));
    assert!(!limits.sent(1_010, id));
    assert_eq!((limits.account().sent, limits.account().expired), (0, 1));
}

#[test]
fn a_renewed_lease_lives_on_and_none_is_shortened() {
    let mut limits = living();
    let id = send(&mut limits, 10, input(6));
    assert!(limits.renew(900, &[id], 2_000).is_empty());
    assert!(limits.renew(900, &[id], 1_500).is_empty());
    assert_eq!(until(&mut limits, 1_999, input(4)), None, "it runs");
    assert_eq!(limits.renew(2_000, &[id, 77], 3_000), [id, 77], "too late");
    assert_eq!(until(&mut limits, 2_000, input(4)), Some(2_000));
}

#[test]
fn no_lease_ends_while_it_may_still_be_sent() {
    let mut limits = Limits::new([requests(1, 100)]).with_life(10);
    let id = take(&mut limits, 10, Weights::default()).unwrap();
    assert!(limits.sent(510, id), "its life would have ended at 20");
    assert_eq!(until(&mut limits, 511, Weights::default()), Some(610));
    assert_eq!(limits.account().sent, 1);
}

#[test]
fn without_a_life_nothing_ends() {
    let mut limits = Limits::new([requests(1, 100)]);
    let id = take(&mut limits, 10, Weights::default()).unwrap();
    assert!(limits.renew(20, &[id], 30).is_empty());
    assert!(until(&mut limits, 1_000_000, Weights::default()) > Some(1_000_000));
}
