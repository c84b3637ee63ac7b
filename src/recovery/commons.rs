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
    /// Retry budgets by domain.
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

    /// All credentials among `count` of `provider` that may be used now, in order, and when the next of
    /// the others returns.
    pub fn credentials(
        &self,
        now: Time,
        provider: &Arc<str>,
        count: usize,
    ) -> (Vec<usize>, Option<Time>) {
        let rest = |index: usize| {
            let cooldown = self.cooldowns.get(&(Arc::clone(provider), index))?;
            (now < cooldown.until).then_some(cooldown.until)
        };
        let (usable, resting): (Vec<usize>, Vec<usize>) =
            (0..count.max(1)).partition(|&index| rest(index).is_none());
        (usable, resting.into_iter().filter_map(rest).min())
    }

    /// Whether credential `index` of `provider` rests.
    pub fn rests(&self, now: Time, provider: &Arc<str>, index: usize) -> bool {
        let cooldown = self.cooldowns.get(&(Arc::clone(provider), index));
        cooldown.is_some_and(|cooldown| now < cooldown.until)
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

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: CircuitSettings = CircuitSettings {
        failures: 1,
        open: Duration::from_secs(30),
    };

    fn at(seconds: u64) -> Time {
        Time::from_origin(Duration::from_secs(seconds))
    }

    fn commons() -> Commons {
        Commons::new(RetryBudgetSettings {
            ratio: 0.2,
            floor: 1,
            per: Duration::from_secs(10),
        })
    }

    fn rest(commons: &mut Commons, index: usize, seconds: u64, supplied: bool) {
        let wait = Duration::from_secs(seconds);
        commons.cool(at(0), ("p".into(), index), wait, supplied);
    }

    #[test]
    fn the_first_usable_credential_in_order_is_taken_else_the_soonest_is_told() {
        let mut commons = commons();
        let p: Arc<str> = "p".into();
        assert_eq!(commons.credential(at(0), &p, 2), Ok(0));
        rest(&mut commons, 0, 30, true);
        assert_eq!(commons.credential(at(0), &p, 2), Ok(1));
        rest(&mut commons, 1, 20, false);
        let soonest = Cooldown {
            until: at(20),
            supplied: false,
        };
        assert_eq!(commons.credential(at(0), &p, 2), Err(soonest));
        assert_eq!(commons.credential(at(20), &p, 2), Ok(1));
        assert_eq!(commons.credential(at(30), &p, 2), Ok(0));
    }

    #[test]
    fn a_longer_rest_is_not_shortened() {
        let mut commons = commons();
        let p: Arc<str> = "p".into();
        rest(&mut commons, 0, 30, true);
        rest(&mut commons, 0, 5, false);
        let longer = Cooldown {
            until: at(30),
            supplied: true,
        };
        assert_eq!(commons.credential(at(10), &p, 1), Err(longer));
    }

    #[test]
    fn a_provider_without_credentials_can_rest_too() {
        let mut commons = commons();
        let p: Arc<str> = "p".into();
        rest(&mut commons, 0, 30, true);
        assert!(commons.credential(at(0), &p, 0).is_err());
    }

    #[test]
    fn circuits_of_made_up_targets_are_bounded() {
        let mut commons = commons();
        for n in 0..MAX_CIRCUITS + 5 {
            commons.fail(at(0), &n.to_string().into(), None, &SETTINGS);
        }
        assert_eq!(commons.circuits.len(), MAX_CIRCUITS);
        commons.fail(at(30), &"late".into(), None, &SETTINGS);
        assert_eq!(commons.circuits.len(), 1, "those that were over made room");
    }

    #[test]
    fn each_domain_has_its_own_retry_budget() {
        let mut commons = commons();
        let (p, q): (Arc<str>, Arc<str>) = ("p".into(), "q".into());
        assert!(commons.take_retry(at(0), &p));
        assert!(!commons.take_retry(at(0), &p));
        assert!(commons.take_retry(at(0), &q));
        for _ in 0..10 {
            commons.first_attempt(at(0), &p);
        }
        assert!(
            commons.take_retry(at(0), &p),
            "ten first attempts earn a second retry"
        );
    }
}
