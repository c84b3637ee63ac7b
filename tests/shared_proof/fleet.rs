//! Eight sidecars, each a process of its own, in front of one provider.

use std::time::Duration;

use redrive::simulator::{Received, Script};
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::transport::Channel;

use super::{
    lag::Lag,
    load::{Call, Clients, Load, Stays},
    provider::{Provider, answer},
    support::process::Sidecar,
};

pub const PODS: usize = 8;

/// The margin of every shared budget here.
pub const MARGIN: Duration = Duration::from_millis(250);

/// What a lease may take to be sent, which is the connect timer.
pub const LONGEST_UNSENT: Duration = Duration::from_secs(10);

/// How long a lease lives that nobody renews.
pub const LIFE: Duration = Duration::from_secs(15);

/// How long anything may take that is not bounded below it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The limits of the shared budget.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub requests: u64,
    pub window: Duration,
    /// Sends at a time.
    pub concurrent: Option<u64>,
}

impl Limits {
    /// How long an engine that has forgotten grants nothing.
    pub fn learning(&self) -> Duration {
        let windows = self.window + MARGIN + LONGEST_UNSENT;
        match self.concurrent {
            Some(_) => windows.max(LIFE),
            None => windows,
        }
    }

    /// How long it takes for the whole limit to come round.
    pub fn period(&self) -> Duration {
        self.window + MARGIN
    }

    fn yaml(&self) -> String {
        let Self {
            requests, window, ..
        } = self;
        let concurrent = self.concurrent.map(|most| format!(", concurrent: {most}"));
        format!(
            "requests: [{{limit: {requests}, window: {}ms}}], margin: {}ms{}",
            window.as_millis(),
            MARGIN.as_millis(),
            concurrent.unwrap_or_default()
        )
    }
}

/// The fleet, and what it talks to.
pub struct Fleet {
    pub limits: Limits,
    pub provider: Provider,
    /// Of the loops of this process.
    pub lag: Lag,
    pub pods: Vec<Pod>,
}

pub struct Pod {
    pub sidecar: Sidecar,
    pub channel: Channel,
    /// It was killed: nobody can ask it any more.
    pub is_dead: bool,
}

impl Fleet {
    /// On the engine that the keys in `engine` say, with a provider that answers everything.
    pub async fn start(limits: Limits, engine: &str) -> Self {
        Self::with_provider(limits, engine, |prompt| answer(prompt, true)).await
    }

    pub async fn with_provider(
        limits: Limits,
        engine: &str,
        script: impl Fn(&str) -> Script + Send + Sync + 'static,
    ) -> Self {
        let lag = Lag::default();
        lag.watch();
        let provider = Provider::start(lag.clone(), script);
        let yaml = format!(
            "providers:\n  p: {{base_url: '{url}', connections: {{max: 1000}}}}\n  \
             q: {{base_url: '{url}', connections: {{max: 1000}}}}\n\
             routes:\n  default:\n    targets: [{{provider: p, model: m}}]\n    \
             recovery: {{patience: 120s, backoff: {{base: 10ms, jitter: 0}}, \
             circuit: {{failures: 1000}}}}\n  \
             own:\n    targets: [{{provider: q, model: m}}]\n    \
             recovery: {{patience: 120s, backoff: {{base: 10ms, jitter: 0}}}}\n\
             retry_budget: {{ratio: 1, floor: 100000}}\n\
             engines: {{redis: {{{engine}}}}}\n\
             budgets:\n  - {{name: shared, match: {{provider: p}}, engine: redis, {shared}}}\n  \
             - {{name: own, match: {{provider: q}}, requests: [{{limit: 4, window: 1s}}]}}\n",
            url = provider.base_url(),
            shared = limits.yaml(),
        );
        let mut starting = JoinSet::new();
        for _ in 0..PODS {
            let yaml = yaml.clone();
            starting.spawn(async move {
                let sidecar = Sidecar::configured("", &yaml, 4096).await;
                let channel = sidecar.channel().await;
                Pod {
                    sidecar,
                    channel,
                    is_dead: false,
                }
            });
        }
        let pods = starting.join_all().await;
        lag.forget();
        Self {
            limits,
            provider,
            lag,
            pods,
        }
    }

    /// Now, by the clock of the provider's log.
    pub fn now(&self) -> Duration {
        self.provider.simulator.now()
    }

    /// Clients at some pods, until the load is stopped.
    pub fn load(&self, pods: impl IntoIterator<Item = usize>, clients: Clients) -> Load {
        Load::start(self, pods, clients)
    }

    /// Waits until the engine grants, which a new one does only after a while; the call that showed it.
    pub async fn granted(&self) -> Vec<Call> {
        let client = Clients {
            per_pod: 1,
            stays: Stays::Once,
            ..Clients::new("default")
        };
        let calls = self.load([0], client).ended().await;
        assert!(calls[0].committed(), "{:?}", calls[0]);
        calls
    }

    /// Waits until something of `tenant` arrives that left after `from`; how long after it.
    pub async fn goes_on(&self, tenant: &str, from: Duration) -> Duration {
        let arrives = async {
            loop {
                let log = self.provider.simulator.received();
                let mut after = log.iter().filter(|one| is_of(one, tenant));
                if let Some(first) = after.find(|one| one.arrived > from) {
                    return first.arrived - from;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let arrives = timeout(PATIENCE, arrives).await;
        arrives.expect("nothing is sent any more")
    }

    /// Nothing runs any more in the pods that live, and no lease is held; how each stands.
    pub async fn at_rest(&self) -> Vec<Value> {
        let mut statuses = Vec::new();
        for pod in self.pods.iter().filter(|pod| !pod.is_dead) {
            let begun = Instant::now();
            loop {
                let status = pod.sidecar.status().await;
                if status["generations"] == 0 && status["leases"]["held"] == 0 {
                    statuses.push(status);
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "still there: {status}");
                sleep(Duration::from_millis(20)).await;
            }
        }
        statuses
    }
}

/// Whether a request is of the clients of `tenant`, which is the name of their route.
pub fn is_of(request: &Received, tenant: &str) -> bool {
    let prompt = request.script.as_deref().unwrap_or_default();
    prompt.split(' ').next() == Some(tenant)
}
