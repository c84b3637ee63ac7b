//! IO. One generation at work: the core behind its lock, the driver that carries out its commands, and
//! the view that an RPC has of it.
//!
//! Owns a generation's task, its exchange and its decoder. Decides nothing: every decision is the
//! core's. A session has one lock, its own, held for the handling of one read or one frame and never
//! across an await.

mod driver;
mod environment;
mod observe;
mod plan;
mod registry;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

pub use environment::{Environment, Memory};
pub use plan::{Plan, PlannedTarget};
pub use registry::{Registry, StartOutcome};

use crate::{
    proto::{Committed, Delivery, Failed},
    recovery::{Event, Generation, Next, Time},
    telemetry::{GenerationObserver, SpanContext},
};

/// A running or kept generation.
pub struct Session {
    /// The generation's id.
    pub id: String,
    /// The client's idempotency key, if it gave one.
    pub request_id: Option<String>,
    /// Tells two starts with the same request id apart.
    pub body_hash: u64,
    environment: Arc<Environment>,
    registry: Arc<Registry>,
    /// The generation's span, for the RPCs that attach to it.
    pub span: SpanContext,
    inner: Mutex<Inner>,
}

/// What a session is made of.
pub struct Parts {
    /// The generation's id.
    pub id: String,
    /// The client's idempotency key, if it gave one.
    pub request_id: Option<String>,
    /// Tells two starts with the same request id apart.
    pub body_hash: u64,
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
    /// Something came from outside since the driver last looked: its timers or its end may have
    /// changed without a command.
    nudged: bool,
    /// Until the first driver takes it.
    work: Work,
    crashed: bool,
    /// Nobody can attach any more.
    forgotten: bool,
    /// What of the transcript is counted in the environment's memory.
    counted: usize,
}

/// What the first driver takes along and later ones (for a client that attaches after the end) do not
/// have: a request is not kept for as long as a result.
#[derive(Default)]
struct Work {
    plan: Plan,
    observer: Option<GenerationObserver>,
}

/// What an RPC gets from its session.
pub enum Polled {
    /// What the core says.
    Next(Next),
    /// The driver died of a bug of ours; the RPC owes its client an end.
    Crashed,
}

impl Session {
    /// A session that is not driven yet.
    pub fn new(parts: Parts, registry: Arc<Registry>, environment: Arc<Environment>) -> Arc<Self> {
        let Parts {
            id,
            request_id,
            body_hash,
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
            nudged: false,
            work: Work {
                plan,
                observer: Some(observer),
            },
            crashed: false,
            forgotten: false,
            counted: 0,
        };
        let inner = Mutex::new(inner);
        Arc::new(Self {
            id,
            request_id,
            body_hash,
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
        self.handle_if(|core| core.rpc() == rpc, event);
    }

    /// Another RPC takes over; its number.
    pub fn attach(self: &Arc<Self>, delivery: Delivery, caller_deadline: Option<Time>) -> u64 {
        self.handle_if(
            |_| true,
            Event::Attach {
                delivery,
                caller_deadline,
            },
        )
    }

    /// The number of the newest RPC after `event`, which is handed in only if the core still is as
    /// `condition` says.
    fn handle_if(
        self: &Arc<Self>,
        condition: impl FnOnce(&Generation) -> bool,
        event: Event<'_>,
    ) -> u64 {
        let mut inner = self.lock();
        if !condition(&inner.core) || inner.crashed {
            return inner.core.rpc();
        }
        inner
            .core
            .handle(self.environment.clock.now(), event, &*self.environment);
        inner.count(&self.environment.memory);
        inner.nudged = true;
        if !inner.driving {
            inner.driving = true;
            let work = std::mem::take(&mut inner.work);
            self.environment
                .spawn(driver::drive(Arc::clone(self), work));
        }
        let rpc = inner.core.rpc();
        let wakers = [inner.driver.take(), inner.client.take()];
        drop(inner);
        wakers.into_iter().flatten().for_each(Waker::wake);
        rpc
    }

    /// The next frame of RPC number `rpc`.
    pub fn poll_next(&self, cx: &mut Context<'_>, rpc: u64) -> Poll<Polled> {
        let mut inner = self.lock();
        if inner.crashed {
            return Poll::Ready(Polled::Crashed);
        }
        match inner.core.next_frame(self.environment.clock.now(), rpc) {
            Next::Pending => {
                inner.client = Some(cx.waker().clone());
                Poll::Pending
            }
            next => Poll::Ready(Polled::Next(next)),
        }
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
        let waker = {
            let mut inner = self.lock();
            let now = self.environment.clock.now();
            f(now, &mut inner.core, &self.environment);
            if inner.count(&self.environment.memory) && !self.registry.make_room() {
                inner
                    .core
                    .handle(now, Event::OutOfMemory, &*self.environment);
                inner.count(&self.environment.memory);
            }
            if inner.core.has_frame() {
                inner.client.take()
            } else {
                None
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The driver unwound: a bug of ours, which ends the generation. `false` if the core itself
    /// unwound, which is not to be asked again.
    fn end_crashed(&self) -> bool {
        let sound = !self.inner.is_poisoned();
        if sound {
            self.with_core(|now, core, environment| core.handle(now, Event::Crashed, environment));
        }
        sound
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

    /// Nobody can attach any more: the message goes as soon as nobody is given it.
    fn forget(&self) {
        let mut inner = self.lock();
        inner.forgotten = true;
        inner.release(&self.environment.memory);
    }

    /// Whether there is a terminal frame.
    pub fn has_ended(&self) -> bool {
        let inner = self.lock();
        inner.crashed || inner.core.has_ended()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Keeps the environment's count of transcript bytes true; whether it is over its bound.
    fn count(&mut self, memory: &Memory) -> bool {
        let bytes = self.core.transcript_bytes();
        let over = memory.change(self.counted, bytes);
        self.counted = bytes;
        over
    }

    /// Drops the message if nobody will ask for it. An RPC that takes nothing holds its session for
    /// as long as its connection lives, but not this.
    fn release(&mut self, memory: &Memory) {
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
