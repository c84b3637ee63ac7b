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

/// The most tokens that one send is taken for, so that no sum overflows. Fixed.
const MAX_TOKENS: u64 = 1 << 40;

impl Weights {
    /// Bounded: no window has room for more.
    pub(super) fn bounded(self) -> Self {
        Self {
            input_tokens: self.input_tokens.min(MAX_TOKENS),
            output_tokens: self.output_tokens.min(MAX_TOKENS),
        }
    }

    /// How much of `measure`.
    pub fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => 1,
            Measure::InputTokens => self.input_tokens,
            Measure::OutputTokens => self.output_tokens,
        }
    }

    /// What stays counted of this reservation when `actual` was used.
    pub(super) fn after_refund(&self, actual: Weights, refund: Refund) -> Weights {
        let lower = |reserved: u64, used: u64, refunded: bool| {
            if refunded {
                reserved.min(used)
            } else {
                reserved
            }
        };
        Weights {
            input_tokens: lower(
                self.input_tokens,
                actual.input_tokens,
                refund != Refund::Never,
            ),
            output_tokens: lower(
                self.output_tokens,
                actual.output_tokens,
                refund == Refund::All,
            ),
        }
    }

    /// By how much `actual` is more than this.
    pub(super) fn overrun(&self, actual: Weights) -> Weights {
        Weights {
            input_tokens: actual.input_tokens.saturating_sub(self.input_tokens),
            output_tokens: actual.output_tokens.saturating_sub(self.output_tokens),
        }
    }

    /// Whether it is no token at all.
    pub(super) fn is_zero(&self) -> bool {
        *self == Weights::default()
    }
}
