//! Ends recovery that keeps failing at the same place.

use crate::verdict::Class;

use super::timers::Phase;

/// Stalls or late ends in a row at one place that end recovery.
const LIMIT: u32 = 3;

/// Stalls in a row that double the windows.
const DOUBLES_AT: u32 = 2;

/// Where an attempt failed: the same phase, block and target make the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The phase.
    pub phase: Phase,
    /// The index of the newest block.
    pub block: usize,
    /// The index of the target.
    pub target: usize,
}

/// Remembers the run of like failures that an attempt's failure belongs to.
#[derive(Clone, Debug, Default)]
pub struct SamePlace {
    place: Option<Place>,
    stalls: u32,
    here: u32,
    late_ends: u32,
    doubled: bool,
}

impl SamePlace {
    /// An attempt failed; `true` if recovery is to end.
    pub fn failed(&mut self, class: Class, place: Place) -> bool {
        if class != Class::Stall {
            self.stalls = 0;
            self.here = 0;
            self.place = None;
        } else {
            self.stalls += 1;
            self.here = if self.place == Some(place) {
                self.here + 1
            } else {
                1
            };
            self.place = Some(place);
            self.doubled |= self.stalls >= DOUBLES_AT;
        }
        let late_end = matches!(class, Class::PrematureEof | Class::Transport)
            && place.phase == Phase::AfterFinish;
        self.late_ends = if late_end { self.late_ends + 1 } else { 0 };
        self.here >= LIMIT || self.late_ends >= LIMIT
    }

    /// By what the stall windows are multiplied, for the rest of the generation.
    pub fn factor(&self) -> u32 {
        if self.doubled { 2 } else { 1 }
    }
}
