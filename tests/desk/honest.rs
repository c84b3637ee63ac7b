//! The time that those who wait are told is a lower bound, where nothing comes back.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use redrive::limits::*;

use crate::support::*;

const FLOWS: [&str; 3] = ["a", "b", "c"];

/// One who asks: after how long, of which flow, for which budgets, how many tokens.
type Ask = (Micros, usize, Vec<BudgetId>, u64);

/// One who waits: its budgets, and when it was told which times.
type Told = (Vec<BudgetId>, Vec<(Micros, Micros)>);

/// Sends everything at once and takes nothing back; checks each grant against all that was told before.
fn play(settings: Vec<Settings>, asks: Vec<Ask>) -> Result<(), TestCaseError> {
    let mut desk = desk(settings);
    let mut now = 1;
    let mut told: BTreeMap<Ticket, Told> = BTreeMap::new();
    let mut asks = asks.into_iter();
    let mut next = asks.next();
    let mut due = next.as_ref().map(|ask| now + ask.0);
    loop {
        while let Some(event) = desk.poll_event() {
            match event {
                Event::Granted { ticket, lease, .. } => {
                    prop_assert!(desk.sent(now, lease));
                    for (when, expected) in told.remove(&ticket).unwrap_or_default().1 {
                        let who = format!("{ticket} at {when}");
                        prop_assert!(expected <= now, "{who}: {expected}, but goes at {now}");
                    }
                }
                Event::Told { ticket, outlook } => {
                    let (_, all) = told.entry(ticket).or_default();
                    all.extend(outlook.expected.map(|expected| (now, expected)));
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        let look = desk.next_look();
        let Some(at) = look.into_iter().chain(due).min() else {
            prop_assert_eq!(desk.waiting(), 0);
            return Ok(());
        };
        now = now.max(at);
        if look.is_some_and(|look| look <= now) {
            desk.look(now);
            continue;
        }
        if let Some((_, flow, set, tokens)) = next.take() {
            // What its flow gets elsewhere moves it behind: others may go sooner than they knew.
            for (other, all) in told.values_mut() {
                if other[0] == set[0] && *other != set {
                    all.clear();
                }
            }
            let way = of(FLOWS[flow], 1 + flow as u32, &set);
            match desk.ask(now, &[way], input(tokens), 0) {
                Asked::Granted { lease, .. } => {
                    prop_assert!(desk.sent(now, lease));
                }
                Asked::Waits { ticket, outlook } => {
                    let (its, all) = told.entry(ticket).or_default();
                    its.clone_from(&set);
                    all.extend(outlook.expected.map(|expected| (now, expected)));
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        next = asks.next();
        due = next.as_ref().map(|ask| now + ask.0);
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let windows = (2_u64..8, 1_u64..3_000, 10_u64..30, 1_u64..3_000);
    windows.prop_map(|(limit, window, tokens, longer)| {
        budget(&[
            (Measure::Requests, limit, window * 1_000),
            (Measure::InputTokens, tokens, longer * 1_000),
        ])
    })
}

fn asks(set: impl Strategy<Value = Vec<BudgetId>>) -> impl Strategy<Value = Vec<Ask>> {
    let after = prop_oneof![3 => Just(0), 1 => 0_u64..2_000_000];
    vec((after, 0_usize..3, set, 0_u64..10), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nobody_goes_before_the_time_that_was_told(
        settings in vec(settings(), 2),
        asks in asks(Just(vec![0, 1])),
    ) {
        play(settings, asks)?;
    }

    #[test]
    fn nobody_goes_before_the_time_that_was_told_whatever_budgets_others_wait_for(
        settings in vec(settings(), 4),
        asks in asks(prop::sample::subsequence(vec![0_usize, 1, 2, 3], 1..=3)),
    ) {
        play(settings, asks)?;
    }
}
