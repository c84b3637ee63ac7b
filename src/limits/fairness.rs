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

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::Arc,
};

use super::{BudgetId, acquire::Ahead, weights::Weights};

/// Names a waiter; given in the order of asking, never twice.
pub type Ticket = u64;

/// Virtual time: microseconds of a budget's capacity, in 1024ths, over the weight.
type Tag = u128;

/// The unit of [`Tag`] in a microsecond, so that weights divide.
const FINE: Tag = 1024;

/// How many flows without waiters a domain remembers.
pub const REMEMBERED: usize = 1024;

/// How many lanes are looked at to tell how much is ahead of one waiter.
const LANES_LOOKED_AT: usize = 64;

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
    mark: Ahead,
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

#[derive(Debug, Default)]
struct Domain {
    /// The tag that was served last.
    clock: Tag,
    flows: BTreeMap<Arc<str>, Flow>,
    /// Flows in which nobody waits, and which are ahead of the clock.
    idle: BTreeSet<(Tag, Arc<str>)>,
    waiting: usize,
}

#[derive(Debug)]
struct Flow {
    start: Tag,
    weight: u32,
    sets: Vec<SetKey>,
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
    entered: Ahead,
    left: Ahead,
    /// The cost of those inside.
    backlog: u64,
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
        let tag = domain.map_or(0, |domain| {
            let start = domain.flows.get(line.flow).map_or(0, |flow| flow.start);
            start.max(domain.clock)
        });
        Some(Key { tag, ticket })
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
        let clock = domain.clock;
        let (name, flow) = domain.flow(line);
        flow.start = flow.start.max(clock);
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
        lane.entered = plus(lane.entered, weights);
        lane.backlog = lane.backlog.saturating_add(cost);
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
            lane.entered = minus(lane.entered, weights);
        } else {
            lane.left = plus(lane.left, weights);
        }
        lane.backlog = lane.backlog.saturating_sub(place.cost);
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
        let flow = self.domains.get(&place.domain);
        let flow = flow.and_then(|domain| domain.flows.get(&place.flow));
        let Some(weight) = flow.map(|flow| flow.weight) else {
            return;
        };
        let line = Line {
            domain: place.domain,
            flow: &place.flow,
            weight,
        };
        self.charge(line, place.cost);
    }

    /// Begins a round over all sets, first come first.
    pub(super) fn round(&self) -> Round {
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

    /// A lower bound of what is granted of `budget` before `ticket`.
    pub(super) fn ahead(&self, place: &Place, ticket: Ticket, budget: BudgetId) -> Ahead {
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

    /// Whether nobody waits, and nothing is kept of anybody.
    pub(super) fn is_empty(&self) -> bool {
        self.domains.is_empty() && self.sets.is_empty()
    }
}

impl Domain {
    fn flow(&mut self, line: Line<'_>) -> (Arc<str>, &mut Flow) {
        let name = match self.flows.get_key_value(line.flow) {
            Some((name, _)) => Arc::clone(name),
            None => line.flow.into(),
        };
        let clock = self.clock;
        let flow = self.flows.entry(Arc::clone(&name));
        let flow = flow.or_insert_with(|| Flow {
            start: clock,
            weight: 1,
            sets: Vec::new(),
        });
        flow.weight = line.weight.max(1);
        if flow.sets.is_empty() {
            self.idle.remove(&(flow.start, Arc::clone(&name)));
        }
        (name, flow)
    }

    /// Nobody of `flow` waits for `set` any more.
    fn empty(&mut self, name: &Arc<str>, set: &SetKey) {
        let Some(flow) = self.flows.get_mut(name) else {
            return;
        };
        flow.sets.retain(|other| other != set);
        if flow.sets.is_empty() {
            let start = flow.start;
            self.remember(Arc::clone(name), start);
            self.forget();
        }
    }

    fn remember(&mut self, name: Arc<str>, start: Tag) {
        self.idle.insert((start, name));
    }

    /// Lets go of idle flows that the clock has caught up with, and of those nearest to it if there are
    /// too many.
    fn forget(&mut self) {
        while let Some((start, _)) = self.idle.first()
            && (*start <= self.clock || self.idle.len() > REMEMBERED)
            && let Some((_, name)) = self.idle.pop_first()
        {
            self.flows.remove(&name);
        }
    }
}

/// The first of each set of a domain, lowest first.
type Fronts = BinaryHeap<Reverse<(Key, SetKey)>>;

/// A round over all sets. Grants made meanwhile only move tags on, so that what is at the front is looked
/// at again and put back if it has moved.
pub(super) struct Round {
    domains: Vec<(BudgetId, Fronts)>,
}

impl Round {
    /// The next set to look at, and who is its first. It comes again only after [`Round::again`].
    pub(super) fn next(&mut self, queue: &Queue) -> Option<(SetKey, Key)> {
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
    pub(super) fn again(&mut self, queue: &Queue, key: &SetKey) {
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

fn plus(sum: Ahead, weights: Weights) -> Ahead {
    let one = Ahead {
        requests: 1,
        tokens: weights,
    };
    add(sum, one, 1, 1)
}

fn minus(sum: Ahead, weights: Weights) -> Ahead {
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
