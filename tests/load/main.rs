//! Many generations at once over real sockets: none lost, doubled or out of order, nothing left behind,
//! and no client that harms another.
//!
//! In real time: `tests/REAL_TIME.md` says why. One test at a time. An optimised build carries the whole
//! load (`cargo test --release --test load`), any other a tenth of it. The long run is
//! `REDRIVE_LOAD_SECONDS=120 cargo test --release --test load`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests open sockets as clients do, and measure the named bounds in real time"
)]

mod client;
mod provider;
mod sidecar;

use std::{env, time::Duration};

use sidecar::{Sidecar, alone};

/// Tokens of a generation that is as fast as models are: 50 a second.
const PACE: Duration = Duration::from_millis(20);

/// Generations on one connection.
const SHARING: usize = 110;

/// What the 99th percentile of good readers may grow by beside slow ones, apart from doubling: the moods of
/// a machine that others use.
const SLACK: Duration = Duration::from_millis(50);

/// What resident memory may grow by from one wave to the same again: the allocator's holes. A thousand
/// generations that are not let go take 30 MiB; anything smaller is caught by the gauges.
const GROWTH_KIB: u64 = 24 << 10;

/// Comparisons at most.
const ROUNDS: usize = 3;

/// Waves at most.
const WAVES: usize = 4;

/// What the last wave added.
fn growth(resident: &[u64]) -> u64 {
    let [.., before, after] = *resident else {
        return u64::MAX;
    };
    after.saturating_sub(before)
}

/// The whole load, or a tenth where nothing is optimised.
fn scaled(count: usize) -> usize {
    if cfg!(debug_assertions) {
        count / 10
    } else {
        count
    }
}

/// How many tokens a generation has.
fn tokens(pace: Duration) -> usize {
    let usual = if cfg!(debug_assertions) { 4 } else { 10 };
    let seconds = env::var("REDRIVE_LOAD_SECONDS").map_or(usual, |text| text.parse().unwrap());
    (Duration::from_secs(seconds).as_micros() / pace.as_micros()) as usize
}

#[test]
fn a_thousand_generations_lose_double_and_disorder_nothing_and_leave_nothing_behind() {
    alone(async {
        let sidecar = Sidecar::start().await;
        let mut resident = Vec::new();
        // The allocator may still grow in the second wave; a leak grows in every further one too.
        while resident.len() < WAVES && growth(&resident) > GROWTH_KIB {
            let channels = sidecar.connect(scaled(1_000).div_ceil(SHARING)).await;
            client::read_all(&channels, scaled(1_000), tokens(PACE), PACE).await;
            drop(channels);
            sidecar.at_rest().await;
            resident.push(sidecar::resident_kib());
        }
        let grown = growth(&resident);
        assert!(grown <= GROWTH_KIB, "grew by {grown} KiB: {resident:?}");
        sidecar.finish().await;
    });
}

#[test]
fn clients_that_read_nothing_do_not_slow_those_on_the_same_connections_that_do() {
    /// Others get few tokens a second: it is the connections that are put to the test, not the processor.
    const PACE_OF_OTHERS: Duration = Duration::from_millis(150);
    /// A client on h2, as tonic's, closes a connection on which it has left about 12,000 small messages
    /// unread; a hundred slow readers share one.
    const TOKENS_OF_OTHERS: usize = 100;
    alone(async {
        let sidecar = Sidecar::start().await;
        let channels = sidecar.connect(scaled(1_100).div_ceil(SHARING)).await;
        let others = async || {
            let count = scaled(1_000);
            let others = client::open_all(&channels, count, TOKENS_OF_OTHERS, PACE_OF_OTHERS).await;
            // So many openings are a load of their own.
            tokio::time::sleep(Duration::from_secs(2)).await;
            others
        };
        let good = async || {
            let mut best = u64::MAX;
            for _ in 0..2 {
                let mut ages = client::read_all(&channels, scaled(100), 200, PACE).await;
                best = best.min(ages.percentile(99));
            }
            Duration::from_micros(best)
        };

        // A machine has its moods, which pass; a client that harms others harms them every time.
        let mut harmed = true;
        for _ in 0..ROUNDS {
            let reading = client::read_each(others().await, TOKENS_OF_OTHERS);
            let beside_readers = good().await;
            reading.join_all().await;

            let slow = others().await;
            let beside_slow = good().await;
            // They read after all, and find everything.
            client::read_each(slow, TOKENS_OF_OTHERS).join_all().await;

            println!("p99 of good readers: {beside_readers:?}, beside slow ones {beside_slow:?}");
            harmed = beside_slow > beside_readers * 2 + SLACK;
            if !harmed {
                break;
            }
        }
        assert!(
            !harmed,
            "beside slow readers more than twice as old, every time"
        );
        drop(channels);
        sidecar.at_rest().await;
        sidecar.finish().await;
    });
}
