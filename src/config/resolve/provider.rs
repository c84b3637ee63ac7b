//! `providers.*`: where they are, and with which credentials.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::{HeaderName, HeaderValue, Uri};

use super::{Resolver, vendors};
use crate::{
    config::{
        model::{Credential, Provider},
        path::Path,
        raw,
    },
    protocol::{Dialect, Protocol, Terminal, adapter, openai_chat},
    recovery::settings::Timers,
    upstream::{Endpoint, Http2, Proxy},
};

/// Headers that each request has of its own, or that belong to one connection.
const RESERVED: [&str; 14] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "accept",
    "accept-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-connection",
];

/// Headers that carry credentials.
const SECRET: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "api-key",
    "x-api-key",
];

/// A provider, and the timers of its profile.
pub(super) struct Resolved {
    pub(super) provider: Arc<Provider>,
    pub(super) timers: Timers,
}

impl Resolver<'_> {
    pub(super) fn providers(
        &mut self,
        at: &Path,
        raw: BTreeMap<String, raw::Provider>,
    ) -> BTreeMap<String, Arc<Resolved>> {
        self.named(at, raw, Self::provider)
    }

    fn provider(&mut self, at: &Path, name: String, raw: raw::Provider) -> Option<Resolved> {
        let protocol = self.protocol(&at.key("protocol"), raw.protocol);
        let dialect = Dialect::from(raw.dialect);
        let prefill = raw.r#continue == raw::Continue::Prefill;
        if let (true, Some(protocol)) = (prefill, protocol)
            && !adapter::continues(protocol, dialect)
        {
            let message = "`prefill` has no form in this protocol and dialect, or is known to begin a \
                           new answer there";
            self.refuse(&at.key("continue"), message);
        }
        if raw.terminal == Some(raw::Terminal::DoneSentinel)
            && raw.protocol != raw::Protocol::OpenaiChat
        {
            let message = "only streams of `protocol: openai_chat` end with [DONE]";
            self.refuse(&at.key("terminal"), message);
        }
        let resume = raw.resume == raw::Resume::Stored;
        if resume && raw.protocol != raw::Protocol::OpenaiResponses {
            let message = "only `protocol: openai_responses` has responses that can be stored";
            self.refuse(&at.key("resume"), message);
        }
        let base_url = self.base_url(&at.key("base_url"), raw.base_url.as_deref());
        let credentials = self.credentials(&at.key("credentials"), raw.credentials);
        let headers = self.headers(&at.key("headers"), &raw.headers);
        let extra_ca = raw
            .tls
            .ca
            .and_then(|source| self.certificates(&at.key("tls").key("ca"), &source));
        let proxy = raw.proxy.and_then(|raw| self.proxy(&at.key("proxy"), raw));

        let base_url = base_url?;
        let hosted = match raw.profile {
            Some(profile) => profile == raw::Profile::Hosted,
            None => base_url.host().is_some_and(vendors::is_vendor),
        };
        let provider = Provider {
            protocol: protocol?,
            dialect,
            terminal: match raw.terminal {
                None => openai_chat::default_terminal(dialect),
                Some(raw::Terminal::FinishReason) => Terminal::FinishReason,
                Some(raw::Terminal::DoneSentinel) => Terminal::DoneSentinel,
            },
            prefill,
            resume,
            endpoint: Arc::new(Endpoint {
                name: name.clone(),
                base_url,
                max_connections: raw.connections.max.usize(),
                http2: match raw.connections.http2 {
                    raw::Http2::Auto => Http2::Auto,
                    raw::Http2::Off => Http2::Off,
                    raw::Http2::PriorKnowledge => Http2::PriorKnowledge,
                },
                extra_ca,
                proxy,
            }),
            name,
            credentials,
            headers,
        };
        Some(Resolved {
            provider: Arc::new(provider),
            timers: if hosted {
                Timers::HOSTED
            } else {
                Timers::SELF_HOSTED
            },
        })
    }

    fn protocol(&mut self, at: &Path, raw: raw::Protocol) -> Option<Protocol> {
        let protocol = raw.of_contract();
        if adapter::adapter(protocol).is_none() {
            let name = protocol.as_str_name();
            let name = name.strip_prefix("PROTOCOL_").unwrap_or(name);
            self.later(at, &name.to_ascii_lowercase());
            return None;
        }
        Some(protocol)
    }

    fn base_url(&mut self, at: &Path, text: Option<&str>) -> Option<Uri> {
        let Some(text) = text else {
            let message = "a provider needs a base_url, such as \"https://api.openai.com/v1\"";
            self.errors.missing(self.tree, at, message);
            return None;
        };
        // Request paths begin with a slash of their own.
        self.url(at, text.trim_end_matches('/'), &["http", "https"])
    }

    /// A URL of scheme, host and path alone. Errors do not repeat it: it may hold a credential.
    fn url(&mut self, at: &Path, text: &str, schemes: &[&str]) -> Option<Uri> {
        let uri = text.parse::<Uri>().ok();
        let problem = match &uri {
            Some(uri) if uri.authority().is_some_and(|a| a.as_str().contains('@')) => {
                "credentials do not belong in a URL".to_owned()
            }
            Some(_) if text.contains(['?', '#']) => {
                "a URL here has neither query nor fragment".to_owned()
            }
            Some(uri)
                if uri.host().is_some_and(|host| !host.is_empty())
                    && uri.scheme_str().is_some_and(|s| schemes.contains(&s)) =>
            {
                return Some(uri.clone());
            }
            _ => format!(
                "expected a URL that begins with {}://",
                schemes.join(":// or ")
            ),
        };
        self.refuse(at, problem);
        None
    }

    fn credentials(&mut self, at: &Path, raw: Vec<raw::Credential>) -> Vec<Credential> {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut credentials = Vec::new();
        for (index, raw) in raw.into_iter().enumerate() {
            let at = at.index(index);
            if raw.name.is_none() {
                let path = at.key("name");
                self.errors
                    .missing(self.tree, &path, "a credential needs a name");
            }
            if raw.api_key.is_none() {
                let message = "a credential needs an api_key, {file: PATH} or {env: NAME}";
                self.errors.missing(self.tree, &at.key("api_key"), message);
            }
            if let Some(name) = &raw.name {
                self.check_name(&at.key("name"), name);
                if let Some(first) = seen.insert(name.clone(), index) {
                    let message = format!("credentials[{first}] has the same name");
                    self.refuse(&at.key("name"), message);
                }
            }
            let api_key = raw
                .api_key
                .and_then(|source| self.api_key(&at.key("api_key"), &source));
            if let (Some(name), Some(api_key)) = (raw.name, api_key) {
                credentials.push(Credential { name, api_key });
            }
        }
        credentials
    }

    fn headers(
        &mut self,
        at: &Path,
        raw: &BTreeMap<String, String>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        for (key, value) in raw {
            let at = at.key(key);
            let lower = key.to_ascii_lowercase();
            if RESERVED.contains(&lower.as_str()) {
                self.refuse(&at, "this header is set by the sidecar");
            } else if SECRET.contains(&lower.as_str()) {
                self.refuse(&at, "credentials belong under `credentials`, as references");
            } else {
                match (lower.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                    (Ok(name), Ok(mut value)) => {
                        // Kept out of logs: it may be a secret after all.
                        value.set_sensitive(true);
                        headers.push((name, value));
                    }
                    (Err(_), _) => self.refuse(&at, "not a header name"),
                    (_, Err(_)) => {
                        self.refuse(&at, "characters that cannot be sent in a header");
                    }
                }
            }
        }
        headers
    }

    fn proxy(&mut self, at: &Path, raw: raw::Proxy) -> Option<Proxy> {
        let Some(url) = raw.url else {
            let message = "a proxy needs a url, such as \"http://proxy:3128\"";
            self.errors.missing(self.tree, &at.key("url"), message);
            return None;
        };
        let url = self.url(&at.key("url"), &url, &["http"])?;
        for (index, host) in raw.no_proxy.iter().enumerate() {
            if host.is_empty() || host.contains(char::is_whitespace) {
                let message = "expected a host, a \".suffix\" or an address";
                self.refuse(&at.key("no_proxy").index(index), message);
            }
        }
        Some(Proxy {
            url,
            no_proxy: raw.no_proxy,
        })
    }
}
