//! The sliding log of one budget: every send of the longest window, with its tokens.
//!
//! A lease that was granted but not sent yet counts in full, since it may be sent at any moment; from its
//! send on it counts for a window's length. So a window never holds more than its limit however long it
//! takes from the grant to the send: of any sends that arrive within a window, all that were granted before
//! the last one were, at that one's grant, unsent or sent within the window before it.
//!
//! Sends are told in order of time, so the log is a queue; each window remembers which entry is its
//! first, and its sum. A check costs what has left the windows since the last one.

use std::collections::VecDeque;

use super::{
    Micros,
    acquire::Ahead,
    settings::{Measure, WindowLimit},
    weights::Weights,
};

/// One send, or tokens that came on top of one.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Micros,
    weights: Weights,
    /// 1 for a send, 0 for what came on top of one.
    requests: u64,
}

impl Entry {
    fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => self.requests,
            _ => self.weights.of(measure),
        }
    }
}

/// A limit, and how much of it is used.
#[derive(Clone, Debug)]
struct Window {
    limit: WindowLimit,
    /// The number of the first entry inside.
    first: u64,
    /// Of all entries inside.
    sum: u64,
}

/// The log of one budget.
#[derive(Clone, Debug)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
    /// The number of the entry at the front.
    front: u64,
    windows: Vec<Window>,
    margin: Micros,
    /// Of leases that were granted and not sent: how much, by measure.
    unsent: [u64; 3],
}

/// Why a send does not fit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// The window that frees up last.
    pub(super) limit: WindowLimit,
    /// When it fits, if nothing else is granted and every lease is sent; unsent ones may be sent, or
    /// given back, at another time: then it is worth asking again.
    pub(super) until: Micros,
}

impl Log {
    pub(super) fn new(windows: &[WindowLimit], margin: Micros) -> Self {
        let windows = windows.iter().map(|limit| Window {
            limit: *limit,
            first: 0,
            sum: 0,
        });
        Self {
            entries: VecDeque::new(),
            front: 0,
            windows: windows.collect(),
            margin,
            unsent: [0; 3],
        }
    }

    /// The first limit that `weights` is more than, whatever else was sent.
    pub(super) fn never_fits(&self, weights: Weights) -> Option<WindowLimit> {
        let limits = self.windows.iter().map(|window| window.limit);
        limits
            .into_iter()
            .find(|limit| weights.of(limit.measure) > limit.limit)
    }

    /// Whether one more send fits now. `last_send_by` is when the last unsent lease must have been sent.
    pub(super) fn check(
        &mut self,
        now: Micros,
        weights: Weights,
        last_send_by: Micros,
    ) -> Result<(), Full> {
        self.evict(now);
        let mut full: Option<Full> = None;
        for window in &self.windows {
            let measure = window.limit.measure;
            let used = window.sum + self.unsent[measure as usize];
            let Some(excess) = (used + weights.of(measure))
                .checked_sub(window.limit.limit)
                .filter(|excess| *excess > 0)
            else {
                continue;
            };
            let until = self.frees(window, excess, last_send_by).max(now + 1);
            if full.is_none_or(|other| other.until < until) {
                full = Some(Full {
                    limit: window.limit,
                    until,
                });
            }
        }
        full.map_or(Ok(()), Err)
    }

    /// When `excess` will have left `window`.
    fn frees(&self, window: &Window, excess: u64, last_send_by: Micros) -> Micros {
        let length = window.limit.window + self.margin;
        let from = (window.first - self.front) as usize;
        let measure = window.limit.measure;
        let mut left = excess;
        let mut unsent = self.unsent[measure as usize];
        for entry in self.entries.range(from..) {
            if entry.at > last_send_by {
                left = left.saturating_sub(std::mem::take(&mut unsent));
                if left == 0 {
                    return last_send_by + length;
                }
            }
            left = left.saturating_sub(entry.of(measure));
            if left == 0 {
                return entry.at + length;
            }
        }
        last_send_by + length
    }

    /// A lower bound of when `weights` fit after those `ahead`, whatever becomes of unsent leases.
    pub(super) fn earliest(&mut self, now: Micros, weights: Weights, ahead: Ahead) -> Micros {
        self.evict(now);
        let mut earliest = now;
        for window in &self.windows {
            let WindowLimit { measure, limit, .. } = window.limit;
            let length = window.limit.window + self.margin;
            let need = ahead.of(measure).saturating_add(weights.of(measure));
            // What is more than a whole window waits until whole windows have been sent.
            let rounds = match need.checked_sub(limit) {
                Some(excess) if excess > 0 && limit == 0 => return Micros::MAX,
                Some(excess) if excess > 0 => excess.div_ceil(limit),
                _ => 0,
            };
            let first = need - rounds * limit;
            let mut left = window.sum.saturating_add(first).saturating_sub(limit);
            let mut at = now;
            let from = (window.first - self.front) as usize;
            for entry in self.entries.range(from..) {
                if left == 0 {
                    break;
                }
                left = left.saturating_sub(entry.of(measure));
                at = entry.at + length;
            }
            earliest = earliest.max(at.saturating_add(rounds.saturating_mul(length)));
        }
        earliest
    }

    /// Whether the send `number` still counts in every window.
    pub(super) fn counts(&mut self, now: Micros, number: u64) -> bool {
        self.evict(now);
        self.windows.iter().all(|window| number >= window.first)
    }

    /// The send `number` did not happen: its lease counts as unsent again.
    pub(super) fn unsend(&mut self, number: u64, weights: Weights) {
        self.lower(number, Weights::default());
        let index = number.checked_sub(self.front);
        let entry = index.and_then(|index| self.entries.get_mut(index as usize));
        if let Some(entry) = entry {
            let requests = std::mem::take(&mut entry.requests);
            for window in &mut self.windows {
                if number >= window.first && window.limit.measure == Measure::Requests {
                    window.sum -= requests;
                }
            }
        }
        self.grant(weights);
    }

    /// A lease was granted.
    pub(super) fn grant(&mut self, weights: Weights) {
        for measure in Measure::ALL {
            self.unsent[measure as usize] += weights.of(measure);
        }
    }

    /// A granted lease will never be sent.
    pub(super) fn give_back(&mut self, weights: Weights) {
        for measure in Measure::ALL {
            let unsent = &mut self.unsent[measure as usize];
            *unsent = unsent.saturating_sub(weights.of(measure));
        }
    }

    /// A granted lease was sent; the number of its entry.
    pub(super) fn sent(&mut self, at: Micros, weights: Weights) -> u64 {
        self.give_back(weights);
        self.push(at, weights, 1)
    }

    fn push(&mut self, at: Micros, weights: Weights, requests: u64) -> u64 {
        let at = self.entries.back().map_or(at, |last| last.at.max(at));
        let entry = Entry {
            at,
            weights,
            requests,
        };
        for window in &mut self.windows {
            window.sum += entry.of(window.limit.measure);
        }
        self.entries.push_back(entry);
        self.front + self.entries.len() as u64 - 1
    }

    /// What was sent as `number` took only `weights`.
    pub(super) fn lower(&mut self, number: u64, weights: Weights) {
        let index = number.checked_sub(self.front);
        let entry = index.and_then(|index| self.entries.get_mut(index as usize));
        let Some(entry) = entry else { return };
        let before = *entry;
        entry.weights = weights;
        for window in &mut self.windows {
            if number >= window.first {
                let measure = window.limit.measure;
                window.sum -= before.of(measure) - entry.of(measure);
            }
        }
    }

    /// Tokens on top of what was reserved.
    pub(super) fn overrun(&mut self, at: Micros, weights: Weights) {
        self.push(at, weights, 0);
    }

    /// Lets go of what has left its windows.
    fn evict(&mut self, now: Micros) {
        let end = self.front + self.entries.len() as u64;
        let mut oldest = end;
        for window in &mut self.windows {
            let length = window.limit.window + self.margin;
            while let Some(entry) = self.entries.get((window.first - self.front) as usize)
                && entry.at + length <= now
            {
                window.sum -= entry.of(window.limit.measure);
                window.first += 1;
            }
            oldest = oldest.min(window.first);
        }
        let gone = (oldest - self.front) as usize;
        self.entries.drain(..gone);
        self.front = oldest;
    }

    /// Of leases that were granted and not sent: how much, by measure.
    pub(super) fn unsent(&self) -> [u64; 3] {
        self.unsent
    }

    /// How many sends are remembered.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How much of each window is used, unsent leases included.
    pub(super) fn used(&mut self, now: Micros) -> impl Iterator<Item = (WindowLimit, u64)> {
        self.evict(now);
        let unsent = self.unsent;
        self.windows.iter().map(move |window| {
            (
                window.limit,
                window.sum + unsent[window.limit.measure as usize],
            )
        })
    }
}
