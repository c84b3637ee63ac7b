//! Whoever keeps strict limits, as the rules here ask and tell it. A rule is written once, and holds for
//! every engine: for the pure limits, and for a server that several pods share.

use redrive::limits::*;

/// How many sends are remembered where a rule is about something else.
const MANY: usize = 1 << 20;

/// Strict limits. Times are microseconds since the rule began, and what is meant by each is what
/// [`Limits`] says.
pub trait Engine: Sized {
    /// Budgets that nothing has been taken of, which remember `most` sends each; leases have a `life`, or
    /// one that no rule outlasts.
    fn start(settings: Vec<Settings>, most: usize, life: Option<Micros>) -> Self;

    fn new(settings: impl Into<Vec<Settings>>) -> Self {
        Self::start(settings.into(), MANY, None)
    }

    fn remembering(settings: impl Into<Vec<Settings>>, most: usize) -> Self {
        Self::start(settings.into(), most, None)
    }

    fn living(settings: impl Into<Vec<Settings>>, life: Micros) -> Self {
        Self::start(settings.into(), MANY, Some(life))
    }

    fn acquire(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
        send_by: Micros,
    ) -> Result<LeaseId, Denied>;

    fn check(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Result<(), Denied>;

    /// Handed over, or handed over again: then it had stayed before.
    fn sent(&mut self, now: Micros, id: LeaseId) -> bool;

    fn stayed(&mut self, now: Micros, id: LeaseId);

    fn release(&mut self, now: Micros, id: LeaseId);

    fn settle(&mut self, now: Micros, id: LeaseId, actual: Weights);

    fn answered(&mut self, now: Micros, id: LeaseId);

    /// All that are held live until `until`, which is a life from now; those that are over are told.
    fn renew(&mut self, now: Micros, held: &[LeaseId], until: Micros) -> Vec<LeaseId>;

    fn penalise(&mut self, which: &[BudgetId], until: Micros);

    fn brake(&mut self, which: &[BudgetId], until: Micros);

    /// How much of each limit of a budget is used, in the order of its settings.
    fn used(&mut self, budget: BudgetId, now: Micros, day: Day) -> Vec<u64>;

    /// Sends that run, that are remembered, and that took more than was reserved.
    fn gauges(&mut self, budget: BudgetId) -> Option<(u64, usize, u64)>;

    fn account(&mut self) -> Account;
}
