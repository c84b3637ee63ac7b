//! IO. One generation at work: the core behind its lock, the driver that carries out its commands, and
//! the view that an RPC has of it.
//!
//! Owns a generation's task, its exchange and its decoder. Decides nothing: every decision is the
//! core's. A session has one lock, its own, held for the handling of one read or one frame and never
//! across an await.

mod contain;
mod cut;
mod driver;
mod environment;
mod estimate;
mod last_word;
mod observe;
mod plan;
mod registry;
mod reservation;
mod response;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

pub use environment::{Environment, Memory};
pub use estimate::Estimate;
pub use plan::{Asked, Plan, PlannedTarget};
pub use registry::{Registry, StartOutcome};

use contain::Task;

use crate::{
    proto::{Committed, Delivery, Failed, Ledger},
    recovery::{Event, Generation, Next, Time, Upstream},
    telemetry::{GenerationObserver, SpanContext},
};

/// Transcripts are counted in steps of so many bytes: the count is shared by all threads, and not
/// every token has to touch it.
const COUNT_STEP: usize = 1 << 10;

/// A running or kept generation.
pub struct Session {
    /// The generation's id.
    pub id: String,
    /// The start it came from, if that can be repeated.
    request: Option<RequestKey>,
    environment: Arc<Environment>,
    registry: Arc<Registry>,
    /// The generation's span, for the RPCs that attach to it.
    pub span: SpanContext,
    inner: Mutex<Inner>,
}

/// Names a start that may be repeated, and tells it from another one of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// The client's idempotency key.
    pub id: String,
    /// Of everything in the start that must be the same.
    pub body_hash: u64,
}

/// What a session is made of.
pub struct Parts {
    /// The generation's id.
    pub id: String,
    /// The start it comes from, if that can be repeated.
    pub request: Option<RequestKey>,
    /// The generation.
    pub core: Generation,
    /// What it sends.
    pub plan: Plan,
    /// Who watches it.
    pub observer: GenerationObserver,
}

struct Inner {
    core: Generation,
    /// The RPC that waits for a frame.
    client: Option<Waker>,
    /// The driver, while it waits.
    driver: Option<Waker>,
    driving: bool,
    /// What the first driver takes.
    work: Option<Work>,
    crashed: bool,
    /// The registry has forgotten it: nobody attaches any more.
    forgotten: bool,
    /// What of the transcript is counted in the environment's memory.
    counted: usize,
}

/// What the driver of a running generation needs; later drivers (for a client that attaches after the
/// end) send and tell nothing.
struct Work {
    /// Holds the requests' bodies, which are not kept beyond the end.
    plan: Plan,
    observer: GenerationObserver,
}

/// What an RPC gets from its session.
pub enum Polled {
    /// What the core says.
    Next(Next),
    /// The core died of a bug of ours, after what the ledger says; the RPC owes its client an end.
    Crashed(Box<Ledger>),
}

impl Session {
    /// A session that is not driven yet.
    pub fn new(parts: Parts, registry: Arc<Registry>, environment: Arc<Environment>) -> Arc<Self> {
        let Parts {
            id,
            request,
            core,
            plan,
            observer,
        } = parts;
        let span = observer.context();
        let inner = Inner {
            core,
            client: None,
            driver: None,
            driving: false,
            work: Some(Work { plan, observer }),
            crashed: false,
            forgotten: false,
            counted: 0,
        };
        let inner = Mutex::new(inner);
        Arc::new(Self {
            id,
            request,
            environment,
            registry,
            span,
            inner,
        })
    }

    /// Hands an event from outside (a client, a drain) to the core.
    pub fn handle(self: &Arc<Self>, event: Event<'_>) {
        self.handle_if(|_| true, event);
    }

    /// Hands in what the client of RPC number `rpc` did. Ignored if another RPC has taken over: a
    /// displaced one cancels nothing.
    pub fn handle_from(self: &Arc<Self>, rpc: u64, event: Event<'_>) {
        self.handle_if(|inner| inner.core.rpc() == rpc, event);
    }

    /// Another RPC takes over; its number. `None` if the session was forgotten meanwhile.
    pub fn attach(
        self: &Arc<Self>,
        delivery: Delivery,
        caller_deadline: Option<Time>,
    ) -> Option<u64> {
        self.handle_if(
            |inner| !inner.forgotten,
            Event::Attach {
                delivery,
                caller_deadline,
            },
        )
    }

    /// The number of the newest RPC after `event`, which is handed in only under `condition`.
    fn handle_if(
        self: &Arc<Self>,
        condition: impl FnOnce(&Inner) -> bool,
        event: Event<'_>,
    ) -> Option<u64> {
        let mut inner = self.lock();
        if !condition(&inner) {
            return None;
        }
        let now = self.environment.clock.now();
        inner.ask(|core| core.handle(now, event, &*self.environment));
        inner.count(&self.environment.memory);
        let idle = !std::mem::replace(&mut inner.driving, true);
        let work = inner.work.take_if(|_| idle);
        let rpc = inner.core.rpc();
        let wakers = [inner.driver.take(), inner.client.take()];
        drop(inner);
        if idle {
            tokio::spawn(Task::new(Arc::clone(self), work));
        }
        wakers.into_iter().flatten().for_each(Waker::wake);
        Some(rpc)
    }

    /// What the generation's first RPC wanted to see.
    pub fn delivery(&self) -> Delivery {
        self.lock().core.delivery()
    }

    /// The next frame of RPC number `rpc`.
    pub fn poll_next(&self, cx: &mut Context<'_>, rpc: u64) -> Poll<Polled> {
        let mut inner = self.lock();
        let now = self.environment.clock.now();
        match inner.ask(|core| core.next_frame(now, rpc)) {
            Some(Next::Pending) => {
                inner.client = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(next) => Poll::Ready(Polled::Next(next)),
            None => {
                let driver = inner.driver.take();
                let account = inner.account();
                drop(inner);
                driver.into_iter().for_each(Waker::wake);
                Poll::Ready(Polled::Crashed(account))
            }
        }
    }

    /// The registry has forgotten it. The message goes as soon as no RPC has it, even if one that was
    /// given up still hangs.
    fn release(&self) {
        let mut inner = self.lock();
        inner.forgotten = true;
        inner.drop_unreachable(&self.environment.memory);
    }

    /// How the generation failed, once it has.
    pub fn failed(&self) -> Option<Failed> {
        self.lock().core.failed().cloned()
    }

    /// What was committed, without the message, once it is.
    fn committed(&self) -> Option<Committed> {
        self.lock().core.committed().cloned()
    }

    /// Lends the core to the driver and wakes the client if there is something for it.
    fn with_core(&self, f: impl FnOnce(Time, &mut Generation, &Environment)) {
        let memory = &self.environment.memory;
        let mut inner = self.lock();
        if inner.crashed {
            return;
        }
        let now = self.environment.clock.now();
        f(now, &mut inner.core, &self.environment);
        if inner.count(memory) {
            drop(inner);
            let has_room = self.registry.make_room();
            inner = self.lock();
            if !has_room {
                inner
                    .core
                    .handle(now, Event::OutOfMemory, &*self.environment);
                inner.count(memory);
            }
        }
        let waker = match inner.core.has_frame() {
            true => inner.client.take(),
            false => None,
        };
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Something about the exchange of an attempt.
    fn tell(&self, attempt: u32, signal: Upstream<'_>) {
        self.with_core(|now, core, environment| {
            core.handle(now, Event::Upstream { attempt, signal }, environment);
        });
    }

    /// The request of `attempt` is about to leave: from here on it may have. `false` if the attempt has
    /// ended.
    fn leaves(&self, attempt: u32) -> bool {
        let mut runs = false;
        self.with_core(|now, core, environment| {
            let signal = Upstream::Sent;
            core.handle(now, Event::Upstream { attempt, signal }, environment);
            runs = core.runs(attempt);
        });
        runs
    }

    /// The driver unwound: a bug of ours, which ends the generation. `false` if the core does not even
    /// take that.
    fn end_crashed(&self) -> bool {
        let mut inner = self.lock();
        let now = self.environment.clock.now();
        let ended = inner.ask(|core| core.handle(now, Event::Crashed, &*self.environment));
        inner.count(&self.environment.memory);
        let waker = inner.client.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        ended.is_some()
    }

    /// There is no driver any more and no end either: whoever waits is told so.
    fn crashed(&self) {
        let waker = {
            let mut inner = self.lock();
            inner.crashed = true;
            inner.driving = false;
            inner.client.take()
        };
        self.registry.ended(self);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Asks the core from outside of its driver. `None` if it unwinds, now or before: a bug of ours,
    /// which takes nothing else down.
    fn ask<R>(&mut self, f: impl FnOnce(&mut Generation) -> R) -> Option<R> {
        if self.crashed {
            return None;
        }
        let core = &mut self.core;
        // The core is not asked again but for its account.
        let answer = catch_unwind(AssertUnwindSafe(|| f(core))).ok();
        self.crashed = answer.is_none();
        answer
    }

    fn account(&self) -> Box<Ledger> {
        let account = catch_unwind(AssertUnwindSafe(|| self.core.account()));
        Box::new(account.unwrap_or_default())
    }

    /// Keeps the environment's count of transcript bytes true; whether it is over its bound.
    fn count(&mut self, memory: &Memory) -> bool {
        let bytes = self.core.transcript_bytes().next_multiple_of(COUNT_STEP);
        let over = memory.change(self.counted, bytes);
        self.counted = bytes;
        over
    }

    /// Drops the message if nobody can get it any more.
    fn drop_unreachable(&mut self, memory: &Memory) {
        if self.forgotten && self.core.is_settled() {
            self.core.drop_message();
            self.count(memory);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.environment.memory.change(inner.counted, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each open stream pays for these; docs/performance.md has the whole account.
    #[test]
    fn an_open_generation_is_small() {
        let sizes = [
            ("task", size_of::<Task>(), 1024),
            ("session", size_of::<Session>(), 1792),
        ];
        for (what, size, most) in sizes {
            println!("{what}: {size} bytes");
            assert!(size <= most, "{what}: {size} bytes, over {most}");
        }
    }
}
