//! Nothing befalls anybody: the limit holds, and is used.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    fleet::Limits,
    load::{Clients, Stays},
    proof::{Seen, lasts, run, same_account, strict},
    server::Kind,
    stage::{CLOSED, LIMITS, Stage, a_while, all, has},
};

/// How much of N * T / (T + m) is used where there is always somebody who waits.
const USED: f64 = 0.98;

/// A loop that is as late wastes one part in a hundred by itself.
const LATE: Duration = Duration::from_millis(100);

async fn saturated(kind: Kind) -> Seen {
    let limits = Limits {
        requests: 100,
        window: Duration::from_secs(10),
        concurrent: None,
    };
    let stage = Stage::of(kind, limits, CLOSED).await;
    let clients = Clients {
        per_pod: 20,
        stays: Stays::Always,
        ..Clients::new("default")
    };
    let load = all(&stage.fleet, clients);
    let time = Duration::from_secs(26);
    sleep(lasts(time, Duration::from_secs(60))).await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    same_account(&stage.server, &seen).await;
    seen
}

async fn bursts(kind: Kind) -> Seen {
    let stage = Stage::of(kind, LIMITS, CLOSED).await;
    let load = stage.load();
    a_while().await;
    let seen = Seen::of(&stage.fleet, [stage.first, load.stop().await]).await;
    seen.nobody_failed();
    same_account(&stage.server, &seen).await;
    seen
}

#[test]
fn a_saturated_limit_of_ten_seconds_is_used_to_98_percent_by_eight_pods() {
    let saturated = async |kind: Kind| {
        if !has(kind) {
            return;
        }
        let name = format!("{kind:?}, saturated");
        for again in [false, true] {
            let seen = strict(&name, async || saturated(kind).await).await;
            let used = seen.used().unwrap();
            println!("{name}: {:.1} % of N*T/(T+m) used", used * 100.0);
            let is_late = seen.lag > LATE;
            if used < USED && is_late && !again {
                continue;
            }
            // What nobody had the processor for nobody wasted.
            let period = seen.limits.period();
            let late = if is_late { seen.lag } else { Duration::ZERO };
            let wanted = USED * period.as_secs_f64() / (period + late).as_secs_f64();
            assert!(used >= wanted, "{:.1} % of N*T/(T+m)", used * 100.0);
            break;
        }
    };
    run(async { tokio::join!(saturated(Kind::Redis), saturated(Kind::Valkey)) });
}

#[test]
fn bursts_at_eight_pods_stay_below_their_limits() {
    let bursts = async |kind: Kind| {
        if has(kind) {
            let name = format!("{kind:?}, bursts");
            let seen = strict(&name, async || bursts(kind).await).await;
            assert!(seen.log.len() as u64 > LIMITS.requests);
        }
    };
    run(async { tokio::join!(bursts(Kind::Redis), bursts(Kind::Valkey)) });
}
