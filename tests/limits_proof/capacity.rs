//! Strict must not mean wasteful.

use std::time::Duration;

use super::{
    load::{Dice, Manner, Visit},
    proof::{HTTP1, Setup, Swept, TEN_SECONDS, beside, strict},
    provider::{Wish, answer},
    sweep,
};

const MARGIN: Duration = Duration::from_millis(250);

const LIMIT: u64 = 100;

const WINDOW: Duration = Duration::from_secs(10);

/// How much of the capacity is used where there is always somebody who waits.
const USED: f64 = 0.98;

#[test]
fn a_saturated_limit_of_ten_seconds_is_used_to_98_percent() {
    let setup = || {
        let mut dice = Dice::new(12);
        let visits = (0..4 * LIMIT).map(|number| Visit {
            after: match number < LIMIT {
                true => dice.millis(3000),
                false => Duration::from_secs(3) + dice.millis(1000),
            },
            wish: Wish {
                tenant: "iron",
                number: usize::try_from(number).unwrap(),
                // It lasts a second: a place that was free again only from its end would show.
                words: 5,
                pace: Duration::from_millis(200),
            },
            manner: Manner::Stays,
        });
        Setup {
            budgets: format!(
                "  - {{name: main, match: {{provider: p}}, margin: 250ms, \
                 requests: [{{limit: {LIMIT}, window: 10s}}]}}\n"
            ),
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: None,
            visits: visits.collect(),
            script: Box::new(|prompt| answer(prompt, true)),
        }
    };
    let swept = [Swept {
        window: WINDOW,
        ..Swept::requests(LIMIT, 0)
    }];
    let run = beside(strict("capacity", MARGIN, &swept, setup));
    let times: Vec<Duration> = run.log.iter().map(|request| request.arrived).collect();
    let limit = usize::try_from(LIMIT).unwrap();
    let used = sweep::utilisation(&times, limit, WINDOW + MARGIN).unwrap();
    assert!(used >= USED, "{:.1} % of N*T/(T+m)", used * 100.0);
}
