//! Rounds over all who wait, in the order in which they are served.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use super::{Key, Queue, SetKey, Ticket};
use crate::limits::BudgetId;

impl Queue {
    /// Begins a round over all sets, first come first.
    pub(in crate::limits) fn round(&self) -> Round {
        let mut domains: BTreeMap<BudgetId, Fronts> = BTreeMap::new();
        for (key, set) in &self.sets {
            if let Some((front, _)) = set.order.first() {
                let entry = Reverse((*front, SetKey::clone(key)));
                domains.entry(set.domain).or_default().push(entry);
            }
        }
        Round {
            domains: domains.into_iter().collect(),
        }
    }
}

/// The first of each set of a domain, lowest first.
type Fronts = BinaryHeap<Reverse<(Key, SetKey)>>;

/// A round over all sets. Grants made meanwhile only move tags on, so that what is at the front is looked
/// at again and put back if it has moved.
pub(in crate::limits) struct Round {
    domains: Vec<(BudgetId, Fronts)>,
}

impl Round {
    /// The next set to look at, and who is its first. It comes again only after [`Round::again`].
    pub(in crate::limits) fn next(&mut self, queue: &Queue) -> Option<(SetKey, Key)> {
        let mut best: Option<(Ticket, usize)> = None;
        for (index, (_, heap)) in self.domains.iter_mut().enumerate() {
            settle(heap, queue);
            if let Some(Reverse((key, _))) = heap.peek()
                && best.is_none_or(|(ticket, _)| key.ticket < ticket)
            {
                best = Some((key.ticket, index));
            }
        }
        let (_, heap) = self.domains.get_mut(best?.1)?;
        heap.pop().map(|Reverse((key, set))| (set, key))
    }

    /// A set that was granted one is to be looked at again.
    pub(in crate::limits) fn again(&mut self, queue: &Queue, key: &SetKey) {
        let Some(set) = queue.sets.get(key) else {
            return;
        };
        let domain = self.domains.iter_mut().find(|(id, _)| *id == set.domain);
        if let (Some((_, heap)), Some((front, _))) = (domain, set.order.first()) {
            heap.push(Reverse((*front, SetKey::clone(key))));
        }
    }
}

/// Brings the front of `heap` up to date.
fn settle(heap: &mut Fronts, queue: &Queue) {
    while let Some(Reverse((key, set))) = heap.peek() {
        let front = queue.sets.get(set).and_then(|set| set.order.first());
        let front = front.map(|(front, _)| *front);
        if front == Some(*key) {
            return;
        }
        let set = SetKey::clone(set);
        heap.pop();
        if let Some(front) = front {
            heap.push(Reverse((front, set)));
        }
    }
}
