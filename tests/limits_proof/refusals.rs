//! Refusals of the provider that say when to come back.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use redrive::{
    proto::waiting::Reason,
    simulator::{Received, chat},
};

use super::{
    load::{Manner, Visit},
    proof::{Setup, Swept, TEN_SECONDS, alone, strict},
    provider::{Wish, answer},
};

const MARGIN: Duration = Duration::from_millis(250);

/// A refusal binds the credential that it was of; it is the budget that binds the other one too. Any
/// secret does.
const TWO_CREDENTIALS: &str = "connections: {max: 1000}, \
    credentials: [{name: a, api_key: {env: PATH}}, {name: b, api_key: {env: PATH}}], ";

/// What the provider asks for.
const WAIT: Duration = Duration::from_millis(800);

/// What was handed over before the refusal was read is on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// Refused at, asked to stay away until.
fn rests(log: &[Received]) -> Vec<(Duration, Duration)> {
    let refused = log.iter().filter(|request| request.status == Some(429));
    let mut rests: Vec<_> = refused
        .map(|request| (request.head.unwrap(), request.head.unwrap() + WAIT))
        .collect();
    rests.sort_unstable();
    rests
}

#[test]
fn a_refusal_with_a_wait_stops_all_generations_of_the_budget_and_one_probe_ends_it() {
    let swept = [Swept::requests(30, 500)];
    let setup = || {
        let asked = AtomicUsize::new(0);
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: \
                      [{limit: 30, window: 500ms}], concurrent: 4}\n"
                .into(),
            provider: TWO_CREDENTIALS,
            connect: TEN_SECONDS,
            way: None,
            visits: (0..120)
                .map(|number| Visit {
                    after: Duration::from_millis(5 * number as u64),
                    wish: Wish {
                        tenant: "iron",
                        number,
                        words: 2,
                        pace: Duration::from_millis(5),
                    },
                    manner: Manner::Stays,
                })
                .collect(),
            script: Box::new(move |prompt| match asked.fetch_add(1, Ordering::Relaxed) {
                20 | 50 | 51 => chat::error(429, "slow down")
                    .with_header("retry-after-ms", &WAIT.as_millis().to_string()),
                _ => answer(prompt, true),
            }),
        }
    };
    let run = alone(strict("refusals", MARGIN, &swept, setup));
    let failed = run.outcomes.iter().find(|o| o.class.is_some());
    assert!(failed.is_none(), "{failed:?}");
    let resting = run.outcomes.iter();
    let resting = resting.filter(|o| o.waits.iter().any(|(r, _)| *r == Reason::Cooldown));
    assert!(resting.count() > 20, "nobody was told of the rest");

    let mut log = run.log.clone();
    log.sort_unstable_by_key(|request| request.arrived);
    let grace = ON_ITS_WAY.max(run.lag * 2);
    let rests = rests(&log);
    assert_eq!(rests.len(), 3);
    for (from, until) in rests {
        let early: Vec<_> = log
            .iter()
            .filter(|r| r.arrived > from + grace && r.arrived < until)
            .collect();
        assert!(
            early.is_empty(),
            "asked to stay away {from:?} to {until:?}: {early:?}"
        );
        // The first after a rest is alone until it is answered.
        let mut after = log.iter().filter(|r| r.arrived >= until);
        let (Some(probe), Some(next)) = (after.next(), after.next()) else {
            continue;
        };
        let answered = probe.head.unwrap();
        assert!(
            next.arrived >= answered,
            "beside the probe: {probe:?} {next:?}"
        );
    }
}
