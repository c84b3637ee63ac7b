//! One target's circuit: closed, open after a run of failures, half open for one probe.

use std::time::Duration;

use super::{Time, settings::CircuitSettings};
use crate::verdict::Class;

/// Whether a target may be tried, as far as its circuit knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Closed,
    /// One probe may go; [`Circuit::begin`] takes it.
    Probe,
    /// Not before the given time (or, if it is past, not before the running probe ends).
    Open(Time),
}

/// The circuit of one target, shared by all generations.
#[derive(Clone, Debug, Default)]
pub struct Circuit {
    failures: u32,
    open_until: Option<Time>,
    probing: bool,
}

impl Circuit {
    /// May an attempt go now?
    pub fn gate(&self, now: Time) -> Gate {
        match self.open_until {
            None => Gate::Closed,
            Some(until) if now < until || self.probing => Gate::Open(until),
            Some(_) => Gate::Probe,
        }
    }

    /// An attempt is dispatched; while half open it is the probe.
    pub fn begin(&mut self, now: Time) {
        if self.gate(now) == Gate::Probe {
            self.probing = true;
        }
    }

    /// The target answered, with output or with a refusal that proves it alive.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// The target failed.
    pub fn fail(&mut self, now: Time, settings: &CircuitSettings) {
        self.failures = self.failures.saturating_add(1);
        let was_open = self.open_until.is_some();
        if self.failures >= settings.failures || was_open {
            self.open_until = Some(now + settings.open.max(Duration::from_millis(1)));
        }
        self.probing = false;
    }

    /// An attempt ended without telling anything about the target (a cancel, for example).
    pub fn release(&mut self) {
        self.probing = false;
    }
}

/// Failures of the transport, timeout or 5xx kind.
pub fn counts(class: Class) -> bool {
    use Class::*;
    matches!(
        class,
        Transport
            | PrematureEof
            | Corrupt
            | Stall
            | TimeoutConnect
            | TimeoutFirstToken
            | TimeoutProvider
            | ProviderInternal
            | Overloaded
    )
}
