//! A refusal that says when to come back, of one pod, is heard by all.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use redrive::{
    proto::waiting::Reason,
    simulator::{Received, chat},
};

use super::{
    fleet::{Fleet, PODS},
    load::Clients,
    proof::{Seen, run, same_account, strict},
    provider::answer,
    server::{Kind, Server},
    stage::{CLOSED, LIMITS, a_while, all, engine, has},
};

/// What the provider asks for.
const WAIT: Duration = Duration::from_millis(1_500);

/// One round trip, and what had its lease before the refusal was told.
const ON_ITS_WAY: Duration = Duration::from_millis(200);

async fn refused() -> Seen {
    let server = Server::start(Kind::Redis);
    let asked = AtomicUsize::new(0);
    let fleet = Fleet::with_provider(LIMITS, &engine(server.port, CLOSED), move |prompt| {
        match asked.fetch_add(1, Ordering::Relaxed) {
            // The second and the third rest begin with the probe of the one before.
            25 | 60 | 61 => chat::error(429, "slow down")
                .with_header("retry-after-ms", &WAIT.as_millis().to_string()),
            _ => answer(prompt, true),
        }
    })
    .await;
    let first = fleet.granted().await;
    let load = all(&fleet, Clients::new("default"));
    a_while().await;
    a_while().await;
    a_while().await;
    let seen = Seen::of(&fleet, [first, load.stop().await]).await;
    seen.nobody_failed();
    same_account(&server, &seen).await;
    seen
}

#[test]
fn a_refusal_with_a_wait_stops_all_pods_and_one_probe_ends_it() {
    if !has(Kind::Redis) {
        return;
    }
    let seen = run(strict("refusals", refused));
    let mut told: Vec<usize> = seen
        .calls
        .iter()
        .filter_map(|call| {
            let resting = call.waits.iter().any(|(why, _)| *why == Reason::Cooldown);
            resting.then_some(call.pod)
        })
        .collect();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), PODS, "not all were told of the rest: {told:?}");

    let mut log: Vec<&Received> = seen.log.iter().collect();
    log.sort_unstable_by_key(|request| request.arrived);
    let grace = ON_ITS_WAY.max(seen.lag * 2);
    let refused = log.iter().filter(|one| one.status == Some(429));
    let refused: Vec<Duration> = refused.map(|one| one.head.unwrap()).collect();
    assert_eq!(refused.len(), 3);
    for from in refused {
        let until = from + WAIT;
        let late = log
            .iter()
            .filter(|one| one.arrived > from && one.arrived < until);
        let late: Vec<Duration> = late.map(|one| one.arrived - from).collect();
        println!(
            "refusals: {} were on their way, the last {:?} later",
            late.len(),
            late.last()
        );
        assert!(
            late.iter().all(|after| *after <= grace),
            "{late:?} after a refusal"
        );
        // The first after a rest is alone until it is answered.
        let mut after = log.iter().filter(|one| one.arrived >= until);
        let (Some(probe), Some(next)) = (after.next(), after.next()) else {
            continue;
        };
        let answered = probe.head.unwrap();
        assert!(
            next.arrived >= answered,
            "beside the probe: {probe:?} {next:?}"
        );
    }
}
