//! From the raw form to the model: names are looked up, secrets read, and whatever one value alone
//! cannot tell is checked.

mod budget;
mod engine;
mod listen;
mod provider;
mod refund;
mod route;
mod secret;
mod selector;
mod vendors;

use std::{collections::BTreeMap, path, sync::Arc};

use self::selector::Names;

pub(super) use self::secret::Secrets;
use super::{
    error::Collector,
    hint,
    model::{Config, Limits, Telemetry},
    path::Path,
    raw,
    tree::Node,
    value::NOT_AVAILABLE,
};
use crate::recovery::settings::RetryBudgetSettings;

/// The longest name of a provider, credential, route or budget, in bytes. Fixed: names become metric
/// labels.
const MAX_NAME: usize = 64;

/// The longest name and value of a label that a start can have, in bytes. Fixed.
const MAX_LABEL: usize = 64;

/// Resolves one file.
pub(super) struct Resolver<'a> {
    tree: &'a Node,
    errors: &'a mut Collector,
    secrets: Secrets<'a>,
    /// The folder of the configuration file.
    base: &'a path::Path,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        tree: &'a Node,
        errors: &'a mut Collector,
        secrets: Secrets<'a>,
        base: &'a path::Path,
    ) -> Resolver<'a> {
        Resolver {
            tree,
            errors,
            secrets,
            base,
        }
    }

    /// The model; `None`, or not to be used, if an error was told.
    pub(super) fn resolve(mut self, file: raw::File) -> Option<Config> {
        let root = Path::default();
        let listen = self.listen(&root.key("listen"), &file.listen);
        let names = Names::of(self.tree, &file);
        let providers = self.providers(&root.key("providers"), file.providers);
        let routes = self.routes(&root.key("routes"), file.routes, &providers);
        let engines = root.key("engines");
        // One that was refused is one all the same.
        let has_engine = file.engines.redis.is_some() || self.errors.any_within(&engines);
        let engine = file.engines.redis;
        let engine = engine.and_then(|raw| self.engine(&engines.key("redis"), raw));
        self.check_engines(&root.key("budgets"), &file.budgets, has_engine);
        let budgets = self.budgets(&root.key("budgets"), file.budgets, &names, &routes);
        let telemetry = self.telemetry(&root.key("telemetry"), file.telemetry);
        Some(Config {
            listen: listen?,
            routes,
            budgets: budgets.into(),
            engine,
            retry_budget: RetryBudgetSettings {
                ratio: file.retry_budget.ratio.0,
                floor: file.retry_budget.floor.u32(),
                per: file.retry_budget.per.0,
            },
            telemetry,
            limits: Limits {
                max_total_bytes: file.limits.max_total_bytes.usize(),
                retention: file.limits.retention.0,
            },
            drain_grace: file.drain.grace.0,
        })
    }

    fn telemetry(&mut self, at: &Path, raw: raw::Telemetry) -> Telemetry {
        for (on, key) in [
            (raw.propagate_to_provider, "propagate_to_provider"),
            (raw.capture_content, "capture_content"),
        ] {
            if on {
                self.later(&at.key(key), "true");
            }
        }
        if let Some(url) = &raw.traces.otlp {
            self.check_collector(&at.key("traces").key("otlp"), url);
        }
        let raw::Sample::Parent = raw.traces.sample;
        Telemetry {
            traces_otlp: raw.traces.otlp,
            prometheus: raw.metrics.prometheus,
            log_format: raw.logs.format.into(),
            log_level: raw.logs.level.as_str().to_owned(),
        }
    }

    fn check_collector(&mut self, at: &Path, url: &str) {
        let usable = |uri: &http::Uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        };
        if !url.parse().is_ok_and(|uri| usable(&uri)) {
            self.refuse(at, "expected a URL such as \"http://otel-collector:4317\"");
        }
    }

    /// Takes a map of named things, refusing names that would not do as labels.
    fn named<R, T>(
        &mut self,
        at: &Path,
        raw: BTreeMap<String, R>,
        mut resolve: impl FnMut(&mut Self, &Path, String, R) -> Option<T>,
    ) -> BTreeMap<String, Arc<T>> {
        let mut resolved = BTreeMap::new();
        for (name, raw) in raw {
            let at = at.key(&name);
            self.check_name(&at, &name);
            if let Some(thing) = resolve(self, &at, name.clone(), raw) {
                resolved.insert(name, Arc::new(thing));
            }
        }
        resolved
    }

    fn check_name(&mut self, at: &Path, name: &str) {
        if !is_name(name) {
            let message = format!("a name is 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`");
            self.refuse(at, message);
        }
    }

    /// The name of a label, which something is decided by.
    fn label(&mut self, at: &Path, label: Option<&str>) -> Option<String> {
        let Some(label) = label else {
            let message = "the name of a label is needed, such as tenant";
            self.errors.missing(self.tree, at, message);
            return None;
        };
        self.check_label(at, label);
        Some(label.to_owned())
    }

    fn check_label(&mut self, at: &Path, label: &str) {
        if !(1..=MAX_LABEL).contains(&label.len()) {
            self.refuse(at, format!("the name of a label is 1 to {MAX_LABEL} bytes"));
        }
    }

    /// Refuses a name that leads nowhere: it is none of `known`, the names of a `kind`.
    fn known(&mut self, at: &Path, name: &str, kind: &str, known: &[&str]) {
        if known.contains(&name) || self.errors.is_full() {
            return;
        }
        let known: Vec<&str> = known.iter().copied().filter(|name| is_name(name)).collect();
        let hints = hint::hints(name, &known, &format!("{kind}s"));
        let message = format!("there is no {kind} {}", hint::shown(name));
        self.errors.refuse_with(self.tree, at, message, hints);
    }

    fn refuse(&mut self, at: &Path, message: impl Into<String>) {
        self.errors.refuse(self.tree, at, message);
    }

    /// Refuses a value whose behaviour comes in a later version.
    fn later(&mut self, at: &Path, value: &str) {
        self.refuse(at, format!("`{value}` is {NOT_AVAILABLE}"));
    }
}

fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(good)
}
