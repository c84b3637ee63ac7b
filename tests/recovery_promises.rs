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

use std::time::Duration;

use proptest::prelude::*;
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

fn play(params: Params, events: Vec<(bool, Op)>, retries: u32) {
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
        worlds[usize::from(second)].act(now, op, commons, &mut shared);
    }
    for world in &mut worlds {
        world.finish(now, commons, &mut shared);
    }
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
                assert!(again < 6, "a time-out that is due again and again");
            }
        }
    }
    *now = end;
}
