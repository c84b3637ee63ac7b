//! The driver of one generation: one task that carries out the core's commands and hands it what
//! happens, until the generation has ended and nobody is attached.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Sleep;

use super::{
    Environment, PlannedTarget, Session, Work,
    last_word::LastWord,
    plan::Asked,
    reservation::{Held, Progress, Reservation},
    response::Response,
};
use crate::{
    budgets::Lease,
    limits::{Spent, Weights},
    recovery::{Command, Event, FollowUp, Time, Upstream as Seen},
    upstream::{Exchange, Permit},
    verdict::{Class, Failure, Origin, Stage},
};

/// Signals taken from an exchange in one go. Then the clock is looked at, however much more lies there,
/// and other tasks have their turn: a provider that is never out of bytes must not stop either. Fixed.
const SIGNALS_AT_ONCE: u32 = 64;

/// How a driver's work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// The generation has ended and nobody is attached.
    Settled,
    /// The core unwound and is not asked again.
    Crashed,
}

/// Drives one session. See the contract in `recovery`.
pub(super) struct Driver {
    pub(super) session: Arc<Session>,
    pub(super) started: Time,
    commands: VecDeque<Command>,
    /// Boxed: it is there for a moment only.
    reservation: Option<Box<Reservation>>,
    held: Option<Box<Held>>,
    pub(super) running: Option<Running>,
    sleep: Pin<Box<Sleep>>,
    /// For when `sleep` is set.
    armed: Option<Time>,
    /// Signals since the exchange last had none.
    signals: u32,
    /// Until the end of the generation.
    pub(super) work: Option<Work>,
}

pub(super) struct Running {
    pub(super) attempt: u32,
    pub(super) target: usize,
    /// It reads a stored response on behind this event.
    pub(super) after: Option<u64>,
    exchange: Box<dyn Exchange>,
    /// Until it is settled; none where no budget matches.
    pub(super) lease: Option<Lease>,
    /// What was taken of budgets that count tokens.
    reserved: Weights,
    pub(super) response: Response,
}

impl Driver {
    pub(super) fn new(session: Arc<Session>, work: Option<Work>) -> Self {
        Self {
            started: session.environment.clock.now(),
            session,
            commands: VecDeque::new(),
            reservation: None,
            held: None,
            running: None,
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed: None,
            signals: 0,
            work,
        }
    }

    /// Carries out commands and takes what happened, until there is neither.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Done> {
        loop {
            if let Some(done) = self.carry_out(cx) {
                return Poll::Ready(done);
            }
            ready!(self.poll_step(cx));
        }
    }

    /// Carries out all commands; whether that was the last of the work. What comes from outside later
    /// wakes us.
    fn carry_out(&mut self, cx: &Context<'_>) -> Option<Done> {
        loop {
            let timeout = {
                let mut inner = self.session.lock();
                if inner.crashed {
                    return Some(Done::Crashed);
                }
                while let Some(command) = inner.core.poll_command() {
                    self.commands.push_back(command);
                }
                if self.commands.is_empty() && inner.core.is_settled() {
                    inner.driving = false;
                    inner.driver = None;
                    inner.drop_unreachable(&self.session.environment.memory);
                    return Some(Done::Settled);
                }
                match &mut inner.driver {
                    Some(waker) => waker.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                inner.core.poll_timeout()
            };
            if self.commands.is_empty() {
                self.arm(timeout);
                return None;
            }
            while let Some(command) = self.commands.pop_front() {
                self.obey(command);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Reserve {
                target,
                credentials,
                takes,
            } => {
                if let Some(planned) = self.planned(target) {
                    let Environment {
                        upstream, counters, ..
                    } = &*self.session.environment;
                    let reservation = Reservation::new(
                        target,
                        planned,
                        &credentials,
                        takes,
                        &**upstream,
                        counters,
                    );
                    self.held = None;
                    self.reservation = Some(Box::new(reservation));
                }
            }
            Command::Send {
                attempt,
                target,
                credential,
                hint,
                follow_up,
            } => {
                let asked = Asked {
                    hint: hint.as_ref(),
                    follow_up: follow_up.as_deref(),
                };
                self.send(attempt, target, credential, asked);
            }
            Command::Answered => {
                if let Some(lease) = self.running.as_ref().and_then(|r| r.lease.as_ref()) {
                    lease.answered();
                }
            }
            Command::Penalise { wait } => {
                if let Some(lease) = self.running.as_ref().and_then(|r| r.lease.as_ref()) {
                    lease.penalise(wait);
                }
            }
            Command::Settle(spent) => self.settle(spent),
            Command::Abort { condemn } => {
                self.reservation = None;
                self.held = None;
                if let Some(mut running) = self.running.take()
                    && condemn
                {
                    running.exchange.condemn();
                }
            }
            Command::Finish => {
                if let Some(running) = self.running.take() {
                    running.exchange.drain();
                }
            }
            Command::Observe(observation) => self.observe(observation),
        }
    }

    fn send(&mut self, attempt: u32, target: usize, credential: Option<usize>, asked: Asked<'_>) {
        let held = self.held.take().filter(|held| held.target == target);
        let Some(planned) = self.planned(target) else {
            return;
        };
        let (Some(held), Some(request)) = (held, planned.request(credential, asked)) else {
            let message = "the request could not be prepared";
            let failure = Failure::new(Class::Unclassified, Origin::Us, Stage::Connect, message);
            return self.tell(attempt, Seen::Failed(failure));
        };
        let upstream = &self.session.environment.upstream;
        let last_word = LastWord {
            session: Arc::clone(&self.session),
            attempt,
            lease: held.lease.as_ref().and_then(Lease::permit),
        };
        let permit = Some(Box::new(last_word) as Box<dyn Permit>);
        let exchange = upstream.open(&planned.provider.endpoint, held.slot, request, permit);
        self.running = Some(Running {
            attempt,
            target,
            after: match asked.follow_up {
                Some(FollowUp::Resume { after, .. }) => Some(*after),
                _ => None,
            },
            exchange,
            lease: held.lease,
            reserved: held.tokens,
            response: Response::Awaited,
        });
    }

    /// An estimated answer counts for no more than was reserved.
    fn settle(&mut self, spent: Spent) {
        let Some(running) = &mut self.running else {
            return;
        };
        let most = match spent.estimated {
            true => running.reserved.output_tokens,
            false => u64::MAX,
        };
        if let Some(lease) = running.lease.take() {
            lease.settle(Spent {
                output_tokens: spent.output_tokens.map(|tokens| tokens.min(most)),
                ..spent
            });
        }
    }

    /// Waits until something happened. A lease that is cut comes before all else; what lies in the exchange
    /// before any timer, as long as it comes to an end.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Between two signals in one go nothing can have changed that is not found at the next.
        if self.signals == 0 && self.poll_cut(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.signals == SIGNALS_AT_ONCE {
            self.signals = 0;
            self.on_time();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(running) = &mut self.running
            && let Poll::Ready(signal) = running.exchange.poll_signal(cx)
        {
            self.signals += 1;
            self.on_signal(signal);
            return Poll::Ready(());
        }
        self.signals = 0;
        if self.poll_reservation(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.armed.is_some() && self.sleep.as_mut().poll(cx).is_ready() {
            self.armed = None;
            self.on_time();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    pub(super) fn planned(&self, target: usize) -> Option<&PlannedTarget> {
        self.work.as_ref()?.plan.targets.get(target)
    }

    fn poll_reservation(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(reservation) = &mut self.reservation else {
            return Poll::Pending;
        };
        let environment = &self.session.environment;
        let progress = ready!(reservation.poll(cx, &*environment.upstream, &environment.budgets));
        reservation.observe(&progress, environment);
        let event = match progress {
            Progress::Held(held) => {
                let credential = held.credential;
                self.reservation = None;
                self.held = Some(Box::new(held));
                Event::Reserved { credential }
            }
            Progress::Waiting(wait) => Event::Waiting(wait),
            Progress::Refused(failure) => {
                self.reservation = None;
                Event::ReservationRefused(failure)
            }
        };
        self.handle(event);
        Poll::Ready(())
    }

    fn on_time(&mut self) {
        let now = self.session.environment.clock.now();
        if let Some(Running {
            response: Response::Error(error),
            ..
        }) = &self.running
            && error.until <= now
        {
            return self.error_body_ended(false);
        }
        let due = self
            .session
            .lock()
            .core
            .poll_timeout()
            .is_some_and(|due| due <= now);
        if due {
            self.handle(Event::TimerDue);
        }
    }

    pub(super) fn tell(&self, attempt: u32, signal: Seen<'_>) {
        self.session.tell(attempt, signal);
    }

    fn handle(&self, event: Event<'_>) {
        self.session
            .with_core(|now, core, environment| core.handle(now, event, environment));
    }

    /// Sets the alarm. One that is set earlier stays: when it goes off the time is looked at again,
    /// which is cheaper than moving it with every token.
    fn arm(&mut self, timeout: Option<Time>) {
        let error_body = match &self.running {
            Some(Running {
                response: Response::Error(error),
                ..
            }) => Some(error.until),
            _ => None,
        };
        let Some(due) = [timeout, error_body].into_iter().flatten().min() else {
            return;
        };
        if self.armed.is_none_or(|armed| due < armed) {
            self.sleep
                .as_mut()
                .reset(self.session.environment.clock.instant(due));
            self.armed = Some(due);
        }
    }
}
