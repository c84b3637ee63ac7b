//! What generations share.

use std::{collections::HashMap, time::Duration};

use redrive::recovery::{Params, Time, scope::ScopeKey};

/// How long a scope outlives its last generation.
const LINGER: Duration = Duration::from_secs(60);

/// The account of it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Until when a credential of a target's provider must not be used, on the provider's word.
    pub rests: HashMap<(usize, usize), Time>,
    /// How often attempts at a target have failed, which may have opened its circuit.
    pub failures: HashMap<usize, u32>,
    scopes: HashMap<ScopeKey, Scope>,
}

/// One allowance and one deadline for several generations.
#[derive(Debug)]
pub struct Scope {
    pub left: u32,
    pub deadline: Time,
    running: usize,
    ends: Time,
}

impl Shared {
    /// A generation begins.
    pub fn join(&mut self, now: Time, params: &Params) {
        let Some(key) = &params.scope else { return };
        let left = params.policy.max_attempts;
        let deadline = now + params.policy.deadline;
        let known = self.scopes.get_mut(key);
        match known.filter(|scope| scope.running > 0 || now < scope.ends) {
            Some(scope) => {
                scope.left = scope.left.min(left);
                scope.deadline = scope.deadline.min(deadline);
                scope.running += 1;
            }
            None => {
                let scope = Scope {
                    left,
                    deadline,
                    running: 1,
                    ends: now,
                };
                self.scopes.insert(key.clone(), scope);
            }
        }
    }

    /// A generation has ended.
    pub fn leave(&mut self, now: Time, params: &Params) {
        if let Some(scope) = self.scope(params) {
            scope.running -= 1;
            scope.ends = now + LINGER;
        }
    }

    /// The scope of a generation that has one.
    pub fn scope(&mut self, params: &Params) -> Option<&mut Scope> {
        self.scopes.get_mut(params.scope.as_ref()?)
    }
}
