//! What is told before anything is taken: the check, the budgets that stand in the way, the earliest time.

use redrive::limits::*;

use super::support::*;

fn ahead(requests: u64, input_tokens: u64) -> Ahead {
    Ahead {
        requests,
        tokens: input(input_tokens),
    }
}

/// When budget 0 can grant at the earliest.
fn earliest(limits: &mut Limits, now: Micros, weights: Weights, ahead: Ahead) -> Option<Micros> {
    limits.earliest(now, &[0], &[day(now)], weights, ahead)
}

#[test]
fn a_check_takes_nothing() {
    let mut limits = Limits::new([requests(1, 100)]);
    for _ in 0..3 {
        assert_eq!(limits.check(1, &[0], &[day(1)], Weights::default()), Ok(()));
    }
    assert_eq!(limits.account().granted, 0);
    assert!(take(&mut limits, 1, Weights::default()).is_ok());
}

#[test]
fn every_budget_that_denies_stands_in_the_way() {
    let mut limits = Limits::new([requests(1, 100), requests(2, 100), requests(1, 50)]);
    let days = [day(1); 3];
    let id = limits.acquire(1, &[0, 1, 2], &days, Weights::default(), 9);
    assert!(limits.sent(1, id.unwrap()));
    let mut blocking = |now| limits.blocking(now, &[0, 1, 2], &days, Weights::default());
    assert_eq!(blocking(2), [0, 2]);
    assert_eq!(blocking(51), [0]);
    assert!(blocking(101).is_empty());
}

#[test]
fn with_nothing_ahead_the_earliest_time_is_when_it_fits() {
    let mut limits = Limits::new([budget(&[
        (Measure::Requests, 2, 100),
        (Measure::InputTokens, 10, 200),
    ])]);
    assert_eq!(
        earliest(&mut limits, 1, input(10), Ahead::default()),
        Some(1)
    );
    let settled = send(&mut limits, 1, input(4));
    limits.settle(1, settled, input(4));
    send(&mut limits, 5, input(0));
    for (tokens, at) in [(0, 101), (6, 101), (7, 201), (11, Micros::MAX)] {
        let earliest = earliest(&mut limits, 10, input(tokens), Ahead::default());
        assert_eq!(earliest, Some(at), "{tokens}");
        assert_eq!(until(&mut limits, 10, input(tokens)), Some(at), "{tokens}");
    }
}

#[test]
fn those_ahead_take_whole_windows() {
    let mut limits = Limits::new([requests(2, 100)]);
    send(&mut limits, 10, Weights::default());
    // One place is free now; one at 110, one at 120, if it is taken now.
    for (others, at) in [(0, 20), (1, 110), (2, 120), (3, 210), (4, 220)] {
        let earliest = earliest(&mut limits, 20, Weights::default(), ahead(others, 0)).unwrap();
        assert!(earliest <= at, "{others}: {earliest}");
        assert!(earliest + 100 > at, "{others}: {earliest}");
    }
}

#[test]
fn a_running_send_alone_tells_no_time() {
    let mut settings = requests(2, 100);
    settings.concurrent = Some(1);
    let mut limits = Limits::new([settings]);
    send(&mut limits, 10, Weights::default());
    assert_eq!(
        earliest(&mut limits, 20, Weights::default(), ahead(0, 0)),
        None
    );
    let busy = earliest(&mut limits, 20, Weights::default(), ahead(1, 0));
    assert_eq!(busy, Some(110), "the window tells one");
}

#[test]
fn where_it_depends_on_an_unsent_lease_no_time_is_told() {
    let mut limits = Limits::new([requests(1, 100)]);
    let id = take(&mut limits, 10, Weights::default()).unwrap();
    let forecast = earliest(&mut limits, 20, Weights::default(), ahead(0, 0));
    assert_eq!(forecast, None, "it may go back at any time");
    limits.release(20, id);
    assert!(take(&mut limits, 20, Weights::default()).is_ok());
}

#[test]
fn a_limit_of_nothing_has_no_earliest_time() {
    let mut limits = Limits::new([requests(0, 100)]);
    let earliest = earliest(&mut limits, 1, Weights::default(), Ahead::default());
    assert_eq!(earliest, Some(Micros::MAX));
}

#[test]
fn a_rest_is_forecast() {
    let mut limits = Limits::new([requests(9, 10), requests(9, 10)]);
    limits.penalise(&[1], 300);
    let which = [0, 1];
    let days = [day(100); 2];
    let earliest = limits.earliest(100, &which, &days, Weights::default(), Ahead::default());
    assert_eq!(earliest, Some(300));
}
