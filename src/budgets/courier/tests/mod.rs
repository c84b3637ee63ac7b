//! The courier and real servers, in real time: `tests/REAL_TIME.md` says why.

#![allow(
    clippy::disallowed_methods,
    reason = "tests speak with their servers, wait for them, and measure them"
)]

#[path = "../../../../tests/shared_budgets/server.rs"]
#[allow(dead_code, reason = "made for another's tests, too")]
mod server;

mod cut;
mod lost;
mod told;

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Instant,
};

use jiff::tz::TimeZone;

use self::server::Server;
use super::*;
use crate::{
    config::{EnginePlace, LocalShare, SharedEngine},
    limits::{Measure, Refund, Settings, WindowLimit},
};

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// How long leases live here: sends are cut after two of these.
const LIFE: Duration = Duration::from_secs(4);

const SECOND: Duration = Duration::from_secs(1);

const NOTHING: Weights = Weights {
    input_tokens: 0,
    output_tokens: 0,
};

/// A courier, and what its hooks heard.
struct Pod {
    courier: Courier,
    heard: Arc<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    up: AtomicUsize,
    lost: Mutex<Vec<Lost>>,
    freed: Mutex<Vec<Vec<BudgetId>>>,
}

impl Hooks for Heard {
    fn engine_up(&self) {
        self.up.fetch_add(1, Ordering::SeqCst);
    }

    fn engine_lost(&self, why: &Lost) {
        self.lost.lock().unwrap().push(why.clone());
    }

    fn freed(&self, budgets: &[BudgetId]) {
        self.freed.lock().unwrap().push(budgets.into());
    }
}

/// Budgets of tests: 0 is local, 1 is a shared one with nine sends at a time, 2 a shared one with windows.
const AT_A_TIME: BudgetId = 1;
const WINDOWS: BudgetId = 2;

fn budgets() -> [config::Budget; 3] {
    let window = |measure, limit| WindowLimit {
        measure,
        limit,
        window: 1_000,
    };
    let windows = [
        window(Measure::Requests, 1_000),
        window(Measure::InputTokens, 1_000_000),
    ];
    [
        budget("local", false, Some(9), &[]),
        budget("at-a-time", true, Some(900), &[]),
        budget("windows", true, None, &windows),
    ]
}

fn budget(
    name: &str,
    is_shared: bool,
    concurrent: Option<u64>,
    windows: &[WindowLimit],
) -> config::Budget {
    config::Budget {
        settings: Settings {
            name: name.into(),
            windows: windows.into(),
            concurrent,
            daily: Vec::new(),
            refund: Refund::All,
            margin: 0,
        },
        is_shared,
        selector: config::Selector::default(),
        zone: TimeZone::UTC,
        fairness: None,
        smoothing: None,
        max_waiting: 9,
        bytes_per_token: 1,
    }
}

fn engine(server: &Server, on_loss: OnLoss) -> SharedEngine {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    SharedEngine {
        place: EnginePlace::One(server.url()),
        username: None,
        password: None,
        authority: None,
        domain: format!("d{number}"),
        on_loss,
        local_share: LocalShare {
            fraction: 0.1,
            max_pods: 10,
        },
        timeout: SECOND / 2,
    }
}

impl Pod {
    fn start(server: &Server) -> Self {
        Self::of(&engine(server, OnLoss::Closed))
    }

    fn of(engine: &SharedEngine) -> Self {
        Self::with(engine, &budgets())
    }

    fn with(engine: &SharedEngine, budgets: &[config::Budget]) -> Self {
        let options = Options {
            life: LIFE,
            longest_unsent: SECOND * 3 / 2,
            ..domain::options(engine)
        };
        let heard = Arc::new(Heard::default());
        let hooks: Arc<dyn Hooks> = Arc::<Heard>::clone(&heard);
        let courier = Courier::start_with(Clock::start(), engine, options, budgets, hooks);
        Self {
            courier: courier.unwrap(),
            heard,
        }
    }

    /// A lease, as soon as the engine knows what was before.
    async fn granted(&self, budgets: &[BudgetId]) -> Id {
        let begun = Instant::now();
        loop {
            let id = Id::random();
            let answer = self.courier.acquire(id, budgets, tokens(100), LONG, None);
            match answer.await {
                Ok(Answer::Granted) => return id,
                answer => assert!(begun.elapsed() < LONG, "{answer:?}"),
            }
            tokio::time::sleep(SECOND / 50).await;
        }
    }

    /// One that has left.
    async fn sent(&self, budgets: &[BudgetId]) -> Id {
        let id = self.granted(budgets).await;
        assert!(self.courier.leave(id));
        id
    }

    async fn told(&self) {
        let told = tokio::time::timeout(LONG, self.courier.told());
        told.await.expect("everything is told");
    }

    /// What the engine says of the budget with sends at a time.
    async fn status(&self) -> crate::budgets::shared::Status {
        let shared = &self.courier.inner.shared;
        shared.status(&[0, 1], &[], LONG).await.unwrap()
    }

    async fn running(&self) -> u64 {
        self.status().await.budgets[0].running
    }

    fn is_up(&self) -> bool {
        self.courier.inner.standing().is_up()
    }
}

fn tokens(input_tokens: u64) -> Weights {
    Weights {
        input_tokens,
        ..NOTHING
    }
}

/// Looks again and again; for how long it took.
async fn until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        tokio::time::sleep(SECOND / 200).await;
    }
    begun.elapsed()
}

/// Whether the send must be cut, now.
fn is_cut(watch: &mut CutWatch) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    watch.poll_cut(&mut context).is_ready()
}

/// Lets a server stand still, or go on.
fn signal(server: &Server, signal: &str) {
    let id = server.id().to_string();
    let done = std::process::Command::new("kill")
        .args([signal, &id])
        .status();
    assert!(done.unwrap().success());
}
