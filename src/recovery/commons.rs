//! What generations share: circuits, cooled-down credentials, scopes and the retry budget.
//!
//! The driver keeps one [`Commons`] behind a short lock and lends it to a generation through
//! [`Access`]. It is touched when an attempt is chosen, dispatched or ended, never per token.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    Time,
    circuit::{Circuit, Gate, Probe},
    retry_budget::RetryBudget,
    scope::Scopes,
    settings::{CircuitSettings, RetryBudgetSettings},
};

/// Lends the commons for the length of a closure.
pub trait Access {
    /// Runs `f` with the commons. Not re-entrant.
    fn with<R>(&self, f: impl FnOnce(&mut Commons) -> R) -> R;
}

impl Access for std::cell::RefCell<Commons> {
    fn with<R>(&self, f: impl FnOnce(&mut Commons) -> R) -> R {
        f(&mut self.borrow_mut())
    }
}

/// How many circuits are kept. Fixed: a client may ask for any model that its route's patterns match,
/// and each names a target.
const MAX_CIRCUITS: usize = 10_000;

/// Names a credential: its provider and its index there.
pub type CredentialKey = (Arc<str>, usize);

/// How long a credential rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// Until when.
    pub until: Time,
    /// `true` if the provider asked for it; only then may it be told as a retry-after.
    pub supplied: bool,
}

/// State shared by all generations of one sidecar.
#[derive(Debug)]
pub struct Commons {
    circuits: HashMap<Arc<str>, Circuit>,
    cooldowns: HashMap<CredentialKey, Cooldown>,
    /// Retry budgets by domain; a provider is its own domain.
    retries: HashMap<Arc<str>, RetryBudget>,
    retry_settings: RetryBudgetSettings,
    /// Scopes by listener identity and name.
    pub scopes: Scopes,
}

impl Commons {
    /// Nothing is open, cooled down or spent.
    pub fn new(retry_settings: RetryBudgetSettings) -> Self {
        Self {
            circuits: HashMap::new(),
            cooldowns: HashMap::new(),
            retries: HashMap::new(),
            retry_settings,
            scopes: Scopes::default(),
        }
    }

    /// What the circuit of `target` says.
    pub fn gate(&self, now: Time, target: &Arc<str>) -> Gate {
        self.circuits
            .get(target)
            .map_or(Gate::Closed, |circuit| circuit.gate(now))
    }

    /// An attempt is dispatched to `target`; whether it is the probe of its circuit.
    pub fn begin(&mut self, now: Time, target: &Arc<str>) -> Option<Probe> {
        self.circuits.get_mut(target)?.begin(now)
    }

    /// `target` answered.
    pub fn succeed(&mut self, target: &Arc<str>) {
        if let Some(circuit) = self.circuits.get_mut(target) {
            circuit.succeed();
        }
    }

    /// `target` failed in a way that counts.
    pub fn fail(
        &mut self,
        now: Time,
        target: &Arc<str>,
        probe: Option<Probe>,
        settings: &CircuitSettings,
    ) {
        if !self.circuits.contains_key(target) && self.circuits.len() >= MAX_CIRCUITS {
            self.circuits
                .retain(|_, circuit| matches!(circuit.gate(now), Gate::Open(_)));
            if self.circuits.len() >= MAX_CIRCUITS {
                return;
            }
        }
        self.circuits
            .entry(Arc::clone(target))
            .or_default()
            .fail(now, probe, settings);
    }

    /// An attempt at `target` ended without telling anything about it.
    pub fn release(&mut self, target: &Arc<str>, probe: Option<Probe>) {
        if let Some(circuit) = self.circuits.get_mut(target) {
            circuit.release(probe);
        }
    }

    /// Lets a credential rest for `wait`; a longer rest that is already running stays.
    pub fn cool(&mut self, now: Time, key: CredentialKey, wait: Duration, supplied: bool) {
        let cooldown = Cooldown {
            until: now + wait,
            supplied,
        };
        self.cooldowns
            .entry(key)
            .and_modify(|old| {
                if old.until < cooldown.until {
                    *old = cooldown;
                }
            })
            .or_insert(cooldown);
    }

    /// The first of `count` credentials of `provider` that may be used now, else the one that returns
    /// first. A provider without credentials has one place, so that it too can be cooled down.
    pub fn credential(
        &mut self,
        now: Time,
        provider: &Arc<str>,
        count: usize,
    ) -> Result<usize, Cooldown> {
        let mut soonest: Option<Cooldown> = None;
        for index in 0..count.max(1) {
            let key = (Arc::clone(provider), index);
            match self.cooldowns.get(&key) {
                Some(cooldown) if now < cooldown.until => {
                    if soonest.is_none_or(|s| cooldown.until < s.until) {
                        soonest = Some(*cooldown);
                    }
                }
                Some(_) => {
                    self.cooldowns.remove(&key);
                    return Ok(index);
                }
                None => return Ok(index),
            }
        }
        soonest.map_or(Ok(0), Err)
    }

    /// A generation's first attempt goes to `domain`.
    pub fn first_attempt(&mut self, now: Time, domain: &Arc<str>) {
        self.retry_budget(domain).first_attempt(now);
    }

    /// Takes one retry from the budget of `domain`; `false` if it is spent.
    pub fn take_retry(&mut self, now: Time, domain: &Arc<str>) -> bool {
        self.retry_budget(domain).take(now)
    }

    fn retry_budget(&mut self, domain: &Arc<str>) -> &mut RetryBudget {
        let settings = self.retry_settings;
        self.retries
            .entry(Arc::clone(domain))
            .or_insert_with(|| RetryBudget::new(settings))
    }
}
