//! What an attempt holds before it is sent: a connection slot, and a lease of every budget that matches.
//! If a budget limits tokens, they are counted first.
//!
//! ```text
//!   Count
//!    ▼       free                     granted
//!   Slot ───────────▶ Lease, slot held ─────────▶ Held
//!    ▲                      │ has to be waited for: the slot is given back
//!    │                      ▼
//!    └──── none free ── Lease, no slot ──── granted, a slot is free ──▶ Held
//!      (lease given back)
//! ```
//!
//! Nobody keeps a slot while it waits for a budget, nor a lease while it waits for a slot: others could
//! use it. Dropping a reservation gives back what it holds and leaves every queue.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use super::{
    Environment, PlannedTarget,
    estimate::{Counted, Counters, Counting},
};
use crate::{
    budgets::{self, Answer, Ask, Asking, Budgets, Lease, Refusal, RefusalKind, Way},
    limits::Weights,
    proto::waiting::Reason,
    recovery::{Takes, Time, Wait},
    upstream::{Endpoint, QueueFull, Slot, SlotFuture, Upstream},
    verdict::{Class, Denied, Failure, Origin, Stage as FailedAt},
};

/// How soon after its grant a lease must be used where the target's connect timer is off. Fixed.
const SEND_WITHIN: Duration = Duration::from_secs(10);

/// A reservation that is being made.
pub(super) struct Reservation {
    target: usize,
    endpoint: Arc<Endpoint>,
    ask: Ask,
    takes: Takes,
    stage: Stage,
    /// The core knows that a slot is waited for.
    told: bool,
    /// Since when a lease is waited for, and of which budget last.
    waits: Option<(Time, Arc<str>)>,
}

enum Stage {
    Count(Counting),
    Slot(SlotFuture),
    Lease {
        asking: Asking,
        slot: Option<Box<dyn Slot>>,
    },
}

/// How it goes with a reservation.
pub(super) enum Progress {
    /// It is there.
    Held(Held),
    /// It has to be waited for, or for something else than before.
    Waiting(Wait),
    /// It will not come.
    Refused(Failure),
}

/// Everything that a send needs.
pub(super) struct Held {
    pub target: usize,
    pub credential: usize,
    pub slot: Box<dyn Slot>,
    /// None where no budget matches.
    pub lease: Option<Lease>,
    /// What was taken of budgets that count tokens.
    pub tokens: Weights,
}

impl Reservation {
    /// For `planned`, the target number `target`, with any of `credentials`.
    pub fn new(
        target: usize,
        planned: &PlannedTarget,
        credentials: &[usize],
        takes: Takes,
        upstream: &dyn Upstream,
        counters: &Counters,
    ) -> Self {
        let way = |&credential: &usize| Way {
            credential,
            matched: planned.matched(credential),
        };
        let send_within = match planned.connect {
            Duration::ZERO => SEND_WITHIN,
            connect => connect,
        };
        let endpoint = Arc::clone(&planned.provider.endpoint);
        let counted = match takes {
            Takes::Nothing => Counted::Now(Weights::default()),
            Takes::Whole | Takes::Hinted { .. } | Takes::Continuation { .. } => {
                counters.count(&planned.tokens)
            }
        };
        let (whole, stage) = match counted {
            Counted::Now(whole) => (whole, Stage::Slot(upstream.slot(&endpoint))),
            Counted::Later(counting) => (Weights::default(), Stage::Count(counting)),
        };
        Self {
            target,
            endpoint,
            ask: Ask {
                ways: credentials.iter().map(way).collect(),
                tokens: weights(whole, takes),
                send_within,
            },
            takes,
            stage,
            told: false,
            waits: None,
        }
    }

    /// Tells telemetry how long a lease was waited for.
    pub fn observe(&mut self, progress: &Progress, environment: &Environment) {
        match progress {
            Progress::Waiting(wait) => {
                let Some(denied) = &wait.denied else { return };
                let waits = self.waits.take();
                let since = waits.map_or_else(|| environment.clock.now(), |(since, _)| since);
                self.waits = Some((since, Arc::clone(&denied.budget)));
            }
            Progress::Held(_) => {
                if let Some((since, budget)) = &self.waits {
                    let waited = environment.clock.now().since(*since);
                    environment.telemetry.budget_waited(budget, waited);
                }
            }
            Progress::Refused(_) => {}
        }
    }

    /// Not called again after `Held` or `Refused`.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &dyn Upstream,
        budgets: &Budgets,
    ) -> Poll<Progress> {
        loop {
            match &mut self.stage {
                Stage::Count(counting) => {
                    let whole = ready!(counting.as_mut().poll(cx));
                    self.ask.tokens = weights(whole, self.takes);
                    self.stage = Stage::Slot(upstream.slot(&self.endpoint));
                }
                Stage::Slot(slot) => match slot.as_mut().poll(cx) {
                    Poll::Ready(Ok(slot)) => {
                        self.told = false;
                        self.stage = Stage::Lease {
                            asking: budgets.ask(self.ask.clone()),
                            slot: Some(slot),
                        };
                    }
                    Poll::Ready(Err(full)) => return Poll::Ready(Progress::Refused(no_slot(full))),
                    Poll::Pending if self.told => return Poll::Pending,
                    Poll::Pending => {
                        self.told = true;
                        return Poll::Ready(Progress::Waiting(for_a_slot()));
                    }
                },
                Stage::Lease { asking, slot } => match ready!(asking.poll(cx)) {
                    Answer::Granted { credential, lease } => {
                        if let Some(slot) = slot.take() {
                            return Poll::Ready(Progress::Held(self.held(credential, slot, lease)));
                        }
                        let mut free = upstream.slot(&self.endpoint);
                        match free.as_mut().poll(cx) {
                            Poll::Ready(Ok(slot)) => {
                                let held = self.held(credential, slot, lease);
                                return Poll::Ready(Progress::Held(held));
                            }
                            Poll::Ready(Err(full)) => {
                                return Poll::Ready(Progress::Refused(no_slot(full)));
                            }
                            // The lease goes back; the place in line for a slot stays.
                            Poll::Pending => self.stage = Stage::Slot(free),
                        }
                    }
                    Answer::Waiting(wait) => {
                        *slot = None;
                        return Poll::Ready(Progress::Waiting(for_a_lease(wait)));
                    }
                    Answer::Refused(refusal) => {
                        return Poll::Ready(Progress::Refused(no_lease(refusal)));
                    }
                },
            }
        }
    }

    fn held(&self, credential: usize, slot: Box<dyn Slot>, lease: Lease) -> Held {
        let way = self
            .ask
            .ways
            .iter()
            .find(|way| way.credential == credential);
        let is_of_a_budget = way.is_some_and(|way| !way.matched.budgets.is_empty());
        Held {
            target: self.target,
            credential,
            slot,
            lease: is_of_a_budget.then_some(lease),
            tokens: self.ask.tokens,
        }
    }
}

/// What of the estimate for the original request is taken. A token of a hint or a partial answer is no
/// less than one byte.
fn weights(whole: Weights, takes: Takes) -> Weights {
    match takes {
        Takes::Whole => whole,
        Takes::Hinted { hint: more } | Takes::Continuation { partial: more } => Weights {
            input_tokens: whole.input_tokens.saturating_add(more as u64),
            ..whole
        },
        Takes::Nothing => Weights::default(),
    }
}

fn for_a_slot() -> Wait {
    Wait {
        reason: Reason::Connection,
        denied: None,
        expected: None,
    }
}

fn for_a_lease(wait: budgets::Wait) -> Wait {
    Wait {
        reason: wait.reason,
        denied: Some(Denied {
            budget: wait.budget,
            limit: wait.limit,
        }),
        expected: wait.expected,
    }
}

fn no_slot(full: QueueFull) -> Failure {
    let message = full.to_string();
    Failure::new(Class::NoTarget, Origin::Us, FailedAt::Admission, message)
}

fn no_lease(refusal: Refusal) -> Failure {
    let Refusal {
        kind,
        budget,
        limit,
        asked,
        retry_after,
    } = refusal;
    let (class, message, limit) = match kind {
        RefusalKind::Never => (
            Class::ExceedsLimit,
            format!("budget {budget} can never hold {asked} ({limit})"),
            format!("{limit}; {asked} asked for"),
        ),
        RefusalKind::QueueFull => (
            Class::RateLimited,
            format!("too many generations wait for budget {budget} ({limit})"),
            limit,
        ),
    };
    let mut failure = Failure::new(class, Origin::Us, FailedAt::Admission, message);
    failure.wait = retry_after.filter(|_| class == Class::RateLimited);
    failure.denied = Some(Box::new(Denied { budget, limit }));
    failure
}
