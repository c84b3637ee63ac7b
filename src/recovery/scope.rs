//! Scopes: named sets of generations that share one allowance and one deadline.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::Time;

/// How many scopes are kept. Fixed; beyond it new ones are refused.
pub const MAX_SCOPES: usize = 10_000;

/// How long a scope outlives its last generation. Fixed.
pub const LINGER: Duration = Duration::from_secs(60);

/// Names a scope: the identity of the listener (and its client) it came through, and the client's name
/// for it.
pub type ScopeKey = (String, String);

/// What a scope still allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Attempts that may still be dispatched.
    pub left: u32,
    /// Nothing is admitted after it.
    pub deadline: Time,
}

#[derive(Debug)]
struct Scope {
    allowance: Allowance,
    running: u32,
    /// Set while nothing runs.
    ends: Option<Time>,
}

/// All scopes of one sidecar.
#[derive(Debug, Default)]
pub struct Scopes {
    scopes: HashMap<ScopeKey, Scope>,
    ending: BTreeSet<(Time, ScopeKey)>,
}

/// There are [`MAX_SCOPES`] scopes already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_SCOPES} scopes are open already")]
pub struct TooManyScopes;

impl Scopes {
    /// A generation joins a scope, which it opens if it is new. A later one may only tighten: it gets
    /// the smaller allowance and the earlier deadline, and the scope keeps them.
    pub fn join(
        &mut self,
        now: Time,
        key: &ScopeKey,
        asked: Allowance,
    ) -> Result<Allowance, TooManyScopes> {
        self.expire(now);
        if let Some(scope) = self.scopes.get_mut(key) {
            if let Some(ends) = scope.ends.take() {
                self.ending.remove(&(ends, key.clone()));
            }
            scope.running += 1;
            scope.allowance.left = scope.allowance.left.min(asked.left);
            scope.allowance.deadline = scope.allowance.deadline.min(asked.deadline);
            return Ok(scope.allowance);
        }
        if self.scopes.len() >= MAX_SCOPES {
            return Err(TooManyScopes);
        }
        self.scopes.insert(
            key.clone(),
            Scope {
                allowance: asked,
                running: 1,
                ends: None,
            },
        );
        Ok(asked)
    }

    /// What is left of a scope that a generation has joined.
    pub fn allowance(&self, key: &ScopeKey) -> Option<Allowance> {
        self.scopes.get(key).map(|scope| scope.allowance)
    }

    /// Debits one attempt; `false` if nothing was left.
    pub fn debit(&mut self, key: &ScopeKey) -> bool {
        let Some(scope) = self.scopes.get_mut(key) else {
            return false;
        };
        let Some(left) = scope.allowance.left.checked_sub(1) else {
            return false;
        };
        scope.allowance.left = left;
        true
    }

    /// A generation of the scope has ended.
    pub fn leave(&mut self, now: Time, key: &ScopeKey) {
        let Some(scope) = self.scopes.get_mut(key) else {
            return;
        };
        scope.running = scope.running.saturating_sub(1);
        if scope.running == 0 {
            let ends = now + LINGER;
            scope.ends = Some(ends);
            self.ending.insert((ends, key.clone()));
        }
    }

    fn expire(&mut self, now: Time) {
        while let Some((ends, key)) = self.ending.first() {
            if *ends > now {
                break;
            }
            self.scopes.remove(key);
            self.ending.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_origin(Duration::from_secs(seconds))
    }

    fn key(name: &str) -> ScopeKey {
        ("tcp".into(), name.into())
    }

    fn asked(left: u32, deadline: u64) -> Allowance {
        Allowance {
            left,
            deadline: at(deadline),
        }
    }

    #[test]
    fn a_later_generation_shares_what_is_left_and_may_only_tighten() {
        let mut scopes = Scopes::default();
        let key = key("turn");
        assert_eq!(scopes.join(at(0), &key, asked(3, 600)), Ok(asked(3, 600)));
        assert!(scopes.debit(&key));
        assert_eq!(scopes.join(at(1), &key, asked(11, 900)), Ok(asked(2, 600)));
        assert_eq!(scopes.join(at(1), &key, asked(1, 100)), Ok(asked(1, 100)));
        assert!(scopes.debit(&key));
        assert!(!scopes.debit(&key), "a spent scope debits nothing");
    }

    #[test]
    fn a_scope_ends_sixty_seconds_after_its_last_generation() {
        let mut scopes = Scopes::default();
        let key = key("turn");
        scopes.join(at(0), &key, asked(1, 600)).ok();
        assert!(scopes.debit(&key));
        scopes.leave(at(10), &key);
        assert_eq!(
            scopes.join(at(69), &key, asked(5, 600)).map(|a| a.left),
            Ok(0)
        );
        scopes.leave(at(70), &key);
        assert_eq!(
            scopes.join(at(130), &key, asked(5, 900)).map(|a| a.left),
            Ok(5)
        );
    }

    #[test]
    fn the_ten_thousand_and_first_scope_is_refused() {
        let mut scopes = Scopes::default();
        for n in 0..MAX_SCOPES {
            assert!(
                scopes
                    .join(at(0), &key(&n.to_string()), asked(1, 1))
                    .is_ok()
            );
        }
        assert_eq!(
            scopes.join(at(0), &key("one more"), asked(1, 1)),
            Err(TooManyScopes)
        );
    }
}
