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

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: CircuitSettings = CircuitSettings {
        failures: 2,
        open: Duration::from_secs(30),
    };

    fn at(seconds: u64) -> Time {
        Time::from_origin(Duration::from_secs(seconds))
    }

    /// Opened at the origin.
    fn open() -> Circuit {
        let mut circuit = Circuit::default();
        circuit.fail(at(0), None, &SETTINGS);
        circuit.fail(at(0), None, &SETTINGS);
        circuit
    }

    #[test]
    fn a_run_of_failures_opens_and_an_answer_breaks_the_run() {
        let mut circuit = Circuit::default();
        circuit.fail(at(0), None, &SETTINGS);
        circuit.succeed();
        circuit.fail(at(0), None, &SETTINGS);
        assert_eq!(circuit.gate(at(0)), Gate::Closed);
        circuit.fail(at(0), None, &SETTINGS);
        assert_eq!(circuit.gate(at(0)), Gate::Open(at(30)));
    }

    #[test]
    fn half_open_lets_one_probe_through() {
        let mut circuit = open();
        assert_eq!(circuit.begin(at(29)), None);
        assert_eq!(circuit.gate(at(30)), Gate::Probe);
        assert!(circuit.begin(at(30)).is_some());
        assert_eq!(circuit.begin(at(31)), None);
        assert_eq!(circuit.gate(at(31)), Gate::Open(at(30)));
    }

    #[test]
    fn the_probe_decides() {
        let mut circuit = open();
        let probe = circuit.begin(at(30));
        circuit.fail(at(40), probe, &SETTINGS);
        assert_eq!(circuit.gate(at(40)), Gate::Open(at(70)));
        circuit.begin(at(70));
        circuit.succeed();
        assert_eq!(circuit.gate(at(70)), Gate::Closed);
    }

    #[test]
    fn attempts_from_before_neither_release_the_probe_nor_keep_the_circuit_open() {
        let mut circuit = open();
        let probe = circuit.begin(at(30));
        circuit.release(None);
        circuit.fail(at(35), None, &SETTINGS);
        assert_eq!(circuit.gate(at(36)), Gate::Open(at(30)));
        circuit.release(probe);
        assert_eq!(circuit.gate(at(36)), Gate::Probe);
    }

    #[test]
    fn an_earlier_probe_does_not_end_a_later_one() {
        let mut circuit = open();
        let first = circuit.begin(at(30));
        circuit.succeed();
        circuit.fail(at(31), None, &SETTINGS);
        circuit.fail(at(31), None, &SETTINGS);
        let second = circuit.begin(at(61));
        assert_ne!(first, second);
        circuit.release(first);
        assert_eq!(circuit.begin(at(61)), None);
    }
}
