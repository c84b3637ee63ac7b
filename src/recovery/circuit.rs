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
    /// The probe that runs.
    probing: Option<Probe>,
    probes: u64,
}

/// Names a probe, so that no other attempt ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe(u64);

impl Circuit {
    /// May an attempt go now?
    pub fn gate(&self, now: Time) -> Gate {
        match self.open_until {
            None => Gate::Closed,
            Some(until) if now < until || self.probing.is_some() => Gate::Open(until),
            Some(_) => Gate::Probe,
        }
    }

    /// An attempt is dispatched; while half open, and if no other runs, it is the probe.
    pub fn begin(&mut self, now: Time) -> Option<Probe> {
        if self.gate(now) != Gate::Probe {
            return None;
        }
        self.probes += 1;
        self.probing = Some(Probe(self.probes));
        self.probing
    }

    /// The target answered, with output or with a refusal that proves it alive.
    pub fn succeed(&mut self) {
        self.failures = 0;
        self.open_until = None;
        self.probing = None;
    }

    /// The target failed. What was dispatched before the circuit opened does not keep it open longer.
    pub fn fail(&mut self, now: Time, probe: Option<Probe>, settings: &CircuitSettings) {
        self.failures = self.failures.saturating_add(1);
        let probe_failed = probe.is_some() && probe == self.probing;
        if probe_failed {
            self.probing = None;
        }
        let opens = self.open_until.is_none() && self.failures >= settings.failures;
        if probe_failed || opens {
            self.open_until = Some(now + settings.open.max(Duration::from_millis(1)));
        }
    }

    /// An attempt ended without telling anything about the target (a cancel, for example): if it was
    /// the probe, another may go.
    pub fn release(&mut self, probe: Option<Probe>) {
        if probe.is_some() && probe == self.probing {
            self.probing = None;
        }
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
