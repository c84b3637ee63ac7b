//! IO. What a pod tells the engine of shared budgets beside asking, and what it learns of the engine.
//!
//! Nobody waits for the courier: what has happened to a lease is put into the [`book`], under one short lock,
//! and told in the background. What is never heard does no harm, since the engine counts what it does not
//! know as it was reserved, until the lease ends by itself.
//!
//! - **Telling** (`teller`): for each lease in order, up to [`AT_ONCE`] leases at a time, what providers said
//!   of rest before all else. While the engine is lost nothing is told but that the pod is there; what was
//!   to be told is told when it is back, for as long as that matters.
//! - **Renewing** (`keeper`): three times in a life of a lease, all of them.
//! - **Fencing** (`keeper`): a send that takes part of a budget with a limit of sends at a time is cut
//!   [`FENCE`] before its lease may end unrenewed, since another may be granted in its place then. The
//!   monotonic clock decides; it runs on while the process is stopped, so a process that wakes up late cuts
//!   before it tells anything. What that cannot do: a process that is stopped longer cuts nothing while it is
//!   stopped, and its provider works on and counts the send as running. Where the whole machine sleeps, the
//!   clock may stand still too, and the connections that it had are as good as cut. Sends that take part of
//!   windows only are not cut: they count, whatever becomes of them.
//! - **Standing** (`standing`): the engine is lost once something that was asked got no answer, and is there
//!   again once leases were renewed.
//!
//! The hooks are called by the courier's tasks, without any lock of its own.

mod book;
mod domain;
mod keeper;
mod rests;
mod standing;
mod status;
mod teller;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, task::AbortHandle};

pub(super) use self::watch::CutWatch;
use self::{
    book::{Book, End},
    domain::Domain,
    rests::{Rest, Rests, Word},
    standing::Standing,
    status::Fill,
};
use super::{
    EngineStatus, FleetStatus,
    shared::{Answer, Ask, BadOptions, Id, Lost, Options, Shared, Turn},
};
use crate::{
    clock::Clock,
    config::{self, OnLoss},
    limits::{BudgetId, Weights},
};

/// How many leases are told of at a time.
const AT_ONCE: usize = 32;

/// How long before a lease may end its send is cut: for the cut to be done, and for clocks that differ.
const FENCE: Duration = Duration::from_secs(2);

/// What is waited for an answer, in time-outs.
const PATIENCE: u32 = 3;

/// Tells the engine, and hears of it. Dropping it ends its tasks.
pub(super) struct Courier {
    inner: Arc<Inner>,
    keeper: AbortHandle,
}

/// What the budgets want to know.
pub(super) trait Hooks: Send + Sync {
    /// The engine can be asked, again or for the first time.
    fn engine_up(&self);

    /// The engine cannot be asked.
    fn engine_lost(&self, why: &Lost);

    /// The engine has heard that a lease of these is over: there may be room.
    fn freed(&self, budgets: &[BudgetId]);
}

struct Inner {
    clock: Clock,
    shared: Shared,
    domain: Domain,
    name: String,
    hooks: Arc<dyn Hooks>,
    on_loss: OnLoss,
    timeout: Duration,
    life: Duration,
    state: Mutex<State>,
    standing: Mutex<Standing>,
    fill: Mutex<Fill>,
    /// There is something to tell.
    telling: Notify,
    /// A send is to be cut sooner.
    fencing: Notify,
    /// Leases are to be renewed sooner.
    renewing: Notify,
    /// The engine is lost, or is back.
    news: Notify,
    /// Something was told.
    progress: Notify,
}

/// What the callers' lock guards.
struct State {
    book: Book,
    rests: Rests,
    /// When the fence is looked at next.
    fence_at: Option<Duration>,
    /// When leases are renewed next.
    renew_at: Option<Duration>,
}

impl Courier {
    /// A courier of those of `budgets` that are shared: one domain. All of them are named by their place in
    /// `budgets`. Connects in the background. To be called inside a runtime.
    ///
    /// # Errors
    /// What cannot be an engine; whether it is there is not looked at.
    pub(super) fn start(
        clock: Clock,
        engine: &config::SharedEngine,
        budgets: &[config::Budget],
        hooks: Arc<dyn Hooks>,
    ) -> Result<Self, BadOptions> {
        let options = domain::options(engine);
        Self::start_with(clock, engine, options, budgets, hooks)
    }

    fn start_with(
        clock: Clock,
        engine: &config::SharedEngine,
        options: Options,
        budgets: &[config::Budget],
        hooks: Arc<dyn Hooks>,
    ) -> Result<Self, BadOptions> {
        let domain = Domain::new(engine, budgets);
        let (life, timeout) = (options.life, options.timeout);
        let shared = Shared::connect(clock, options, &engine.domain, &domain.settings())?;
        let is_strict = engine.on_loss != OnLoss::Open;
        let fence = is_strict.then(|| life.saturating_sub(FENCE));
        let state = State {
            book: Book::new(life, fence),
            rests: Rests::default(),
            fence_at: None,
            renew_at: None,
        };
        let inner = Arc::new(Inner {
            clock,
            shared,
            domain,
            name: engine.domain.clone(),
            hooks,
            on_loss: engine.on_loss,
            timeout,
            life,
            state: Mutex::new(state),
            standing: Mutex::default(),
            fill: Mutex::default(),
            telling: Notify::new(),
            fencing: Notify::new(),
            renewing: Notify::new(),
            news: Notify::new(),
            progress: Notify::new(),
        });
        let keeper = tokio::spawn(keeper::keep(Arc::clone(&inner)));
        Ok(Self {
            inner,
            keeper: keeper.abort_handle(),
        })
    }

    /// Asks the engine for a lease of those of `budgets` that are shared, for [`PATIENCE`] time-outs at the
    /// most. What is granted is to be ended by [`settle`](Self::settle) or [`release`](Self::release).
    /// Dropped, it gives back what it may have been granted.
    ///
    /// # Errors
    /// [`Lost`] if there is no answer: the lease must not be asked for again.
    pub(super) async fn acquire(
        &self,
        id: Id,
        budgets: &[BudgetId],
        tokens: Weights,
        send_within: Duration,
        turn: Option<Turn<'_>>,
    ) -> Result<Answer, Lost> {
        let inner = &*self.inner;
        let inward = inner.domain.inward(budgets);
        let days = inner.domain.days(&inward, inner.wall());
        let ask = Ask {
            lease: id,
            budgets: &inward,
            days: &days,
            tokens,
            send_within,
            turn: inner.domain.turn(turn),
        };
        let asked = inner.now();
        let answer = inner.shared.acquire(ask, inner.timeout * PATIENCE).await;
        match answer {
            Ok(answer) => {
                let took = inner.now().saturating_sub(asked);
                if inner.standing().answered(took) {
                    inner.renewing.notify_one();
                }
                if answer == Answer::Granted {
                    let fenced = inner.domain.is_fenced(&inward);
                    let outward = inward.iter().map(|budget| inner.domain.outward(*budget));
                    let outward = outward.collect();
                    inner.state().book.granted(id, outward, fenced, asked);
                }
                Ok(inner.domain.told(answer))
            }
            Err(lost) => {
                if !inner.standing().is_lost() {
                    inner.renewing.notify_one();
                }
                inner.is_lost(&lost);
                Err(lost)
            }
        }
    }

    /// The first byte leaves now, if this is `true`; asked in the same step in which it does. `false` if the
    /// lease is unknown, late, over or left before, or stayed and the engine has not heard of it.
    pub(super) fn leave(&self, id: Id) -> bool {
        let inner = &*self.inner;
        let now = inner.now();
        let mut state = inner.state();
        if !state.book.may_leave(now, id) || !inner.shared.leave(id) {
            return false;
        }
        state.book.left(id);
        let sooner = |due: Option<Duration>, at: Option<Duration>| {
            due.is_some_and(|due| at.is_none_or(|at| due < at))
        };
        let fence = sooner(state.book.cut_at(id), state.fence_at);
        let renew = sooner(state.book.renew_at(id), state.renew_at);
        drop(state);
        inner.telling.notify_one();
        if fence {
            inner.fencing.notify_one();
        }
        if renew {
            inner.renewing.notify_one();
        }
        true
    }

    /// What was said to leave provably did not.
    pub(super) fn stayed(&self, id: Id) {
        let mut state = self.inner.state();
        self.inner.shared.stayed(id);
        state.book.stayed(id);
        drop(state);
        self.inner.telling.notify_one();
    }

    /// The answer to the lease's send has begun: as a probe it is over.
    pub(super) fn answered(&self, id: Id) {
        self.inner.state().book.answered(id);
        self.inner.telling.notify_one();
    }

    /// The send is over and took `actual`.
    pub(super) fn settle(&self, id: Id, actual: Weights) {
        self.end(id, End::Settle(actual));
    }

    /// The lease will not leave, or has, and is over without anything known.
    pub(super) fn release(&self, id: Id) {
        self.end(id, End::Release);
    }

    fn end(&self, id: Id, end: End) {
        let inner = &*self.inner;
        let dropped = inner.state().book.end(inner.now(), id, end);
        if let Some(dropped) = dropped {
            inner.shared.let_go(dropped);
        }
        inner.telling.notify_one();
    }

    /// A provider asked not to be asked for `wait` by any of `budgets`.
    pub(super) fn penalise(&self, budgets: &[BudgetId], wait: Duration) {
        self.rest(Word::Penalise, budgets, wait);
    }

    /// A provider says that nothing remains for `wait` of any of `budgets`.
    pub(super) fn brake(&self, budgets: &[BudgetId], wait: Duration) {
        self.rest(Word::Brake, budgets, wait);
    }

    fn rest(&self, word: Word, budgets: &[BudgetId], wait: Duration) {
        let inner = &*self.inner;
        let rest = Rest {
            word,
            until: inner.now().saturating_add(wait),
            budgets: inner.domain.inward(budgets),
        };
        inner.state().rests.put(&rest);
        inner.telling.notify_one();
    }

    /// Waits for the word that the send of a lease must be cut; one watch a lease, the last one counts.
    pub(super) fn cut(&self, id: Id) -> CutWatch {
        self.inner.state().book.watch(id)
    }

    /// Waits until the engine has heard all that there is to tell.
    pub(super) async fn told(&self) {
        let inner = &*self.inner;
        loop {
            let told = inner.progress.notified();
            let mut told = std::pin::pin!(told);
            told.as_mut().enable();
            if inner.state().is_told() {
                return;
            }
            told.await;
        }
    }

    /// What is known of the engine. Asks nobody.
    pub(super) fn status(&self) -> EngineStatus {
        self.inner.status()
    }

    /// How each shared budget stands for all pods together, by the engine's last word; empty before the
    /// first. Asks nobody.
    pub(super) fn fleet(&self) -> Vec<(BudgetId, FleetStatus)> {
        self.inner.fleet()
    }

    /// Asks the engine how full the budgets are now, within a time-out; what it says is in
    /// [`fleet`](Self::fleet) then.
    pub(super) async fn refresh(&self) {
        self.inner.refresh().await;
    }
}

impl State {
    /// Whether nothing is to be told, nor being told.
    fn is_told(&self) -> bool {
        self.rests.is_told() && self.book.is_told()
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.inner.name;
        f.debug_struct("Courier")
            .field("domain", name)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Since the clock's origin.
    fn now(&self) -> Duration {
        self.clock.now().since_origin()
    }

    /// What days are told by: the engine's clock, and ours until it was heard.
    fn wall(&self) -> Duration {
        let ours = || self.clock.wall_origin().saturating_add(self.now());
        self.shared.engine_now().unwrap_or_else(ours)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
