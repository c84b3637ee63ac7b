//! The engine is gone: what happens then is configured.

use std::time::Duration;

use redrive::proto::{VerdictClass, waiting::Reason};
use tokio::time::sleep;

use super::{
    fleet::{Fleet, Limits, PODS, is_of},
    load::{Call, Clients, Stays},
    proof::{Seen, lasts, run, strict},
    server::Kind,
    stage::{CLOSED, LIMITS, Stage, a_while, all, has},
    support::sum_of,
};

/// What had its grant when the engine was lost is on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

const DEADLINE: Duration = Duration::from_secs(6);

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A second route, whose budget every pod keeps for itself.
fn own() -> Clients {
    Clients {
        per_pod: 2,
        stays: Stays::Always,
        ..Clients::new("own")
    }
}

async fn closed() -> Seen {
    let mut stage = Stage::of(Kind::Redis, LIMITS, CLOSED).await;
    let clients = Clients {
        deadline: Some(DEADLINE),
        ..Clients::new("default")
    };
    let load = all(&stage.fleet, clients);
    let own = all(&stage.fleet, own());
    a_while().await;
    stage.server.kill();
    let lost = stage.fleet.now();
    sleep(2 * DEADLINE + secs(1)).await;
    let until = stage.fleet.now();
    let (shared, own) = (load.stop().await, own.stop().await);
    ends_unavailable(&shared, lost, until);
    let seen = Seen::of(&stage.fleet, [stage.first, shared, own]).await;
    assert_eq!(
        seen.within(lost + ON_ITS_WAY, seen.log.last().unwrap().arrived),
        0
    );
    goes_on_by_itself(&stage.fleet, &seen, lost, until);
    seen
}

/// Calls that began without an engine wait until their deadline, are told for what, and end by it.
fn ends_unavailable(calls: &[Call], lost: Duration, until: Duration) {
    let stopped = until.saturating_sub(DEADLINE + secs(1));
    let began = |call: &&Call| (lost + ON_ITS_WAY..stopped).contains(&call.began);
    let without: Vec<_> = calls.iter().filter(began).collect();
    assert!(without.len() >= PODS, "{}", without.len());
    for call in without {
        assert_eq!(
            call.class,
            Some(VerdictClass::LimiterUnavailable),
            "{call:?}"
        );
        let told = call
            .waits
            .iter()
            .any(|(why, _)| *why == Reason::LimiterUnavailable);
        assert!(told, "{call:?}");
        let took = call.ended - call.began;
        assert!(
            (DEADLINE - secs(1)..DEADLINE + secs(1)).contains(&took),
            "{call:?}"
        );
    }
}

/// Who has budgets of his own does not notice.
fn goes_on_by_itself(fleet: &Fleet, seen: &Seen, lost: Duration, until: Duration) {
    let own = || seen.log.iter().filter(|one| is_of(one, "own"));
    let rate = |from: Duration, to: Duration| {
        let count = own()
            .filter(|one| (from..to).contains(&one.arrived))
            .count();
        count as f64 / (to - from).as_secs_f64()
    };
    // Four in a second and its margin, at every pod.
    let full = 4.0 * fleet.pods.len() as f64 / 1.25;
    let after = rate(lost, until);
    println!("lost, closed: {after:.1} sends/s of budgets of one's own, {full:.1} fit");
    assert!(after >= 0.8 * full, "{after} of {full}");
    let calls = seen.calls.iter().filter(|call| call.wish.tenant == "own");
    let mut failed =
        calls.filter(|call| !matches!(call.class, None | Some(VerdictClass::Cancelled)));
    let failed = failed.next();
    assert!(failed.is_none(), "{failed:?}");
}

/// Of 40 in 2 s the engine has 32, each of eight pods one.
const SHARED_OUT: Limits = Limits {
    requests: 40,
    window: Duration::from_secs(2),
    concurrent: Some(40),
};

async fn local_share() -> Seen {
    let share = "on_loss: local_share, local_share: {fraction: 0.2, max_pods: 8}";
    let mut stage = Stage::of(Kind::Redis, SHARED_OUT, share).await;
    let load = stage.load();
    a_while().await;
    stage.server.kill();
    let lost = stage.fleet.now();
    let time = lasts(secs(10), secs(60));
    sleep(time).await;
    let back = stage.fleet.now();
    stage.server.start_again();
    sleep(SHARED_OUT.learning() + secs(4)).await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    let alone = lost + ON_ITS_WAY;
    let sends = seen.within(alone, back) as f64;
    let fit = PODS as f64 * (back - alone).as_secs_f64() / SHARED_OUT.period().as_secs_f64();
    println!("lost, local_share: {sends} sends alone, {fit:.1} fit");
    assert!(sends >= 0.7 * fit, "{sends} of {fit}");
    assert!(sends <= fit + PODS as f64, "{sends} of {fit}");
    // Full windows again.
    let again = seen.within(
        back + SHARED_OUT.learning(),
        back + SHARED_OUT.learning() + secs(4),
    );
    assert!(
        again as u64 > SHARED_OUT.requests / 2,
        "{again} once it is back"
    );
    seen
}

async fn open() -> Seen {
    let mut stage = Stage::of(Kind::Redis, LIMITS, "on_loss: open").await;
    let load = stage.load();
    a_while().await;
    stage.server.kill();
    let lost = stage.fleet.now();
    sleep(secs(5)).await;
    let until = stage.fleet.now();
    for pod in &stage.fleet.pods {
        let engine = pod.sidecar.status().await["engine"].clone();
        assert_eq!(engine["state"], "lost", "{engine}");
        assert_eq!(engine["strict"], false, "{engine}");
        let metrics = pod.sidecar.metrics().await;
        for gauge in ["up", "strict"] {
            let name = format!("redrive_budget_engine_{gauge}");
            assert_eq!(sum_of(&metrics, &name), 0.0, "{name}");
        }
        let log = pod.sidecar.log();
        assert!(log.contains("NOT strict"), "{log}");
    }
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    assert!(seen.broken().is_some(), "the sweep sees nothing");
    let sends = seen.within(lost + ON_ITS_WAY, until) as u64;
    println!(
        "lost, open: {sends} sends in {:?}",
        until - lost - ON_ITS_WAY
    );
    assert!(sends > LIMITS.requests, "{sends}");
    seen
}

#[test]
fn without_an_engine_nothing_is_sent_where_it_is_closed() {
    if has(Kind::Redis) {
        run(strict("lost, closed", closed));
    }
}

#[test]
fn without_an_engine_pods_send_their_share_and_stay_strict() {
    if has(Kind::Redis) {
        run(strict("lost, local_share", local_share));
    }
}

#[test]
fn without_an_engine_sends_go_on_where_it_is_open_and_that_is_said() {
    if has(Kind::Redis) {
        run(open());
    }
}
