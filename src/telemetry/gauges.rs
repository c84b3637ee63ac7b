//! What is alive right now, as plain atomics: the rooms that own the things count them, the metrics
//! read them at a scrape, and tests compare them with their base to find a leak.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// A number that goes up and down. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Gauge {
    /// Adds `amount`, which may be negative.
    pub fn add(&self, amount: i64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The number itself, for a room that counts without knowing telemetry.
    pub fn shared(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.0)
    }

    /// Its value now.
    pub fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One unit (or, by [`Guard::set`], any amount) of a gauge, given back when dropped: also by a
/// cancelled task and by a panic.
#[derive(Debug)]
pub struct Guard {
    gauge: Gauge,
    amount: i64,
}

impl Guard {
    /// Adds one to `gauge`.
    pub fn new(gauge: &Gauge) -> Self {
        Self::with_amount(gauge, 1)
    }

    /// Adds `amount` to `gauge`, for what is counted in bytes.
    pub fn with_amount(gauge: &Gauge, amount: i64) -> Self {
        gauge.add(amount);
        Self {
            gauge: gauge.clone(),
            amount,
        }
    }

    /// Makes this guard's part of the gauge `amount`.
    pub fn set(&mut self, amount: i64) {
        self.gauge.add(amount.saturating_sub(self.amount));
        self.amount = amount;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.gauge.add(self.amount.saturating_neg());
    }
}

/// Every gauge of the process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Generations that have not ended, detached ones included. Kept by
    /// [`GenerationObserver`](super::GenerationObserver).
    pub generations: Gauge,
    /// Connections that clients hold to the gRPC listener.
    pub grpc_connections: Gauge,
    /// RPCs that have not ended.
    pub grpc_streams: Gauge,
    /// Connections to providers, idle ones included.
    pub provider_connections: Gauge,
    /// Tasks of generations and of the server.
    pub tasks: Gauge,
    /// Bytes of all transcripts together, kept results included.
    pub transcript_bytes: Gauge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_counts_while_it_lives() {
        let gauges = Gauges::default();
        let first = Guard::new(&gauges.tasks);
        let second = Guard::new(&gauges.clone().tasks);
        assert_eq!(gauges.tasks.value(), 2);
        drop(first);
        drop(second);
        assert_eq!(gauges.tasks.value(), 0);
    }

    #[test]
    fn a_guard_gives_back_what_it_grew_to() {
        let gauge = Gauge::default();
        let mut guard = Guard::with_amount(&gauge, 100);
        guard.set(4_000);
        assert_eq!(gauge.value(), 4_000);
        guard.set(10);
        assert_eq!(gauge.value(), 10);
        drop(guard);
        assert_eq!(gauge.value(), 0);
    }
}
