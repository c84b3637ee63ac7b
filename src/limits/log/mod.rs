//! The sliding log of one budget: every send of the longest window, with its tokens.
//!
//! A lease that was granted but not sent yet counts in full, since it may be sent at any moment; from its
//! send on it counts for a window's length and the margin.
//!
//! # Why a window never holds more than its limit
//! Let a window of length T hold some arrivals, half-open, and let g be the time of the last grant among
//! them. All the others were granted before it, so at g each of them was either unsent, and counted, or
//! sent at some s. A send arrives at most the margin m after it left, and the one granted at g arrives at g
//! or later; so if s + m + T were no later than g, the two would not be in one window of length T. Hence
//! s + m + T > g, and the other was still counted at g. The grant at g found room for itself beside all that
//! counted: together they are no more than the limit. How long each took from its grant to its send does
//! not matter.
//!
//! Two rules keep this true where a send turns out not to have happened. It counts as unsent again only
//! if it counted in every window until now: else another may have been granted in its place. And a send
//! that is made again counts from the time it is made again.
//!
//! # Cost
//! Sends are told in order of time, so the log is a queue; each window remembers which entry is its
//! first, and its sum. A check costs what has left the windows since the last one; only a denial walks the
//! entries that have to leave. An entry takes 32 bytes, and there are at most as many as the log may
//! remember: where it is full, nothing is granted until the oldest entries leave.

mod window;

use std::collections::VecDeque;

use self::window::{Entry, Window};
use super::{
    Micros,
    settings::{Measure, Refund, WindowLimit},
    tally::Tally,
    weights::Weights,
};

/// The log of one budget.
#[derive(Clone, Debug)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    /// The number of the entry at the front.
    front: u64,
    windows: Vec<Window>,
    refund: Refund,
    /// Of leases that were granted and not sent: how much, by measure.
    unsent: [u128; 3],
    /// How many entries there may be.
    most: usize,
}

/// Why a send does not fit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// The window that frees up last.
    pub(super) limit: WindowLimit,
    /// When it fits, if nothing else is granted and every lease is sent at the last moment; unsent ones
    /// may be sent, or given back, before: then it is worth asking again.
    pub(super) until: Micros,
}

impl Log {
    pub(super) fn new(
        windows: &[WindowLimit],
        margin: Micros,
        refund: Refund,
        most: usize,
    ) -> Self {
        let windows = windows.iter().map(|limit| Window::new(*limit, margin));
        Self {
            entries: VecDeque::new(),
            front: 0,
            windows: windows.collect(),
            refund,
            unsent: [0; 3],
            most,
        }
    }

    /// The first limit that `weights` is more than, whatever else was sent.
    pub(super) fn never_fits(&self, weights: Weights) -> Option<WindowLimit> {
        let mut limits = self.windows.iter().map(|window| window.limit);
        limits.find(|limit| weights.of(limit.measure) > limit.limit)
    }

    /// Whether one more send fits now, beside `running` ones that are not over. `last_send_by` is when the
    /// last unsent lease must have been sent.
    pub(super) fn check(
        &mut self,
        now: Micros,
        weights: Weights,
        running: u64,
        last_send_by: Micros,
    ) -> Result<(), Full> {
        self.evict(now);
        let mut full = self.forgets(running, last_send_by);
        for window in &self.windows {
            let more = u128::from(weights.of(window.limit.measure));
            let unsent = self.unsent(window.limit.measure);
            let used = window.sum.sum + unsent;
            let excess = (used + more).saturating_sub(window.limit.limit.into());
            if more == 0 || excess == 0 {
                continue;
            }
            let until = window.frees(self.inside(window), excess, unsent, last_send_by);
            if full.is_none_or(|other| other.until < until) {
                let limit = window.limit;
                full = Some(Full { limit, until });
            }
        }
        let soonest = now.saturating_add(1);
        full.map_or(Ok(()), |full| {
            let until = full.until.max(soonest);
            Err(Full { until, ..full })
        })
    }

    /// Whether the log is too full for one more send. Each that is not over may add an entry for what it
    /// takes on top, and each unsent one its own.
    fn forgets(&self, running: u64, last_send_by: Micros) -> Option<Full> {
        let excess = self.reserved(running).saturating_add(2);
        let excess = excess.checked_sub(self.most).filter(|excess| *excess > 0)?;
        let longest = self.windows.iter().max_by_key(|window| window.length)?;
        let last = self.entries.get(excess - 1);
        let at = last.map_or(last_send_by, |entry| entry.at);
        Some(Full {
            limit: longest.limit,
            until: at.saturating_add(longest.length),
        })
    }

    /// How many entries there are, and may be without another grant.
    fn reserved(&self, running: u64) -> usize {
        let unsent = self.unsent[Measure::Requests as usize];
        let more = u128::from(running).saturating_add(unsent);
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        self.entries.len().saturating_add(more)
    }

    /// A lower bound of when `own` fits after those `ahead`, whatever unsent leases and running sends give
    /// back.
    pub(super) fn earliest(
        &mut self,
        now: Micros,
        own: impl Fn(Measure) -> u64,
        ahead: impl Fn(Measure) -> u64,
    ) -> Micros {
        self.evict(now);
        let bounds = self.windows.iter().map(|window| {
            let measure = window.limit.measure;
            let ahead = Tally::open(ahead(measure), measure, self.refund).firm;
            let need = ahead + u128::from(own(measure));
            window.earliest(self.inside(window), now, need, self.refund)
        });
        bounds.fold(now, Micros::max)
    }

    fn inside(&self, window: &Window) -> impl Iterator<Item = &Entry> {
        let end = self.entries.len();
        let from = self.index(window.first).map_or(end, |from| from.min(end));
        self.entries.range(from..)
    }

    fn index(&self, number: u64) -> Option<usize> {
        let index = number.checked_sub(self.front)?;
        usize::try_from(index).ok()
    }

    /// A lease was granted.
    pub(super) fn grant(&mut self, weights: Weights) {
        for measure in Measure::ALL {
            self.unsent[measure as usize] += u128::from(weights.of(measure));
        }
    }

    /// A granted lease will never be sent.
    pub(super) fn give_back(&mut self, weights: Weights) {
        for measure in Measure::ALL {
            let unsent = &mut self.unsent[measure as usize];
            *unsent = unsent.saturating_sub(weights.of(measure).into());
        }
    }

    /// A granted lease was sent; the number of its entry.
    pub(super) fn sent(&mut self, at: Micros, weights: Weights) -> u64 {
        self.give_back(weights);
        self.push(Entry {
            at,
            weights,
            send: true,
            open: true,
        })
    }

    fn push(&mut self, mut entry: Entry) -> u64 {
        if let Some(last) = self.entries.back() {
            entry.at = entry.at.max(last.at);
        }
        let counts = entry.counts(self.refund);
        for window in &mut self.windows {
            window.sum += counts[window.limit.measure as usize];
        }
        let number = self.front.saturating_add(self.entries.len() as u64);
        self.entries.push_back(entry);
        number
    }

    /// Puts what `change` makes of an entry in its place.
    fn replace(&mut self, number: u64, change: impl FnOnce(Entry) -> Entry) {
        let index = self.index(number);
        let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) else {
            return;
        };
        let before = *entry;
        *entry = change(before);
        let before = before.counts(self.refund);
        let after = entry.counts(self.refund);
        for window in &mut self.windows {
            if number >= window.first {
                window.sum -= before[window.limit.measure as usize];
                window.sum += after[window.limit.measure as usize];
            }
        }
    }

    /// The send `number` is over and stays counted with `weights`.
    pub(super) fn close(&mut self, number: u64, weights: Weights) {
        self.replace(number, |entry| Entry {
            weights,
            open: false,
            ..entry
        });
    }

    /// Whether the send `number` can be taken back: it counts in every window, and there is room for
    /// another entry.
    pub(super) fn recalls(&mut self, now: Micros, number: u64, running: u64) -> bool {
        self.evict(now);
        let counts = |window: &Window| number >= window.first;
        self.windows.iter().all(counts)
            && (self.windows.is_empty() || self.reserved(running) < self.most)
    }

    /// The send `number` did not happen.
    pub(super) fn take_back(&mut self, number: u64) {
        self.replace(number, |entry| Entry {
            weights: Weights::default(),
            send: false,
            open: false,
            ..entry
        });
    }

    /// Tokens on top of what was reserved.
    pub(super) fn overrun(&mut self, at: Micros, weights: Weights) {
        let measures = self.windows.iter().map(|window| window.limit.measure);
        let weights = weights.only(|measure| measures.clone().any(|of| of == measure));
        if weights.is_zero() {
            return;
        }
        self.push(Entry {
            at,
            weights,
            send: false,
            open: false,
        });
    }

    /// Lets go of what has left its windows.
    fn evict(&mut self, now: Micros) {
        let mut oldest = self.front.saturating_add(self.entries.len() as u64);
        for window in &mut self.windows {
            while let Some(index) = window.first.checked_sub(self.front)
                && let Ok(index) = usize::try_from(index)
                && let Some(entry) = self.entries.get(index)
                && now.saturating_sub(entry.at) >= window.length
            {
                window.sum -= entry.of(window.limit.measure, self.refund);
                window.first += 1;
            }
            oldest = oldest.min(window.first);
        }
        while self.front < oldest && self.entries.pop_front().is_some() {
            self.front += 1;
        }
        // A burst's memory does not outlive it.
        if self.entries.capacity() > 1_024 && self.entries.capacity() / 8 > self.entries.len() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    /// Of leases that were granted and not sent: how much.
    pub(super) fn unsent(&self, measure: Measure) -> u128 {
        self.unsent[measure as usize]
    }

    /// How many sends are remembered.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How much of each window is used, unsent leases included.
    pub(super) fn used(&mut self, now: Micros) -> impl Iterator<Item = (WindowLimit, u128)> {
        self.evict(now);
        let unsent = self.unsent;
        self.windows.iter().map(move |window| {
            let unsent = unsent[window.limit.measure as usize];
            (window.limit, window.sum.sum + unsent)
        })
    }
}
