//! A pod is paused, or dies.

use std::time::Duration;

use redrive::{proto::VerdictClass, simulator::Received};
use tokio::time::sleep;

use super::{
    fleet::{Fleet, LIFE, Limits, PODS},
    load::{Clients, Stays},
    proof::{Seen, about_the_same_account, run, strict},
    server::Kind,
    stage::{CLOSED, LIMITS, Stage, a_while, has},
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Twice what a lease lives.
const PAUSED: Duration = secs(30);

/// The pod to which it happens.
const VICTIM: usize = 3;

/// When something of this pod arrived.
fn arrivals_of(seen: &Seen, fleet: &Fleet, pod: usize) -> Vec<Duration> {
    let pods = seen.pods();
    assert!(fleet.pods.len() == PODS);
    let of = seen.log.iter().filter(|one| {
        let prompt = one.script.as_deref().unwrap_or_default();
        pods.get(prompt) == Some(&pod)
    });
    of.map(|one| one.arrived).collect()
}

/// Answers that last longer than the pod that is paused.
fn long(per_pod: usize) -> Clients {
    Clients {
        per_pod,
        words: LONG,
        pace: secs(1),
        stays: Stays::Once,
        ..Clients::new("default")
    }
}

/// Words of such an answer.
const LONG: usize = 120;

fn is_long(request: &Received) -> bool {
    let prompt = request.script.as_deref().unwrap_or_default();
    prompt.split(' ').nth(2) == Some(&LONG.to_string())
}

async fn paused() -> Seen {
    let stage = Stage::of(Kind::Redis, LIMITS, CLOSED).await;
    let long = stage.fleet.load([VICTIM], long(2));
    sleep(secs(1)).await;
    let load = stage.load();
    a_while().await;
    let victim = &stage.fleet.pods[VICTIM].sidecar;
    victim.signal("STOP");
    let from = stage.fleet.now();
    sleep(PAUSED).await;
    victim.signal("CONT");
    let woke = stage.fleet.now();
    a_while().await;
    sleep(secs(2)).await;
    let calls = [stage.first, long.stop().await, load.stop().await];
    let mut seen = Seen::of(&stage.fleet, calls).await;
    seen.outlived = is_long;
    // Whatever it had under way was cut; what it had not read yet came too late.
    let ends = [VerdictClass::LimiterUnavailable, VerdictClass::Deadline].map(Some);
    seen.nobody_failed_but(|call| {
        let was_paused = (call.began..call.ended).contains(&from);
        call.pod == VICTIM && was_paused && ends.contains(&call.class)
    });
    let of_victim = arrivals_of(&seen, &stage.fleet, VICTIM);
    let early = of_victim
        .iter()
        .filter(|at| (from + secs(1)..woke).contains(*at))
        .count();
    assert_eq!(early, 0, "of a pod that is paused");
    let again = of_victim.iter().find(|at| **at >= woke);
    let again = *again.expect("it never sends again") - woke;
    let pause = seen.longest_pause(from);
    // Their leases were over long before: whoever has their places now does not know of them.
    let cut = seen
        .log
        .iter()
        .filter(|one| is_long(one) && one.arrived < from);
    let cut: Vec<Duration> = cut
        .map(|one| one.ended.unwrap().saturating_sub(woke))
        .collect();
    println!(
        "paused for 30 s: the others' longest pause is {pause:?}; it sends again after {again:?}, its streams \
         are cut after {cut:?}"
    );
    assert_eq!(cut.len(), 2);
    assert!(cut.iter().all(|after| *after <= secs(1)), "{cut:?}");
    assert!(again <= secs(5), "{again:?}");
    assert!(pause <= 2 * LIMITS.period(), "{pause:?}");
    about_the_same_account(&stage.server, seen.sends()).await;
    seen
}

/// Few at a time: half of them are of the pod that dies.
const FEW: Limits = Limits {
    requests: 20,
    window: secs(1),
    concurrent: Some(8),
};

async fn killed() -> Seen {
    let mut stage = Stage::of(Kind::Redis, FEW, CLOSED).await;
    let doomed = stage.fleet.load([VICTIM], long(4));
    sleep(secs(3)).await;
    let others = (0..PODS).filter(|pod| *pod != VICTIM);
    let clients = Clients {
        pace: Duration::from_millis(100),
        stays: Stays::Always,
        ..Clients::new("default")
    };
    let load = stage.fleet.load(others, clients);
    a_while().await;
    let victim = &mut stage.fleet.pods[VICTIM];
    victim.sidecar.kill();
    victim.is_dead = true;
    let died = stage.fleet.now();
    sleep(LIFE + secs(5)).await;
    let calls = [stage.first, doomed.ended().await, load.stop().await];
    let seen = Seen::of(&stage.fleet, calls).await;
    seen.nobody_failed();
    let back = seen
        .first_at_once(died, 5)
        .expect("its places never come back")
        - died;
    println!("killed: its places come back after {back:?}");
    assert!(back <= LIFE + secs(2), "{back:?}");
    assert!(
        back >= secs(5),
        "{back:?}: they may still be at the provider"
    );
    about_the_same_account(&stage.server, seen.log.len() as u64).await;
    seen
}

#[test]
fn a_pod_that_is_paused_or_dies_overflows_nothing_and_its_places_come_back() {
    if has(Kind::Redis) {
        run(async { tokio::join!(strict("paused for 30 s", paused), strict("killed", killed),) });
    }
}
