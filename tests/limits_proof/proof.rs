//! One run, and what must hold of every run.

use std::{
    fmt::Write as _,
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use redrive::simulator::{Received, Script};
use serde_json::Value;
use tokio::runtime::Builder;

use super::{
    lag::Lag,
    ledgers::{self, Call},
    load::{self, Manner, Outcome, Visit},
    provider::Provider,
    sidecar::Sidecar,
    sweep::{self, Arrival},
    way::{Takes, Way},
};

/// Connections of clients to the sidecar.
const CHANNELS: usize = 8;

/// A connection for each request that is under way.
pub const HTTP1: &str = "connections: {max: 1000}, ";

/// Few connections for all of them.
pub const HTTP2: &str = "connections: {max: 200, http2: prior_knowledge}, ";

/// The connect timer as it is by default.
pub const TEN_SECONDS: &str = "10s";

/// The metric of grants of the budget that every run has.
const GRANTS: &str = r#"redrive_budget_decisions_total{budget="main",decision="granted"}"#;

/// One scenario at a time: each has the machine to itself.
static ALONE: Mutex<()> = Mutex::new(());

/// What is run.
pub struct Setup {
    /// The key `budgets` of the configuration.
    pub budgets: String,
    /// Further keys of the provider, each with a comma behind it.
    pub provider: &'static str,
    /// The connect timer of the target, which is the time a lease has to be sent.
    pub connect: &'static str,
    /// Between a grant and its send, and between a send and its arrival; `None`: nothing stands between.
    pub way: Option<(Takes, Takes)>,
    pub visits: Vec<Visit>,
    /// How the provider answers a prompt.
    pub script: Box<dyn Fn(&str) -> Script + Send + Sync>,
}

/// What was seen of it, from all sides.
pub struct Run {
    /// The provider's log.
    pub log: Vec<Received>,
    /// The clients'.
    pub outcomes: Vec<Outcome>,
    /// The sidecar's account at the end.
    pub status: Value,
    /// Its count of sends.
    pub sends: f64,
    /// Its count of grants of the budget `main`, which every lease is of.
    pub grants: f64,
    /// Its count of leases that were waited for.
    pub waits: f64,
    /// The latest that a loop was.
    pub lag: Duration,
}

/// A limit, as the provider would keep it.
pub struct Swept {
    pub name: &'static str,
    pub limit: u64,
    pub window: Duration,
    /// What a request takes of it.
    pub takes: fn(&Received) -> u64,
}

impl Swept {
    /// One of every request.
    pub fn requests(limit: u64, millis: u64) -> Self {
        Self {
            name: "requests",
            limit,
            window: Duration::from_millis(millis),
            takes: |_| 1,
        }
    }

    pub fn arrivals(&self, log: &[Received]) -> Vec<Arrival> {
        let all = log
            .iter()
            .map(|request| (request.arrived, (self.takes)(request)));
        all.filter(|(_, weight)| *weight > 0).collect()
    }
}

/// A field of the prompt of a request, counted from 0.
pub fn field(request: &Received, index: usize) -> &str {
    let prompt = request.script.as_deref().unwrap_or_default();
    prompt.split(' ').nth(index).unwrap_or_default()
}

/// Runs `test` while no other scenario runs.
pub fn alone<T>(test: impl Future<Output = T>) -> T {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    beside(test)
}

/// Runs `test` on a runtime of its own, beside others.
pub fn beside<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test)
}

/// Plays all visits to their end, and lets everything come to rest.
pub async fn run(setup: Setup) -> Run {
    let Setup {
        budgets,
        provider: keys,
        connect,
        way,
        visits,
        script,
    } = setup;
    let lag = Lag::default();
    lag.watch();
    let provider = Provider::start(lag.clone(), script);
    let proxy = match way {
        Some((opening, carrying)) => {
            let way = Way::start(opening, carrying).await;
            format!("proxy: {{url: 'http://{}'}}, ", way.address)
        }
        None => String::new(),
    };
    let yaml = format!(
        "providers:\n  p: {{base_url: '{}', {keys}{proxy}}}\n\
         routes:\n  default:\n    targets: [{{provider: p, model: m}}]\n    \
         recovery: {{patience: 60s, backoff: {{base: 10ms, jitter: 0}}, circuit: {{failures: 1000}}}}\n    \
         timers: {{connect: {connect}}}\n\
         retry_budget: {{ratio: 1, floor: 100000}}\n\
         budgets:\n{budgets}",
        provider.base_url()
    );
    let sidecar = Sidecar::start(&yaml).await;
    let mut channels = Vec::new();
    for _ in 0..CHANNELS {
        channels.push(sidecar.connect().await);
    }
    let outcomes = load::play(&channels, visits).await;
    let status = sidecar.at_rest().await;
    let run = Run {
        log: provider.at_rest().await,
        outcomes,
        status,
        sends: sidecar.metric("redrive_sends_total"),
        grants: sidecar.metric(GRANTS),
        waits: sidecar.metric("redrive_budget_wait_seconds_count"),
        lag: lag.worst(),
    };
    drop(channels);
    sidecar.finish().await;
    run
}

/// Runs a scenario and proves that it kept its limits. Where it seems not to and a loop was so late that
/// nothing is proven either way, it says so and runs once more; what that shows counts.
pub async fn strict(
    name: &str,
    margin: Duration,
    swept: &[Swept],
    setup: impl Fn() -> Setup,
) -> Run {
    let mut seen = run(setup()).await;
    if seen.broken(swept).is_some() && seen.lag > margin {
        println!(
            "{name}: a loop was {:?} late, more than the margin; again",
            seen.lag
        );
        seen = run(setup()).await;
    }
    seen.account();
    println!("{}", seen.row(name, margin, swept));
    if let Some(broken) = seen.broken(swept) {
        panic!("{name}: {broken}; a loop was {:?} late", seen.lag);
    }
    seen
}

impl Run {
    /// The first limit of which a window holds more.
    pub fn broken(&self, swept: &[Swept]) -> Option<String> {
        let broken = |swept: &Swept| {
            let arrivals = swept.arrivals(&self.log);
            let (most, at) = sweep::worst(&arrivals, swept.window);
            let (name, limit, window) = (swept.name, swept.limit, swept.window);
            (most > limit)
                .then(|| format!("{name}: {most} of {limit} in the {window:?} before {at:?}"))
        };
        swept.iter().find_map(broken)
    }

    /// Grants, sends, the ledgers and the provider's log are one account.
    fn account(&self) {
        let leases = &self.status["leases"];
        let number = |name: &str| leases[name].as_u64().unwrap_or_else(|| panic!("{leases}"));
        let [granted, sent, returned, expired] =
            ["granted", "sent", "returned", "expired"].map(number);
        assert_eq!(granted, sent + returned + expired, "{leases}");
        assert_eq!((number("unsent"), number("held")), (0, 0), "{leases}");
        let budgets = self.status["budgets"].as_array().unwrap();
        let idle = |b: &&Value| b["running"] == 0 && b["waiting"] == 0;
        assert_eq!(budgets.iter().filter(idle).count(), budgets.len());
        assert_eq!(self.sends, sent as f64, "the metric and the leases");
        assert_eq!(self.grants, granted as f64, "the metric and the leases");

        let calls = self.outcomes.iter().map(|outcome| Call {
            prompt: outcome.wish.prompt(),
            ledger: outcome.ledger.as_ref(),
            untold: false,
        });
        let sends = ledgers::check(&self.log, calls);
        assert_eq!(sends, sent, "the ledgers and the leases");
        if self
            .outcomes
            .iter()
            .all(|outcome| outcome.manner == Manner::Stays)
        {
            assert_eq!(self.log.len() as u64, sent, "the log and the leases");
        }
    }

    /// One row of the table.
    fn row(&self, name: &str, margin: Duration, swept: &[Swept]) -> String {
        let mut row = format!(
            "{name}: {} sends, margin {margin:?}, lag {:?}",
            self.log.len(),
            self.lag
        );
        for swept in swept {
            let arrivals = swept.arrivals(&self.log);
            let (most, _) = sweep::worst(&arrivals, swept.window);
            let (what, limit, window) = (swept.name, swept.limit, swept.window);
            let _ = write!(row, "\n  {what}: worst {window:?} holds {most} of {limit}");
            if arrivals.iter().all(|(_, weight)| *weight == 1) {
                let times: Vec<Duration> = arrivals.iter().map(|(at, _)| *at).collect();
                let period = window + margin;
                let used = sweep::utilisation(&times, usize::try_from(limit).unwrap(), period);
                let _ = write!(row, ", {:.1} % used", used.unwrap_or_default() * 100.0);
            }
        }
        row
    }

    /// How many clients were told to wait for `budget`.
    pub fn waited_for(&self, budget: &str) -> usize {
        let waited = |outcome: &&Outcome| outcome.waits.iter().any(|(_, name)| name == budget);
        self.outcomes.iter().filter(waited).count()
    }
}
