//! Runs in which the limits are short, so that many windows are seen in little time.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use redrive::simulator::{Close, Op, Received, chat};

use super::{
    load::{Dice, Manner, Outcome, Visit},
    proof::{self, HTTP1, HTTP2, Setup, Swept, TEN_SECONDS, alone, field, strict},
    provider::{Wish, answer},
    sweep,
};

const MARGIN: Duration = Duration::from_millis(250);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn wish(number: usize) -> Wish {
    Wish {
        tenant: "iron",
        number,
        words: 3,
        pace: ms(2),
    }
}

/// Half of them at once, the rest in bursts of any size at any time within `within`.
fn bursts(count: usize, within: Duration, seed: u64) -> Vec<Visit> {
    let mut dice = Dice::new(seed);
    let (mut after, mut left) = (Duration::ZERO, 0);
    let visits = (0..count).map(|number| {
        if number >= count / 2 {
            if left == 0 {
                left = 1 + dice.below(20);
                after = within.mul_f64(dice.below(1000) as f64 / 1000.0);
            }
            left -= 1;
        }
        Visit {
            after,
            wish: wish(number),
            manner: Manner::Stays,
        }
    });
    visits.collect()
}

fn all_committed(outcomes: &[Outcome]) {
    let failed = outcomes.iter().find(|outcome| outcome.class.is_some());
    assert!(failed.is_none(), "{failed:?}");
}

#[test]
fn bursts_of_many_clients_stay_below_two_windows() {
    bursts_over("bursts", HTTP1, 1);
}

#[test]
fn bursts_over_http2_stay_below_them_too() {
    bursts_over("bursts over HTTP/2", HTTP2, 21);
}

fn bursts_over(name: &str, provider: &'static str, seed: u64) {
    let swept = [Swept::requests(30, 500), Swept::requests(45, 1000)];
    let setup = || Setup {
        budgets: "  - {name: main, match: {provider: p}, requests: \
                  [{limit: 30, window: 500ms}, {limit: 45, window: 1s}]}\n"
            .into(),
        provider,
        connect: TEN_SECONDS,
        way: None,
        visits: bursts(160, ms(2500), seed),
        script: Box::new(|prompt| answer(prompt, true)),
    };
    let run = alone(strict(name, MARGIN, &swept, setup));
    all_committed(&run.outcomes);
    let waited = run.waited_for("main");
    assert!(waited >= 50, "{waited}");
    assert_eq!(run.waits, waited as f64, "the metric and the clients");
}

#[test]
fn what_is_slow_between_grant_and_send_and_arrival_overflows_no_window() {
    let swept = [Swept::requests(30, 500)];
    let setup = || {
        let (mut opening, mut carrying) = (Dice::new(2), Dice::new(3));
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: \
                      [{limit: 30, window: 500ms}]}\n"
                .into(),
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: Some((
                Box::new(move || opening.millis(200)),
                Box::new(move || carrying.millis(150)),
            )),
            visits: bursts(130, ms(2000), 4),
            script: Box::new(|prompt| answer(prompt, false)),
        }
    };
    let run = alone(strict("slow connects", MARGIN, &swept, setup));
    all_committed(&run.outcomes);
}

#[test]
fn what_connects_late_counts_from_when_it_left() {
    let swept = [Swept::requests(30, 500)];
    let setup = || {
        let mut opened = 0;
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: \
                      [{limit: 30, window: 500ms}]}\n"
                .into(),
            provider: HTTP1,
            connect: TEN_SECONDS,
            // A window's sends are late, by more than the margin, and the next window's are not.
            way: Some((
                Box::new(move || {
                    opened += 1;
                    match (opened - 1) / 30 % 2 {
                        0 => ms(400),
                        _ => Duration::ZERO,
                    }
                }),
                Box::new(|| Duration::ZERO),
            )),
            visits: bursts(90, Duration::ZERO, 14),
            script: Box::new(|prompt| answer(prompt, false)),
        }
    };
    let run = alone(strict("late connects", MARGIN, &swept, setup));
    all_committed(&run.outcomes);
}

#[test]
fn what_does_not_connect_in_time_is_not_sent_and_its_lease_goes_back() {
    let swept = [Swept::requests(30, 500)];
    let setup = || {
        let mut opening = Dice::new(15);
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: \
                      [{limit: 30, window: 500ms}]}\n"
                .into(),
            provider: HTTP1,
            connect: "200ms",
            way: Some((
                Box::new(move || opening.millis(350)),
                Box::new(|| Duration::ZERO),
            )),
            visits: bursts(80, ms(1000), 16),
            script: Box::new(|prompt| answer(prompt, false)),
        }
    };
    let run = alone(strict("no connection in time", MARGIN, &swept, setup));
    all_committed(&run.outcomes);
    assert_eq!(run.log.len(), 80);
    let over = |name| run.status["leases"][name].as_u64().unwrap();
    assert!(over("returned") + over("expired") > 20, "{}", run.status);
}

#[test]
fn clients_that_leave_at_any_moment_overflow_no_window_and_waste_no_lease() {
    let swept = [Swept::requests(30, 500)];
    let visits = || {
        let mut dice = Dice::new(5);
        let mut visits = bursts(200, ms(2500), 6);
        for visit in &mut visits {
            visit.wish.words = 8;
            visit.wish.pace = ms(15);
            // While it waits, before the send, or in the middle of the answer.
            let within = [2500, 250, 500][dice.below(3) as usize];
            let after = dice.millis(within);
            visit.manner = match dice.below(4) {
                0 => Manner::Cancels(after),
                1 => Manner::Vanishes(after),
                _ => Manner::Stays,
            };
        }
        visits
    };
    let setup = || {
        let mut opening = Dice::new(7);
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: \
                      [{limit: 30, window: 500ms}], concurrent: 25}\n"
                .into(),
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: Some((
                Box::new(move || opening.millis(200)),
                Box::new(|| Duration::ZERO),
            )),
            visits: visits(),
            script: Box::new(|prompt| answer(prompt, false)),
        }
    };
    let run = alone(strict("clients that leave", MARGIN, &swept, setup));
    let stayed = run.outcomes.iter();
    let stayed = stayed.filter(|outcome| outcome.manner == Manner::Stays);
    assert!(stayed.clone().count() > 50);
    assert!(stayed.clone().all(|outcome| outcome.class.is_none()));
    // Some of those who left never cost anything, others were heard.
    let sends = |outcome: &Outcome| outcome.ledger.as_ref().map_or(0, |ledger| ledger.sends);
    let left = || run.outcomes.iter().filter(|o| o.manner != Manner::Stays);
    assert!(left().any(|outcome| sends(outcome) == 0));
    assert!(left().any(|outcome| sends(outcome) == 1 && outcome.class.is_some()));
    let returned = run.status["leases"]["returned"].as_u64().unwrap();
    assert!(returned > 0, "nobody left between grant and send");
}

#[test]
fn what_breaks_off_and_is_sent_again_takes_of_the_limit_again() {
    let swept = [Swept::requests(30, 500)];
    let setup = || {
        let asked = AtomicUsize::new(0);
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: \
                      [{limit: 30, window: 500ms}], concurrent: 20}\n"
                .into(),
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: None,
            visits: bursts(80, ms(1000), 13),
            script: Box::new(
                move |prompt| match asked.fetch_add(1, Ordering::Relaxed) % 6 {
                    1 => chat::error(503, "not now"),
                    3 => chat::beginning("m", "la la", ms(5)).then(Op::Close(Close::Reset)),
                    5 => chat::beginning("m", "la la", ms(5)).then(Op::Close(Close::Fin)),
                    _ => answer(prompt, true),
                },
            ),
        }
    };
    let run = alone(strict("replays", MARGIN, &swept, setup));
    all_committed(&run.outcomes);
    assert!(run.log.len() > 130, "{} sends", run.log.len());
}

#[test]
fn tenants_share_a_provider_keep_their_own_limits_and_are_not_starved() {
    let of = |name, limit, takes| Swept {
        name,
        limit,
        window: ms(500),
        takes,
    };
    let swept = [
        Swept::requests(30, 500),
        of("gold", 20, |request| u64::from(field(request, 0) == "gold")),
        of("brass", 6, |request| {
            u64::from(field(request, 0) == "brass")
        }),
    ];
    let setup = || {
        // Iron is there first and with the most; the others come while it waits.
        let mut visits = bursts(150, ms(1000), 8);
        for (number, visit) in visits.iter_mut().enumerate() {
            let (tenant, after) = match number {
                0..=89 => ("iron", Duration::ZERO),
                90..=129 => ("gold", ms(50)),
                _ => ("brass", ms(50)),
            };
            visit.wish.tenant = tenant;
            visit.after = after;
        }
        Setup {
            budgets: "  - {name: main, match: {provider: p}, concurrent: 28,\n     \
                      requests: [{limit: 30, window: 500ms}],\n     \
                      fairness: {label: tenant, weights: {gold: 3}}}\n  \
                      - {name: gold, match: {provider: p, label.tenant: gold}, \
                      requests: [{limit: 20, window: 500ms}]}\n  \
                      - {name: brass, match: {label.tenant: brass}, \
                      requests: [{limit: 6, window: 500ms}]}\n"
                .into(),
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: None,
            visits,
            script: Box::new(|prompt| answer(prompt, true)),
        }
    };
    let run = alone(strict("tenants", MARGIN, &swept, setup));
    all_committed(&run.outcomes);
    let most = sweep::at_once(&stretches(&run.log));
    assert!(most <= 28, "{most} at once");

    // The second window: what was granted when the first 30 had left theirs.
    let mut log: Vec<_> = run.log.iter().collect();
    log.sort_unstable_by_key(|request| request.arrived);
    let second = &log[30..60];
    let of = |tenant: &str| second.iter().filter(|r| field(r, 0) == tenant).count();
    let (iron, gold, brass) = (of("iron"), of("gold"), of("brass"));
    println!("  second window: iron {iron}, gold {gold}, brass {brass}");
    // Of five parts gold has three, as long as its own limit lets it.
    assert!((15..=20).contains(&gold), "gold {gold}");
    assert!((5..=6).contains(&brass), "brass {brass}");
    assert!(iron >= 4, "iron {iron}");
}

#[test]
fn tokens_that_arrive_within_a_window_stay_below_its_limit() {
    let words = |request: &Received| field(request, 2).parse().unwrap_or(0);
    let tokens = |name, limit, takes| Swept {
        name,
        limit,
        window: ms(500),
        takes,
    };
    let swept = [
        tokens("output tokens", 200, words),
        Swept::requests(40, 500),
    ];
    let setup = || {
        let mut dice = Dice::new(9);
        let mut visits = bursts(130, ms(1500), 10);
        for visit in &mut visits {
            visit.wish.words = 1 + dice.below(12) as usize;
        }
        Setup {
            budgets: "  - {name: main, match: {provider: p}, requests: [{limit: 40, window: \
                      500ms}], output_tokens: [{limit: 200, window: 500ms}], concurrent: 30, refund: all}\n"
                .into(),
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: None,
            visits,
            script: Box::new(|prompt| answer(prompt, true)),
        }
    };
    let run = alone(strict("tokens", MARGIN, &swept, setup));
    all_committed(&run.outcomes);
    assert_eq!(run.status["budgets"][0]["overruns"], 0);
    let most = sweep::at_once(&stretches(&run.log));
    assert!(most <= 30, "{most} at once");
}

/// From when to when each request was at the provider. An answer is complete with its last event; this
/// provider closes its body a moment later.
fn stretches(log: &[Received]) -> Vec<(Duration, Duration)> {
    const CLOSING: Duration = ms(10);
    let stretches = log.iter().map(|request| {
        let ended = request.ended.expect("it has ended");
        (
            request.arrived,
            ended.saturating_sub(CLOSING).max(request.arrived),
        )
    });
    stretches.collect()
}

#[test]
fn without_a_margin_the_same_sweep_sees_the_window_overflow() {
    let setup = || {
        let mut carried = 0;
        Setup {
            budgets: "  - {name: main, match: {provider: p}, margin: 0ms, requests: \
                      [{limit: 20, window: 500ms}]}\n"
                .into(),
            // The first window's sends arrive late, the second's do not.
            provider: HTTP1,
            connect: TEN_SECONDS,
            way: Some((
                Box::new(|| Duration::ZERO),
                Box::new(move || {
                    carried += 1;
                    if carried <= 20 {
                        ms(200)
                    } else {
                        Duration::ZERO
                    }
                }),
            )),
            visits: bursts(60, Duration::ZERO, 11),
            script: Box::new(|prompt| answer(prompt, false)),
        }
    };
    let run = alone(proof::run(setup()));
    let (most, _) = sweep::worst(&Swept::requests(20, 500).arrivals(&run.log), ms(500));
    println!("without a margin: worst 500ms holds {most} of 20");
    assert!(most > 30, "{most}: the sweep sees nothing");
}
