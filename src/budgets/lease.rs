//! The right to make one send, seen from the driver and from the door.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::{
    Matched,
    courier::{Courier, CutWatch},
    engine::{Engine, Right, micros},
    shared::Id,
};
use crate::{
    limits::{BudgetId, Spent, Weights},
    upstream::Permit,
};

/// A lease, as the driver of its attempt has it. Dropped without being settled, it goes back if it was
/// not sent, and stays as it was reserved if it was.
#[derive(Debug)]
pub struct Lease {
    /// Boxed: every open stream has room for one, and few budgets are shared.
    held: Option<Box<Held>>,
}

struct Held {
    engine: Arc<Engine>,
    right: Right,
    /// Of the engine's lease, where a budget is shared.
    cut: Option<CutWatch>,
    matched: Arc<Matched>,
    reserved: Weights,
}

impl Lease {
    /// Of no budget.
    pub fn none() -> Self {
        Self { held: None }
    }

    pub(super) fn of(
        engine: Arc<Engine>,
        right: Right,
        matched: Arc<Matched>,
        reserved: Weights,
    ) -> Self {
        let courier = engine.courier();
        let cut = right.afar.zip(courier).map(|(id, courier)| courier.cut(id));
        let held = Held {
            engine,
            right,
            cut,
            matched,
            reserved,
        };
        Self {
            held: Some(Box::new(held)),
        }
    }

    /// What the door asks before the first byte leaves; `None` where there is nothing to ask.
    pub fn permit(&self) -> Option<Box<dyn Permit>> {
        let held = self.held.as_ref()?;
        Some(Box::new(Pass {
            engine: Arc::clone(&held.engine),
            right: held.right,
        }))
    }

    /// Ready once the send has to end, because the engine could not be told in time that it still runs:
    /// then others may have its place. Pending for good where no engine has to be told, and as long as
    /// nothing was sent: what is late by then does not leave.
    pub fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let cut = self.held.as_mut().and_then(|held| held.cut.as_mut());
        cut.map_or(Poll::Pending, |cut| cut.poll_cut(cx))
    }

    /// The name of the shared budget that it is a lease of, the first if there are several; empty for none.
    pub fn shared_budget(&self) -> Arc<str> {
        let held = self.held.as_ref();
        let name = held.and_then(|held| {
            let configured = held.engine.configured();
            let mut all = held.matched.budgets.iter();
            let shared = |id: &&BudgetId| configured.get(**id).is_some_and(|b| b.is_shared);
            held.engine.name(*all.find(shared)?)
        });
        name.cloned().unwrap_or_default()
    }

    /// The send is over.
    pub fn settle(mut self, spent: Spent) {
        if spent.input_tokens.is_none() && spent.output_tokens.is_none() {
            // Nothing is known of it: it stays as it was reserved, and as a probe it proved nothing.
            return;
        }
        let Some(held) = self.held.take() else { return };
        let actual = held.reserved.settled(spent);
        let Right { lease, .. } = held.right;
        held.engine
            .with(|state, now| state.desk.settle(now, lease, actual));
        held.tell(|courier, id| courier.settle(id, actual));
    }

    /// The answer has begun: what waited for this probe may go.
    pub fn answered(&self) {
        if let Some(held) = &self.held {
            let Right { lease, .. } = held.right;
            held.engine
                .with(|state, now| state.desk.answered(now, lease));
            held.tell(Courier::answered);
        }
    }

    /// The provider refused for a rate limit and asked for this wait: all budgets of the lease that
    /// stand for that provider rest.
    pub fn penalise(&self, wait: Duration) {
        if let Some((held, budgets)) = self.of_a_provider() {
            held.engine.with(|state, now| {
                let until = now.saturating_add(micros(wait));
                state.desk.penalise(now, &budgets, until);
            });
            if let Some(courier) = held.engine.courier() {
                courier.penalise(&budgets, wait);
            }
        }
    }

    /// The provider says that nothing remains for so long: the same budgets wait for it.
    pub fn brake(&self, wait: Duration) {
        if let Some((held, budgets)) = self.of_a_provider() {
            held.engine.with(|state, now| {
                let until = now.saturating_add(micros(wait));
                state.desk.brake(&budgets, until);
            });
            if let Some(courier) = held.engine.courier() {
                courier.brake(&budgets, wait);
            }
        }
    }

    /// The budgets that a provider's word concerns.
    fn of_a_provider(&self) -> Option<(&Held, Vec<BudgetId>)> {
        let held = self.held.as_ref()?;
        let configured = held.engine.configured();
        let concerned = held.matched.budgets.iter().copied().filter(|budget| {
            let budget = configured.get(*budget);
            budget.is_some_and(|budget| budget.selector.is_of_a_provider())
        });
        let budgets: Vec<_> = concerned.collect();
        (!budgets.is_empty()).then_some((held, budgets))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let Right { lease, .. } = held.right;
            held.engine
                .with(|state, now| state.desk.release(now, lease));
            held.tell(Courier::release);
        }
    }
}

impl Held {
    /// Tells the engine of its lease, where a budget is shared.
    fn tell(&self, what: impl FnOnce(&Courier, Id)) {
        if let (Some(id), Some(courier)) = (self.right.afar, self.engine.courier()) {
            what(courier, id);
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("right", &self.right).finish()
    }
}

/// A lease, as the door has it. It outlives the driver's half without a right: nothing leaves after that
/// was settled or dropped.
pub struct Pass {
    engine: Arc<Engine>,
    right: Right,
}

impl Permit for Pass {
    fn leave(&mut self) -> bool {
        let Right { lease, afar } = self.right;
        let may = self.engine.with(|state, now| state.desk.sent(now, lease));
        let shared = afar.zip(self.engine.courier());
        if !may || shared.is_none_or(|(id, courier)| courier.leave(id)) {
            return may;
        }
        self.engine.with(|state, now| state.desk.stayed(now, lease));
        false
    }

    fn stayed(&mut self) {
        let Right { lease, afar } = self.right;
        self.engine.with(|state, now| state.desk.stayed(now, lease));
        if let Some((id, courier)) = afar.zip(self.engine.courier()) {
            courier.stayed(id);
        }
    }
}
