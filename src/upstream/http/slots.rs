//! Places among an endpoint's connections, given in order of asking.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::{QueueFull, Slot};

/// How many generations may wait for one endpoint; beyond it they are refused.
const MAX_WAITING: usize = 1024;

/// Streams on one HTTP/2 connection at most: when it dies, this many generations are replayed.
pub(super) const MAX_STREAMS: usize = 16;

/// The slots of one endpoint.
pub(super) struct Slots {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    multiplexed: AtomicBool,
    max_connections: usize,
}

impl Slots {
    pub(super) fn new(max_connections: usize, multiplexed: bool) -> Self {
        let per_connection = if multiplexed { MAX_STREAMS } else { 1 };
        Self {
            free: Arc::new(Semaphore::new(max_connections * per_connection)),
            waiting: AtomicUsize::new(0),
            multiplexed: AtomicBool::new(multiplexed),
            max_connections,
        }
    }

    /// Takes a slot, ready at once where one is free.
    pub(super) async fn take(&self) -> Result<HeldSlot, QueueFull> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(HeldSlot(Some(permit)));
        }
        let _waiting = Waiting::enter(&self.waiting).ok_or(QueueFull)?;
        // The semaphore is never closed; a closed one would limit nothing.
        Ok(HeldSlot(self.free.clone().acquire_owned().await.ok()))
    }

    /// The peer speaks HTTP/2: its connections carry several exchanges each.
    pub(super) fn multiplex(&self) {
        if !self.multiplexed.swap(true, Ordering::Relaxed) {
            self.free
                .add_permits(self.max_connections * (MAX_STREAMS - 1));
        }
    }
}

/// A slot; dropping it lets the next one in.
pub(super) struct HeldSlot(
    #[allow(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>,
);

impl Slot for HeldSlot {}

/// One place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Option<Self> {
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < MAX_WAITING).then_some(n + 1)
            })
            .ok()?;
        Some(Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
