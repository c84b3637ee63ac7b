//! How much a budget remembers: at most what it is told to.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    a_full_log_grants_nothing_until_its_oldest_sends_have_left_every_window
    what_comes_on_top_always_has_room
    what_stayed_is_over_where_the_log_is_full
    a_budget_without_windows_remembers_nothing_for_long
}

fn remembering<E: Engine>(most: usize) -> E {
    let settings = budget(&[
        (Measure::InputTokens, 1_000, 100),
        (Measure::Requests, 1_000, 50),
    ]);
    E::remembering([settings], most)
}

fn a_full_log_grants_nothing_until_its_oldest_sends_have_left_every_window<E: Engine>() {
    let mut limits: E = remembering(10);
    for now in 1..=9 {
        let id = send(&mut limits, now, Weights::default());
        limits.settle(now, id, Weights::default());
    }
    // Two more entries are needed: for a send, and for what it may take on top.
    assert_eq!(until(&mut limits, 60, Weights::default()), Some(101));
    assert!(take(&mut limits, 100, Weights::default()).is_err());
    assert!(take(&mut limits, 101, Weights::default()).is_ok());
}

fn what_comes_on_top_always_has_room<E: Engine>() {
    let mut limits: E = remembering(10);
    let mut granted = Vec::new();
    while let Ok(id) = take(&mut limits, 1, Weights::default()) {
        granted.push(id);
    }
    assert_eq!(granted.len(), 5);
    for id in granted {
        assert!(limits.sent(1, id));
        limits.settle(1, id, input(1));
    }
    assert_eq!(limits.gauges(0), Some((0, 10, 5)));
}

fn what_stayed_is_over_where_the_log_is_full<E: Engine>() {
    let mut limits: E = remembering(6);
    let first = send(&mut limits, 1, Weights::default());
    let second = send(&mut limits, 1, Weights::default());
    assert!(limits.sent(2, first));
    assert!(limits.sent(2, second));
    // Four entries, and two on top.
    limits.stayed(2, second);
    assert_eq!(limits.account().expired, 1);
    assert!(!limits.sent(2, second));
    assert!(take(&mut limits, 102, Weights::default()).is_ok());
}

fn a_budget_without_windows_remembers_nothing_for_long<E: Engine>() {
    let mut settings = budget(&[]);
    settings.concurrent = Some(5);
    let mut limits = E::remembering([settings], 3);
    for now in 1..100 {
        let id = send(&mut limits, now, input(1));
        limits.settle(now, id, input(2));
    }
    assert!(take(&mut limits, 100, input(1)).is_ok());
    assert_eq!(limits.gauges(0).unwrap().1, 0);
}
