//! The right to make one send, seen from the driver and from the door.

use std::time::Duration;

use crate::upstream::Permit;

/// What a send really took. What is not known stays as it was reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Not the provider's count.
    pub estimated: bool,
}

/// A lease, as the driver of its attempt has it. Dropped without being settled, it goes back if it was
/// not sent, and stays as it was reserved if it was.
#[derive(Debug)]
pub struct Lease {}

impl Lease {
    /// Of no budget.
    pub fn none() -> Self {
        Self {}
    }

    /// What the door asks before the first byte leaves; `None` where there is nothing to ask.
    pub fn permit(&self) -> Option<Box<dyn Permit>> {
        None
    }

    /// The send is over.
    pub fn settle(self, _spent: Spent) {}

    /// The provider refused for a rate limit and asked for this wait: all budgets of the lease that
    /// stand for that provider rest.
    pub fn penalise(&self, _wait: Duration) {}

    /// The provider says that nothing remains for so long: the same budgets wait for it.
    pub fn brake(&self, _wait: Duration) {}
}

/// A lease, as the door has it.
#[derive(Debug)]
pub struct Pass {}

impl Permit for Pass {
    fn leave(&mut self) -> bool {
        true
    }

    fn stayed(&mut self) {}
}
