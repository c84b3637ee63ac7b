//! How much of a budget one send takes.

use super::settings::{Measure, Refund};

/// Tokens that one send takes; as a request it is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Of the prompt.
    pub input_tokens: u64,
    /// Of the answer.
    pub output_tokens: u64,
}

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

impl Weights {
    /// How much of `measure`.
    pub fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => 1,
            Measure::InputTokens => self.input_tokens,
            Measure::OutputTokens => self.output_tokens,
        }
    }

    /// What of this reservation was really taken, as far as `spent` tells.
    pub fn settled(self, spent: Spent) -> Weights {
        Weights {
            input_tokens: spent.input_tokens.unwrap_or(self.input_tokens),
            output_tokens: spent.output_tokens.unwrap_or(self.output_tokens),
        }
    }

    /// What stays counted of this reservation when `actual` was used.
    pub(super) fn after_refund(&self, actual: Weights, refund: Refund) -> Weights {
        let kept = |measure| {
            let (reserved, used) = (self.of(measure), actual.of(measure));
            if refund.gives_back(measure) {
                reserved.min(used)
            } else {
                reserved
            }
        };
        Weights {
            input_tokens: kept(Measure::InputTokens),
            output_tokens: kept(Measure::OutputTokens),
        }
    }

    /// By how much `actual` is more than this.
    pub(super) fn overrun(&self, actual: Weights) -> Weights {
        Weights {
            input_tokens: actual.input_tokens.saturating_sub(self.input_tokens),
            output_tokens: actual.output_tokens.saturating_sub(self.output_tokens),
        }
    }

    /// Its tokens that are `counted`.
    pub(super) fn only(&self, counted: impl Fn(Measure) -> bool) -> Weights {
        let of = |measure| {
            if counted(measure) {
                self.of(measure)
            } else {
                0
            }
        };
        Weights {
            input_tokens: of(Measure::InputTokens),
            output_tokens: of(Measure::OutputTokens),
        }
    }

    /// Whether it is no token at all.
    pub(super) fn is_zero(&self) -> bool {
        *self == Weights::default()
    }
}
