//! What a send takes on top of its reservation, and where that is none of a budget's business.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    tokens_that_a_budget_does_not_limit_are_no_overrun
    tokens_that_a_window_or_a_day_limits_are_one
    only_what_is_limited_is_counted_on_top
}

const TAKEN: Weights = Weights {
    input_tokens: 7,
    output_tokens: 5,
};

/// How many overruns budget 0 counted, and how many entries it remembers, after a send that reserved
/// nothing and took [`TAKEN`].
fn after<E: Engine>(settings: Settings) -> (u64, usize) {
    let mut limits = E::new([settings]);
    let id = send(&mut limits, 10, Weights::default());
    limits.settle(11, id, TAKEN);
    let (_, remembered, overruns) = limits.gauges(0).unwrap();
    (overruns, remembered)
}

fn tokens_that_a_budget_does_not_limit_are_no_overrun<E: Engine>() {
    let mut daily = requests(9, 1_000);
    daily.daily.push(DailyLimit {
        measure: Measure::Requests,
        limit: 9,
    });
    let mut concurrent = budget(&[]);
    concurrent.concurrent = Some(1);
    assert_eq!(after::<E>(requests(9, 1_000)), (0, 1));
    assert_eq!(after::<E>(daily), (0, 1));
    assert_eq!(after::<E>(concurrent).0, 0);
}

fn tokens_that_a_window_or_a_day_limits_are_one<E: Engine>() {
    for measure in [Measure::InputTokens, Measure::OutputTokens] {
        assert_eq!(
            after::<E>(budget(&[(measure, 9, 1_000)])),
            (1, 2),
            "{measure:?}"
        );
        let mut daily = requests(9, 1_000);
        daily.daily.push(DailyLimit { measure, limit: 9 });
        assert_eq!(
            after::<E>(daily),
            (1, 1),
            "{measure:?}: no window counts it"
        );
    }
}

fn only_what_is_limited_is_counted_on_top<E: Engine>() {
    let mut limits = E::new([budget(&[(Measure::InputTokens, 20, 1_000)])]);
    let id = send(&mut limits, 10, input(10));
    let actual = Weights {
        input_tokens: 4,
        output_tokens: 99,
    };
    limits.settle(11, id, actual);
    assert_eq!(limits.gauges(0), Some((0, 1, 0)));
    assert_eq!(until(&mut limits, 12, input(16)), Some(12));
}
