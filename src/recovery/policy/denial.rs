//! Targets that a budget holds back.

use super::{Hold, Itinerary, Pick};
use crate::{recovery::Time, verdict::Failure};

/// A budget has no room for an attempt in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// When it has; never, where that is not known.
    pub until: Option<Time>,
    /// As the generation's verdict, if there is no other.
    pub failure: Failure,
}

impl Itinerary {
    /// A budget holds `target` back: this generation does not go there before it has room, nor before
    /// `returns`, when another of its credentials can be used; without either, never again.
    pub fn deny(&mut self, target: usize, denial: Denial, returns: Option<Time>) {
        let Some(tried) = self.tried.get_mut(target) else {
            return;
        };
        match [denial.until, returns].into_iter().flatten().min() {
            Some(until) => {
                tried.hold = Hold {
                    until,
                    supplied: true,
                };
            }
            None => tried.excluded = true,
        }
        tried.denied = Some(Box::new(denial));
    }

    /// Whether a budget is why the way on is no better than `pick`: it holds that target back, or one that
    /// is never gone to again for it.
    pub fn is_held_back(&self, pick: Pick) -> bool {
        let mut denials = self.tried.iter().map(|tried| tried.denied.as_deref());
        match pick {
            Pick::Now { .. } => false,
            Pick::Later { target, .. } => denials.nth(target).flatten().is_some(),
            Pick::None => denials.flatten().any(|denial| denial.until.is_none()),
        }
    }

    /// The denial that is over first.
    pub fn soonest_denial(&self) -> Option<&Denial> {
        let denials = self.tried.iter().filter_map(|t| t.denied.as_deref());
        denials.min_by_key(|denial| (denial.until.is_none(), denial.until))
    }
}
