//! `engines`, as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::Secret;
use crate::config::{
    model,
    value::{Count, SECOND, Share, Span},
};

/// Engines of shared budgets.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Engines {
    /// A Redis or Valkey server: the engine of budgets with `engine: redis`.
    pub(in crate::config) redis: Option<Redis>,
}

/// A Redis or Valkey server that keeps shared budgets: exactly one of `url`, `cluster` and `sentinel` says
/// where.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Redis {
    /// One server: `redis://HOST:PORT`, or `rediss://` with TLS.
    pub(in crate::config) url: Option<String>,
    /// Nodes of a cluster, to begin with.
    #[schemars(length(max = 64))]
    pub(in crate::config) cluster: Vec<String>,
    /// Sentinels that know the primary.
    pub(in crate::config) sentinel: Option<Sentinel>,
    /// The user. Without one: the server's default user.
    pub(in crate::config) username: Option<String>,
    /// The user's password.
    pub(in crate::config) password: Option<Secret>,
    /// PEM of the certificate authority of `rediss`. Without one: the public ones.
    pub(in crate::config) ca: Option<Secret>,
    /// Whoever names the same domain of a server shares the same budgets; part of its keys.
    pub(in crate::config) domain: String,
    /// What happens while the engine is lost.
    pub(in crate::config) on_loss: OnLoss,
    /// What each pod may send while it is lost, with `on_loss: local_share`.
    pub(in crate::config) local_share: LocalShare,
    /// How long an answer may take.
    pub(in crate::config) timeout: Span<10, { 5 * SECOND }, 100>,
}

impl Default for Redis {
    fn default() -> Redis {
        Redis {
            url: None,
            cluster: Vec::new(),
            sentinel: None,
            username: None,
            password: None,
            ca: None,
            domain: "default".to_owned(),
            on_loss: OnLoss::default(),
            local_share: LocalShare::default(),
            timeout: Span::default(),
        }
    }
}

/// Sentinels that know the primary.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["master", "urls"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Sentinel {
    /// What they call the primary. Required.
    pub(in crate::config) master: Option<String>,
    /// Where they are. Required.
    #[schemars(length(max = 64))]
    pub(in crate::config) urls: Vec<String>,
}

/// What happens while the engine is lost.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum OnLoss {
    /// Nothing is sent: attempts wait until their deadline.
    #[default]
    Closed,
    /// Each pod sends within its share, which the engine never grants.
    LocalShare,
    /// Each pod sends as if it were alone: not strict.
    Open,
}

impl From<OnLoss> for model::OnLoss {
    fn from(raw: OnLoss) -> model::OnLoss {
        match raw {
            OnLoss::Closed => Self::Closed,
            OnLoss::LocalShare => Self::LocalShare,
            OnLoss::Open => Self::Open,
        }
    }
}

/// What each pod may send while the engine is lost: `fraction` of each limit, divided by `max_pods`.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct LocalShare {
    /// Of each limit, for all pods together. The engine grants that much less.
    pub(in crate::config) fraction: Share<90, 10>,
    /// How many pods there are at most.
    pub(in crate::config) max_pods: Count<1, 10_000, 10>,
}
