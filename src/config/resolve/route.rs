//! `routes.*`: targets, timers and recovery.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Resolver, provider::Resolved};
use crate::{
    config::{
        model::{Gate, GateRules, Route, Target},
        path::Path,
        raw,
    },
    gate::{Attempts, Preset},
    recovery::settings::{Backoff, CircuitSettings, Policy, Replay, Timers},
};

/// The longest name of a model, in bytes. Fixed.
const MAX_MODEL: usize = 256;

type Providers = BTreeMap<String, Arc<Resolved>>;

impl Resolver<'_> {
    pub(super) fn routes(
        &mut self,
        at: &Path,
        raw: BTreeMap<String, raw::Route>,
        providers: &Providers,
    ) -> BTreeMap<String, Arc<Route>> {
        if raw.is_empty() {
            let message = "at least one route is needed, with at least one target";
            self.errors.missing(self.tree, at, message);
        }
        self.named(at, raw, |this, at, name, raw| {
            Some(this.route(at, name, raw, providers))
        })
    }

    fn route(&mut self, at: &Path, name: String, raw: raw::Route, providers: &Providers) -> Route {
        for (index, pattern) in raw.models.iter().enumerate() {
            self.check_model(&at.key("models").index(index), pattern);
        }
        Route {
            name,
            targets: self.targets(&at.key("targets"), raw.targets, &raw.timers, providers),
            models: raw.models,
            policy: self.policy(&at.key("recovery"), &raw.recovery),
            gate: gate(&raw.gate),
            max_output_tokens: raw.max_output_tokens.u64(),
            max_message_bytes: raw.max_message_bytes.usize(),
            client_idle: raw.client_idle.0,
        }
    }

    fn targets(
        &mut self,
        at: &Path,
        raw: Vec<raw::Target>,
        route_timers: &raw::Timers,
        providers: &Providers,
    ) -> Vec<Target> {
        if raw.is_empty() {
            let message = "a route needs at least one target, {provider: NAME, model: NAME}";
            self.errors.missing(self.tree, at, message);
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut targets = Vec::new();
        for (index, raw) in raw.into_iter().enumerate() {
            let at = at.index(index);
            let provider = self.target_provider(&at.key("provider"), raw.provider.as_deref());
            let Some(model) = raw.model else {
                let message = "a target needs a model, as the provider names it";
                self.errors.missing(self.tree, &at.key("model"), message);
                continue;
            };
            self.check_model(&at.key("model"), &model);
            let Some(resolved) = provider.and_then(|name| providers.get(name)) else {
                continue;
            };
            let name = format!("{}/{model}", resolved.provider.name);
            if let Some(first) = seen.insert(name.clone(), index) {
                self.refuse(
                    &at,
                    format!("targets[{first}] is the same provider and model"),
                );
            }
            targets.push(Target {
                name,
                provider: Arc::clone(&resolved.provider),
                model,
                context_window: raw.context_window.map(|tokens| tokens.u64()),
                timers: timers(&raw.timers, route_timers, &resolved.timers),
            });
        }
        targets
    }

    /// The name of a provider that stands in the file.
    fn target_provider<'n>(&mut self, at: &Path, name: Option<&'n str>) -> Option<&'n str> {
        let Some(name) = name else {
            self.errors
                .missing(self.tree, at, "a target needs the name of a provider");
            return None;
        };
        // Of the file, not of what could be resolved: a provider at fault has an error of its own.
        let known = self.tree.keys(&Path::default().key("providers"));
        if !known.contains(&name) {
            self.known(at, name, "provider", &known);
            return None;
        }
        Some(name)
    }

    fn check_model(&mut self, at: &Path, model: &str) {
        let good = |c: char| !c.is_control() && !c.is_whitespace();
        if model.is_empty() || model.len() > MAX_MODEL || !model.chars().all(good) {
            let message = format!("the name of a model is 1 to {MAX_MODEL} bytes without spaces");
            self.refuse(at, message);
        }
    }

    fn policy(&mut self, at: &Path, raw: &raw::Recovery) -> Policy {
        let replay = match raw.replay {
            raw::Replay::Restart => Replay::Restart,
            raw::Replay::None => Replay::None,
        };
        if raw.backoff.base.0 > raw.backoff.max.0 {
            let message = "backoff.base must not be longer than backoff.max";
            self.refuse(&at.key("backoff").key("base"), message);
        }
        Policy {
            max_attempts: raw.max_attempts.u32(),
            deadline: raw.deadline.0,
            patience: raw.patience.0,
            replay,
            replay_first_token: raw.replay_first_token,
            backoff: Backoff {
                base: raw.backoff.base.0,
                max: raw.backoff.max.0,
                jitter: raw.backoff.jitter.0,
            },
            circuit: CircuitSettings {
                failures: raw.circuit.failures.u32(),
                open: raw.circuit.open.0,
            },
        }
    }
}

fn gate(raw: &raw::Gate) -> Gate {
    Gate {
        preset: match raw.preset {
            raw::Preset::Off => None,
            raw::Preset::Agent => Some(Preset::Agent),
            raw::Preset::Lenient => Some(Preset::Lenient),
        },
        attempts: Attempts::resolve(None, raw.max_attempts.u32().into()),
        rules: GateRules {
            prose_with_tools: raw.prose_with_tools,
            accept_bare_final: raw.accept_bare_final,
            tool_errors_before_required: raw.tool_errors_before_required,
            tool_errors_veto_with_calls: raw.tool_errors_veto_with_calls,
        },
    }
}

/// The target's own over the route's over the profile's.
fn timers(target: &raw::Timers, route: &raw::Timers, profile: &Timers) -> Timers {
    macro_rules! first_set {
        ($timer:ident) => {
            match (target.$timer, route.$timer) {
                (Some(span), _) | (None, Some(span)) => span.0,
                (None, None) => profile.$timer,
            }
        };
    }
    Timers {
        connect: first_set!(connect),
        first_token: first_set!(first_token),
        inter_delta: first_set!(inter_delta),
        open_block: first_set!(open_block),
        no_progress: first_set!(no_progress),
        tail: first_set!(tail),
    }
}
