//! Whether this process takes new work, and what keeps it from doing so.
//!
//! Readiness never depends on a provider: else one provider's outage would take every pod out of its
//! service.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// A point in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// The configuration is read, the listeners are being bound.
    Starting = 0,
    /// New generations are taken.
    Ready = 1,
    /// No new generations; running ones finish.
    Draining = 2,
}

impl State {
    /// Its name, as `/readyz` answers it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// The state of the process; it only moves forward. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicU8>);

impl Readiness {
    /// Starting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves on to `state`, unless it is there or beyond: a drain is not taken back.
    pub fn advance(&self, state: State) {
        self.0.fetch_max(state as u8, Ordering::Release);
    }

    /// The state now.
    pub fn state(&self) -> State {
        match self.0.load(Ordering::Acquire) {
            0 => State::Starting,
            1 => State::Ready,
            _ => State::Draining,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_only_moves_forward() {
        let readiness = Readiness::new();
        assert_eq!(readiness.state(), State::Starting);
        readiness.advance(State::Ready);
        readiness.advance(State::Starting);
        assert_eq!(readiness.state(), State::Ready);
        readiness.clone().advance(State::Draining);
        readiness.advance(State::Ready);
        assert_eq!(readiness.state(), State::Draining);
    }
}
