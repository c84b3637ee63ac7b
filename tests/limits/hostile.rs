//! Numbers at the edges: nothing panics, nothing wraps around.

use proptest::{collection::vec, prelude::*, sample::select};
use redrive::limits::*;

use super::support::*;

fn edge() -> impl Strategy<Value = u64> {
    let edges = vec![
        0,
        1,
        2,
        u64::from(u32::MAX),
        1 << 53,
        u64::MAX / 2,
        u64::MAX - 1,
        u64::MAX,
    ];
    prop_oneof![3 => select(edges), 1 => any::<u64>(), 1 => 0_u64..20]
}

fn weights() -> impl Strategy<Value = Weights> {
    (edge(), edge()).prop_map(|(input_tokens, output_tokens)| Weights {
        input_tokens,
        output_tokens,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let measure = select(Measure::ALL.to_vec());
    let window =
        (measure.clone(), edge(), edge()).prop_map(|(measure, limit, window)| WindowLimit {
            measure,
            limit,
            window,
        });
    let daily = (measure, edge()).prop_map(|(measure, limit)| DailyLimit { measure, limit });
    let refund = select(vec![Refund::Never, Refund::InputOnly, Refund::All]);
    let concurrent = prop::option::of(edge());
    let all = (
        vec(window, 0..4),
        vec(daily, 0..3),
        refund,
        concurrent,
        edge(),
    );
    all.prop_map(|(windows, daily, refund, concurrent, margin)| Settings {
        name: String::new(),
        windows,
        concurrent,
        daily,
        refund,
        margin,
    })
}

type Step = (u8, u64, u64, Weights, u64);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_numbers_are_borne(
        settings in vec(settings(), 2),
        life in prop::option::of(edge()),
        most in 0_usize..20,
        steps in vec((0_u8..11, edge(), edge(), weights(), edge()), 0..60),
    ) {
        let mut limits = Limits::remembering(settings, most);
        if let Some(life) = life {
            limits = limits.with_life(life);
        }
        let which = [0, 1, usize::MAX];
        for (what, now, other, weights, id) in steps as Vec<Step> {
            let day = Day { number: other as i64, ends: id };
            let days = [day; 3];
            let id = id % 8;
            let ahead = Ahead { requests: other, tokens: weights };
            match what {
                0..3 => drop(limits.acquire(now, &which, &days, weights, other)),
                3 => drop(limits.sent(now, id)),
                4 => limits.settle(now, id, weights),
                5 => limits.release(now, id),
                6 => limits.stayed(now, id),
                7 => drop(limits.renew(now, &[id], other)),
                8 => limits.penalise(&which, other),
                9 => limits.brake(&which, other),
                _ => drop(limits.used(0, now, day)),
            }
            let earliest = limits.earliest(now, &which, &days, weights, ahead);
            let blocking = limits.blocking(now, &which, &days, weights);
            let denied = limits.check(now, &which, &days, weights).is_err();
            prop_assert_eq!(denied, !blocking.is_empty());
            prop_assert!(earliest.is_none_or(|at| at >= now));
            for budget in 0..2 {
                let (_, remembered, _) = limits.gauges(budget).unwrap();
                let windows = &limits.settings(budget).unwrap().windows;
                prop_assert!(windows.is_empty() || remembered <= most, "{remembered}");
            }
        }
    }
}

#[test]
fn sums_beyond_any_number_are_kept() {
    let mut limits = Limits::new([budget(&[(Measure::InputTokens, u64::MAX, 100)])]);
    let id = send(&mut limits, 1, input(u64::MAX));
    limits.settle(1, id, input(u64::MAX));
    for _ in 0..3 {
        let id = send(&mut limits, 1, Weights::default());
        limits.settle(2, id, input(u64::MAX));
    }
    assert_eq!(until(&mut limits, 3, input(1)), Some(102));
    assert_eq!(limits.used(0, 3, day(3))[0].1, u64::MAX);
    assert!(take(&mut limits, 102, input(u64::MAX)).is_ok());
}
