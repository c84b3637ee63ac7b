//! What must hold of a run, whatever befell it.

use std::{collections::HashMap, time::Duration};

use redrive::{
    proto::VerdictClass,
    simulator::{End, Received},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    fleet::{Fleet, Limits, MARGIN, PATIENCE, is_of},
    ledgers,
    load::Call,
    provider::asked_for,
    server::Server,
    sweep::{self, Arrival},
};

/// Who goes is gone before the provider notices.
const CLOSING: Duration = Duration::from_millis(10);

/// What the leases of somebody came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    pub granted: u64,
    pub sent: u64,
    pub returned: u64,
    pub expired: u64,
}

/// What was seen of a run, from all sides.
pub struct Seen {
    pub limits: Limits,
    /// The provider's log.
    pub log: Vec<Received>,
    pub calls: Vec<Call>,
    /// How the pods stood at the end that live.
    pub statuses: Vec<Value>,
    /// The latest that a loop was.
    pub lag: Duration,
    /// What was at the provider longer than its lease, because its pod stood still.
    pub outlived: fn(&Received) -> bool,
    /// Pods that died.
    dead: Vec<usize>,
}

/// Whether the long runs are asked for.
pub fn is_long() -> bool {
    std::env::var("REDRIVE_PROOF").is_ok_and(|length| length == "long")
}

/// How long a stretch of a scenario lasts.
pub fn lasts(short: Duration, long: Duration) -> Duration {
    if is_long() { long } else { short }
}

/// Runs `test` on a runtime of its own.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test)
}

/// Runs a scenario and proves that it kept its limits. Where it seems not to and a loop was so late that
/// nothing is proven either way, it says so and runs once more; what that shows counts.
pub async fn strict(name: &str, scenario: impl AsyncFn() -> Seen) -> Seen {
    let mut seen = scenario().await;
    if seen.broken().is_some() && seen.lag > MARGIN {
        println!(
            "{name}: a loop was {:?} late, more than the margin; again",
            seen.lag
        );
        seen = scenario().await;
    }
    println!("{}", seen.row(name));
    if let Some(broken) = seen.broken() {
        panic!("{name}: {broken}; a loop was {:?} late", seen.lag);
    }
    seen
}

impl Seen {
    /// Everything has come to rest.
    pub async fn of(fleet: &Fleet, calls: impl IntoIterator<Item = Vec<Call>>) -> Self {
        let statuses = fleet.at_rest().await;
        let dead = fleet.pods.iter().enumerate();
        let dead = dead.filter_map(|(number, pod)| pod.is_dead.then_some(number));
        let seen = Self {
            limits: fleet.limits,
            log: fleet.provider.at_rest().await,
            calls: calls.into_iter().flatten().collect(),
            statuses,
            lag: fleet.lag.worst(),
            outlived: |_| false,
            dead: dead.collect(),
        };
        seen.check_ledgers();
        seen
    }

    /// When what was shared arrived.
    pub fn arrivals(&self) -> Vec<Duration> {
        let shared = self.log.iter().filter(|one| is_of(one, "default"));
        let mut arrivals: Vec<_> = shared.map(|one| one.arrived).collect();
        arrivals.sort_unstable();
        arrivals
    }

    /// The limit of which more arrived.
    pub fn broken(&self) -> Option<String> {
        let Limits {
            requests, window, ..
        } = self.limits;
        let (most, at) = self.worst();
        if most > requests {
            return Some(format!(
                "{most} of {requests} in the {window:?} before {at:?}"
            ));
        }
        let concurrent = self.limits.concurrent?;
        let most = self.at_once() as u64;
        (most > concurrent).then(|| format!("{most} of {concurrent} at once"))
    }

    fn worst(&self) -> (u64, Duration) {
        let arrivals: Vec<Arrival> = self.arrivals().into_iter().map(|at| (at, 1)).collect();
        sweep::worst(&arrivals, self.limits.window)
    }

    /// From when to when each was at the provider.
    fn stretches(&self) -> Vec<(Duration, Duration)> {
        let shared = self.log.iter().filter(|one| is_of(one, "default"));
        let shared = shared.filter(|one| !(self.outlived)(one));
        let stretches = shared.map(|one| {
            let ended = one.ended.expect("it has ended");
            let asked = one.script.as_deref().and_then(asked_for);
            let ended = match (one.status, one.end, asked) {
                // Not complete any sooner, however late its end was stamped.
                (Some(200), Some(End::Clean), Some((words, pace))) => {
                    one.arrived + pace * u32::try_from(words).unwrap()
                }
                _ => ended.saturating_sub(CLOSING + self.lag),
            };
            (one.arrived, ended.max(one.arrived))
        });
        stretches.collect()
    }

    /// The most that were at the provider at once.
    fn at_once(&self) -> usize {
        sweep::at_once(&self.stretches())
    }

    /// When so many were at the provider at once for the first time after `from`.
    pub fn first_at_once(&self, from: Duration, count: usize) -> Option<Duration> {
        let stretches = self.stretches();
        let at = |time: &Duration| {
            let there = stretches
                .iter()
                .filter(|(began, ended)| began <= time && time < ended);
            there.count() >= count
        };
        self.arrivals()
            .into_iter()
            .filter(|time| *time > from)
            .find(at)
    }

    /// How much of N * T / (T + m) was used between two arrivals, where somebody always waited.
    pub fn used(&self) -> Option<f64> {
        let limit = usize::try_from(self.limits.requests).unwrap();
        sweep::utilisation(&self.arrivals(), limit, self.limits.period())
    }

    /// How many arrived in a stretch of time.
    pub fn within(&self, from: Duration, to: Duration) -> usize {
        let arrivals = self.arrivals().into_iter();
        arrivals.filter(|at| (from..to).contains(at)).count()
    }

    /// The longest time from `from` on in which nothing arrived.
    pub fn longest_pause(&self, from: Duration) -> Duration {
        let arrivals = self.arrivals();
        let pairs = arrivals.windows(2).filter(|pair| pair[0] >= from);
        pairs
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap_or_default()
    }

    /// All ledgers and the log are one account; pods say the same of their leases.
    fn check_ledgers(&self) {
        let untold = self.calls.iter().filter(|call| call.untold.is_some());
        for call in untold {
            assert!(
                self.dead.contains(&call.pod),
                "of a pod that lives: {call:?}"
            );
        }
        let calls = self.calls.iter().map(|call| ledgers::Call {
            prompt: call.wish.prompt(),
            ledger: call.ledger.as_ref(),
            untold: call.untold.is_some(),
        });
        let sends = ledgers::check(&self.log, calls);
        let mut sent = 0;
        for status in &self.statuses {
            let leases = &status["leases"];
            let account = account_of(leases);
            let over = account.sent + account.returned + account.expired;
            assert_eq!(account.granted, over, "{leases}");
            assert_eq!(leases["unsent"], 0, "{leases}");
            sent += account.sent;
        }
        if self.dead.is_empty() {
            assert_eq!(sends, sent, "the ledgers and the leases");
        }
    }

    /// Nobody failed but who was cancelled.
    pub fn nobody_failed(&self) {
        self.nobody_failed_but(|_| false);
    }

    /// Nor those who had to.
    pub fn nobody_failed_but(&self, had_to: impl Fn(&Call) -> bool) {
        let failed = self.calls.iter().find(|call| {
            let is_well = matches!(call.class, None | Some(VerdictClass::Cancelled));
            call.untold.is_none() && !is_well && !had_to(call)
        });
        assert!(failed.is_none(), "{failed:?}");
    }

    /// Sends of the shared budget, as the ledgers tell.
    pub fn sends(&self) -> u64 {
        let shared = self
            .calls
            .iter()
            .filter(|call| call.wish.tenant == "default");
        let ledgers = shared.filter_map(|call| call.ledger.as_ref());
        ledgers.map(|ledger| u64::from(ledger.sends)).sum()
    }

    /// Which pod each request that arrived was of.
    pub fn pods(&self) -> HashMap<String, usize> {
        let calls = self.calls.iter();
        calls.map(|call| (call.wish.prompt(), call.pod)).collect()
    }

    /// One row of the table.
    fn row(&self, name: &str) -> String {
        let Limits {
            requests, window, ..
        } = self.limits;
        let (most, _) = self.worst();
        let mut row = format!(
            "{name}: {} sends; worst {window:?} holds {most} of {requests}",
            self.sends()
        );
        if let Some(concurrent) = self.limits.concurrent {
            row += &format!("; {} of {concurrent} at once", self.at_once());
        }
        row + &format!("; lag {:?}", self.lag)
    }
}

fn account_of(leases: &Value) -> Account {
    let number = |name: &str| leases[name].as_u64().unwrap_or_else(|| panic!("{leases}"));
    Account {
        granted: number("granted"),
        sent: number("sent"),
        returned: number("returned"),
        expired: number("expired"),
    }
}

/// The engine's account is that of the ledgers, and comes out even, where it kept its state throughout.
pub async fn same_account(server: &Server, seen: &Seen) {
    let account = engine_account(server).await;
    assert_eq!(account.sent, seen.sends(), "{account:?}");
}

/// The same where a pod stood still or died: what it did not tell of ended by itself, and may have been sent.
pub async fn about_the_same_account(server: &Server, sends: u64) {
    let account = engine_account(server).await;
    let most = account.sent + account.expired;
    assert!(
        (account.sent..=most).contains(&sends),
        "{sends}: {account:?}"
    );
}

/// The engine's account, once nothing is held of it any more: it comes out even.
pub async fn engine_account(server: &Server) -> Account {
    let begun = Instant::now();
    loop {
        let mut beside = server.beside();
        let text: String = beside.run(&["HGET", "{redrive:default}:meta", "account"]);
        let numbers: [u64; 4] = serde_json::from_str(&text).unwrap();
        let [granted, sent, returned, expired] = numbers;
        if granted == sent + returned + expired {
            return Account {
                granted,
                sent,
                returned,
                expired,
            };
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "leases that nobody ended: {text}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}
