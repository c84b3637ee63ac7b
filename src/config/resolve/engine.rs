//! `engines.redis`: where it is, and how it is spoken with.

use http::Uri;

use super::Resolver;
use crate::config::{
    model::{EnginePlace, LocalShare, SharedEngine},
    path::Path,
    raw,
};

/// Nodes or sentinels that are named at most. Fixed.
const MAX_NODES: usize = 64;

/// The longest name of a user or a primary, in bytes. Fixed.
const MAX_WORD: usize = 128;

const ENCRYPTED: &str = "rediss";

impl Resolver<'_> {
    /// `None` where there is none, or an error was told.
    pub(super) fn engine(&mut self, at: &Path, raw: raw::Redis) -> Option<SharedEngine> {
        let place = self.place(at, raw.url, raw.cluster, raw.sentinel);
        if let Some(username) = &raw.username {
            self.check_word(&at.key("username"), "the name of a user", username);
        }
        self.check_name(&at.key("domain"), &raw.domain);
        let password = raw
            .password
            .and_then(|source| self.password(&at.key("password"), &source));
        let authority = raw.ca.and_then(|source| {
            let at = at.key("ca");
            if place.as_ref().is_some_and(|place| !is_encrypted(place)) {
                self.refuse(&at, "only `rediss://` is encrypted and has an authority");
                return None;
            }
            self.certificates(&at, &source)
        });
        Some(SharedEngine {
            place: place?,
            username: raw.username,
            password,
            authority: authority.map(|pem| pem.to_vec()),
            domain: raw.domain,
            on_loss: raw.on_loss.into(),
            local_share: LocalShare {
                fraction: raw.local_share.fraction.0,
                max_pods: raw.local_share.max_pods.u32(),
            },
            timeout: raw.timeout.0,
        })
    }

    /// Refuses budgets of an engine that is not there.
    pub(super) fn check_engines(&mut self, at: &Path, budgets: &[raw::Budget], has_engine: bool) {
        let engines = budgets.iter().map(|budget| budget.engine).enumerate();
        for (index, _) in engines.filter(|(_, engine)| !has_engine && *engine == raw::Engine::Redis)
        {
            let hint = "say where it is, such as engines: {redis: {url: rediss://valkey:6379}}";
            let message = "there is no engine `redis` under `engines`";
            let at = at.index(index).key("engine");
            self.errors
                .refuse_with(self.tree, &at, message, vec![hint.to_owned()]);
        }
    }

    fn place(
        &mut self,
        at: &Path,
        url: Option<String>,
        cluster: Vec<String>,
        sentinel: Option<raw::Sentinel>,
    ) -> Option<EnginePlace> {
        match (url, cluster.is_empty(), sentinel) {
            (Some(url), true, None) => {
                self.node(&at.key("url"), &url, true)?;
                Some(EnginePlace::One(url))
            }
            (None, false, None) => {
                self.nodes(&at.key("cluster"), &cluster);
                Some(EnginePlace::Cluster(cluster))
            }
            (None, true, Some(sentinel)) => self.sentinel(&at.key("sentinel"), sentinel),
            (None, true, None) => {
                let message = "an engine needs one of url, cluster and sentinel, such as url: \
                               rediss://valkey:6379";
                self.errors.missing(self.tree, &at.key("url"), message);
                None
            }
            _ => {
                self.refuse(
                    at,
                    "expected only one of url, cluster and sentinel: an engine is in one place",
                );
                None
            }
        }
    }

    fn sentinel(&mut self, at: &Path, raw: raw::Sentinel) -> Option<EnginePlace> {
        match &raw.master {
            Some(master) => self.check_word(&at.key("master"), "the name of a primary", master),
            None => {
                let message = "the sentinels' name of the primary is needed, such as mymaster";
                self.errors.missing(self.tree, &at.key("master"), message);
            }
        }
        let urls = at.key("urls");
        if raw.urls.is_empty() {
            let message = "at least one sentinel is needed, such as [redis://sentinel:26379]";
            self.errors.missing(self.tree, &urls, message);
        }
        self.nodes(&urls, &raw.urls);
        Some(EnginePlace::Sentinel {
            urls: raw.urls,
            master: raw.master?,
        })
    }

    fn nodes(&mut self, at: &Path, urls: &[String]) {
        if urls.len() > MAX_NODES {
            self.refuse(at, format!("there are at most {MAX_NODES} nodes here"));
        }
        let mut first = None;
        for (index, url) in urls.iter().enumerate() {
            let at = at.index(index);
            let Some(scheme) = self.node(&at, url, false) else {
                continue;
            };
            if *first.get_or_insert(scheme) != scheme {
                self.refuse(&at, "all nodes are encrypted (rediss://) or none is");
            }
        }
    }

    /// The scheme of the URL of one node. Errors do not repeat it: it may hold a credential.
    fn node(&mut self, at: &Path, url: &str, has_database: bool) -> Option<&'static str> {
        if url.contains('@') {
            let hint = "write username: NAME and password: {file: PATH} or {env: NAME} beside it";
            let message = "credentials do not belong in a URL";
            self.errors
                .refuse_with(self.tree, at, message, vec![hint.to_owned()]);
            return None;
        }
        let uri = url.parse::<Uri>().ok();
        let scheme = match uri.as_ref().and_then(Uri::scheme_str) {
            Some(ENCRYPTED) => ENCRYPTED,
            Some("redis") => "redis",
            _ => {
                let message =
                    "expected a URL such as rediss://valkey:6379 (TLS) or redis://valkey:6379";
                self.refuse(at, message);
                return None;
            }
        };
        let Some(uri) = uri.filter(has_host_and_port) else {
            self.refuse(at, format!("expected {scheme}://HOST:PORT"));
            return None;
        };
        let path = uri.path().trim_start_matches('/');
        let is_database = has_database && path.parse::<u16>().is_ok();
        if url.contains(['?', '#']) || !(path.is_empty() || is_database) {
            let message = if has_database {
                "nothing but the number of a database may follow HOST:PORT"
            } else {
                "nothing may follow HOST:PORT"
            };
            self.refuse(at, message);
            return None;
        }
        Some(scheme)
    }

    fn check_word(&mut self, at: &Path, what: &str, word: &str) {
        if !(1..=MAX_WORD).contains(&word.len()) || !word.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("{what} is 1 to {MAX_WORD} visible ASCII characters, no spaces");
            self.refuse(at, message);
        }
    }
}

fn has_host_and_port(uri: &Uri) -> bool {
    uri.host().is_some_and(|host| !host.is_empty()) && uri.port_u16().is_some_and(|port| port > 0)
}

fn is_encrypted(place: &EnginePlace) -> bool {
    let url = match place {
        EnginePlace::One(url) => Some(url),
        EnginePlace::Cluster(urls) | EnginePlace::Sentinel { urls, .. } => urls.first(),
    };
    url.is_some_and(|url| url.starts_with(ENCRYPTED))
}
