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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(phase: Phase, block: usize, target: usize) -> Place {
        Place {
            phase,
            block,
            target,
        }
    }

    #[test]
    fn a_place_is_a_phase_a_block_and_a_target() {
        let here = place(Phase::Text, 1, 0);
        for other in [
            place(Phase::Reasoning, 1, 0),
            place(Phase::Text, 2, 0),
            place(Phase::Text, 1, 1),
        ] {
            let mut same_place = SamePlace::default();
            for place in [here, here, other, here, here] {
                assert!(!same_place.failed(Class::Stall, place));
            }
            assert!(same_place.failed(Class::Stall, here));
        }
    }

    #[test]
    fn two_stalls_in_a_row_double_the_windows_wherever_they_were_and_for_good() {
        let mut same_place = SamePlace::default();
        same_place.failed(Class::Stall, place(Phase::Text, 0, 0));
        same_place.failed(Class::Transport, place(Phase::Text, 0, 0));
        same_place.failed(Class::Stall, place(Phase::Text, 0, 0));
        assert_eq!(same_place.factor(), 1);
        same_place.failed(Class::Stall, place(Phase::Text, 0, 1));
        assert_eq!(same_place.factor(), 2);
        same_place.failed(Class::Transport, place(Phase::Text, 0, 0));
        same_place.failed(Class::Stall, place(Phase::Text, 0, 0));
        assert_eq!(same_place.factor(), 2);
    }

    #[test]
    fn the_third_end_in_a_row_after_the_finish_reason_ends_recovery() {
        let late = place(Phase::AfterFinish, 0, 0);
        let mut same_place = SamePlace::default();
        assert!(!same_place.failed(Class::PrematureEof, late));
        assert!(!same_place.failed(Class::Transport, late));
        assert!(!same_place.failed(Class::PrematureEof, place(Phase::Text, 0, 0)));
        assert!(!same_place.failed(Class::PrematureEof, late));
        assert!(!same_place.failed(Class::PrematureEof, late));
        assert!(same_place.failed(Class::PrematureEof, late));
    }
}
