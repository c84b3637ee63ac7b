//! PURE, but for who is told of a cut. The leases of shared budgets that this pod holds, what is still to be
//! told of each, and (`fence`) when its send has to be cut.
//!
//! A lease has one record, from its grant until its end was told. What is to be told is coalesced there: the
//! last of *left* and *stayed*, whether the answer has begun, and the end. One of them is told at a time,
//! in this order, so that the engine hears of a lease what happened in the order in which it did.

mod fence;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use self::fence::Cut;
pub(super) use self::fence::Cuts;
use crate::{
    budgets::shared::{Heard, Id},
    limits::{BudgetId, Weights},
};

/// How many leases may be ended and untold. The oldest of more are dropped: they end by themselves.
const MOST_ENDED: usize = 10_000;

/// All leases that are held, or ended and untold. Times are since the clock's origin.
#[derive(Debug)]
pub(super) struct Book {
    /// How long a lease lives without being renewed.
    life: Duration,
    /// How long after it was surely prolonged a send may run; `None`: for ever.
    fence: Option<Duration>,
    leases: HashMap<Id, Record>,
    /// Leases of which something is to be told, and nothing is being told.
    queue: VecDeque<Id>,
    /// Those that are ended, in order.
    ended: BTreeMap<u64, Id>,
    next_end: u64,
    /// What was counted.
    pub(super) counts: Counts,
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Sends that were cut.
    pub(super) cut: u64,
    /// Ends that were never told.
    pub(super) dropped: u64,
}

#[derive(Debug)]
struct Record {
    /// The shared budgets it takes part of.
    budgets: Box<[BudgetId]>,
    /// Whether a limit of sends at a time is among theirs.
    is_fenced: bool,
    /// Since when at least the engine counts its life.
    sure: Duration,
    /// How often it left or stayed: it is out while that is odd.
    turns: u64,
    /// Of these, what the engine has heard.
    told: u64,
    /// Whether the begin of its answer is to be told.
    answered: bool,
    end: Option<(u64, Duration, End)>,
    is_queued: bool,
    is_busy: bool,
    /// Whether the engine let go of it.
    is_over: bool,
    cut: Cut,
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The send took so much.
    Settle(Weights),
    /// It was not sent, or nothing is known of what it took.
    Release,
}

/// What is to be told of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// That it left, or stayed, this often.
    Turn(u64),
    /// That its answer has begun.
    Answered,
    /// That it is over.
    End(End),
}

impl Book {
    pub(super) fn new(life: Duration, fence: Option<Duration>) -> Self {
        Self {
            life,
            fence,
            leases: HashMap::new(),
            queue: VecDeque::new(),
            ended: BTreeMap::new(),
            next_end: 0,
            counts: Counts::default(),
        }
    }

    /// A lease was granted; `asked` is when it was asked for.
    pub(super) fn granted(
        &mut self,
        id: Id,
        budgets: Vec<BudgetId>,
        is_fenced: bool,
        asked: Duration,
    ) {
        // Asked for again, it is the same.
        self.leases.entry(id).or_insert_with(|| Record {
            budgets: budgets.into(),
            is_fenced,
            sure: asked,
            turns: 0,
            told: 0,
            answered: false,
            end: None,
            is_queued: false,
            is_busy: false,
            is_over: false,
            cut: Cut::Unwatched,
        });
    }

    /// Whether it may leave as far as its life allows.
    pub(super) fn may_leave(&self, now: Duration, id: Id) -> bool {
        let Some(record) = self.leases.get(&id) else {
            return false;
        };
        let in_time = (self.fence_of(record)).is_none_or(|until| now < until);
        record.end.is_none() && in_time && !matches!(record.cut, Cut::Told)
    }

    /// It left.
    pub(super) fn left(&mut self, id: Id) {
        self.turn(id, false);
    }

    /// What left did not.
    pub(super) fn stayed(&mut self, id: Id) {
        self.turn(id, true);
    }

    fn turn(&mut self, id: Id, was_out: bool) {
        if let Some(record) = self.leases.get_mut(&id)
            && record.is_out() == was_out
            && record.end.is_none()
        {
            record.turns += 1;
            self.want(id);
        }
    }

    /// Its answer has begun.
    pub(super) fn answered(&mut self, id: Id) {
        if let Some(record) = self.leases.get_mut(&id)
            && record.end.is_none()
        {
            record.answered = true;
            self.want(id);
        }
    }

    /// It is over. Leases whose end will never be told are returned: they are to be let go.
    pub(super) fn end(&mut self, now: Duration, id: Id, end: End) -> Option<Id> {
        let record = self.leases.get_mut(&id)?;
        if record.end.is_some() {
            return None;
        }
        // Nobody watches what is over.
        record.cut = Cut::Unwatched;
        record.end = Some((self.next_end, now, end));
        self.ended.insert(self.next_end, id);
        self.next_end += 1;
        self.want(id);
        if self.ended.len() <= MOST_ENDED {
            return None;
        }
        let (_, oldest) = self.ended.pop_first()?;
        self.drop_untold(oldest)
    }

    /// Leases that ended a life ago, and will not be told any more: the engine let go of them.
    pub(super) fn outlived(&mut self, now: Duration) -> Vec<Id> {
        let mut outlived = Vec::new();
        while let Some(first) = self.ended.first_entry() {
            let record = self.leases.get(first.get());
            let ended = record.and_then(|record| record.end);
            if ended.is_some_and(|(_, at, _)| now < at + self.life) {
                break;
            }
            let id = first.remove();
            outlived.extend(self.drop_untold(id));
        }
        outlived
    }

    fn drop_untold(&mut self, id: Id) -> Option<Id> {
        self.leases.remove(&id)?;
        self.counts.dropped += 1;
        if self.queue.len() > 2 * self.leases.len() + 64 {
            let leases = &self.leases;
            self.queue.retain(|id| leases.contains_key(id));
        }
        Some(id)
    }

    /// Puts it in line, if there is something to tell and nothing of it is being told.
    fn want(&mut self, id: Id) {
        if let Some(record) = self.leases.get_mut(&id)
            && !record.is_busy
            && !record.is_queued
            && record.step().is_some()
        {
            record.is_queued = true;
            self.queue.push_back(id);
        }
    }

    /// What is to be told next; to be confirmed by [`done`](Self::done).
    pub(super) fn next(&mut self) -> Option<(Id, Step)> {
        while let Some(id) = self.queue.pop_front() {
            // It may have been dropped.
            let Some(record) = self.leases.get_mut(&id) else {
                continue;
            };
            record.is_queued = false;
            if let Some(step) = record.step() {
                record.is_busy = true;
                return Some((id, step));
            }
        }
        None
    }

    /// What became of a step; `None`: it is not known to have been heard, and is to be told again. The
    /// budgets of a lease whose end was heard are returned, and sends to cut.
    pub(super) fn done(
        &mut self,
        id: Id,
        step: Step,
        heard: Option<Heard>,
    ) -> (Option<Box<[BudgetId]>>, Cuts) {
        let mut cuts = Cuts::default();
        let Some(record) = self.leases.get_mut(&id) else {
            return (None, cuts);
        };
        record.is_busy = false;
        match (step, heard) {
            (Step::End(_), Some(_)) => {
                if let Some((number, ..)) = record.end {
                    self.ended.remove(&number);
                }
                let over = self.leases.remove(&id);
                return (over.map(|record| record.budgets), cuts);
            }
            (Step::Turn(turns), Some(heard)) => {
                record.told = record.told.max(turns);
                match heard {
                    Heard::Done | Heard::Unknown => {}
                    Heard::Over => cuts = self.over(&[id]),
                    // It counts nowhere.
                    Heard::Refused => self.cut(id, &mut cuts),
                }
            }
            (Step::Answered, Some(_)) => record.answered = false,
            (_, None) => {}
        }
        self.want(id);
        (None, cuts)
    }

    /// Whether nothing is to be told.
    pub(super) fn is_told(&self) -> bool {
        let mut records = self.leases.values();
        records.all(|record| record.step().is_none())
    }

    /// How many are ended, and untold.
    pub(super) fn untold(&self) -> usize {
        self.ended.len()
    }
}

impl Record {
    fn is_out(&self) -> bool {
        self.turns % 2 == 1
    }

    /// Whether its send may run.
    fn runs(&self) -> bool {
        self.is_out() && self.end.is_none() && !matches!(self.cut, Cut::Told)
    }

    /// What is to be told next. How a send was settled says also that it left, and was answered.
    fn step(&self) -> Option<Step> {
        let end = self.end.map(|(_, _, end)| end);
        if let Some(end @ End::Settle(_)) = end {
            Some(Step::End(end))
        } else if self.told < self.turns {
            Some(Step::Turn(self.turns))
        } else if self.answered {
            Some(Step::Answered)
        } else {
            end.map(Step::End)
        }
    }
}
