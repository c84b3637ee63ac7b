//! Several generations, their shared state and their one clock.

use std::{collections::BTreeSet, time::Duration};

use redrive::recovery::{Params, Time};

use super::{op::Op, rules::Rules, shared::Shared, world::World};
use crate::fixtures::{self, at, commons_with};

/// Generations under watch.
pub struct Fleet {
    commons: fixtures::Shared,
    shared: Shared,
    now: Time,
    worlds: Vec<World>,
}

impl Fleet {
    /// Nobody yet; so many retries in ten seconds.
    pub fn new(retries: u32) -> Self {
        Self {
            commons: commons_with(retries),
            shared: Shared::default(),
            now: at(0),
            worlds: Vec::new(),
        }
    }

    /// How many generations there are.
    pub fn len(&self) -> usize {
        self.worlds.len()
    }

    /// Another generation; a turn gate judges its answers by `rules`, if there are any.
    pub fn join(&mut self, mut params: Params, rules: Option<Rules>) {
        params.gate = rules.map(|rules| Box::new(rules.gate()));
        params.caller_deadline = params
            .caller_deadline
            .map(|at| self.now + at.since_origin());
        let world = World::new(self.now, params, rules, &self.commons, &mut self.shared);
        self.worlds.push(world);
    }

    /// Starts the newest generation.
    pub fn start(&mut self, index: usize) {
        self.worlds[index].start(self.now, &self.commons, &mut self.shared);
    }

    /// Lets one random event happen to a generation.
    pub fn act(&mut self, index: usize, op: Op) {
        if let Op::Pass(millis) = op {
            self.pass(Duration::from_millis(millis));
        }
        if let Op::Jump(millis) = op {
            self.now = self.now + Duration::from_millis(millis);
        }
        self.worlds[index].act(self.now, op, &self.commons, &mut self.shared);
    }

    /// Time passes; each time-out is handed in at its time and must then be over.
    fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        loop {
            let due = self.worlds.iter().filter_map(World::due).min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            for world in &mut self.worlds {
                let mut again = 0;
                while world.due().is_some_and(|due| due <= self.now) {
                    world.timer(self.now, &self.commons, &mut self.shared);
                    again += 1;
                    assert!(again < 4, "a time-out that is due again and again");
                }
            }
        }
        self.now = end;
    }

    /// After everything: every generation ends, and whoever reads to the end is told once. What
    /// happened that a test would want to have happened.
    pub fn finish(mut self) -> BTreeSet<&'static str> {
        for world in &mut self.worlds {
            world.finish(self.now, &self.commons, &mut self.shared);
        }
        self.worlds
            .into_iter()
            .flat_map(|world| world.landmarks)
            .collect()
    }
}
