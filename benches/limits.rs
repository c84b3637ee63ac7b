//! What a lease costs: taken of four budgets at once, sent and settled, each with ten thousand sends in
//! its log.
//!
//! `cargo bench --bench limits`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use redrive::limits::{
    Ahead, Day, Limits, Measure, Micros, Refund, Settings, Weights, WindowLimit,
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
    criterion.final_summary();
}
