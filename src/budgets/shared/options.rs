//! Where the engine is, and how it is spoken with.

use std::{sync::Arc, time::Duration};

use secrecy::SecretString;

use super::keys::SCRIPT;
use crate::config::EnginePlace;

/// Where the engine is, and how it is spoken with.
#[derive(Clone, Debug)]
pub struct Options {
    /// One server, nodes of a cluster, or Sentinels: `redis://host:port` or `rediss://` (TLS).
    pub place: EnginePlace,
    /// The user, where it is not in the URL.
    pub username: Option<String>,
    /// The password, where it is not in the URL.
    pub password: Option<SecretString>,
    /// The certificate authority, as PEM; public ones by default.
    pub authority: Option<Vec<u8>>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long a connection may take, greeting aside.
    pub connect_timeout: Duration,
    /// How long a lease lives without being renewed.
    pub life: Duration,
    /// The longest that any lease may take from its grant to its send.
    pub longest_unsent: Duration,
    /// How many sends each budget remembers at most.
    pub most_entries: u64,
    /// Names this process, for those who look at leases: letters, digits, `-`, `_` or `.`.
    pub pod: String,
    #[doc(hidden)]
    pub script: Arc<str>,
}

impl Options {
    /// Of the one server at `url`, with defaults: 100 ms for an answer, 1 s for a connection, leases that
    /// live for 15 s and are sent within 10 s.
    pub fn new(url: &str) -> Self {
        Self {
            place: EnginePlace::One(url.to_owned()),
            username: None,
            password: None,
            authority: None,
            timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(1),
            life: Duration::from_secs(15),
            longest_unsent: Duration::from_secs(10),
            most_entries: 1 << 20,
            pod: "pod".into(),
            script: SCRIPT.into(),
        }
    }

    /// With the script that `change` makes of ours: tests have no other way to give it a clock.
    #[doc(hidden)]
    #[must_use]
    pub fn with_script(self, change: impl FnOnce(&str) -> String) -> Self {
        let script = change(&self.script).into();
        Self { script, ..self }
    }
}

/// What is wrong with [`Options`].
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadOptions {
    /// No URL at all.
    #[error("no URL of an engine")]
    NoUrl,
    /// A URL that is none, or TLS that cannot be.
    #[error("{0}")]
    Url(String),
    /// A domain, a pod or a budget whose name is none.
    #[error("`{0}` is no name: 1 to 64 letters, digits, `-`, `_` or `.`")]
    Name(String),
    /// A time that is no use.
    #[error("a lease must live longer than nothing, and an answer may take longer than nothing")]
    Zero,
}
