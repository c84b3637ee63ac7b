//! A pod and its server as an engine of strict limits. The clocks of both are set: time passes when a rule
//! says so, and no sooner.

use std::{collections::BTreeSet, marker::PhantomData, sync::Arc, sync::mpsc, time::Duration};

use redrive::{budgets::shared::*, limits::*};
use tokio::runtime::Runtime;

use super::engine::Engine;
use crate::{
    common::in_common,
    domain::{Domain, PATIENCE, options},
    server::{Kind, Server},
};

/// How long the clocks stand still at most. Then the pod's runs, and what still waits for an answer ends.
const STANDS: Duration = Duration::from_secs(60);

/// A day that changes nothing: an earlier one than any that is told.
const NO_DAY: Today = Today {
    number: -1,
    starts: 0,
    ends: 0,
};

/// Which server.
pub trait At {
    const KIND: Kind;
}

pub struct OnRedis;

impl At for OnRedis {
    const KIND: Kind = Kind::Redis;
}

pub struct OnValkey;

impl At for OnValkey {
    const KIND: Kind = Kind::Valkey;
}

/// A pod that asks such a server, which has learnt what it must before the rule begins.
pub struct Pod<K> {
    domain: Domain,
    /// When the rule began, by the server's clock.
    began: Micros,
    /// How long ago that is. Time does not run back, whatever the clock does.
    now: Micros,
    next: LeaseId,
    /// Leases that left, and did not stay.
    left: BTreeSet<LeaseId>,
    /// Leases that were granted and given back, to see whether they would be.
    checks: u64,
    /// Holds the pod's clock.
    _holds: mpsc::Sender<()>,
    runtime: Runtime,
    _server: Arc<Server>,
    _kind: PhantomData<K>,
}

impl<K> Pod<K> {
    /// Time passes, or the server's clock steps back.
    fn turn(&mut self, now: Micros) {
        if now < self.now {
            self.domain.step(-(self.now - now).cast_signed());
        }
        let passed = now.saturating_sub(self.now);
        if passed > 0 {
            let passing = Duration::from_micros(passed);
            self.runtime.block_on(tokio::time::advance(passing));
            self.domain.pass(passed);
            self.now = now;
        }
    }

    /// As the server is told them: by one whose clock says that they have begun.
    fn days(&self, days: &[Day]) -> Vec<Today> {
        let today = |day: &Day| Today {
            number: day.number,
            starts: self.began + self.now,
            ends: self.began + day.ends,
        };
        days.iter().map(today).collect()
    }

    fn ask(
        &mut self,
        which: &[BudgetId],
        days: &[Day],
        tokens: Weights,
        send_within: Micros,
    ) -> Result<LeaseId, Denied> {
        let lease = self.next;
        self.next += 1;
        let days = self.days(days);
        let ask = Ask {
            lease: named(lease),
            budgets: which,
            days: &days,
            tokens,
            send_within: Duration::from_micros(send_within),
            turn: None,
        };
        let answer = self.domain.shared.acquire(ask, PATIENCE);
        match self.runtime.block_on(answer).unwrap() {
            Answer::Granted => Ok(lease),
            Answer::Denied {
                budget,
                limit,
                wait,
            } => {
                let wait = wait.map(|wait| u64::try_from(wait.as_micros()).unwrap());
                let until = wait.map(|wait| self.now + wait);
                let full = Full { limit, until };
                Err(Denied::Full { budget, full })
            }
            Answer::Never { budget, limit } => Err(Denied::Never { budget, limit }),
            other => panic!("{other:?}"),
        }
    }

    fn tell(&self, id: LeaseId) -> Heard {
        let told = self.domain.shared.tell(named(id), PATIENCE);
        self.runtime.block_on(told).unwrap()
    }

    fn status(&self, budget: BudgetId, today: Today) -> BudgetStatus {
        let (which, today) = ([budget], [today]);
        let status = self.domain.shared.status(&which, &today, PATIENCE);
        let status = self.runtime.block_on(status).unwrap();
        status.budgets.into_iter().next().unwrap()
    }

    fn wait_until(&self, until: Micros) -> Duration {
        Duration::from_micros(until - self.now)
    }
}

fn named(lease: LeaseId) -> Id {
    u128::from(lease).into()
}

/// A runtime whose clock stands still and does not run ahead while the server is waited for: tokio's does
/// that only while no blocking work is done.
fn standing_still() -> (Runtime, mpsc::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let (holds, held) = mpsc::channel();
    runtime.spawn_blocking(move || held.recv_timeout(STANDS));
    (runtime, holds)
}

impl<K: At> Engine for Pod<K> {
    fn start(mut settings: Vec<Settings>, most: usize, life: Option<Micros>) -> Self {
        for (place, settings) in settings.iter_mut().enumerate() {
            settings.name = format!("budget-{place}");
        }
        let server = in_common(K::KIND);
        let defaults = options(&server);
        let options = Options {
            life: life.map_or(defaults.life, Duration::from_micros),
            most_entries: most as u64,
            ..defaults
        };
        let (runtime, holds) = standing_still();
        let domain = runtime.block_on(async {
            let domain = Domain::new(&server, options, &settings).await;
            tokio::time::pause();
            domain
        });
        Self {
            began: domain.now(),
            domain,
            now: 0,
            next: 0,
            left: BTreeSet::new(),
            checks: 0,
            _holds: holds,
            runtime,
            _server: server,
            _kind: PhantomData,
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
        self.turn(now);
        self.ask(which, days, weights, send_by - self.now)
    }

    fn check(
        &mut self,
        now: Micros,
        which: &[BudgetId],
        days: &[Day],
        weights: Weights,
    ) -> Result<(), Denied> {
        self.turn(now);
        let granted = self.ask(which, days, weights, 0)?;
        self.checks += 1;
        self.release(now, granted);
        Ok(())
    }

    fn sent(&mut self, now: Micros, id: LeaseId) -> bool {
        if self.left.contains(&id) {
            self.stayed(now, id);
        }
        self.turn(now);
        // Its clock is the runtime's.
        let leaves = async { self.domain.shared.leave(named(id)) };
        let leaves = self.runtime.block_on(leaves);
        if leaves {
            self.left.insert(id);
            assert_eq!(self.tell(id), Heard::Done);
        }
        leaves
    }

    fn stayed(&mut self, now: Micros, id: LeaseId) {
        self.turn(now);
        self.left.remove(&id);
        self.domain.shared.stayed(named(id));
        self.tell(id);
    }

    fn release(&mut self, now: Micros, id: LeaseId) {
        self.turn(now);
        let released = self.domain.shared.release(named(id), PATIENCE);
        self.runtime.block_on(released).unwrap();
    }

    fn settle(&mut self, now: Micros, id: LeaseId, actual: Weights) {
        self.turn(now);
        let settled = self.domain.shared.settle(named(id), actual, PATIENCE);
        self.runtime.block_on(settled).unwrap();
    }

    fn answered(&mut self, now: Micros, id: LeaseId) {
        self.turn(now);
        let answered = self.domain.shared.answered(named(id), PATIENCE);
        self.runtime.block_on(answered).unwrap();
    }

    fn renew(&mut self, now: Micros, held: &[LeaseId], _until: Micros) -> Vec<LeaseId> {
        self.turn(now);
        let over = self.runtime.block_on(self.domain.shared.renew(PATIENCE));
        let over = over.unwrap();
        let is_over = |id: &LeaseId| over.contains(&named(*id));
        held.iter().copied().filter(is_over).collect()
    }

    fn penalise(&mut self, which: &[BudgetId], until: Micros) {
        let wait = self.wait_until(until);
        let told = self.domain.shared.penalise(which, wait, PATIENCE);
        self.runtime.block_on(told).unwrap();
    }

    fn brake(&mut self, which: &[BudgetId], until: Micros) {
        let wait = self.wait_until(until);
        let told = self.domain.shared.brake(which, wait, PATIENCE);
        self.runtime.block_on(told).unwrap();
    }

    fn used(&mut self, budget: BudgetId, now: Micros, day: Day) -> Vec<u64> {
        self.turn(now);
        let today = self.days(&[day])[0];
        self.status(budget, today).used
    }

    fn gauges(&mut self, budget: BudgetId) -> Option<(u64, usize, u64)> {
        let status = self.status(budget, NO_DAY);
        let entries = usize::try_from(status.entries).unwrap();
        Some((status.running, entries, status.overruns))
    }

    fn account(&mut self) -> Account {
        let account = self.runtime.block_on(self.domain.status(&[])).account;
        Account {
            granted: account.granted - self.checks,
            returned: account.returned - self.checks,
            ..account
        }
    }
}
