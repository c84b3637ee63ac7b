//! An endpoint's connections: who may open one, and which open one serves next.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicI64},
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, oneshot},
    time,
};

use super::{
    super::{Endpoint, Http2},
    counted::Counted,
    dial,
    errors::unsent,
    h1, h2,
    link::Link,
    slots::Slots,
    target::Target,
    tls::{self, Tls},
};
use crate::verdict::transport::{TransportError, TransportKind};

/// How long an idle HTTP/1.1 connection is kept, unless its peer closes it before.
const MAX_IDLE: Duration = Duration::from_secs(90);

/// One endpoint: its address, its slots and its connections.
pub(super) struct Site {
    pub(super) endpoint: Endpoint,
    pub(super) target: Result<Target, String>,
    pub(super) tls: Result<Tls, String>,
    pub(super) slots: Slots,
    /// Told when a connection came or a stream's place became free.
    pub(super) changed: Notify,
    connections: Arc<Semaphore>,
    /// Connections of the whole door that are open.
    count: Arc<AtomicI64>,
    open: Mutex<Open>,
}

/// What is open and may be used.
#[derive(Default)]
struct Open {
    /// Newest last: it is used first, so that the others can grow old.
    idle: Vec<Kept>,
    sessions: Vec<h2::Session>,
}

impl Site {
    pub(super) fn new(endpoint: &Endpoint, count: &Arc<AtomicI64>) -> Arc<Self> {
        let multiplexed = endpoint.http2 == Http2::PriorKnowledge;
        Arc::new(Self {
            target: Target::parse(&endpoint.base_url),
            tls: tls::configure(endpoint),
            slots: Slots::new(endpoint.max_connections.max(1), multiplexed),
            changed: Notify::new(),
            connections: Arc::new(Semaphore::new(endpoint.max_connections.max(1))),
            count: Arc::clone(count),
            open: Mutex::default(),
            endpoint: endpoint.clone(),
        })
    }

    /// A connection for one exchange: an open one, or a new one. Sends nothing of a request.
    pub(super) async fn link(self: Arc<Self>) -> Result<Link, TransportError> {
        loop {
            let changed = self.changed.notified();
            if let Some(link) = self.reuse().await {
                return Ok(link);
            }
            tokio::select! {
                biased;
                place = self.connections.clone().acquire_owned() => {
                    let place = place.map_err(|_| unsent(TransportKind::Connect, "closed"))?;
                    return self.dial(Counted::new(place, &self.count)).await;
                }
                () = changed => {}
            }
        }
    }

    async fn reuse(self: &Arc<Self>) -> Option<Link> {
        if let Some(lane) = self.lane() {
            return Some(Link::Http2(lane));
        }
        while let Some(kept) = self.take_idle() {
            if let Some(link) = kept.claim().await {
                return Some(Link::Http1(link));
            }
        }
        None
    }

    async fn dial(self: &Arc<Self>, counted: Counted) -> Result<Link, TransportError> {
        let (io, http2) = dial::connect(self).await?;
        if !http2 {
            let link = h1::Link::new(io, counted).await;
            return link
                .map(Link::Http1)
                .map_err(|e| unsent(TransportKind::Connect, e.to_string()));
        }
        let session = h2::Session::start(io, counted, Arc::downgrade(self))
            .await
            .map_err(|e| {
                unsent(
                    TransportKind::Connect,
                    format!("HTTP/2 handshake failed: {e}"),
                )
            })?;
        let lane = session.lane(self, false);
        self.slots.multiplex();
        self.open().sessions.push(session);
        self.changed.notify_waiters();
        Ok(Link::Http2(lane))
    }

    /// Keeps an HTTP/1.1 connection that is ready for its next exchange.
    pub(super) fn keep(&self, link: h1::Link) {
        let mut open = self.open();
        open.idle.retain(Kept::is_open);
        open.idle.push(Kept::new(link));
        drop(open);
        self.changed.notify_waiters();
    }

    /// This HTTP/2 connection takes no further exchange; those on it go on.
    pub(super) fn forget(&self, control: &Arc<h2::Control>) {
        self.open().sessions.retain(|session| !session.is(control));
        self.changed.notify_waiters();
    }

    /// The same, unless an exchange came meanwhile.
    pub(super) fn forget_if_idle(&self, control: &Arc<h2::Control>) {
        self.open()
            .sessions
            .retain(|session| !(session.is(control) && session.is_idle()));
    }

    /// A place on the open HTTP/2 connection that carries the fewest exchanges.
    fn lane(self: &Arc<Self>) -> Option<h2::Lane> {
        let open = self.open();
        let free = open
            .sessions
            .iter()
            .filter_map(|session| Some((session.load()?, session)));
        free.min_by_key(|(load, _)| *load)
            .map(|(_, session)| session.lane(self, true))
    }

    fn take_idle(&self) -> Option<Kept> {
        self.open().idle.pop()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An idle HTTP/1.1 connection, watched by a task of its own so that a close is seen when it comes.
struct Kept(oneshot::Sender<oneshot::Sender<h1::Link>>);

impl Kept {
    fn new(link: h1::Link) -> Self {
        let (ask, asked) = oneshot::channel();
        tokio::spawn(watch(link, asked));
        Self(ask)
    }

    fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// The connection, unless it was closed meanwhile.
    async fn claim(self) -> Option<h1::Link> {
        let (give, given) = oneshot::channel();
        self.0.send(give).ok()?;
        let link = given.await.ok()?;
        // Lets the runtime look at its sockets once, so that a close which has already arrived is
        // seen before the hand-over and not after it.
        tokio::task::yield_now().await;
        Some(link)
    }
}

/// Holds an idle connection until it is asked for, closed by its peer, or old.
async fn watch(mut link: h1::Link, asked: oneshot::Receiver<oneshot::Sender<h1::Link>>) {
    let asker = tokio::select! {
        biased;
        () = poll_fn(|cx| link.poll_closed(cx)) => return,
        asker = asked => asker,
        () = time::sleep(MAX_IDLE) => return,
    };
    if let Ok(asker) = asker {
        // Nobody waits any more: the connection closes with the value.
        let _ = asker.send(link);
    }
}
