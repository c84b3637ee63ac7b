//! The rest that a provider asked for: a wait after a refusal, with one probe after it, and a brake while
//! the provider says that nothing remains.

use super::Micros;

/// What a provider asked for. The longest wait counts; nothing shortens one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    state: State,
    /// No headroom is left at the provider until then, by its own word.
    brake: Micros,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    /// Nothing is granted before this time, then one probe.
    Until(Micros),
    /// This lease is the probe, and under way.
    Probing(u64),
}

impl Rest {
    /// Until when nothing may be granted, if that is later than `now`.
    pub(super) fn until(&self, now: Micros) -> Option<Micros> {
        let until = match self.state {
            State::Until(until) => until.max(self.brake),
            State::None | State::Probing(_) => self.brake,
        };
        (now < until).then_some(until)
    }

    /// Whether the probe is under way.
    pub(super) fn is_probing(&self) -> bool {
        matches!(self.state, State::Probing(_))
    }

    /// `lease` was granted: the first one after a rest is its probe.
    pub(super) fn grant(&mut self, now: Micros, lease: u64) {
        if matches!(self.state, State::Until(until) if until <= now) {
            self.state = State::Probing(lease);
        }
    }

    /// `lease` is over. If it was the probe and it is not `known` how it went, it proved nothing: the next
    /// one is the probe. Whether it was.
    pub(super) fn over(&mut self, now: Micros, lease: u64, known: bool) -> bool {
        let probes = self.state == State::Probing(lease);
        if probes {
            self.state = if known {
                State::None
            } else {
                State::Until(now)
            };
        }
        probes
    }

    /// The provider asked not to be asked before `until`.
    pub(super) fn penalise(&mut self, until: Micros) {
        self.state = match self.state {
            State::Until(other) => State::Until(other.max(until)),
            State::None | State::Probing(_) => State::Until(until),
        };
    }

    /// The provider has no headroom left before `until`.
    pub(super) fn brake(&mut self, until: Micros) {
        self.brake = self.brake.max(until);
    }
}
