//! What befalls the way to the engine, and a primary whose replica knows less than it did.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    fleet::Fleet,
    load::Clients,
    proof::{Seen, engine_account, run, same_account, strict},
    replica::Replica,
    road::Road,
    server::{Kind, Server},
    stage::{CLOSED, LIMITS, a_while, all, engine, has},
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// Longer than an answer may take, which is 100 ms.
const LATE: Duration = Duration::from_millis(500);

async fn late_answers() -> Seen {
    let server = Server::start(Kind::Redis);
    let road = Road::to(local(server.port)).await;
    let fleet = Fleet::start(LIMITS, &engine(road.port, CLOSED)).await;
    let first = fleet.granted().await;
    let load = all(&fleet, Clients::new("default"));
    a_while().await;
    road.delay(LATE);
    sleep(secs(5)).await;
    road.delay(Duration::ZERO);
    let from = fleet.now();
    let went_on = fleet.goes_on("default", from).await;
    a_while().await;
    let seen = Seen::of(&fleet, [first, load.stop().await]).await;
    seen.nobody_failed();
    same_account(&server, &seen).await;
    let account = engine_account(&server).await;
    println!("late answers: {account:?}");
    // What was granted and not heard was given back.
    assert_eq!(account.expired, 0, "{account:?}");
    println!("late answers: sends go on after {went_on:?}");
    // A lease whose answer was lost ends by itself at the latest.
    assert!(went_on < secs(15), "{went_on:?}");
    seen
}

async fn promoted() -> Seen {
    let server = Server::start_with(
        Kind::Redis,
        &["--bind", "0.0.0.0", "--protected-mode", "no"],
    );
    let replica = Replica::of(&server).await;
    println!("promoted replica: the link is cut by {}", replica.cut_by());
    let road = Road::to(local(server.port)).await;
    let fleet = Fleet::start(LIMITS, &engine(road.port, CLOSED)).await;
    let first = fleet.granted().await;
    let load = all(&fleet, Clients::new("default"));
    a_while().await;
    replica.is_in_step(&server).await;
    replica.cut();
    // What is granted now the replica never hears of.
    sleep(2 * LIMITS.period()).await;
    let behind = replica.is_behind(&server);
    assert!(behind > 0, "the replica knows everything");
    replica.promote();
    road.lead_to(replica.address());
    drop(server);
    let moved = fleet.now();
    let settled = Duration::from_millis(500);
    let went_on = fleet.goes_on("default", moved + settled).await + settled;
    a_while().await;
    let seen = Seen::of(&fleet, [first, load.stop().await]).await;
    seen.nobody_failed();
    println!("promoted replica: {behind} bytes behind; sends go on after {went_on:?}");
    assert!(went_on >= LIMITS.period(), "it cannot know what was sent");
    assert!(went_on <= LIMITS.learning() + secs(5), "{went_on:?}");
    seen
}

#[test]
fn late_answers_and_a_replica_that_knows_less_overflow_no_window() {
    if has(Kind::Redis) {
        run(async {
            tokio::join!(
                strict("late answers", late_answers),
                strict("promoted replica", promoted),
            )
        });
    }
}
