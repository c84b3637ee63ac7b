//! Budgets of one limit, and acquires of one budget.

use redrive::limits::*;

use super::engine::Engine;

/// A budget of these windows, without a margin.
pub fn budget(windows: &[(Measure, u64, Micros)]) -> Settings {
    let windows = windows.iter().map(|&(measure, limit, window)| WindowLimit {
        measure,
        limit,
        window,
    });
    Settings {
        name: String::new(),
        windows: windows.collect(),
        concurrent: None,
        daily: Vec::new(),
        refund: Refund::All,
        margin: 0,
    }
}

/// So many requests in a window.
pub fn requests(limit: u64, window: Micros) -> Settings {
    budget(&[(Measure::Requests, limit, window)])
}

/// The day of a time: each takes 1,000.
pub fn day(now: Micros) -> Day {
    let number = now / 1_000;
    Day {
        number: number as i64,
        ends: (number + 1) * 1_000,
    }
}

/// Tokens of the prompt.
pub fn input(tokens: u64) -> Weights {
    Weights {
        input_tokens: tokens,
        output_tokens: 0,
    }
}

/// Budget 0 alone, for a send at once.
pub fn take(limits: &mut impl Engine, now: Micros, weights: Weights) -> Result<LeaseId, Denied> {
    limits.acquire(now, &[0], &[day(now)], weights, now + 500)
}

/// Budget 0 alone, and sent.
pub fn send(limits: &mut impl Engine, now: Micros, weights: Weights) -> LeaseId {
    let id = take(limits, now, weights).unwrap();
    assert!(limits.sent(now, id));
    id
}

/// Until when budget 0 denies.
pub fn until(limits: &mut impl Engine, now: Micros, weights: Weights) -> Option<Micros> {
    match limits.check(now, &[0], &[day(now)], weights) {
        Ok(()) => Some(now),
        Err(Denied::Full { full, .. }) => full.until,
        Err(Denied::Never { .. }) => Some(Micros::MAX),
    }
}
