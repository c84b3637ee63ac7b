//! Concurrent clients against the whole server: gRPC over in-memory pipes, a paused clock, providers
//! at the upstream seam. What a client or a provider does depends on the seed and on itself, never on
//! the order in which others get their turn.

mod account;
mod client;
mod gate;
mod house;
mod provider;

use std::{collections::BTreeSet, fmt::Write, sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use crate::{
    dice::Dice,
    seeds::{assert_reached, play_all},
    support::{Bench, millis, secs},
};

use self::{account::Account, house::House, provider::Habits};

/// Without an optimiser a seed takes ten times as long.
const USUAL: u64 = if cfg!(debug_assertions) { 40 } else { 8_000 };

/// Longer than any generation lives on by itself, deadline and timers included.
const ALL_OVER: Duration = secs(4_000);

#[test]
fn server_keeps_its_promises_whatever_its_clients_and_providers_do() {
    let reached = play_all("server", USUAL, |seed| play(seed).landmarks);
    assert_reached(
        &reached,
        &[
            "reset",
            "committed",
            "committed after a replay",
            "committed unseen",
            "completed by one call",
            "effects confirmed",
            "continued",
            "committed after a continuation",
            "fallback",
            "second credential",
            "waiting",
            "stalled three times at one place",
            "displaced",
            "attached",
            "refused",
            "Failed(Stall)",
            "Failed(Transport)",
            "Failed(RateLimited)",
            "Failed(Auth)",
            "Failed(Cancelled)",
            "Failed(ClientTooSlow)",
            "Failed(Draining)",
            "Failed(Deadline)",
            "held back by a budget",
            "stopped by a budget",
            "Failed(MalformedOutput)",
            "Failed(GateRejected)",
            "asked again by the gate",
            "a hint was sent again",
            "exhausted the gate",
            "an announcement was delivered",
            "must stay in spite of the gate",
            "a call was withheld beside a good one",
        ],
    );
}

/// Were it not so, no seed could be replayed.
#[test]
fn server_seeds_replay_exactly() {
    for seed in 0..20 {
        assert_eq!(play(seed).story, play(seed).story, "seed {seed}");
    }
}

/// What came of a seed.
struct Played {
    landmarks: BTreeSet<&'static str>,
    /// Every send and every end, with their times.
    story: String,
}

fn play(seed: u64) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(live(seed))
}

async fn live(seed: u64) -> Played {
    let mut dice = Dice::of(seed, 0, 0);
    let house = House::draw(&mut dice);
    let habits = Habits::draw(&mut dice);
    let bench = Bench::with_slots(&house.config, house.slots).await;
    let from = Instant::now();
    let account = Arc::new(Account::new(bench.provider.clone(), house.clone()));
    {
        let account = Arc::clone(&account);
        bench.provider.by(move |send| {
            let (client, attempt, partial) = account.is_sent(send);
            account.says(client, habits.speech(seed, client, attempt, partial))
        });
    }
    if dice.chance(3) {
        bench.provider.fill_queue();
    }
    let mut clients = JoinSet::new();
    let shared = bench.channel().clone();
    for number in 1..=1 + dice.below(6) {
        let channel = if dice.chance(30) {
            bench.connect().await
        } else {
            shared.clone()
        };
        let dice = Dice::of(seed, number, 1 << 32);
        let drain = bench.drain.clone();
        let account = Arc::clone(&account);
        clients.spawn(client::live(number, channel, drain, account, dice));
    }
    drop(shared);
    if dice.chance(15) {
        // Between the milliseconds at which clients act.
        let after = millis(dice.below(200_000)) + Duration::from_micros(500);
        let drain = bench.drain.clone();
        clients.spawn(async move {
            time::sleep(after).await;
            drain.cancel();
        });
    }
    while let Some(client) = clients.join_next().await {
        if let Err(error) = client {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    // What was detached comes to its end too.
    time::sleep(ALL_OVER).await;
    account.check_sends();
    account.check_limit();
    bench.finish().await;
    let mut story = account.story();
    for send in account.sends() {
        let ended = send.ended_at.map(|at| at - from);
        let (at, fate) = (send.at - from, send.fate);
        writeln!(story, "{} at {at:?} {fate:?} at {ended:?}", send.provider).unwrap();
    }
    Played {
        landmarks: account.landmarks(),
        story,
    }
}
