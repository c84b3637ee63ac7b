//! What goes into the desk, and what comes out.

use std::sync::Arc;

use super::Outlook;
use crate::limits::{
    BudgetId, LeaseId, Limit, Micros, Weights,
    fairness::{Line, Ticket},
};

/// Spreads sends in time, beyond what limits ask for.
pub trait Pace {
    /// When the next send of `budget` keeps the pace: `now` or later.
    fn next(&mut self, now: Micros, budget: BudgetId) -> Micros;

    /// A send of `budget` was granted.
    fn take(&mut self, now: Micros, budget: BudgetId);
}

/// No pace.
impl Pace for () {
    fn next(&mut self, now: Micros, _: BudgetId) -> Micros {
        now
    }

    fn take(&mut self, _: Micros, _: BudgetId) {}
}

/// One way that what asks can go.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The budgets it takes part of, in the configuration's order.
    pub budgets: &'a [BudgetId],
    /// Whom it stands in line with; none: with all others of its first budget.
    pub line: Option<Line<'a>>,
}

impl<'a> Choice<'a> {
    pub(super) fn line(&self) -> Line<'a> {
        self.line.unwrap_or(Line {
            domain: self.budgets.first().copied().unwrap_or_default(),
            flow: "",
            weight: 1,
        })
    }
}

/// The answer to an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It may be sent.
    Granted {
        /// Index of the way.
        way: usize,
        /// The right to send.
        lease: LeaseId,
    },
    /// It waits.
    Waits {
        /// Names it from now on.
        ticket: Ticket,
        /// What for.
        outlook: Outlook,
    },
    /// It will not be granted.
    Refused(Refused),
}

/// Why somebody is not granted, and does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It fits none of its ways, ever. The last way's reason.
    Never {
        /// The budget that is too small.
        budget: BudgetId,
        /// Which of its limits.
        limit: Limit,
    },
    /// Too many wait already for each of its ways. The last way's budget.
    QueueFull {
        /// Where it would have stood.
        budget: BudgetId,
        /// What it would have waited for.
        outlook: Outlook,
    },
}

/// Where one who tries stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stands {
    /// The budget that is shared fairly.
    pub domain: BudgetId,
    /// The value of the label.
    pub flow: Box<str>,
    /// Its share, from 1.
    pub weight: u32,
    /// Whether others of its flow wait behind it.
    pub more: bool,
}

/// What happened to somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It may be sent, and waits no longer.
    Granted {
        /// Who.
        ticket: Ticket,
        /// Index of the way.
        way: usize,
        /// The right to send.
        lease: LeaseId,
    },
    /// What it waits for has changed.
    Told {
        /// Who.
        ticket: Ticket,
        /// What for.
        outlook: Outlook,
    },
    /// The engine of its shared budgets is to be asked; the answer is [`Desk::tried`](super::Desk::tried).
    Try {
        /// Who.
        ticket: Ticket,
        /// Of what; not all of them need be shared.
        budgets: Arc<[BudgetId]>,
        /// Whom it stands in line with.
        stands: Stands,
        /// How much.
        weights: Weights,
        /// How long after its grant it may be sent.
        send_within: Micros,
    },
    /// It waits no longer, and is not granted.
    Refused {
        /// Who.
        ticket: Ticket,
        /// Why.
        why: Refused,
    },
}

/// What was decided about a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Asks that were granted, at once or after a wait.
    pub granted: u64,
    /// Asks that had to wait.
    pub waited: u64,
    /// Asks that were refused: they never fit, or too many waited.
    pub refused: u64,
}
