//! The pure limits as an engine.

use redrive::limits::*;

use crate::engine::Engine;

impl Engine for Limits {
    fn start(settings: Vec<Settings>, most: usize, life: Option<Micros>) -> Self {
        let limits = Limits::remembering(settings, most);
        match life {
            Some(life) => limits.with_life(life),
            None => limits,
        }
    }

    fn acquire(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
        send_by: Micros,
    ) -> Result<LeaseId, Denied> {
        Limits::acquire(self, now, which, days, weights, send_by)
    }

    fn check(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Result<(), Denied> {
        Limits::check(self, now, which, days, weights)
    }

    fn sent(&mut self, now: Micros, id: LeaseId) -> bool {
        Limits::sent(self, now, id)
    }

    fn stayed(&mut self, now: Micros, id: LeaseId) {
        Limits::stayed(self, now, id);
    }

    fn release(&mut self, now: Micros, id: LeaseId) {
        Limits::release(self, now, id);
    }

    fn settle(&mut self, now: Micros, id: LeaseId, actual: Weights) {
        Limits::settle(self, now, id, actual);
    }

    fn answered(&mut self, now: Micros, id: LeaseId) {
        Limits::answered(self, now, id);
    }

    fn renew(&mut self, now: Micros, held: &[LeaseId], until: Micros) -> Vec<LeaseId> {
        Limits::renew(self, now, held, until)
    }

    fn penalise(&mut self, which: &[BudgetId], until: Micros) {
        Limits::penalise(self, which, until);
    }

    fn brake(&mut self, which: &[BudgetId], until: Micros) {
        Limits::brake(self, which, until);
    }

    fn used(&mut self, budget: BudgetId, now: Micros, day: Day) -> Vec<u64> {
        let used = Limits::used(self, budget, now, day);
        used.into_iter().map(|(_, used)| used).collect()
    }

    fn gauges(&mut self, budget: BudgetId) -> Option<(u64, usize, u64)> {
        Limits::gauges(self, budget)
    }

    fn account(&mut self) -> Account {
        Limits::account(self)
    }
}
