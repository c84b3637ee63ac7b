//! Nothing fits sooner than was forecast, whatever running sends and unsent leases give back.

use proptest::{collection::vec, prelude::*, sample::select};
use redrive::limits::*;

use crate::support::budget;

/// A day, long enough not to end by chance and short enough to end.
const DAY: Micros = 1_500;

fn day(now: Micros) -> Day {
    let number = now / DAY;
    Day {
        number: number as i64 + 1,
        ends: (number + 1) * DAY,
    }
}

fn weights() -> impl Strategy<Value = Weights> {
    (0_u64..5, 0_u64..5).prop_map(|(input_tokens, output_tokens)| Weights {
        input_tokens,
        output_tokens,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let measure = select(Measure::ALL.to_vec());
    let window = (measure.clone(), 4_u64..8, 1_u64..400);
    let daily = (measure, 4_u64..12).prop_map(|(measure, limit)| DailyLimit { measure, limit });
    let refund = select(vec![Refund::Never, Refund::InputOnly, Refund::All]);
    let all = (vec(window, 1..4), vec(daily, 0..2), refund, 0_u64..20);
    all.prop_map(|(windows, daily, refund, margin)| Settings {
        daily,
        refund,
        margin,
        ..budget(&windows)
    })
}

/// What happens to a lease that was granted before.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Released,
    Settled(Weights),
    Sent,
    Left,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Released),
        weights().prop_map(Fate::Settled),
        Just(Fate::Sent),
        Just(Fate::Left),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn nothing_fits_sooner_than_was_forecast(
        settings in vec(settings(), 2),
        before in vec((weights(), 0_u64..60, any::<bool>(), fate(), fate()), 0..25),
        rests in vec((0_usize..2, 0_u64..300, any::<bool>()), 0..2),
        ahead in vec((weights(), weights()), 0..12),
        own in weights(),
    ) {
        let which = [0, 1];
        let mut limits = Limits::new(settings);
        let mut now = 1;
        let mut held = Vec::new();
        for (weights, pause, sent, first, later) in before {
            now += pause;
            let days = [day(now); 2];
            let Ok(id) = limits.acquire(now, &which, &days, weights, now + 1_000) else {
                continue;
            };
            if sent {
                limits.sent(now, id);
            }
            meet(&mut limits, now, id, first);
            held.push((id, later));
        }
        for (budget, length, brake) in rests {
            if brake {
                limits.brake(&[budget], now + length);
            } else {
                limits.penalise(&[budget], now + length);
            }
        }
        let mut sum = Ahead::default();
        for (weights, _) in &ahead {
            sum.requests += 1;
            sum.tokens.input_tokens += weights.input_tokens;
            sum.tokens.output_tokens += weights.output_tokens;
        }
        let days = [day(now); 2];
        let Some(earliest) = limits.earliest(now, &which, &days, own, sum) else {
            return Ok(());
        };
        for (id, later) in held {
            meet(&mut limits, now, id, later);
        }
        // Those ahead go as soon as they can, and all of them are over at once.
        let mut queue = ahead.into_iter();
        let mut next = queue.next();
        while now < earliest {
            let days = [day(now); 2];
            while let Some((weights, actual)) = next {
                let lease = limits.acquire(now, &which, &days, weights, now);
                let Ok(id) = lease else { break };
                limits.sent(now, id);
                limits.settle(now, id, actual);
                next = queue.next();
            }
            if next.is_none() {
                let fits = limits.check(now, &which, &days, own).is_ok();
                prop_assert!(!fits, "it fits at {now} and was forecast for {earliest}");
            } else if earliest == Micros::MAX || now > 50_000 {
                break;
            }
            now += 1;
            if earliest == Micros::MAX && now > 5_000 {
                break;
            }
        }
    }
}

fn meet(limits: &mut Limits, now: Micros, id: LeaseId, fate: Fate) {
    match fate {
        Fate::Released => limits.release(now, id),
        Fate::Settled(actual) => limits.settle(now, id, actual),
        Fate::Sent => drop(limits.sent(now, id)),
        Fate::Left => {}
    }
}
