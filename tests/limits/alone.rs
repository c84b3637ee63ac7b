//! What holds for the pure limits alone, because one process is asked for it only, or because a distance
//! changes it on purpose.

use redrive::limits::*;

use super::support::*;

#[test]
fn a_budget_that_is_named_twice_counts_once() {
    let mut limits = Limits::new([requests(2, 100)]);
    let days = [day(1); 2];
    for _ in 0..2 {
        let lease = limits.acquire(1, &[0, 0], &days, Weights::default(), 50);
        assert!(limits.sent(1, lease.unwrap()));
    }
    assert!(take(&mut limits, 1, Weights::default()).is_err());
    assert_eq!(limits.gauges(0), Some((2, 2, 0)));
}

#[test]
fn a_send_whose_time_has_passed_is_not_handed_over_again_and_still_counts() {
    let mut limits = Limits::new([requests(1, 1_000)]);
    let id = limits
        .acquire(10, &[0], &[day(10)], Weights::default(), 50)
        .unwrap();
    assert!(limits.sent(20, id));
    assert!(!limits.sent(51, id));
    assert_eq!(until(&mut limits, 60, Weights::default()), Some(1_020));
    assert_eq!(limits.account().sent, 1);
}

#[test]
fn a_send_that_cannot_be_handed_over_again_still_counts() {
    let settings = budget(&[
        (Measure::InputTokens, 1_000, 100),
        (Measure::Requests, 1_000, 50),
    ]);
    let mut limits = Limits::remembering([settings], 6);
    let first = send(&mut limits, 1, Weights::default());
    send(&mut limits, 1, Weights::default());
    assert!(limits.sent(2, first));
    assert!(limits.sent(2, first));
    assert!(!limits.sent(2, first), "four entries, and two on top");
    assert_eq!(limits.account().sent, 2);
    assert_eq!(limits.account().expired, 0);
}

#[test]
fn an_unsent_lease_that_is_not_renewed_goes_back_as_expired() {
    let settings = budget(&[(Measure::InputTokens, 10, 10_000)]);
    let mut limits = Limits::new([settings]).with_life(1_000);
    let id = take(&mut limits, 10, input(6)).unwrap();
    assert_eq!(until(&mut limits, 1_010, input(10)), Some(1_010));
    assert!(!limits.sent(1_010, id));
    assert_eq!((limits.account().sent, limits.account().expired), (0, 1));
}

#[test]
fn renewing_shortens_no_life_and_tells_of_leases_that_never_were() {
    let mut settings = budget(&[]);
    settings.concurrent = Some(1);
    let mut limits = Limits::new([settings]).with_life(1_000);
    let id = send(&mut limits, 10, Weights::default());
    assert!(limits.renew(900, &[id], 2_000).is_empty());
    assert!(limits.renew(900, &[id], 1_500).is_empty());
    assert_eq!(limits.renew(1_999, &[id, 77], 2_000), [77]);
    assert_eq!(limits.renew(2_000, &[id, 77], 3_000), [id, 77], "too late");
    assert_eq!(limits.held(), 0);
}

#[test]
fn without_a_life_nothing_ends() {
    let mut limits = Limits::new([requests(1, 100)]);
    let id = take(&mut limits, 10, Weights::default()).unwrap();
    assert!(limits.renew(20, &[id], 30).is_empty());
    assert!(until(&mut limits, 1_000_000, Weights::default()) > Some(1_000_000));
}

#[test]
fn whether_an_answer_was_a_probes_is_told() {
    let mut limits = Limits::new([requests(100, 10)]);
    limits.penalise(&[0], 300);
    let probe = take(&mut limits, 300, Weights::default()).unwrap();
    assert!(!limits.answered(300, probe), "it was not sent");
    assert!(limits.sent(301, probe));
    assert!(limits.answered(303, probe));
    let other = send(&mut limits, 303, Weights::default());
    assert!(!limits.answered(304, other), "it is no probe");
    limits.penalise(&[0], 400);
    assert!(!limits.answered(305, probe), "nor is this one any more");
}
