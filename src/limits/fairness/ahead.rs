//! How much is granted before somebody who waits.

use super::{FINE, Place, Queue, Tag, Ticket};
use crate::limits::{Ahead, BudgetId, Weights};

/// How many lanes are looked at to tell how much is ahead of one waiter.
const LANES_LOOKED_AT: usize = 64;

impl Queue {
    /// A lower bound of what is granted of `budget` before `ticket`.
    pub(in crate::limits) fn ahead(
        &self,
        place: &Place,
        ticket: Ticket,
        budget: BudgetId,
    ) -> Ahead {
        let mut sum = Ahead::default();
        let Some(domain) = self.domains.get(&place.domain) else {
            return sum;
        };
        let lane = self.sets.get(&place.set).map(|set| &set.lanes);
        let Some(lane) = lane.and_then(|lanes| lanes.get(&place.flow)) else {
            return sum;
        };
        let Some(own) = domain.flows.get(&place.flow) else {
            return sum;
        };
        sum = less(place.mark, lane.left);
        let before = lane.entered.requests.saturating_sub(lane.left.requests);
        // What its own flow has to be granted first, by the average of its lane.
        let cost = Tag::from(lane.backlog) * Tag::from(sum.requests) / Tag::from(before.max(1));
        let start = own.start.max(domain.clock) + cost * FINE / Tag::from(own.weight);
        let mut looked_at = 0;
        let sets = self.sets.values().zip(self.sets.keys());
        for (set, key) in
            sets.filter(|(set, key)| set.domain == place.domain && key.contains(&budget))
        {
            for (front, name) in &set.order {
                looked_at += 1;
                if front.tag > start || looked_at > LANES_LOOKED_AT {
                    break;
                }
                let (Some(lane), Some(flow)) = (set.lanes.get(name), domain.flows.get(name)) else {
                    continue;
                };
                if *name == place.flow {
                    let all_before = lane.queue.last().is_some_and(|last| *last < ticket);
                    if *key != place.set && all_before {
                        sum = add(sum, less(lane.entered, lane.left), 1, 1);
                    }
                    continue;
                }
                let share = (start - front.tag) * Tag::from(flow.weight) / FINE;
                let backlog = Tag::from(lane.backlog.max(1));
                let inside = less(lane.entered, lane.left);
                sum = add(sum, inside, share.min(backlog), backlog);
            }
        }
        sum
    }
}

pub(super) fn plus(sum: Ahead, weights: Weights) -> Ahead {
    let one = Ahead {
        requests: 1,
        tokens: weights,
    };
    add(sum, one, 1, 1)
}

pub(super) fn minus(sum: Ahead, weights: Weights) -> Ahead {
    let one = Ahead {
        requests: 1,
        tokens: weights,
    };
    less(sum, one)
}

/// `sum` and a part of `more`.
fn add(sum: Ahead, more: Ahead, part: Tag, of: Tag) -> Ahead {
    let part = |value: u64| u64::try_from(Tag::from(value) * part / of).unwrap_or(u64::MAX);
    Ahead {
        requests: sum.requests.saturating_add(part(more.requests)),
        tokens: Weights {
            input_tokens: (sum.tokens.input_tokens).saturating_add(part(more.tokens.input_tokens)),
            output_tokens: (sum.tokens.output_tokens)
                .saturating_add(part(more.tokens.output_tokens)),
        },
    }
}

fn less(sum: Ahead, gone: Ahead) -> Ahead {
    let tokens = sum.tokens;
    Ahead {
        requests: sum.requests.saturating_sub(gone.requests),
        tokens: Weights {
            input_tokens: (tokens.input_tokens).saturating_sub(gone.tokens.input_tokens),
            output_tokens: (tokens.output_tokens).saturating_sub(gone.tokens.output_tokens),
        },
    }
}
