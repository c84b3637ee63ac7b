//! How much is granted before somebody who waits.

use super::{FINE, Lane, Place, Queue, Tag};
use crate::limits::{Ahead, Weights};

/// How many lanes are looked at to tell how much is ahead of one waiter.
const LANES_LOOKED_AT: usize = 64;

/// What several ask for, and its cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    all: Ahead,
    cost: u64,
}

impl Queue {
    /// A lower bound of what is granted of each budget of its set before whoever has this place, if nobody
    /// withdraws and no newcomer asks for other budgets of the domain.
    ///
    /// Only lanes of its own set count: others hold none of its budgets where something else stands in their
    /// way. In what order those of another flow are is not looked at, so that they count as if the dearest
    /// came first, and as the smallest.
    pub(in crate::limits) fn ahead(&self, place: &Place) -> Ahead {
        let (Some(domain), Some(set)) =
            (self.domains.get(&place.domain), self.sets.get(&place.set))
        else {
            return Ahead::default();
        };
        let (Some(lane), Some(flow)) = (set.lanes.get(&place.flow), domain.flows.get(&place.flow))
        else {
            return Ahead::default();
        };
        let own = place.mark.less(lane.left);
        let mut sum = own.all;
        // Each step of a tag is rounded down.
        let cost = Tag::from(own.cost) * FINE / Tag::from(flow.weight);
        let start = flow.start + cost.saturating_sub(own.all.requests.into());
        for (front, name) in set.order.iter().take(LANES_LOOKED_AT) {
            if front.tag >= start {
                break;
            }
            let (Some(lane), Some(flow)) = (set.lanes.get(name), domain.flows.get(name)) else {
                continue;
            };
            // What a flow is granted elsewhere moves it behind.
            if *name == place.flow || flow.sets.len() > 1 {
                continue;
            }
            let most = if domain.sets == 1 {
                let step = Tag::from(lane.dearest.max(1)) * FINE / Tag::from(flow.weight);
                let from = front.tag.max(domain.clock);
                start.saturating_sub(from).div_ceil(step.max(1)).max(1)
            } else {
                // The clock may jump to where another set is.
                1
            };
            sum = add(sum, lane.first(u64::try_from(most).unwrap_or(u64::MAX)));
        }
        sum
    }
}

impl Lane {
    /// What so many take at least.
    fn first(&self, most: u64) -> Ahead {
        let inside = self.entered.less(self.left).all;
        if most >= inside.requests {
            return inside;
        }
        let least = self.least.unwrap_or_default();
        Ahead {
            requests: most,
            tokens: Weights {
                input_tokens: least.input_tokens.saturating_mul(most),
                output_tokens: least.output_tokens.saturating_mul(most),
            },
        }
    }
}

impl Sum {
    /// And one more.
    pub(super) fn and(self, tokens: Weights, cost: u64) -> Self {
        let one = Ahead {
            requests: 1,
            tokens,
        };
        Self {
            all: add(self.all, one),
            cost: self.cost.saturating_add(cost),
        }
    }

    /// Without those that are gone.
    pub(super) fn less(self, gone: Self) -> Self {
        let (all, gone_all) = (self.all, gone.all);
        Self {
            all: Ahead {
                requests: all.requests.saturating_sub(gone_all.requests),
                tokens: Weights {
                    input_tokens: (all.tokens.input_tokens)
                        .saturating_sub(gone_all.tokens.input_tokens),
                    output_tokens: (all.tokens.output_tokens)
                        .saturating_sub(gone_all.tokens.output_tokens),
                },
            },
            cost: self.cost.saturating_sub(gone.cost),
        }
    }
}

/// The least of each.
pub(super) fn least_of(one: Weights, other: Weights) -> Weights {
    Weights {
        input_tokens: one.input_tokens.min(other.input_tokens),
        output_tokens: one.output_tokens.min(other.output_tokens),
    }
}

fn add(sum: Ahead, more: Ahead) -> Ahead {
    Ahead {
        requests: sum.requests.saturating_add(more.requests),
        tokens: Weights {
            input_tokens: (sum.tokens.input_tokens).saturating_add(more.tokens.input_tokens),
            output_tokens: (sum.tokens.output_tokens).saturating_add(more.tokens.output_tokens),
        },
    }
}
