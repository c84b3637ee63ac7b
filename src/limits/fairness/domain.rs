//! A domain: its virtual clock, and its flows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Line, REMEMBERED, SetKey, Tag};

#[derive(Debug, Default)]
pub(super) struct Domain {
    /// The tag that was served last.
    pub(super) clock: Tag,
    pub(super) flows: BTreeMap<Arc<str>, Flow>,
    /// Flows in which nobody waits, and which are ahead of the clock.
    pub(super) idle: BTreeSet<(Tag, Arc<str>)>,
    pub(super) waiting: usize,
    /// How many sets somebody waits for.
    pub(super) sets: usize,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) start: Tag,
    pub(super) weight: u32,
    pub(super) sets: Vec<SetKey>,
}

impl Domain {
    pub(super) fn flow(&mut self, line: Line<'_>) -> (Arc<str>, &mut Flow) {
        let name = match self.flows.get_key_value(line.flow) {
            Some((name, _)) => Arc::clone(name),
            None => line.flow.into(),
        };
        let flow = self.flows.entry(Arc::clone(&name));
        let flow = flow.or_insert_with(|| Flow {
            start: 0,
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
    pub(super) fn empty(&mut self, name: &Arc<str>, set: &SetKey) {
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

    pub(super) fn remember(&mut self, name: Arc<str>, start: Tag) {
        self.idle.insert((start, name));
    }

    /// Lets go of idle flows that the clock has caught up with, and of those nearest to it if there are
    /// too many.
    pub(super) fn forget(&mut self) {
        while let Some((start, _)) = self.idle.first()
            && (*start <= self.clock || self.idle.len() > REMEMBERED)
            && let Some((_, name)) = self.idle.pop_first()
        {
            self.flows.remove(&name);
        }
    }
}
