//! The promises, over random events: random clients, providers, timers and drains, up to two
//! generations that share a scope, credentials and circuits. Every step is checked against an account
//! of what happened that is kept apart from the core's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "shared with tests/recovery.rs")]
#[path = "recovery/support/fixtures.rs"]
mod fixtures;
#[path = "recovery/promises/op.rs"]
mod op;
#[path = "recovery/promises/provider.rs"]
mod provider;
#[path = "recovery/promises/reader.rs"]
mod reader;
#[path = "recovery/promises/world.rs"]
mod world;

use std::{collections::BTreeMap, time::Duration};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use redrive::recovery::{Params, Time};

use crate::{
    fixtures::{at, commons_with},
    op::{Op, circumstances, ops},
    world::{Shared, World},
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_promises_hold_whatever_happens(
        params in circumstances(),
        events in ops(),
        retries in prop_oneof![3 => Just(1000u32), 1 => 0u32..3],
    ) {
        play(params, events, retries);
    }
}

/// A property that never gets to the point proves nothing.
#[test]
fn random_events_reach_every_kind_of_end() {
    let mut runner = TestRunner::deterministic();
    let mut reached: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..500 {
        let params = circumstances().new_tree(&mut runner).unwrap().current();
        let events = ops().new_tree(&mut runner).unwrap().current();
        let retries = if events.len().is_multiple_of(4) {
            1
        } else {
            1000
        };
        for landmark in play(params, events, retries) {
            *reached.entry(landmark).or_default() += 1;
        }
    }
    for landmark in [
        "reset",
        "committed",
        "committed after a replay",
        "committed unseen",
        "withheld",
        "effects confirmed",
        "fallback",
        "second credential",
        "STOPPED_BY_NOT_RETRYABLE",
        "STOPPED_BY_ALLOWANCE",
        "STOPPED_BY_DEADLINE",
        "STOPPED_BY_WAIT_TOO_LONG",
        "STOPPED_BY_EFFECTS",
        "STOPPED_BY_RETRY_BUDGET",
        "STOPPED_BY_NO_TARGET",
        "STOPPED_BY_CANCEL",
        "STOPPED_BY_DRAIN",
        "STOPPED_BY_NO_RESET",
        "STOPPED_BY_REPLAY_DISABLED",
        "STOPPED_BY_CLIENT",
    ] {
        let times = reached.get(landmark).copied().unwrap_or_default();
        assert!(times >= 2, "{landmark}: {times} times, of {reached:?}");
    }
}

fn play(params: Params, events: Vec<(bool, Op)>, retries: u32) -> Vec<&'static str> {
    let commons = commons_with(retries);
    let commons = &*commons;
    let mut shared = Shared::default();
    let mut now = at(0);
    let mut worlds: Vec<World> = Vec::new();
    for _ in 0..2 {
        worlds.push(World::new(now, params.clone(), commons, &mut shared));
    }
    for world in &mut worlds {
        world.start(now, commons, &mut shared);
    }
    for (second, op) in events {
        if let Op::Pass(millis) = op {
            let end = now + Duration::from_millis(millis);
            pass(&mut worlds, &mut now, end, commons, &mut shared);
        }
        if let Op::Jump(millis) = op {
            now = now + Duration::from_millis(millis);
        }
        worlds[usize::from(second)].act(now, op, commons, &mut shared);
    }
    for world in &mut worlds {
        world.finish(now, commons, &mut shared);
    }
    worlds
        .into_iter()
        .flat_map(|world| world.landmarks)
        .collect()
}

/// Time passes; each time-out is handed in at its time and must then be over.
fn pass(
    worlds: &mut [World],
    now: &mut Time,
    end: Time,
    commons: &std::cell::RefCell<redrive::recovery::Commons>,
    shared: &mut Shared,
) {
    loop {
        let due = worlds.iter().filter_map(World::due).min();
        let Some(due) = due.filter(|due| *due <= end) else {
            break;
        };
        *now = (*now).max(due);
        for world in &mut *worlds {
            let mut again = 0;
            while world.due().is_some_and(|due| due <= *now) {
                world.timer(*now, commons, shared);
                again += 1;
                assert!(again < 4, "a time-out that is due again and again");
            }
        }
    }
    *now = end;
}
