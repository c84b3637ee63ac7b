//! What strict means, by itself: whoever takes all that is granted, sends it when it likes, again or not
//! at all, finds no window at the provider that holds more than its limit.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use redrive::limits::*;

use crate::support::{budget, day};

/// What happens to one of the leases after each acquire.
#[derive(Clone, Copy, Debug)]
enum Then {
    Sent,
    Stayed,
    Released,
    Settled,
    Nothing,
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![
        5 => Just(Then::Sent),
        2 => Just(Then::Stayed),
        1 => Just(Then::Released),
        2 => Just(Then::Settled),
        2 => Just(Then::Nothing),
    ]
}

fn weights() -> impl Strategy<Value = Weights> {
    (0_u64..4, 0_u64..4).prop_map(|(input_tokens, output_tokens)| Weights {
        input_tokens,
        output_tokens,
    })
}

fn settings(margin: Micros, longest: Micros) -> impl Strategy<Value = Settings> {
    let measure = prop::sample::select(Measure::ALL.to_vec());
    let window = (measure, 3_u64..7, 1..longest);
    vec(window, 1..4).prop_map(move |windows| Settings {
        margin,
        refund: Refund::Never,
        ..budget(&windows)
    })
}

type Step = (Micros, Weights, Then, usize, Micros);

/// In fine steps, where everything happens at the edges, or in coarse ones.
fn hammer() -> impl Strategy<Value = (Vec<Settings>, Vec<Step>)> {
    let scale = prop::sample::select(vec![(0, 3, 10), (3, 3, 10), (59_u64, 40_u64, 300_u64)]);
    scale.prop_flat_map(|(margin, pause, longest)| {
        let delay = prop_oneof![Just(0), Just(margin), 0..=margin];
        let step = (0..pause, weights(), then(), 0_usize..4, delay);
        (vec(settings(margin, longest), 2), vec(step, 1..300))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_window_at_the_provider_holds_more_than_its_limit(
        (settings, steps) in hammer(),
        most in prop_oneof![4_usize..40, Just(10_000)],
    ) {
        let mut limits = Limits::remembering(settings.clone(), most);
        let mut now = 1;
        let mut held: Vec<(LeaseId, Weights)> = Vec::new();
        let mut arrivals: BTreeMap<LeaseId, (Micros, Weights)> = BTreeMap::new();
        for (pause, weights, then, which, delay) in steps {
            now += pause;
            let days = [day(now); 2];
            if let Ok(id) = limits.acquire(now, &[0, 1], &days, weights, now + 400) {
                held.push((id, weights));
            }
            let Some(place) = held.len().checked_sub(1 + which) else {
                continue;
            };
            let (id, weights) = held[place];
            match then {
                Then::Sent => {
                    if limits.sent(now, id) {
                        arrivals.insert(id, (now + delay, weights));
                    }
                }
                Then::Stayed => {
                    limits.stayed(now, id);
                    arrivals.remove(&id);
                }
                Then::Released => {
                    limits.release(now, id);
                    held.remove(place);
                }
                // It took nothing at all, and that changes nothing.
                Then::Settled if arrivals.contains_key(&id) => {
                    limits.settle(now, id, Weights::default());
                    held.remove(place);
                }
                Then::Settled | Then::Nothing => {}
            }
        }
        for limit in settings.iter().flat_map(|settings| &settings.windows) {
            for (from, _) in arrivals.values() {
                let inside = |at: Micros| *from <= at && at < from + limit.window;
                let inside = arrivals.values().filter(|(at, _)| inside(*at));
                let sum: u64 = inside.map(|(_, weights)| weights.of(limit.measure)).sum();
                prop_assert!(sum <= limit.limit, "{limit:?}: {sum} from {from}");
            }
        }
    }
}
