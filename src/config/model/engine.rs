//! The engine of shared budgets, resolved.

use std::time::Duration;

use secrecy::SecretString;

/// Parts of a whole that a fraction is rounded to.
const MILLION: u128 = 1_000_000;

/// The server that keeps the budgets that several sidecars share.
#[derive(Clone, Debug)]
pub struct SharedEngine {
    /// Where it is.
    pub place: EnginePlace,
    /// The user; without one the server's default user.
    pub username: Option<String>,
    /// The user's password.
    pub password: Option<SecretString>,
    /// PEM of the certificate authority of `rediss`; the public ones without it.
    pub authority: Option<Vec<u8>>,
    /// Whoever names the same domain shares the same budgets: 1 to 64 letters, digits, `-`, `_` or `.`.
    pub domain: String,
    /// What happens while it is lost.
    pub on_loss: OnLoss,
    /// What each pod may send while it is lost; in force with [`OnLoss::LocalShare`] alone.
    pub local_share: LocalShare,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// Where the engine is. All URLs are `redis://HOST:PORT` or `rediss://HOST:PORT`, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnginePlace {
    /// One server; the URL may end in the number of a database.
    One(String),
    /// Nodes of a cluster; at least one, all with one scheme.
    Cluster(Vec<String>),
    /// Whatever server is the primary.
    Sentinel {
        /// The sentinels to ask; at least one, all with one scheme.
        urls: Vec<String>,
        /// What they call the primary.
        master: String,
    },
}

/// What happens while the engine is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Nothing is sent: attempts wait until their deadline.
    #[default]
    Closed,
    /// Each pod sends within a share that the engine never grants.
    LocalShare,
    /// Each pod sends as if it were alone: not strict.
    Open,
}

/// What each pod may send of every limit while the engine is lost. The engine never grants it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalShare {
    /// Of each limit, for all pods together; from 0 to 0.9.
    pub fraction: f64,
    /// Pods at most; at least 1.
    pub max_pods: u32,
}

impl LocalShare {
    /// Of `limit`, what one pod may send while the engine is lost: the fraction, shared evenly, rounded
    /// down. 0: it sends nothing then.
    pub fn of_pod(&self, limit: u64) -> u64 {
        // In whole parts: 0.29 of 100 is 28.99… in floating point.
        let parts = (self.fraction * 1e6).round().clamp(0.0, 1e6) as u128;
        let share = u128::from(limit) * parts / MILLION / u128::from(self.max_pods.max(1));
        u64::try_from(share).unwrap_or(limit)
    }

    /// Of `limit`, what the engine grants: what is left of it when all pods have their share.
    pub fn of_engine(&self, limit: u64) -> u64 {
        let pods = u64::from(self.max_pods.max(1));
        limit.saturating_sub(self.of_pod(limit).saturating_mul(pods))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_and_the_engine_keeps_the_rest() {
        for (fraction, max_pods, limit, of_pod, of_engine) in [
            (0.1, 10, 500, 5, 450),
            (0.1, 10, 99, 0, 99),
            (0.1, 10, 199, 1, 189),
            (0.29, 1, 100, 29, 71),
            (0.0, 10, 500, 0, 500),
            (0.9, 1, 10, 9, 1),
            (0.9, 3, 1_000_000_000_000, 300_000_000_000, 100_000_000_000),
        ] {
            let share = LocalShare { fraction, max_pods };
            assert_eq!(share.of_pod(limit), of_pod, "{share:?} of {limit}");
            assert_eq!(share.of_engine(limit), of_engine, "{share:?} of {limit}");
        }
    }
}
