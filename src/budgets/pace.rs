//! Smoothing: the sends of a budget spread inside its windows. The arithmetic is governor's; the time is
//! ours, since governor's clocks cannot be paused, and so is the state, since governor only asks and takes
//! in one.

use std::cell::Cell;

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{NotKeyed, StateStore},
};

use crate::{
    config,
    limits::{BudgetId, Micros, Pace},
};

/// The pace of every budget that has one.
pub(super) struct Paces(Vec<Option<Paced>>);

/// One budget's pace, and when its next send is due by it.
struct Paced {
    quota: Quota,
    due: Option<Nanos>,
}

impl Paces {
    pub(super) fn new(configured: &[config::Budget]) -> Self {
        Self(configured.iter().map(Paced::new).collect())
    }
}

impl Pace for Paces {
    fn next(&mut self, now: Micros, budget: BudgetId) -> Micros {
        let Some(Some(paced)) = self.0.get(budget) else {
            return now;
        };
        paced.ask(now).err().unwrap_or(now)
    }

    fn take(&mut self, now: Micros, budget: BudgetId) {
        if let Some(Some(paced)) = self.0.get_mut(budget)
            && let Ok(due) = paced.ask(now)
        {
            paced.due = due;
        }
    }
}

impl Paced {
    fn new(budget: &config::Budget) -> Option<Self> {
        let smoothing = budget.smoothing?;
        let each = smoothing.per.checked_div(smoothing.requests.get())?;
        let quota = Quota::with_period(each)?.allow_burst(smoothing.burst);
        Some(Self { quota, due: None })
    }

    /// What a send now would make of the state, or when one may be.
    fn ask(&self, now: Micros) -> Result<Option<Nanos>, Micros> {
        let due = Due(Cell::new(self.due));
        let limiter: Limiter = RateLimiter::new(self.quota, due, Hand::default());
        limiter.clock().0.set(Nanos::new(now.saturating_mul(1000)));
        match limiter.check() {
            Ok(()) => Ok(limiter.into_state_store().0.get()),
            Err(until) => Err(until.earliest_possible().as_u64().div_ceil(1000)),
        }
    }
}

type Limiter = RateLimiter<NotKeyed, Due, Hand, NoOpMiddleware<Nanos>>;

/// governor's state of one limiter.
struct Due(Cell<Option<Nanos>>);

impl StateStore for Due {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (result, due) = decide(self.0.get())?;
        self.0.set(Some(due));
        Ok(result)
    }
}

/// A clock that is set by hand; it begins at the origin of time.
#[derive(Debug, Default)]
struct Hand(Cell<Nanos>);

impl Clock for Hand {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.get()
    }
}
