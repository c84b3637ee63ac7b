//! Do we try again, when, and where: the whole answer.
//!
//! | class | where to next |
//! |---|---|
//! | transport, stall, premature_eof, corrupt, timeout_connect, timeout_provider, provider_internal | two tries per target, then the next, cyclically; no backoff on a first visit |
//! | rate_limited, overloaded | the same target while its wait is within `patience` and it was tried less than twice; else the next at once if there is one; else wait |
//! | quota_exhausted, auth, permission, not_found, redirect_refused, exceeds_limit, timeout_first_token, and whatever is not transient of the rows above | the next only |
//! | context_overflow | the next only, if its window is known to be larger |
//! | content_filtered, invalid_request, malformed_output, too_large, unclassified | nowhere |

mod denial;

use std::sync::Arc;

pub use denial::Denial;

use super::{
    Time, circuit,
    commons::Commons,
    settings::{Policy, Timers},
};
use crate::verdict::{Class, Failure, Origin};

/// Consecutive tries of one target before the next one is visited.
const TRIES_PER_VISIT: u32 = 2;

/// A target of the route, as far as recovery needs to know it.
#[derive(Clone, Debug)]
pub struct Target {
    /// `provider/model`; also names its circuit.
    pub name: Arc<str>,
    /// The provider; also names its credentials.
    pub provider: Arc<str>,
    /// What each credential's retry budget is called: the budget that stands for its provider's quota,
    /// else the provider. One entry where there are no credentials.
    pub domains: Vec<Arc<str>>,
    /// The model asked for.
    pub model: String,
    /// In tokens, where known.
    pub context_window: Option<u64>,
    /// Its timers.
    pub timers: Timers,
    /// How many credentials its provider has.
    pub credentials: usize,
    /// It can be asked to continue the text of a cut-off answer to this request.
    pub continues: bool,
    /// It stores its responses: one that is cut off can be read on.
    pub resumes: bool,
    /// Whether it is another than the route's first target.
    pub fallback: bool,
}

impl Target {
    /// The retry budget of a credential.
    pub fn domain(&self, credential: usize) -> &Arc<str> {
        self.domains.get(credential).unwrap_or(&self.provider)
    }
}

/// Where a class allows to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Two tries here, then the next.
    Rotate,
    /// Here while the wait is short, else the next.
    Patience,
    /// The next only.
    Next,
    /// The next only, if it has a larger context window.
    Larger,
    /// Nowhere.
    Nowhere,
}

/// The table of the module's head.
pub fn placement(failure: &Failure, policy: &Policy) -> Placement {
    use Class::*;
    if !matches!(failure.origin, Origin::Provider | Origin::Network) {
        return Placement::Nowhere;
    }
    match failure.class {
        TimeoutFirstToken if !policy.replay_first_token => Placement::Next,
        QuotaExhausted | Auth | Permission | NotFound | RedirectRefused | ExceedsLimit => {
            Placement::Next
        }
        ContextOverflow => Placement::Larger,
        RateLimited | Overloaded if failure.replayable() => Placement::Patience,
        _ if failure.replayable() => Placement::Rotate,
        RateLimited | Overloaded | ProviderInternal | TimeoutConnect | TimeoutFirstToken
        | TimeoutProvider | Stall | Transport | PrematureEof | Corrupt => Placement::Next,
        _ => Placement::Nowhere,
    }
}

/// Not before `until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// When it ends.
    pub until: Time,
    /// `true` if the provider asked for it, `false` if it is our own backoff.
    pub supplied: bool,
}

/// What a generation has done at one target.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// Attempts here that gave nothing to commit, which set the next backoff.
    pub failures: u32,
    /// This generation goes there no more.
    pub excluded: bool,
    /// This generation goes there again after it.
    pub hold: Hold,
    /// It has refused to continue this generation's text, or began anew instead.
    pub refused_to_continue: bool,
    /// A budget has held it back since it was tried last. Boxed: few are.
    denied: Option<Box<Denial>>,
}

/// Where the next attempt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// There, now.
    Now {
        /// Index of the target.
        target: usize,
        /// Index of the credential.
        credential: usize,
    },
    /// There, later.
    Later {
        /// Index of the target.
        target: usize,
        /// When, and on whose word.
        hold: Hold,
        /// A credential rests, rather than this generation backing off.
        cooldown: bool,
    },
    /// Nowhere.
    None,
}

/// A generation's way through the targets of its route.
#[derive(Clone, Debug)]
pub struct Itinerary {
    targets: Arc<[Target]>,
    tried: Vec<Tried>,
    current: usize,
    /// Consecutive tries of the current target.
    visit: u32,
}

impl Itinerary {
    /// Nothing was tried yet. Without `fallback` only the first target is ever tried.
    pub fn new(targets: Arc<[Target]>, fallback: bool) -> Self {
        let tried = (0..targets.len())
            .map(|index| Tried {
                excluded: index > 0 && !fallback,
                ..Tried::default()
            })
            .collect();
        Self {
            targets,
            tried,
            current: 0,
            visit: 0,
        }
    }

    /// The targets, in the route's order.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The target of the newest attempt.
    pub fn current(&self) -> Option<&Target> {
        self.targets.get(self.current)
    }

    /// The index of the newest attempt's target.
    pub fn current_index(&self) -> usize {
        self.current
    }

    /// How many attempts at the current target gave this generation nothing to commit.
    pub fn failures(&self) -> u32 {
        self.tried.get(self.current).map_or(0, |t| t.failures)
    }

    /// An attempt goes to `target`.
    pub fn visit(&mut self, target: usize) {
        if target != self.current {
            self.current = target;
            self.visit = 0;
        }
        self.visit += 1;
        if let Some(tried) = self.tried.get_mut(target) {
            tried.denied = None;
        }
    }

    /// The current target failed; this generation does not return before `hold` ends.
    pub fn failed(&mut self, hold: Option<Hold>) {
        if let Some(tried) = self.tried.get_mut(self.current) {
            tried.failures = tried.failures.saturating_add(1);
            if let Some(hold) = hold {
                tried.hold = hold;
            }
        }
    }

    /// The current target gave a whole answer, which was rejected: it counts for the next backoff, but
    /// what failed before is no run of tries any more.
    pub fn rejected(&mut self) {
        self.visit = 0;
        self.failed(None);
    }

    /// Where a generation starts.
    pub fn first(&self, now: Time, commons: &mut Commons) -> Pick {
        self.pick(now, self.cycle_from(self.current), commons)
    }

    /// Where to go now that `target`'s wait is over or its slot is held: there, unless it became
    /// unusable meanwhile.
    pub fn resume(&self, now: Time, target: usize, commons: &mut Commons) -> Pick {
        self.pick(now, self.cycle_from(target), commons)
    }

    /// Where to go after `failure` of the current target, whose hold has been noted.
    pub fn next(
        &mut self,
        now: Time,
        failure: &Failure,
        policy: &Policy,
        commons: &mut Commons,
    ) -> Pick {
        let here = self.current;
        match placement(failure, policy) {
            Placement::Nowhere => Pick::None,
            Placement::Next => {
                self.exclude(here);
                self.pick(now, self.cycle_from(here + 1), commons)
            }
            Placement::Larger => {
                self.exclude(here);
                self.exclude_no_larger_than(here);
                self.pick(now, self.cycle_from(here + 1), commons)
            }
            Placement::Rotate => {
                if self.visit < TRIES_PER_VISIT && !self.is_shut(now, here, commons) {
                    return self.pick(now, std::iter::once(here), commons);
                }
                self.pick(now, self.cycle_from(here + 1), commons)
            }
            Placement::Patience => {
                if self.is_shut(now, here, commons) {
                    return self.pick(now, self.cycle_from(here + 1), commons);
                }
                let same = self.pick(now, std::iter::once(here), commons);
                match same {
                    Pick::Now { .. } => same,
                    Pick::Later { hold, .. }
                        if self.visit < TRIES_PER_VISIT
                            && hold.until.since(now) <= policy.patience =>
                    {
                        same
                    }
                    _ => self.pick(now, self.cycle_from(here + 1), commons),
                }
            }
        }
    }

    /// The current target again and no other, after a failure that allows it.
    pub fn stay(&self, now: Time, commons: &mut Commons) -> Pick {
        self.pick(now, std::iter::once(self.current), commons)
    }

    /// The current target is not asked again.
    pub fn leave(&mut self) {
        self.exclude(self.current);
    }

    /// The current target has asked to be left alone until then.
    pub fn hold(&mut self, until: Time) {
        if let Some(tried) = self.tried.get_mut(self.current) {
            let hold = Hold {
                until,
                supplied: true,
            };
            tried.hold = if until > tried.hold.until {
                hold
            } else {
                tried.hold
            };
        }
    }

    /// The current target does not continue what this generation has.
    pub fn refused_to_continue(&mut self) {
        if let Some(tried) = self.tried.get_mut(self.current) {
            tried.refused_to_continue = true;
        }
    }

    /// Whether the current target may be asked to continue a text.
    pub fn continues(&self) -> bool {
        let refused = self
            .tried
            .get(self.current)
            .is_none_or(|tried| tried.refused_to_continue);
        !refused && self.current().is_some_and(|target| target.continues)
    }

    /// Where else to go if there is no time for what [`Self::next`] said.
    pub fn anywhere(&self, now: Time, commons: &mut Commons) -> Pick {
        self.pick(now, self.cycle_from(self.current + 1), commons)
    }

    /// The first of `order` that is usable now; else the one that returns first. A shut circuit only
    /// yields to another usable target: it never shuts the last one.
    fn pick(&self, now: Time, order: impl Iterator<Item = usize>, commons: &mut Commons) -> Pick {
        let mut shut = None;
        let mut later: Option<(usize, Hold, bool)> = None;
        for index in order {
            let (Some(target), Some(tried)) = (self.targets.get(index), self.tried.get(index))
            else {
                continue;
            };
            if tried.excluded {
                continue;
            }
            match commons.credential(now, &target.provider, target.credentials) {
                Ok(credential) if tried.hold.until <= now => {
                    let pick = Pick::Now {
                        target: index,
                        credential,
                    };
                    if !self.is_shut(now, index, commons) {
                        return pick;
                    }
                    shut.get_or_insert(pick);
                }
                credential => {
                    let rest = credential
                        .err()
                        .map(|c| Hold {
                            until: c.until,
                            supplied: c.supplied,
                        })
                        .filter(|rest| rest.until >= tried.hold.until);
                    let hold = rest.unwrap_or(tried.hold);
                    if later.is_none_or(|(_, soonest, _)| hold.until < soonest.until) {
                        later = Some((index, hold, rest.is_some()));
                    }
                }
            }
        }
        match (shut, later) {
            (Some(pick), _) => pick,
            (None, Some((target, hold, cooldown))) => Pick::Later {
                target,
                hold,
                cooldown,
            },
            (None, None) => Pick::None,
        }
    }

    fn is_shut(&self, now: Time, index: usize, commons: &Commons) -> bool {
        self.targets
            .get(index)
            .is_some_and(|t| matches!(commons.gate(now, &t.name), circuit::Gate::Open(_)))
    }

    /// All targets once, from `start` on.
    fn cycle_from(&self, start: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.targets.len().max(1);
        (0..count).map(move |step| (start + step) % count)
    }

    fn exclude(&mut self, index: usize) {
        if let Some(tried) = self.tried.get_mut(index) {
            tried.excluded = true;
        }
    }

    fn exclude_no_larger_than(&mut self, here: usize) {
        let window = |index: usize| self.targets.get(index).and_then(|t| t.context_window);
        let mine = window(here);
        let small: Vec<usize> = (0..self.targets.len())
            .filter(|&index| !matches!((mine, window(index)), (Some(a), Some(b)) if b > a))
            .collect();
        for index in small {
            self.exclude(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        recovery::settings::{Backoff, CircuitSettings, Replay},
        verdict::Stage,
    };

    const POLICY: Policy = Policy {
        max_attempts: 11,
        deadline: Duration::from_secs(600),
        patience: Duration::from_secs(5),
        replay: Replay::Restart,
        replay_first_token: false,
        backoff: Backoff {
            base: Duration::from_secs(1),
            max: Duration::from_secs(60),
            jitter: 0.0,
        },
        circuit: CircuitSettings {
            failures: 5,
            open: Duration::from_secs(30),
        },
    };

    fn of(class: Class) -> Failure {
        Failure::new(class, Origin::Provider, Stage::Response, "")
    }

    /// Every class of the contract.
    fn classes() -> impl Iterator<Item = Class> {
        (0..64).filter_map(|number| Class::try_from(number).ok())
    }

    fn expected(class: Class) -> Placement {
        use Class::*;
        match class {
            Transport | Stall | PrematureEof | Corrupt | TimeoutConnect | TimeoutProvider
            | ProviderInternal => Placement::Rotate,
            RateLimited | Overloaded => Placement::Patience,
            QuotaExhausted | Auth | Permission | NotFound | RedirectRefused | ExceedsLimit
            | TimeoutFirstToken => Placement::Next,
            ContextOverflow => Placement::Larger,
            _ => Placement::Nowhere,
        }
    }

    #[test]
    fn every_class_has_its_place_in_the_table() {
        for class in classes() {
            assert_eq!(placement(&of(class), &POLICY), expected(class), "{class:?}");
        }
    }

    #[test]
    fn a_transient_class_that_is_not_to_be_retried_moves_to_the_next_only() {
        for class in classes() {
            let mut failure = of(class);
            failure.retryable = false;
            let narrowed = match expected(class) {
                Placement::Rotate | Placement::Patience => Placement::Next,
                placement => placement,
            };
            assert_eq!(placement(&failure, &POLICY), narrowed, "{class:?}");
        }
    }

    #[test]
    fn what_we_or_a_client_caused_goes_nowhere() {
        for class in classes() {
            for origin in [Origin::Us, Origin::Client] {
                let failure = Failure {
                    origin,
                    ..of(class)
                };
                assert_eq!(
                    placement(&failure, &POLICY),
                    Placement::Nowhere,
                    "{class:?}"
                );
            }
        }
    }

    #[test]
    fn a_first_token_timeout_stays_where_the_route_says_so() {
        let policy = Policy {
            replay_first_token: true,
            ..POLICY
        };
        let failure = of(Class::TimeoutFirstToken);
        assert_eq!(placement(&failure, &policy), Placement::Rotate);
    }
}
