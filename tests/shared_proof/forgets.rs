//! The engine forgets what was sent, or what it is to run.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    proof::{Seen, run, same_account, strict},
    server::Kind,
    stage::{CLOSED, LIMITS, Stage, a_while, has},
};

/// How much later than the engine may grant again the load goes on.
const LATER: Duration = Duration::from_secs(5);

/// What had its grant is on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// How long the engine is down.
const DOWN: Duration = Duration::from_secs(1);

async fn restarted() -> Seen {
    let mut stage = Stage::of(Kind::Redis, LIMITS, CLOSED).await;
    let load = stage.load();
    a_while().await;
    stage.server.kill();
    let lost = stage.fleet.now();
    sleep(DOWN).await;
    stage.server.start_again();
    let went_on = stage.fleet.goes_on("default", lost + ON_ITS_WAY).await + ON_ITS_WAY;
    a_while().await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    println!("killed and restarted empty: sends go on after {went_on:?}");
    assert!(went_on >= LIMITS.period(), "it cannot know what was sent");
    assert!(went_on <= DOWN + LIMITS.learning() + LATER, "{went_on:?}");
    seen
}

async fn flushed() -> Seen {
    let stage = Stage::of(Kind::Redis, LIMITS, CLOSED).await;
    let load = stage.load();
    a_while().await;
    stage.server.beside().run::<()>(&["FLUSHALL"]);
    let lost = stage.fleet.now();
    let went_on = stage.fleet.goes_on("default", lost + ON_ITS_WAY).await + ON_ITS_WAY;
    a_while().await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    println!("FLUSHALL: sends go on after {went_on:?}");
    assert!(went_on >= LIMITS.period(), "it cannot know what was sent");
    assert!(went_on <= LIMITS.learning() + LATER, "{went_on:?}");
    seen
}

async fn scripts_flushed() -> Seen {
    let stage = Stage::of(Kind::Redis, LIMITS, CLOSED).await;
    let load = stage.load();
    a_while().await;
    let from = stage.fleet.now();
    for _ in 0..3 {
        stage.server.beside().run::<()>(&["SCRIPT", "FLUSH"]);
        sleep(Duration::from_secs(1)).await;
    }
    a_while().await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    same_account(&stage.server, &seen).await;
    let pause = seen.longest_pause(from);
    println!("SCRIPT FLUSH: the longest pause is {pause:?}");
    assert!(pause <= 2 * LIMITS.period(), "{pause:?}");
    seen
}

#[test]
fn an_engine_that_forgets_grants_nothing_until_it_may_and_then_goes_on() {
    if has(Kind::Redis) {
        run(async {
            tokio::join!(
                strict("killed and restarted empty", restarted),
                strict("FLUSHALL", flushed),
                strict("SCRIPT FLUSH", scripts_flushed),
            )
        });
    }
}
