//! The driver of one generation: one task that carries out the core's commands and hands it what
//! happens, until the generation has ended and nobody is attached.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll},
    thread,
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use tokio::time::Sleep;

use super::{Session, Work};
use crate::{
    protocol::Decoder,
    recovery::{Command, Event, Time, Upstream as Seen},
    upstream::{Exchange, Signal, Slot, SlotFuture},
    verdict::{self, Class, Failure, Origin, Stage, http::HttpEvidence},
};

/// How much of an error's body is read. Fixed.
const ERROR_BODY_BYTES: usize = 64 << 10;

/// For how long an error's body is read. Fixed.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// Signals taken from an exchange in one go. Then the clock is looked at, however much more lies there,
/// and other tasks have their turn: a provider that is never out of bytes must not stop either. Fixed.
const SIGNALS_AT_ONCE: u32 = 64;

/// Headers in which providers give their id of a request.
const REQUEST_ID_HEADERS: [&str; 4] = [
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-generation-id",
];

/// Drives `session` until it is settled. A panic, which is a bug of ours, ends the generation and
/// nothing else; the account of what was sent is the core's, and stays.
pub(super) async fn drive(session: Arc<Session>, work: Work) {
    let mut guard = CrashGuard(Arc::downgrade(&session));
    let driver = Driver::new(Arc::clone(&session), work);
    if contained(driver.run()).await.is_err() {
        if !session.end_crashed() {
            return;
        }
        Driver::new(session, Work::default()).run().await;
    }
    guard.disarm();
}

/// `work`, its panic caught.
async fn contained(work: impl Future<Output = ()>) -> thread::Result<()> {
    let mut work = pin!(work);
    // What `work` holds is dropped; the session's lock tells whether the core was touched.
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

/// Drives one session. See the contract in `recovery`.
pub(super) struct Driver {
    pub(super) session: Arc<Session>,
    pub(super) started: Time,
    commands: VecDeque<Command>,
    reservation: Option<Reservation>,
    slot: Option<(usize, Box<dyn Slot>)>,
    running: Option<Running>,
    /// Signals since the exchange last had none.
    signals: u32,
    sleep: Pin<Box<Sleep>>,
    /// For when `sleep` is set.
    armed: Option<Time>,
    pub(super) work: Work,
}

struct Reservation {
    target: usize,
    slot: SlotFuture,
    told: bool,
}

struct Running {
    attempt: u32,
    target: usize,
    exchange: Box<dyn Exchange>,
    response: Response,
}

/// What is done with body bytes.
enum Response {
    /// No head yet.
    Awaited,
    /// They are the stream.
    Stream(Box<dyn Decoder>),
    /// They are an error's body.
    Error(ErrorBody),
}

struct ErrorBody {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    until: Time,
}

impl Driver {
    fn new(session: Arc<Session>, work: Work) -> Self {
        Self {
            started: session.environment.clock.now(),
            session,
            commands: VecDeque::new(),
            reservation: None,
            slot: None,
            running: None,
            signals: 0,
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed: None,
            work,
        }
    }

    async fn run(mut self) {
        while !self.carry_out() {
            poll_fn(|cx| self.poll_step(cx)).await;
        }
    }

    /// Carries out all commands; whether the work is done.
    fn carry_out(&mut self) -> bool {
        loop {
            let (timeout, settled) = {
                let mut inner = self.session.lock();
                while let Some(command) = inner.core.poll_command() {
                    self.commands.push_back(command);
                }
                let settled = self.commands.is_empty() && inner.core.is_settled();
                if settled {
                    inner.driving = false;
                    inner.release(&self.session.environment.memory);
                }
                (inner.core.poll_timeout(), settled)
            };
            if settled {
                return true;
            }
            if self.commands.is_empty() {
                self.arm(timeout);
                return false;
            }
            while let Some(command) = self.commands.pop_front() {
                self.obey(command);
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Reserve { target } => {
                if let Some(planned) = self.work.plan.targets.get(target) {
                    let slot = self
                        .session
                        .environment
                        .upstream
                        .slot(&planned.provider.endpoint);
                    self.reservation = Some(Reservation {
                        target,
                        slot,
                        told: false,
                    });
                }
            }
            Command::Send {
                attempt,
                target,
                credential,
            } => self.send(attempt, target, credential),
            Command::Abort { condemn } => {
                self.reservation = None;
                self.slot = None;
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

    fn send(&mut self, attempt: u32, target: usize, credential: Option<usize>) {
        let Some(planned) = self.work.plan.targets.get(target) else {
            return;
        };
        let slot = self.slot.take().filter(|(reserved, _)| *reserved == target);
        let (Some((_, slot)), Some(request)) = (slot, planned.request(credential)) else {
            let message = "the request could not be prepared";
            let failure = Failure::new(Class::Unclassified, Origin::Us, Stage::Connect, message);
            return self.tell(attempt, Seen::Failed(failure));
        };
        let upstream = &self.session.environment.upstream;
        let exchange = upstream.open(&planned.provider.endpoint, slot, request);
        self.running = Some(Running {
            attempt,
            target,
            exchange,
            response: Response::Awaited,
        });
    }

    /// Waits until something happened. What lies in the exchange comes before any timer, as long as it
    /// comes to an end.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        {
            let mut inner = self.session.lock();
            let nudged = std::mem::take(&mut inner.nudged);
            if nudged || inner.core.has_command() {
                return Poll::Ready(());
            }
            if !inner
                .driver
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                inner.driver = Some(cx.waker().clone());
            }
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

    fn poll_reservation(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(reservation) = &mut self.reservation else {
            return Poll::Pending;
        };
        let event = match reservation.slot.as_mut().poll(cx) {
            Poll::Ready(Ok(slot)) => {
                self.slot = Some((reservation.target, slot));
                self.reservation = None;
                Event::Reserved
            }
            Poll::Ready(Err(full)) => {
                self.reservation = None;
                let message = full.to_string();
                let failure = Failure::new(Class::NoTarget, Origin::Us, Stage::Admission, message);
                Event::ReservationRefused(failure)
            }
            Poll::Pending if reservation.told => return Poll::Pending,
            Poll::Pending => {
                reservation.told = true;
                Event::Queued
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

    fn on_signal(&mut self, signal: Signal) {
        let Some(running) = &mut self.running else {
            return;
        };
        let attempt = running.attempt;
        match (signal, &mut running.response) {
            (Signal::Sent, _) => self.tell(attempt, Seen::Sent),
            (Signal::Head { status, headers }, _) => self.on_head(status, headers),
            (Signal::Data(bytes), Response::Stream(_)) => self.decode(&bytes),
            (Signal::Data(bytes), Response::Error(error)) => {
                let room = ERROR_BODY_BYTES.saturating_sub(error.body.len());
                let piece = bytes.get(..room).unwrap_or(&bytes);
                error.body.extend_from_slice(piece);
                if error.body.len() >= ERROR_BODY_BYTES {
                    self.error_body_ended(false);
                }
            }
            (Signal::End, Response::Error(_)) => self.error_body_ended(true),
            (Signal::Failed(_), Response::Error(_)) => self.error_body_ended(false),
            (Signal::End, _) => self.stream_ended(true, Seen::End),
            (Signal::Failed(error), _) => {
                let failure = verdict::transport::classify(&error);
                self.stream_ended(false, Seen::Failed(failure));
            }
            (Signal::Data(_), Response::Awaited) => {}
        }
    }

    fn on_head(&mut self, status: StatusCode, headers: HeaderMap) {
        let Some(running) = &mut self.running else {
            return;
        };
        let (attempt, target) = (running.attempt, running.target);
        let request_id = REQUEST_ID_HEADERS
            .iter()
            .find_map(|name| headers.get(*name)?.to_str().ok());
        let request_id = request_id.map(|id| id.chars().take(256).collect::<String>());
        let decoder = self
            .work
            .plan
            .targets
            .get(target)
            .and_then(|planned| planned.decoder(self.work.plan.native_events));
        running.response = match decoder {
            Some(decoder) if status.is_success() => Response::Stream(decoder),
            _ => Response::Error(ErrorBody {
                status,
                headers,
                body: Vec::new(),
                until: self.session.environment.clock.now() + ERROR_BODY_TIME,
            }),
        };
        let status = status.as_u16();
        self.tell(
            attempt,
            Seen::Head {
                status,
                request_id: request_id.as_deref(),
            },
        );
    }

    /// Decodes one read: one lock, and one wake-up of the client, for all its events.
    fn decode(&mut self, bytes: &[u8]) {
        let Some(Running {
            attempt,
            response: Response::Stream(decoder),
            ..
        }) = &mut self.running
        else {
            return;
        };
        let attempt = *attempt;
        self.session.with_core(|now, core, environment| {
            decoder.feed(bytes, &mut |event| {
                let event = Event::Upstream {
                    attempt,
                    signal: Seen::Decoded(event),
                };
                core.handle(now, event, environment);
            });
        });
    }

    fn stream_ended(&mut self, clean: bool, end: Seen<'_>) {
        let Some(running) = &mut self.running else {
            return;
        };
        let attempt = running.attempt;
        let response = &mut running.response;
        self.session.with_core(|now, core, environment| {
            if let Response::Stream(decoder) = response {
                decoder.end(clean, &mut |event| {
                    let event = Event::Upstream {
                        attempt,
                        signal: Seen::Decoded(event),
                    };
                    core.handle(now, event, environment);
                });
            }
            core.handle(
                now,
                Event::Upstream {
                    attempt,
                    signal: end,
                },
                environment,
            );
        });
    }

    fn error_body_ended(&mut self, body_complete: bool) {
        let Some(Running {
            attempt,
            response: Response::Error(error),
            ..
        }) = &self.running
        else {
            return;
        };
        let failure = verdict::http::classify(&HttpEvidence {
            status: error.status.as_u16(),
            headers: &error.headers,
            body: &error.body,
            body_complete,
            now_wall: Some(self.session.environment.clock.wall_now()),
        });
        self.tell(*attempt, Seen::Failed(failure));
    }

    fn tell(&self, attempt: u32, signal: Seen<'_>) {
        self.handle(Event::Upstream { attempt, signal });
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

/// Tells the session when nothing drives it any more, so that its RPC still gets an end.
struct CrashGuard(Weak<Session>);

impl CrashGuard {
    fn disarm(&mut self) {
        self.0 = Weak::new();
    }
}

impl Drop for CrashGuard {
    fn drop(&mut self) {
        if let Some(session) = self.0.upgrade() {
            session.crashed();
        }
    }
}
