//! Fleets of generations against the core alone.

mod circumstances;
mod habits;

use std::collections::BTreeSet;

use crate::{
    dice::Dice,
    model::Fleet,
    seeds::{assert_reached, play_all},
};

use self::{
    circumstances::{House, gate},
    habits::Habits,
};

/// Without an optimiser a seed takes twenty times as long.
const USUAL: u64 = if cfg!(debug_assertions) {
    2_000
} else {
    400_000
};

#[test]
fn core_keeps_its_promises_whatever_happens_to_a_fleet() {
    let reached = play_all("core", USUAL, play);
    assert_reached(
        &reached,
        &[
            "reset",
            "committed",
            "committed after a replay",
            "committed unseen",
            "withheld",
            "effects confirmed",
            "continued",
            "continued again",
            "resumed",
            "echo",
            "begun anew",
            "refused to go on",
            "fallback",
            "second credential",
            "not the preferred credential",
            "held back by a budget",
            "refused by a budget",
            "held back by an engine",
            "an engine that stayed away",
            "cut",
            "penalty",
            "time-out",
            "doubled windows",
            "error object",
            "gate: asked again",
            "gate: waits for a credential",
            "gate: went elsewhere",
            "gate: a hint was sent again",
            "gate: exhausted",
            "gate: failed as malformed",
            "gate: delivered at the end",
            "gate: must stay",
            "gate: withheld a call",
            "gate: empty",
            "gate: bare",
            "gate: required_tool",
            "gate: tool_error",
            "gate: missing_tool",
            "STOPPED_BY_NOT_RETRYABLE",
            "STOPPED_BY_ALLOWANCE",
            "STOPPED_BY_DEADLINE",
            "STOPPED_BY_WAIT_TOO_LONG",
            "STOPPED_BY_SAME_PLACE",
            "STOPPED_BY_EFFECTS",
            "STOPPED_BY_RETRY_BUDGET",
            "STOPPED_BY_NO_TARGET",
            "STOPPED_BY_LIMITER",
            "STOPPED_BY_CANCEL",
            "STOPPED_BY_DRAIN",
            "STOPPED_BY_NO_RESET",
            "STOPPED_BY_REPLAY_DISABLED",
            "STOPPED_BY_CLIENT",
        ],
    );
}

/// One fleet's whole life.
fn play(seed: u64) -> BTreeSet<&'static str> {
    let mut dice = Dice::new(seed);
    let retries = if dice.chance(80) {
        1_000
    } else {
        dice.below(3) as u32
    };
    let mut fleet = Fleet::new(retries);
    let house = House::draw(&mut dice);
    let habits = Habits::draw(&mut dice);
    let size = 1 + dice.below(6) as usize;
    let mut index = 0;
    for _ in 0..20 + dice.below(280) {
        if fleet.len() == 0 || (fleet.len() < size && dice.chance(5)) {
            index = fleet.len();
            let params = house.params(&mut dice);
            fleet.join(params, gate(&mut dice));
            fleet.start(index);
        }
        if dice.chance(30) {
            index = dice.below(fleet.len() as u64) as usize;
        }
        fleet.act(index, habits.next(&mut dice));
    }
    fleet.finish()
}
