//! Which sends must be cut, and when leases are to be renewed so that none is.

use std::{mem, time::Duration};

use tokio::sync::oneshot;

use super::{Book, Record};
use crate::budgets::{courier::watch::CutWatch, shared::Id};

/// Who is to be told that a send is cut.
#[derive(Debug)]
pub(super) enum Cut {
    Unwatched,
    Watched(oneshot::Sender<()>),
    /// It is cut.
    Told,
}

/// Sends to cut; told by [`Cuts::tell`], without a lock.
#[must_use]
#[derive(Debug, Default)]
pub(in crate::budgets::courier) struct Cuts(Vec<oneshot::Sender<()>>);

impl Cuts {
    pub(in crate::budgets::courier) fn tell(self) {
        for watch in self.0 {
            // Whoever watched may be gone.
            let _ = watch.send(());
        }
    }
}

impl Book {
    /// Tells whether the send of a lease must be cut; one watch a lease.
    pub(in crate::budgets::courier) fn watch(&mut self, id: Id) -> CutWatch {
        let (teller, watch) = oneshot::channel();
        match self.leases.get_mut(&id).map(|record| &mut record.cut) {
            // Told at once: the watch is in hand.
            Some(Cut::Told) => drop(teller.send(())),
            Some(cut) => *cut = Cut::Watched(teller),
            None => {}
        }
        CutWatch::new(watch)
    }

    pub(super) fn cut(&mut self, id: Id, cuts: &mut Cuts) {
        let record = self.leases.get_mut(&id);
        let Some(record) = record.filter(|record| record.end.is_none()) else {
            return;
        };
        if record.is_out() && !matches!(record.cut, Cut::Told) {
            self.counts.cut += 1;
        }
        if let Cut::Watched(teller) = mem::replace(&mut record.cut, Cut::Told) {
            cuts.0.push(teller);
        }
    }

    /// These live a whole life again, from `begun` on.
    pub(in crate::budgets::courier) fn prolonged(&mut self, ids: &[Id], begun: Duration) {
        for id in ids {
            if let Some(record) = self.leases.get_mut(id) {
                record.sure = record.sure.max(begun);
            }
        }
    }

    /// The engine let go of these. Their sends are cut, unless they take part of windows only.
    pub(in crate::budgets::courier) fn over(&mut self, ids: &[Id]) -> Cuts {
        let mut cuts = Cuts::default();
        for &id in ids {
            let Some(record) = self.leases.get_mut(&id) else {
                continue;
            };
            record.is_over = true;
            if self.fence.is_some() && record.is_fenced {
                self.cut(id, &mut cuts);
            }
        }
        cuts
    }

    /// Cuts what is out for longer than it surely lives; and when the next is due.
    pub(in crate::budgets::courier) fn fence(&mut self, now: Duration) -> (Cuts, Option<Duration>) {
        let (mut cuts, mut late, mut next) = (Cuts::default(), Vec::new(), None);
        for (id, record) in &self.leases {
            match self.due(record) {
                Some(due) if due <= now => late.push(*id),
                due => next = [next, due].into_iter().flatten().min(),
            }
        }
        for id in late {
            self.cut(id, &mut cuts);
        }
        (cuts, next)
    }

    /// When the send of a lease is to be cut, if it is not prolonged before.
    pub(in crate::budgets::courier) fn cut_at(&self, id: Id) -> Option<Duration> {
        self.leases.get(&id).and_then(|record| self.due(record))
    }

    /// When the first of those that are out is to be renewed: in time for another try.
    pub(in crate::budgets::courier) fn renew_by(&self) -> Option<Duration> {
        let all = self.leases.values();
        all.filter_map(|record| self.renewal(record)).min()
    }

    /// When the send of a lease is to be renewed.
    pub(in crate::budgets::courier) fn renew_at(&self, id: Id) -> Option<Duration> {
        let record = self.leases.get(&id)?;
        self.renewal(record)
    }

    fn renewal(&self, record: &Record) -> Option<Duration> {
        let lasts = self.fence.unwrap_or(self.life);
        (record.runs() && !record.is_over).then(|| record.sure + lasts * 3 / 4)
    }

    fn due(&self, record: &Record) -> Option<Duration> {
        self.fence_of(record).filter(|_| record.runs())
    }

    pub(super) fn fence_of(&self, record: &Record) -> Option<Duration> {
        let fence = self.fence.filter(|_| record.is_fenced)?;
        Some(record.sure + fence)
    }
}
