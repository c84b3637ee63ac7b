//! Where attempts stall, and when that ends recovery.

use super::{op::Says, provider::Stream};
use redrive::verdict::Class;

/// Phase, block and target.
type Place = (&'static str, usize, usize);

/// The account of stalls in a row.
#[derive(Debug, Default)]
pub struct Places {
    phase: &'static str,
    block: usize,
    stalls: u32,
    here: Option<(Place, u32)>,
    /// Two stalls in a row double the windows for good.
    pub doubled: bool,
}

impl Places {
    /// An attempt was dispatched.
    pub fn dispatched(&mut self, block: usize) {
        self.phase = "before the first token";
        self.block = block;
    }

    /// The provider said something, which `stream` has noted.
    pub fn said(&mut self, says: Says, stream: &Stream) {
        let phase = match says {
            Says::Text(_) | Says::Refusal(_) | Says::Echo | Says::Anew => "text",
            Says::Reasoning(_) => "reasoning",
            Says::Call(_) | Says::Stray(_) | Says::Arguments(..) => "tool arguments",
            Says::Whole(..) if stream.filled => "tool arguments",
            Says::Finish(_) => "after the finish reason",
            _ => return,
        };
        if self.phase != "after the finish reason" {
            self.phase = phase;
        }
        self.block = stream.newest;
    }

    /// Whether a tool call or reasoning is open.
    pub fn is_inside_a_block(&self) -> bool {
        matches!(self.phase, "reasoning" | "tool arguments")
    }

    /// An attempt at `target` failed.
    pub fn failed(&mut self, class: Class, target: usize) {
        if class != Class::Stall {
            self.stalls = 0;
            self.here = None;
            return;
        }
        self.stalls += 1;
        self.doubled |= self.stalls >= 2;
        let place = (self.phase, self.block, target);
        let before = self.here.filter(|(known, _)| *known == place);
        self.here = Some((place, before.map_or(1, |(_, count)| count + 1)));
    }

    /// The third stall in a row at the same place ends recovery.
    pub fn are_over(&self) -> bool {
        self.here.is_some_and(|(_, count)| count >= 3)
    }
}
