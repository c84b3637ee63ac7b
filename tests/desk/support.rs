//! Budgets, flows, and a desk on a clock of values.

use redrive::limits::*;

pub const SECOND: Micros = 1_000_000;

/// How long after its grant a lease may be sent.
pub const WITHIN: Micros = SECOND;

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

pub fn requests(limit: u64, window: Micros) -> Settings {
    budget(&[(Measure::Requests, limit, window)])
}

pub fn concurrent(limit: u64) -> Settings {
    Settings {
        concurrent: Some(limit),
        ..budget(&[])
    }
}

pub fn desk(budgets: impl IntoIterator<Item = Settings>) -> Desk<()> {
    Desk::new(budgets.into_iter().map(|settings| (settings, 10_000)), ())
}

/// A way of no flow in particular.
pub fn plain(budgets: &[BudgetId]) -> Choice<'_> {
    Choice {
        budgets,
        line: None,
    }
}

/// A way of a flow; the first budget is shared fairly.
pub fn of<'a>(flow: &'a str, weight: u32, budgets: &'a [BudgetId]) -> Choice<'a> {
    let line = Line {
        domain: budgets[0],
        flow,
        weight,
    };
    Choice {
        budgets,
        line: Some(line),
    }
}

pub fn input(tokens: u64) -> Weights {
    Weights {
        input_tokens: tokens,
        output_tokens: 0,
    }
}

/// A grant at once.
pub fn granted(desk: &mut Desk<()>, now: Micros, way: Choice<'_>, weights: Weights) -> LeaseId {
    match desk.ask(now, &[way], weights, WITHIN) {
        Asked::Granted { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

/// A grant at once, sent at once.
pub fn sent(desk: &mut Desk<()>, now: Micros, way: Choice<'_>, weights: Weights) -> LeaseId {
    let lease = granted(desk, now, way, weights);
    assert!(desk.sent(now, lease));
    lease
}

/// A wait.
pub fn waits(desk: &mut Desk<()>, now: Micros, way: Choice<'_>, weights: Weights) -> Ticket {
    outlook(desk, now, way, weights).0
}

/// A wait, and what for.
pub fn outlook(
    desk: &mut Desk<()>,
    now: Micros,
    way: Choice<'_>,
    weights: Weights,
) -> (Ticket, Outlook) {
    match desk.ask(now, &[way], weights, WITHIN) {
        Asked::Waits { ticket, outlook } => (ticket, outlook),
        other => panic!("{other:?}"),
    }
}

/// Those who were granted since the last time, in order.
pub fn grants(desk: &mut Desk<()>) -> Vec<(Ticket, LeaseId)> {
    let mut all = Vec::new();
    while let Some(event) = desk.poll_event() {
        if let Event::Granted { ticket, lease, .. } = event {
            all.push((ticket, lease));
        }
    }
    all
}

/// What was told since the last time, in order.
pub fn told(desk: &mut Desk<()>) -> Vec<(Ticket, Outlook)> {
    let mut all = Vec::new();
    while let Some(event) = desk.poll_event() {
        if let Event::Told { ticket, outlook } = event {
            all.push((ticket, outlook));
        }
    }
    all
}

/// Everybody who is granted from `now` on, if each is sent at once and ends after `service`; in order.
pub fn run(desk: &mut Desk<()>, mut now: Micros, service: Micros) -> Vec<(Micros, Ticket)> {
    let mut running = std::collections::BTreeSet::new();
    let mut order = Vec::new();
    loop {
        for (ticket, lease) in grants(desk) {
            assert!(desk.sent(now, lease));
            running.insert((now + service, lease));
            order.push((now, ticket));
        }
        let end = running.first().map(|(at, _)| *at);
        let look = desk.next_look();
        let Some(next) = end.into_iter().chain(look).min() else {
            assert_eq!(desk.waiting(), 0, "somebody waits for nothing");
            return order;
        };
        now = now.max(next);
        if end.is_some_and(|end| end <= now) {
            let (_, lease) = running.pop_first().unwrap();
            desk.settle(now, lease, Weights::default());
        } else {
            desk.look(now);
        }
    }
}
