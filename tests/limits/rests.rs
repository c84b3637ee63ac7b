//! Rests, probes and brakes.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    after_the_longest_wait_one_probe_goes_first
    a_probe_that_proves_nothing_is_followed_by_another
    a_refused_probe_rests_again
    a_probe_whose_answer_has_begun_lets_the_others_go
    a_brake_holds_without_a_probe_and_is_never_shortened
    a_rest_binds_its_own_budget_and_is_named
}

const NOTHING: Weights = Weights {
    input_tokens: 0,
    output_tokens: 0,
};

fn plenty<E: Engine>() -> E {
    E::new([requests(100, 10), requests(100, 10)])
}

fn after_the_longest_wait_one_probe_goes_first<E: Engine>() {
    let mut limits: E = plenty();
    limits.penalise(&[0], 300);
    limits.penalise(&[0], 200);
    assert_eq!(until(&mut limits, 100, NOTHING), Some(300));
    let probe = send(&mut limits, 300, NOTHING);
    assert_eq!(until(&mut limits, 301, NOTHING), None);
    limits.settle(310, probe, NOTHING);
    send(&mut limits, 310, NOTHING);
    assert!(take(&mut limits, 310, NOTHING).is_ok());
}

fn a_probe_that_proves_nothing_is_followed_by_another<E: Engine>() {
    let mut limits: E = plenty();
    limits.penalise(&[0], 300);
    for sent in [false, true] {
        let probe = take(&mut limits, 300, NOTHING).unwrap();
        assert!(!sent || limits.sent(300, probe));
        limits.release(300, probe);
        let next = take(&mut limits, 300, NOTHING).unwrap();
        assert!(take(&mut limits, 300, NOTHING).is_err(), "{sent}");
        limits.release(300, next);
    }
}

fn a_refused_probe_rests_again<E: Engine>() {
    let mut limits: E = plenty();
    limits.penalise(&[0], 300);
    let probe = send(&mut limits, 300, NOTHING);
    limits.penalise(&[0], 400);
    limits.settle(310, probe, NOTHING);
    assert_eq!(until(&mut limits, 310, NOTHING), Some(400));
}

fn a_probe_whose_answer_has_begun_lets_the_others_go<E: Engine>() {
    let mut limits: E = plenty();
    limits.penalise(&[0], 300);
    let probe = take(&mut limits, 300, NOTHING).unwrap();
    limits.answered(300, probe);
    assert_eq!(until(&mut limits, 300, NOTHING), None, "it was not sent");
    assert!(limits.sent(301, probe));
    assert!(take(&mut limits, 302, NOTHING).is_err());
    limits.answered(303, probe);
    send(&mut limits, 303, NOTHING);
    limits.penalise(&[0], 400);
    limits.answered(305, probe);
    assert_eq!(
        until(&mut limits, 305, NOTHING),
        Some(400),
        "it is none now"
    );
    limits.settle(310, probe, NOTHING);
    assert_eq!(until(&mut limits, 310, NOTHING), Some(400));
}

fn a_brake_holds_without_a_probe_and_is_never_shortened<E: Engine>() {
    let mut limits: E = plenty();
    limits.brake(&[0], 300);
    limits.brake(&[0], 200);
    assert_eq!(until(&mut limits, 100, NOTHING), Some(300));
    send(&mut limits, 300, NOTHING);
    send(&mut limits, 300, NOTHING);
}

fn a_rest_binds_its_own_budget_and_is_named<E: Engine>() {
    let mut limits: E = plenty();
    limits.penalise(&[1], 300);
    assert!(take(&mut limits, 100, NOTHING).is_ok());
    let days = [day(100); 2];
    let denied = limits.check(100, &[0, 1], &days, NOTHING);
    let full = Full {
        limit: Limit::Cooldown,
        until: Some(300),
    };
    assert_eq!(denied, Err(Denied::Full { budget: 1, full }));
}
