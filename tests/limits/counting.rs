//! What counts, for how long, and of which budget.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    a_window_is_longer_by_the_margin_and_ends_to_the_microsecond
    an_unsent_lease_counts_for_ever
    all_budgets_or_none
    a_budget_that_is_unknown_counts_not_at_all
    a_send_without_tokens_does_not_wait_for_tokens
    what_came_on_top_counts_from_when_it_was_known
    what_was_not_used_comes_back_as_far_as_the_provider_counts_it
    a_clock_that_is_set_back_lets_nothing_leave_sooner_or_later
    a_day_ends_where_it_is_said_to
    a_send_counts_on_the_day_on_which_it_leaves
    a_send_that_may_arrive_after_midnight_counts_on_both_days
    where_nobody_says_which_day_it_is_no_other_one_begins
}

const NOTHING: Weights = Weights {
    input_tokens: 0,
    output_tokens: 0,
};

fn a_window_is_longer_by_the_margin_and_ends_to_the_microsecond<E: Engine>() {
    let mut settings = requests(1, 100);
    settings.margin = 20;
    let mut limits = E::new([settings]);
    send(&mut limits, 10, NOTHING);
    assert!(take(&mut limits, 129, NOTHING).is_err());
    assert!(take(&mut limits, 130, NOTHING).is_ok());
}

fn an_unsent_lease_counts_for_ever<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    let id = take(&mut limits, 10, NOTHING).unwrap();
    assert!(take(&mut limits, 400, NOTHING).is_err());
    assert!(limits.sent(500, id));
    assert_eq!(until(&mut limits, 500, NOTHING), Some(600));
}

fn all_budgets_or_none<E: Engine>() {
    let mut limits = E::new([requests(2, 100), requests(1, 100)]);
    let days = [day(1); 2];
    for granted in [true, false, false] {
        let lease = limits.acquire(1, &[0, 1], &days, NOTHING, 50);
        assert_eq!(lease.is_ok(), granted);
    }
    assert!(take(&mut limits, 1, NOTHING).is_ok(), "one was taken of it");
    assert!(take(&mut limits, 1, NOTHING).is_err());
}

fn a_budget_that_is_unknown_counts_not_at_all<E: Engine>() {
    let mut limits = E::new([requests(2, 100)]);
    let days = [day(1); 2];
    for _ in 0..2 {
        let lease = limits.acquire(1, &[9, 0], &days, NOTHING, 50).unwrap();
        assert!(limits.sent(1, lease));
        limits.settle(1, lease, NOTHING);
    }
    assert!(take(&mut limits, 1, NOTHING).is_err());
    assert_eq!(limits.gauges(0), Some((0, 2, 0)));
}

fn a_send_without_tokens_does_not_wait_for_tokens<E: Engine>() {
    let mut settings = budget(&[(Measure::InputTokens, 10, 100)]);
    settings.daily = vec![DailyLimit {
        measure: Measure::InputTokens,
        limit: 10,
    }];
    let mut limits = E::new([settings]);
    let id = send(&mut limits, 1, input(10));
    limits.settle(2, id, input(30));
    assert!(take(&mut limits, 3, input(1)).is_err());
    assert!(take(&mut limits, 3, NOTHING).is_ok());
}

fn what_came_on_top_counts_from_when_it_was_known<E: Engine>() {
    let mut limits = E::new([budget(&[(Measure::InputTokens, 10, 100)])]);
    let id = send(&mut limits, 1, input(4));
    limits.settle(50, id, input(9));
    assert_eq!(until(&mut limits, 60, input(2)), Some(101));
    assert_eq!(until(&mut limits, 60, input(6)), Some(150));
    assert_eq!(limits.gauges(0), Some((0, 2, 1)));
}

fn what_was_not_used_comes_back_as_far_as_the_provider_counts_it<E: Engine>() {
    let used = Weights {
        input_tokens: 1,
        output_tokens: 2,
    };
    let rules = [
        (Refund::Never, 5, 5),
        (Refund::InputOnly, 1, 5),
        (Refund::All, 1, 2),
    ];
    for (refund, input_tokens, output_tokens) in rules {
        let mut settings = budget(&[
            (Measure::InputTokens, 5, 100),
            (Measure::OutputTokens, 5, 100),
        ]);
        settings.refund = refund;
        let mut limits = E::new([settings]);
        let reserved = Weights {
            input_tokens: 5,
            output_tokens: 5,
        };
        let id = send(&mut limits, 1, reserved);
        limits.settle(2, id, used);
        let used = limits.used(0, 3, day(3));
        assert_eq!(used, [input_tokens, output_tokens], "{refund:?}");
    }
}

fn a_clock_that_is_set_back_lets_nothing_leave_sooner_or_later<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    send(&mut limits, 1_000, NOTHING);
    assert_eq!(until(&mut limits, 500, NOTHING), Some(1_100));
    assert_eq!(until(&mut limits, 1_099, NOTHING), Some(1_100));
    assert!(take(&mut limits, 1_100, NOTHING).is_ok());
}

fn daily<E: Engine>(limit: u64, margin: Micros) -> E {
    let settings = Settings {
        daily: vec![DailyLimit {
            measure: Measure::Requests,
            limit,
        }],
        margin,
        ..budget(&[])
    };
    E::new([settings])
}

fn a_day_ends_where_it_is_said_to<E: Engine>() {
    let mut limits: E = daily(1, 0);
    send(&mut limits, 500, NOTHING);
    assert_eq!(until(&mut limits, 999, NOTHING), Some(1_000));
    send(&mut limits, 1_000, NOTHING);
    assert_eq!(until(&mut limits, 1_001, NOTHING), Some(2_000));
}

fn a_send_counts_on_the_day_on_which_it_leaves<E: Engine>() {
    let mut limits: E = daily(1, 0);
    let id = take(&mut limits, 900, NOTHING).unwrap();
    assert!(limits.sent(1_100, id));
    assert_eq!(until(&mut limits, 1_200, NOTHING), Some(2_000));
}

fn a_send_that_may_arrive_after_midnight_counts_on_both_days<E: Engine>() {
    let mut limits: E = daily(1, 50);
    send(&mut limits, 949, NOTHING);
    let second = send(&mut limits, 1_000, NOTHING);
    limits.settle(1_000, second, NOTHING);
    send(&mut limits, 2_000, NOTHING);
    let mut limits: E = daily(1, 50);
    send(&mut limits, 950, NOTHING);
    assert_eq!(until(&mut limits, 1_000, NOTHING), Some(2_000));
    send(&mut limits, 2_000, NOTHING);
}

fn where_nobody_says_which_day_it_is_no_other_one_begins<E: Engine>() {
    let mut limits: E = daily(1, 0);
    send(&mut limits, 500, NOTHING);
    for days in [&[][..], &[day(500)][..]] {
        assert!(limits.check(1_500, &[0], days, NOTHING).is_err());
    }
    let mut limits: E = daily(1, 0);
    let id = limits.acquire(500, &[0], &[], NOTHING, 600).unwrap();
    assert!(limits.sent(500, id));
    assert!(limits.check(1_500, &[0], &[], NOTHING).is_err());
}
