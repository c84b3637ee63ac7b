//! The order of those who wait: weighted fair between flows, first come first served inside one.
//!
//! Start-time fair queueing. A *domain* is a budget that is shared fairly between *flows*, the values of a
//! label; it has a virtual clock. Each flow has a start tag: the virtual time at which its next send would
//! begin if it had its share all along. The lowest tag is served first; being served moves the tag on by
//! cost over weight and the clock to the tag. So a flow that asks for much only gets in its own way, and
//! one that was idle starts at the clock: it neither saved anything up nor has anything to make good. The
//! clock stands still for a flow that its own budgets hold up, which is why a tag from before counts as
//! the clock.
//!
//! A *lane* is a flow's waiters of one set of budgets, a *set* all lanes of those. What stands in the way
//! of one waiter of a set stands in the way of all behind it, so that a round over everybody costs one
//! look for each set and each grant, whatever the number of waiters.
//!
//! Between domains goes first whose first has waited longest.
//!
//! Lanes, sets and domains exist while somebody waits in them; a domain also remembers up to
//! [`REMEMBERED`] flows that are ahead of its clock, so that one which asks again after each grant is
//! not always new.

mod ahead;
mod domain;
mod round;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use self::{
    ahead::{Sum, least_of},
    domain::Domain,
};
use super::{BudgetId, Weights};

/// Names a waiter; given in the order of asking, never twice.
pub type Ticket = u64;

/// Virtual time: microseconds of a budget's capacity, in 1024ths, over the weight.
type Tag = u128;

/// The unit of [`Tag`] in a microsecond, so that weights divide.
const FINE: Tag = 1024;

/// How many flows without waiters a domain remembers.
pub const REMEMBERED: usize = 1024;

/// The budgets of a set, in the configuration's order.
pub(super) type SetKey = Arc<[BudgetId]>;

/// Whom a waiter stands in line with.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The budget that is shared fairly.
    pub domain: BudgetId,
    /// The value of the label.
    pub flow: &'a str,
    /// Its share, from 1.
    pub weight: u32,
}

/// A waiter's place in one lane.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) set: SetKey,
    pub(super) domain: BudgetId,
    flow: Arc<str>,
    /// Microseconds of the domain's capacity.
    cost: u64,
    /// What had ever entered the lane before it.
    mark: Sum,
}

/// Where somebody stands in a domain: lower is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    tag: Tag,
    ticket: Ticket,
}

impl Key {
    /// Who it is.
    pub(super) fn ticket(self) -> Ticket {
        self.ticket
    }
}

#[derive(Debug)]
struct Set {
    domain: BudgetId,
    /// The first of each lane.
    order: BTreeSet<(Key, Arc<str>)>,
    lanes: BTreeMap<Arc<str>, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    queue: BTreeSet<Ticket>,
    /// All that ever entered, and all that left again.
    entered: Sum,
    left: Sum,
    /// The most that one ever cost, and the least of each kind of token that one ever asked for.
    dearest: u64,
    least: Option<Weights>,
}

/// Everybody who waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    domains: BTreeMap<BudgetId, Domain>,
    sets: BTreeMap<SetKey, Set>,
}

impl Queue {
    /// Where a newcomer would stand in a lane in which nobody waits yet; `None` if somebody does.
    pub(super) fn front(&self, set: &[BudgetId], line: Line<'_>, ticket: Ticket) -> Option<Key> {
        let lane = self.sets.get(set).and_then(|set| set.lanes.get(line.flow));
        if lane.is_some() {
            return None;
        }
        let domain = self.domains.get(&line.domain);
        let tag = domain.map_or(0, |domain| match domain.flows.get(line.flow) {
            Some(flow) => flow.start,
            None => domain.clock,
        });
        Some(Key { tag, ticket })
    }

    /// Where `ticket`, the first of a lane of `set`, stands; `None` if that is in another domain.
    pub(super) fn key(&self, set: &SetKey, domain: BudgetId, ticket: Ticket) -> Option<Key> {
        let set = self.sets.get(set).filter(|set| set.domain == domain)?;
        let mut order = set.order.iter().map(|(key, _)| *key);
        order.find(|key| key.ticket == ticket)
    }

    /// `ticket` waits from now on, behind all others of its lane.
    pub(super) fn join(
        &mut self,
        set: &[BudgetId],
        line: Line<'_>,
        ticket: Ticket,
        weights: Weights,
        cost: u64,
    ) -> Place {
        let key = match self.sets.get_key_value(set) {
            Some((key, _)) => SetKey::clone(key),
            None => set.into(),
        };
        let domain = self.domains.entry(line.domain).or_default();
        domain.waiting += 1;
        if !self.sets.contains_key(&key) {
            domain.sets += 1;
        }
        let clock = domain.clock;
        let (name, flow) = domain.flow(line);
        if flow.sets.is_empty() {
            flow.start = flow.start.max(clock);
        }
        let set = self.sets.entry(SetKey::clone(&key)).or_insert_with(|| Set {
            domain: line.domain,
            order: BTreeSet::new(),
            lanes: BTreeMap::new(),
        });
        let lane = set.lanes.entry(Arc::clone(&name)).or_default();
        if lane.queue.is_empty() {
            let front = Key {
                tag: flow.start,
                ticket,
            };
            set.order.insert((front, Arc::clone(&name)));
            flow.sets.push(SetKey::clone(&key));
        }
        let mark = lane.entered;
        lane.queue.insert(ticket);
        lane.entered = lane.entered.and(weights, cost);
        lane.dearest = lane.dearest.max(cost);
        lane.least = Some(lane.least.map_or(weights, |least| least_of(least, weights)));
        Place {
            set: key,
            domain: line.domain,
            flow: name,
            cost,
            mark,
        }
    }

    /// `ticket` no longer waits there.
    pub(super) fn leave(&mut self, place: &Place, ticket: Ticket, weights: Weights) {
        let Some(domain) = self.domains.get_mut(&place.domain) else {
            return;
        };
        let Some(set) = self.sets.get_mut(&place.set) else {
            return;
        };
        let Some(lane) = set.lanes.get_mut(&place.flow) else {
            return;
        };
        let first = lane.queue.first().copied();
        let last = lane.queue.last().copied();
        if !lane.queue.remove(&ticket) {
            return;
        }
        if last == Some(ticket) {
            lane.entered = lane.entered.less(Sum::default().and(weights, place.cost));
        } else {
            lane.left = lane.left.and(weights, place.cost);
        }
        let next = lane.queue.first().copied();
        let start = domain.flows.get(&place.flow).map_or(0, |flow| flow.start);
        if let Some(first) = first.filter(|first| *first == ticket) {
            let old = Key {
                tag: start,
                ticket: first,
            };
            set.order.remove(&(old, Arc::clone(&place.flow)));
            if let Some(ticket) = next {
                let new = Key { tag: start, ticket };
                set.order.insert((new, Arc::clone(&place.flow)));
            }
        }
        if next.is_none() {
            set.lanes.remove(&place.flow);
            if set.lanes.is_empty() {
                self.sets.remove(&place.set);
                domain.sets -= 1;
            }
            domain.empty(&place.flow, &place.set);
        }
        domain.waiting -= 1;
        if domain.waiting == 0 {
            self.domains.remove(&place.domain);
        }
    }

    /// One of a flow was granted something of this cost. Where nobody waits, nobody is owed anything.
    pub(super) fn charge(&mut self, line: Line<'_>, cost: u64) {
        let Some(domain) = self.domains.get_mut(&line.domain) else {
            return;
        };
        let clock = domain.clock;
        let (name, flow) = domain.flow(line);
        let old = flow.start;
        let served = old.max(clock);
        let step = Tag::from(cost.max(1)) * FINE / Tag::from(flow.weight);
        flow.start = served + step.max(1);
        let new = flow.start;
        for set in &flow.sets {
            let Some(set) = self.sets.get_mut(set) else {
                continue;
            };
            let first = set.lanes.get(&name).and_then(|lane| lane.queue.first());
            let Some(&ticket) = first else { continue };
            set.order
                .remove(&(Key { tag: old, ticket }, Arc::clone(&name)));
            set.order
                .insert((Key { tag: new, ticket }, Arc::clone(&name)));
        }
        let waits = !flow.sets.is_empty();
        domain.clock = served;
        if !waits {
            domain.remember(name, new);
        }
        domain.forget();
    }

    /// [`Queue::charge`] for the flow of a place.
    pub(super) fn charge_place(&mut self, place: &Place) {
        let (line, _) = self.line_of(place);
        self.charge(line, place.cost);
    }

    /// Whom a place stands in line with, and whether others wait behind it there.
    pub(super) fn line_of<'a>(&self, place: &'a Place) -> (Line<'a>, bool) {
        let flow = self.domains.get(&place.domain);
        let flow = flow.and_then(|domain| domain.flows.get(&place.flow));
        let line = Line {
            domain: place.domain,
            flow: &place.flow,
            weight: flow.map_or(1, |flow| flow.weight),
        };
        let lane = self.sets.get(&place.set);
        let lane = lane.and_then(|set| set.lanes.get(&place.flow));
        (line, lane.is_some_and(|lane| lane.queue.len() > 1))
    }

    /// How many flows something is kept of.
    pub(super) fn flows(&self) -> usize {
        let domains = self.domains.values();
        domains.map(|domain| domain.flows.len()).sum()
    }

    /// Whether nobody waits, and nothing is kept of anybody.
    pub(super) fn is_empty(&self) -> bool {
        self.domains.is_empty() && self.sets.is_empty()
    }
}
