//! How fast clients may open streams: a pace for each connection, and one for each value of a label.
//!
//! It keeps a client that opens streams too fast away from the others. It is no strict limit: a burst
//! and what a window brings can fall into one window.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use governor::{
    NotUntil, Quota, RateLimiter,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed, StateStore, keyed::ShrinkableKeyedStateStore},
};

use super::refusal::Refusal;
use crate::{
    clock::Clock,
    config::{self, LabelRate, StreamRate},
    recovery::Time,
};

/// Values of a label with a pace of their own at most. Fixed.
const MAX_VALUES: usize = 10_000;

/// How often values that are idle are let go, while new streams come. Fixed.
const SWEEP: Duration = Duration::from_secs(1);

/// The subject that a refused connection is told.
const CONNECTION: &str = "listener:connection";

/// Who may open a stream now.
pub(super) struct Admission {
    clock: Clock,
    per_connection: Option<Quota>,
    per_label: Option<Labels>,
}

impl Admission {
    pub(super) fn new(clock: Clock, configured: &config::Admission) -> Self {
        Self {
            clock,
            per_connection: configured.per_connection.as_ref().map(quota),
            per_label: configured
                .per_label
                .as_ref()
                .map(|configured| Labels::new(clock, configured)),
        }
    }

    /// The pace of a new connection.
    pub(super) fn connection(&self) -> Streams {
        let quota = self.per_connection;
        let pace = quota.map(|quota| Arc::new(RateLimiter::direct_with_clock(quota, self.clock)));
        Streams(pace)
    }

    /// A generation with `labels` is to start.
    ///
    /// # Errors
    /// Its value of the label has started too many.
    pub(super) fn start(&self, labels: &HashMap<String, String>) -> Result<(), Refusal> {
        let Some(per_label) = &self.per_label else {
            return Ok(());
        };
        let value = labels.get(&per_label.label).map_or("", String::as_str);
        per_label.admit(value)
    }
}

/// How many streams one connection has opened. As tonic's information about a connection, it reaches
/// each call.
#[derive(Clone, Default)]
pub(super) struct Streams(Option<Arc<Pace>>);

type Pace = RateLimiter<NotKeyed, InMemoryState, Clock, NoOpMiddleware<Nanos>>;

impl Streams {
    /// One more is opened.
    ///
    /// # Errors
    /// The connection has opened too many.
    pub(super) fn open(&self) -> Result<(), Refusal> {
        let Some(pace) = &self.0 else { return Ok(()) };
        pace.check().map_err(|until| {
            let wait = wait(pace.clock(), &until);
            Refusal::too_fast(CONNECTION, "this connection opens streams too fast", wait)
        })
    }
}

/// The pace of each value of a label.
struct Labels {
    label: String,
    paces: RateLimiter<Arc<str>, Paces, Clock, NoOpMiddleware<Nanos>>,
    swept: Mutex<Time>,
}

impl Labels {
    fn new(clock: Clock, configured: &LabelRate) -> Self {
        Self {
            label: configured.label.clone(),
            paces: RateLimiter::new(quota(&configured.rate), Paces::default(), clock),
            swept: Mutex::new(clock.now()),
        }
    }

    fn admit(&self, value: &str) -> Result<(), Refusal> {
        self.sweep();
        self.paces.check_key(&value.into()).map_err(|until| {
            let label = &self.label;
            let wait = wait(self.paces.clock(), &until);
            let message = format!("{label} {value:?} starts generations too fast");
            Refusal::too_fast(format!("listener:label:{label}"), message, wait)
        })
    }

    fn sweep(&self) {
        let now = self.paces.clock().now();
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if now.since(*swept) >= SWEEP {
            *swept = now;
            self.paces.retain_recent();
        }
    }
}

/// Where the paces of values are kept; those for which there is no place share one.
#[derive(Default)]
struct Paces(Mutex<HashMap<Option<Arc<str>>, Nanos>>);

impl StateStore for Paces {
    type Key = Arc<str>;

    fn measure_and_replace<T, F, E>(&self, value: &Arc<str>, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = Some(Arc::clone(value));
        let has_place = paces.len() < MAX_VALUES || paces.contains_key(&own);
        let key = own.filter(|_| has_place);
        let (result, pace) = decide(paces.get(&key).copied())?;
        paces.insert(key, pace);
        Ok(result)
    }
}

impl ShrinkableKeyedStateStore<Arc<str>> for Paces {
    fn retain_recent(&self, drop_below: Nanos) {
        let mut paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paces.retain(|_, pace| *pace > drop_below);
    }

    fn len(&self) -> usize {
        let paces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paces.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// In whole nanoseconds per stream, rounded up: never faster than configured.
fn quota(rate: &StreamRate) -> Quota {
    let streams = u128::from(rate.streams.get());
    let each = rate.per.as_nanos().div_ceil(streams).max(1);
    let each = Duration::from_nanos(u64::try_from(each).unwrap_or(u64::MAX));
    let slowest = Quota::per_hour(NonZeroU32::MIN);
    Quota::with_period(each)
        .unwrap_or(slowest)
        .allow_burst(rate.burst)
}

fn wait(clock: &Clock, until: &NotUntil<Nanos>) -> Duration {
    until.wait_time_from(governor::clock::Clock::now(clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(streams: u32, per: Duration, burst: u32) -> Labels {
        let of = |n| NonZeroU32::new(n).expect("above 0");
        let rate = StreamRate {
            streams: of(streams),
            per,
            burst: of(burst),
        };
        let label = "tenant".to_owned();
        Labels::new(Clock::start(), &LabelRate { label, rate })
    }

    #[tokio::test(start_paused = true)]
    async fn each_value_has_a_pace_of_its_own() {
        let labels = labels(2, Duration::from_secs(1), 3);
        let admitted = |value| (0..9).filter(|_| labels.admit(value).is_ok()).count();
        assert_eq!([admitted("a"), admitted("b"), admitted("")], [3, 3, 3]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!([admitted("a"), admitted("b"), admitted("")], [2, 2, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn values_are_bounded_and_those_without_a_place_share_one() {
        let labels = labels(1, Duration::from_secs(10), 1);
        for value in 0..MAX_VALUES {
            assert!(labels.admit(&value.to_string()).is_ok(), "{value}");
        }
        // No place is left: one of them is admitted, the others not.
        let admitted = (0..100).filter(|n| labels.admit(&format!("late {n}")).is_ok());
        assert_eq!(admitted.count(), 1);
        assert_eq!(labels.paces.len(), MAX_VALUES + 1);
        // Whoever has a place keeps it.
        assert!(labels.admit("0").is_err());

        // Once they are idle there is room again.
        tokio::time::advance(Duration::from_secs(21)).await;
        for n in 0..100 {
            assert!(labels.admit(&format!("late {n}")).is_ok(), "{n}");
        }
        assert_eq!(labels.paces.len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_value_keeps_its_pace_when_idle_ones_are_let_go() {
        let labels = labels(1, Duration::from_secs(10), 5);
        assert_eq!((0..9).filter(|_| labels.admit("a").is_ok()).count(), 5);
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(2)).await;
            labels.sweep();
        }
        // Twenty seconds bring two, not a whole burst.
        assert_eq!((0..9).filter(|_| labels.admit("a").is_ok()).count(), 2);
    }

    #[test]
    fn the_longest_and_the_shortest_pace_can_be_kept() {
        let of = |n| NonZeroU32::new(n).expect("above 0");
        for (streams, per, each) in [
            (1, Duration::from_secs(3600), Duration::from_secs(3600)),
            (1_000_000, Duration::from_millis(1), Duration::from_nanos(1)),
            (3, Duration::from_secs(1), Duration::from_nanos(333_333_334)),
        ] {
            let rate = StreamRate {
                streams: of(streams),
                per,
                burst: of(1_000_000),
            };
            assert_eq!(quota(&rate).replenish_interval(), each);
            assert_eq!(quota(&rate).burst_size(), of(1_000_000));
        }
    }
}
