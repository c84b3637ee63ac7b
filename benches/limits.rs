//! What a lease costs: taken of four budgets at once, sent and settled, each with ten thousand sends in
//! its log. And what a desk costs before which ten thousand wait.
//!
//! `cargo bench --bench limits`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use redrive::limits::{
    Ahead, Asked, BudgetId, Choice, Day, Desk, LeaseId, Limits, Line, Measure, Micros, Refund,
    Settings, Weights, WindowLimit,
};

/// Sends that each log remembers.
const ENTRIES: u64 = 10_000;

/// The longest window: a minute.
const WINDOW: Micros = 60_000_000;

/// From one send to the next: so a log holds as many as it should.
const PACE: Micros = WINDOW / ENTRIES;

const WHICH: [usize; 4] = [0, 1, 2, 3];

const RESERVED: Weights = Weights {
    input_tokens: 1_000,
    output_tokens: 4_096,
};

const ACTUAL: Weights = Weights {
    input_tokens: 900,
    output_tokens: 300,
};

fn settings(requests: u64) -> Settings {
    let window = |measure, limit, window| WindowLimit {
        measure,
        limit,
        window,
    };
    Settings {
        name: "minute".into(),
        windows: vec![
            window(Measure::Requests, requests, WINDOW),
            window(Measure::Requests, requests, WINDOW / 60),
            window(Measure::InputTokens, u64::MAX, WINDOW),
            window(Measure::OutputTokens, u64::MAX, WINDOW),
        ],
        concurrent: Some(1_000),
        daily: Vec::new(),
        refund: Refund::All,
        margin: 0,
    }
}

fn day() -> Day {
    Day {
        number: 1,
        ends: Micros::MAX,
    }
}

/// One send, from its lease to its end.
fn send(limits: &mut Limits, now: Micros) {
    let lease = limits.acquire(now, &WHICH, &[day(); 4], RESERVED, now + 1_000_000);
    let lease = lease.unwrap();
    assert!(limits.sent(now, lease));
    limits.settle(now, lease, ACTUAL);
}

fn filled(requests: u64) -> (Limits, Micros) {
    let mut limits = Limits::new((0..4).map(|_| settings(requests)));
    let mut now = 1;
    for _ in 0..ENTRIES {
        send(&mut limits, now);
        now += PACE;
    }
    (limits, now)
}

/// Who waits, in so many sets of budgets: all need budget 0, of which nothing is left, and one more.
fn queue(waiters: usize, sets: usize) -> (Desk<()>, LeaseId) {
    let full = Settings {
        concurrent: Some(1),
        ..settings(u64::MAX)
    };
    let others = (0..sets + 3).map(|_| settings(u64::MAX));
    let budgets = std::iter::once(full).chain(others);
    let mut desk = Desk::new(budgets.map(|settings| (settings, usize::MAX)), ());
    for budget in 0..sets + 4 {
        desk.turn(budget, day());
    }
    let Asked::Granted { lease, .. } = ask(&mut desk, 1, "flow 0", &[0]) else {
        panic!("nobody waits yet");
    };
    for n in 0..waiters {
        let flow = format!("flow {}", n % 100);
        ask(&mut desk, 1, &flow, &[0, 4 + n % sets]);
    }
    assert_eq!(desk.waiting(), waiters);
    (desk, lease)
}

fn ask(desk: &mut Desk<()>, now: Micros, flow: &str, budgets: &[BudgetId]) -> Asked {
    let line = Line {
        domain: 0,
        flow,
        weight: 1,
    };
    let way = Choice {
        budgets,
        line: Some(line),
    };
    desk.ask(now, &[way], RESERVED, WINDOW)
}

/// One at a time goes through budget 0: its end lets the next go.
fn next(desk: &mut Desk<()>, now: Micros, running: &mut LeaseId) {
    desk.settle(now, *running, ACTUAL);
    while let Some(event) = desk.poll_event() {
        if let redrive::limits::Event::Granted { lease, .. } = event {
            *running = lease;
        }
    }
}

fn desk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("desk");
    for (waiters, sets) in [(0, 1), (10_000, 1), (10_000, 1_000)] {
        let name = |what: &str| format!("{what}, {waiters} wait in {sets} sets");
        let (mut desk, running) = queue(waiters, sets);
        group.bench_function(name("ask granted over 4 others + release"), |b| {
            b.iter(|| match ask(&mut desk, 1, "other", &[1, 2, 3, 4]) {
                Asked::Granted { lease, .. } => desk.release(1, lease),
                other => panic!("{other:?}"),
            });
        });
        group.bench_function(name("ask that waits + withdraw"), |b| {
            b.iter(|| match ask(&mut desk, 1, "flow 1", &[0, 4]) {
                Asked::Waits { ticket, .. } => desk.withdraw(1, ticket),
                other => panic!("{other:?}"),
            });
        });
        let mut now = 1;
        group.bench_function(name("a send beside them: ask + hand-over + settle"), |b| {
            b.iter(|| {
                now += PACE;
                match ask(&mut desk, now, "other", &[1, 2, 3, 4]) {
                    Asked::Granted { lease, .. } => {
                        assert!(desk.sent(now, lease));
                        desk.settle(now, lease, ACTUAL);
                    }
                    other => panic!("{other:?}"),
                }
            });
        });
        if waiters == 0 {
            continue;
        }
        let mut running = running;
        group.bench_function(name("settle + grant + who waits anew"), |b| {
            let mut n = 0;
            b.iter(|| {
                now += PACE;
                next(&mut desk, now, &mut running);
                n += 1;
                let flow = ["flow 1", "flow 2", "flow 3"][n % 3];
                ask(&mut desk, now, flow, &[0, 4 + n % sets]);
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("limits");
    group.throughput(Throughput::Elements(1));
    let (mut limits, mut now) = filled(u64::MAX);
    group.bench_function("acquire + sent + settle, 4 budgets of 10,000 sends", |b| {
        b.iter(|| {
            now += PACE;
            send(&mut limits, now);
        });
    });
    assert!(limits.gauges(0).unwrap().1 >= 9_999);
    let (limits, now) = filled(ENTRIES);
    group.bench_function("denied, 4 budgets of 10,000 sends", |b| {
        let mut limits = limits.clone();
        let now = now - PACE + 1;
        b.iter(|| black_box(limits.check(now, &WHICH, &[day(); 4], RESERVED)).unwrap_err());
    });
    let ahead = Ahead {
        requests: 1_000,
        tokens: Weights::default(),
    };
    group.bench_function("forecast behind 1,000, 4 budgets of 10,000 sends", |b| {
        let mut limits = limits.clone();
        let now = now - PACE + 1;
        b.iter(|| black_box(limits.earliest(now, &WHICH, &[day(); 4], RESERVED, ahead)).unwrap());
    });
    group.bench_function("after a pause: 10,000 sends leave 4 logs", |b| {
        let late = now + 2 * WINDOW;
        b.iter_batched_ref(
            || limits.clone(),
            |limits| limits.check(late, &WHICH, &[day(); 4], RESERVED),
            BatchSize::LargeInput,
        );
    });
    group.finish();
    desk(&mut criterion);
    criterion.final_summary();
}
