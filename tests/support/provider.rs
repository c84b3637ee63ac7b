//! A provider at the seam: for each send a script of signals and waits, and a record of what became
//! of it. No socket, no real time.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use redrive::{
    upstream::{
        Endpoint, Exchange, Permit, QueueFull, Request, Signal, Slot, SlotFuture, Upstream,
    },
    verdict::{
        Stage,
        transport::{TransportError, TransportKind},
    },
};
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep},
};

use super::chat;

#[derive(Clone, Debug)]
enum Step {
    Wait(Duration),
    Sent,
    Head(StatusCode, HeaderMap),
    Data(Bytes),
    End,
    Fail(TransportKind, Stage),
    Panic,
}

/// What the provider does with one send. Where a script ends it falls silent.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    headers: HeaderMap,
}

/// The connection never opens.
pub fn connecting() -> Script {
    Script::default()
}

/// The request is handed over, and nothing comes back.
pub fn sent() -> Script {
    Script::default().step(Step::Sent)
}

/// A response with this status.
pub fn status(status: u16) -> Script {
    sent().head(status)
}

/// The head of an event stream.
pub fn stream() -> Script {
    sent()
        .header("content-type", "text/event-stream")
        .header("x-request-id", "req-1")
        .head(200)
}

/// A whole answer.
pub fn answer(text: &str) -> Script {
    stream().text(text).complete()
}

impl Script {
    fn step(mut self, step: Step) -> Script {
        self.steps.push_back(step);
        self
    }

    /// The request is handed over now, if it still may be.
    pub fn hand_over(self) -> Script {
        self.step(Step::Sent)
    }

    /// For the next head.
    pub fn header(mut self, name: &'static str, value: &str) -> Script {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    pub fn head(mut self, status: u16) -> Script {
        let headers = std::mem::take(&mut self.headers);
        self.step(Step::Head(StatusCode::from_u16(status).unwrap(), headers))
    }

    pub fn data(self, bytes: impl Into<Bytes>) -> Script {
        self.step(Step::Data(bytes.into()))
    }

    /// These bytes come before the first ones of the body.
    pub fn before(mut self, bytes: impl Into<Bytes>) -> Script {
        let head = self
            .steps
            .iter()
            .position(|step| matches!(step, Step::Head(..)));
        let body = head.map_or(0, |head| head + 1);
        self.steps.insert(body, Step::Data(bytes.into()));
        self
    }

    pub fn text(self, text: &str) -> Script {
        self.data(chat::text(text))
    }

    pub fn keepalive(self) -> Script {
        self.data(chat::KEEPALIVE)
    }

    pub fn wait(self, length: Duration) -> Script {
        self.step(Step::Wait(length))
    }

    /// Finish reason, usage, `[DONE]` and the end.
    pub fn complete(self) -> Script {
        self.data(chat::finish("stop"))
            .data(chat::usage(7, 3))
            .data(chat::DONE)
            .end()
    }

    pub fn end(self) -> Script {
        self.step(Step::End)
    }

    /// The connection breaks in the middle of the body.
    pub fn reset(self) -> Script {
        self.fail(TransportKind::Reset, Stage::Stream)
    }

    pub fn fail(self, kind: TransportKind, stage: Stage) -> Script {
        self.step(Step::Fail(kind, stage))
    }

    /// A bug of ours in the exchange.
    pub fn panic(self) -> Script {
        self.step(Step::Panic)
    }

    /// Many small pieces, all at once.
    pub fn pieces(mut self, count: usize, piece: &str) -> Script {
        for _ in 0..count {
            self = self.text(piece);
        }
        self
    }

    /// Keepalives for `length`, one `every` so often.
    pub fn keepalives(mut self, length: Duration, every: Duration) -> Script {
        let mut passed = Duration::ZERO;
        while passed < length {
            self = self.wait(every).keepalive();
            passed += every;
        }
        self
    }
}

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in flight.
    Running,
    /// It was read to its end.
    Ended,
    /// It was dropped before its end.
    Aborted,
    /// The same, its connection given up.
    Condemned,
    /// Its answer was accepted before its end, the rest read aside.
    Drained,
}

/// One send, as the provider sees it.
#[derive(Clone, Debug)]
pub struct Received {
    /// The provider's name in the configuration.
    pub provider: String,
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub at: Instant,
    /// When it may have left.
    pub sent_at: Option<Instant>,
    /// The door said that the request may have left.
    pub sent: bool,
    /// A response head was taken.
    pub answered: bool,
    pub fate: Fate,
    pub ended_at: Option<Instant>,
}

/// The scripted door out.
#[derive(Clone)]
pub struct Provider(Arc<Shared>);

/// Makes the script for a send.
type Maker = Box<dyn FnMut(&Received) -> Script + Send>;

struct Shared {
    scripts: Mutex<VecDeque<Script>>,
    /// Where scripts come from when there are none.
    maker: Mutex<Option<Maker>>,
    received: Mutex<Vec<Received>>,
    slots: Arc<Semaphore>,
    max_slots: usize,
    waiting: AtomicUsize,
    queue_is_full: AtomicBool,
}

impl Received {
    /// The body, which is JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Provider {
    pub fn new(max_slots: usize) -> Provider {
        Provider(Arc::new(Shared {
            scripts: Mutex::default(),
            maker: Mutex::default(),
            received: Mutex::default(),
            slots: Arc::new(Semaphore::new(max_slots)),
            max_slots,
            waiting: AtomicUsize::new(0),
            queue_is_full: AtomicBool::new(false),
        }))
    }

    /// What it does with the next send for which there is no script yet.
    pub fn then(&self, script: Script) -> &Provider {
        self.0.scripts.lock().unwrap().push_back(script);
        self
    }

    /// What it does with every further send.
    pub fn always(&self, mut make: impl FnMut() -> Script + Send + 'static) {
        self.by(move |_| make());
    }

    /// The same, depending on the send.
    pub fn by(&self, make: impl FnMut(&Received) -> Script + Send + 'static) {
        *self.0.maker.lock().unwrap() = Some(Box::new(make));
    }

    /// From now on nobody may wait for a connection.
    pub fn fill_queue(&self) {
        self.0.queue_is_full.store(true, Ordering::SeqCst);
    }

    /// Everything it was sent.
    pub fn received(&self) -> Vec<Received> {
        self.0.received.lock().unwrap().clone()
    }

    pub fn sends(&self) -> usize {
        self.0.received.lock().unwrap().len()
    }

    pub fn fates(&self) -> Vec<Fate> {
        self.received().iter().map(|send| send.fate).collect()
    }

    /// How many sends may have reached it.
    pub fn may_have_received(&self) -> usize {
        self.received().iter().filter(|send| send.sent).count()
    }

    /// Whether nobody but its record has the body of a send any more.
    pub fn body_was_let_go(&self, index: usize) -> bool {
        self.0.received.lock().unwrap()[index].body.is_unique()
    }

    /// How long the time was between one send's end (or start) and the next one's start.
    pub fn gap(&self, index: usize) -> Duration {
        let received = self.received();
        let before = &received[index];
        received[index + 1].at - before.ended_at.unwrap_or(before.at)
    }

    /// Asserts that nothing is held and every script was played.
    pub fn assert_at_rest(&self) {
        let fates = self.fates();
        assert!(!fates.contains(&Fate::Running), "in flight: {fates:?}");
        let free = self.0.slots.available_permits();
        assert_eq!(free, self.0.max_slots, "connection slots that are free");
        let waiting = self.0.waiting.load(Ordering::SeqCst);
        assert_eq!(waiting, 0, "waiting for a slot");
        let left = self.0.scripts.lock().unwrap().len();
        assert_eq!(left, 0, "scripts that were not played");
    }
}

impl Upstream for Provider {
    fn slot(&self, _: &Arc<Endpoint>) -> SlotFuture {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            if let Ok(permit) = Arc::clone(&shared.slots).try_acquire_owned() {
                return Ok(Box::new(Held(permit)) as Box<dyn Slot>);
            }
            if shared.queue_is_full.load(Ordering::SeqCst) {
                return Err(QueueFull);
            }
            let _waiting = Waiting::enter(&shared);
            let permit = Arc::clone(&shared.slots).acquire_owned().await.unwrap();
            Ok(Box::new(Held(permit)) as Box<dyn Slot>)
        })
    }

    fn open(
        &self,
        endpoint: &Arc<Endpoint>,
        slot: Box<dyn Slot>,
        request: Request,
        permit: Option<Box<dyn Permit>>,
    ) -> Box<dyn Exchange> {
        let script = self.0.scripts.lock().unwrap().pop_front();
        let send = Received {
            provider: endpoint.name.clone(),
            method: request.method,
            path: request.path,
            headers: request.headers,
            body: request.body,
            at: Instant::now(),
            sent_at: None,
            sent: false,
            answered: false,
            fate: Fate::Running,
            ended_at: None,
        };
        let mut maker = self.0.maker.lock().unwrap();
        let script = script.or_else(|| maker.as_mut().map(|make| make(&send)));
        let mut received = self.0.received.lock().unwrap();
        received.push(send);
        assert!(script.is_some(), "a send that no script expects");
        Box::new(Played {
            index: received.len() - 1,
            shared: Arc::clone(&self.0),
            steps: script.unwrap().steps,
            sleep: None,
            fate: Fate::Aborted,
            permit,
            _slot: slot,
        })
    }
}

struct Held(#[allow(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Slot for Held {}

struct Waiting(Arc<Shared>);

impl Waiting {
    fn enter(shared: &Arc<Shared>) -> Waiting {
        shared.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(Arc::clone(shared))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Played {
    index: usize,
    shared: Arc<Shared>,
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
    fate: Fate,
    permit: Option<Box<dyn Permit>>,
    _slot: Box<dyn Slot>,
}

impl Exchange for Played {
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        assert!(self.fate != Fate::Ended, "polled after its end");
        loop {
            if let Some(sleep) = &mut self.sleep {
                std::task::ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            let signal = match self.steps.pop_front() {
                None => return Poll::Pending,
                Some(Step::Wait(length)) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep(length)));
                    continue;
                }
                Some(Step::Panic) => panic!("a bug of ours, on purpose"),
                Some(Step::Sent) if self.permit.take().is_some_and(|mut p| !p.leave()) => {
                    self.fate = Fate::Ended;
                    Signal::Failed(TransportError {
                        kind: TransportKind::NotSentInTime,
                        stage: Stage::Connect,
                        detail: "the time to send had passed".to_owned(),
                    })
                }
                Some(Step::Sent) => {
                    let send = &mut self.shared.received.lock().unwrap()[self.index];
                    send.sent = true;
                    send.sent_at = Some(Instant::now());
                    Signal::Sent
                }
                Some(Step::Head(status, headers)) => {
                    self.shared.received.lock().unwrap()[self.index].answered = true;
                    Signal::Head { status, headers }
                }
                Some(Step::Data(bytes)) => Signal::Data(bytes),
                Some(Step::End) => {
                    self.fate = Fate::Ended;
                    Signal::End
                }
                Some(Step::Fail(kind, stage)) => {
                    self.fate = Fate::Ended;
                    let detail = "scripted".to_owned();
                    Signal::Failed(TransportError {
                        kind,
                        stage,
                        detail,
                    })
                }
            };
            return Poll::Ready(signal);
        }
    }

    fn condemn(&mut self) {
        self.fate = Fate::Condemned;
    }

    fn drain(mut self: Box<Self>) {
        if self.fate == Fate::Aborted {
            self.fate = Fate::Drained;
        }
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let mut received = self.shared.received.lock().unwrap();
        received[self.index].fate = self.fate;
        received[self.index].ended_at = Some(Instant::now());
    }
}
