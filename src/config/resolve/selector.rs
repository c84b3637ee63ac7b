//! `budgets[].match`: names that lead somewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_LABEL, Resolver};
use crate::config::{hint, model::Selector, path::Path, pattern, raw, tree::Node};

/// What selectors may name, as the file has it: what is at fault there has an error of its own.
pub(super) struct Names<'a> {
    providers: Vec<&'a str>,
    routes: Vec<&'a str>,
    /// By provider; `None` where one of them has no name.
    credentials: BTreeMap<String, Option<BTreeSet<String>>>,
    /// `provider/model`, of all routes. What a client may ask for in place of a route's first model is
    /// a pattern.
    targets: BTreeSet<String>,
    /// Not all targets could be read.
    more_targets: bool,
}

impl<'a> Names<'a> {
    pub(super) fn of(tree: &'a Node, file: &raw::File) -> Names<'a> {
        let root = Path::default();
        let credentials = |provider: &raw::Provider| {
            let all = provider.credentials.iter();
            all.map(|credential| credential.name.clone()).collect()
        };
        let mut names = Names {
            providers: tree.keys(&root.key("providers")),
            routes: tree.keys(&root.key("routes")),
            credentials: file
                .providers
                .iter()
                .map(|(name, provider)| (name.clone(), credentials(provider)))
                .collect(),
            targets: BTreeSet::new(),
            more_targets: false,
        };
        names.more_targets = !names
            .routes
            .iter()
            .all(|name| file.routes.contains_key(*name));
        for route in file.routes.values() {
            names.add_targets(route);
        }
        names
    }

    fn add_targets(&mut self, route: &raw::Route) {
        for (index, target) in route.targets.iter().enumerate() {
            let (Some(provider), Some(model)) = (&target.provider, &target.model) else {
                self.more_targets = true;
                continue;
            };
            self.targets.insert(format!("{provider}/{model}"));
            if index == 0 {
                let asked = route.models.iter();
                let asked = asked.map(|pattern| format!("{provider}/{pattern}"));
                self.targets.extend(asked);
            }
        }
    }

    /// The credentials of `provider`, of all providers if none is named; `None` if not all are known.
    fn credentials_of(&self, provider: Option<&str>) -> Option<BTreeSet<&str>> {
        let mut all = BTreeSet::new();
        for name in &self.providers {
            if provider.is_none_or(|provider| provider == *name) {
                let credentials = self.credentials.get(*name)?.as_ref()?;
                all.extend(credentials.iter().map(String::as_str));
            }
        }
        Some(all)
    }
}

impl Resolver<'_> {
    pub(super) fn selector(
        &mut self,
        at: &Path,
        raw: raw::Selector,
        names: &Names<'_>,
    ) -> Selector {
        if let Some(provider) = &raw.provider {
            self.known(&at.key("provider"), provider, "provider", &names.providers);
        }
        if let Some(route) = &raw.route {
            self.known(&at.key("route"), route, "route", &names.routes);
        }
        if let Some(credential) = &raw.credential {
            self.check_credential(at, credential, raw.provider.as_deref(), names);
        }
        if let Some(target) = &raw.target {
            self.check_target(at, target, raw.provider.as_deref(), names);
        }
        for (label, value) in &raw.labels {
            let at = at.key(&format!("{}{label}", raw::LABEL));
            self.check_label(&at, label);
            if value.len() > MAX_LABEL {
                let message = format!("the value of a label has at most {MAX_LABEL} bytes");
                self.refuse(&at, message);
            }
        }
        Selector {
            provider: raw.provider,
            credential: raw.credential,
            target: raw.target,
            route: raw.route,
            labels: raw.labels,
        }
    }

    fn check_credential(
        &mut self,
        at: &Path,
        credential: &str,
        provider: Option<&str>,
        names: &Names<'_>,
    ) {
        // A provider that does not exist has its error already.
        if provider.is_some_and(|provider| !names.providers.contains(&provider)) {
            return;
        }
        let Some(known) = names.credentials_of(provider) else {
            return;
        };
        let kind = match provider {
            Some(provider) => format!("credential of {provider}"),
            None => "credential".to_owned(),
        };
        let known: Vec<&str> = known.into_iter().collect();
        if !known.contains(&credential) {
            let hints = hint::hints(credential, &known, "credentials");
            let message = format!("there is no {kind} {}", hint::shown(credential));
            self.errors
                .refuse_with(self.tree, &at.key("credential"), message, hints);
        }
    }

    fn check_target(&mut self, at: &Path, target: &str, provider: Option<&str>, names: &Names<'_>) {
        let of_provider = |name: &&str| {
            provider.is_none_or(|provider| {
                let model = name.strip_prefix(provider);
                model.is_some_and(|model| model.starts_with('/'))
            })
        };
        let known: Vec<&str> = names.targets.iter().map(String::as_str).collect();
        let known: Vec<&str> = known.into_iter().filter(of_provider).collect();
        if names.more_targets || known.iter().any(|known| overlap(target, known)) {
            return;
        }
        let whose = match provider {
            Some(provider) => format!(" of {provider}"),
            None => String::new(),
        };
        let hints = hint::hints(target, &known, "targets");
        let message = format!("no route has a target{whose} {}", hint::shown(target));
        self.errors
            .refuse_with(self.tree, &at.key("target"), message, hints);
    }
}

/// Whether a text may match both patterns. Errs by a yes: of two patterns only what stands before the
/// first star is compared.
fn overlap(one: &str, other: &str) -> bool {
    match (one.split_once('*'), other.split_once('*')) {
        (_, None) => pattern::matches(one, other),
        (None, _) => pattern::matches(other, one),
        (Some((one, _)), Some((other, _))) => one.starts_with(other) || other.starts_with(one),
    }
}
