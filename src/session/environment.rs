//! What all sessions work with.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio_util::task::TaskTracker;

use crate::{
    clock::Clock,
    recovery::{Access, Commons},
    upstream::Upstream,
};

/// The clock, the door out, and what generations share.
pub struct Environment {
    /// The one clock.
    pub clock: Clock,
    /// The one door out.
    pub upstream: Arc<dyn Upstream>,
    /// Counts the tasks of sessions and RPCs.
    pub tasks: TaskTracker,
    /// Transcripts together.
    pub memory: Memory,
    commons: Mutex<Commons>,
}

impl Environment {
    /// An environment in which nothing has happened yet.
    pub fn new(
        clock: Clock,
        upstream: Arc<dyn Upstream>,
        commons: Commons,
        max_total_bytes: usize,
    ) -> Self {
        Self {
            clock,
            upstream,
            tasks: TaskTracker::new(),
            memory: Memory::new(max_total_bytes),
            commons: Mutex::new(commons),
        }
    }
}

impl Access for Environment {
    fn with<R>(&self, f: impl FnOnce(&mut Commons) -> R) -> R {
        f(&mut self.commons.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts the bytes of all transcripts against one bound.
#[derive(Debug)]
pub struct Memory {
    bytes: AtomicUsize,
    max: usize,
}

impl Memory {
    fn new(max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), max }
    }

    /// All transcripts together.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the bound is reached.
    pub fn is_full(&self) -> bool {
        self.bytes() >= self.max
    }

    /// One transcript changes its size; whether the bound is passed by growing.
    pub(super) fn change(&self, from: usize, to: usize) -> bool {
        if to >= from {
            let grown = to - from;
            let before = self.bytes.fetch_add(grown, Ordering::Relaxed);
            grown > 0 && before.saturating_add(grown) > self.max
        } else {
            self.bytes.fetch_sub(from - to, Ordering::Relaxed);
            false
        }
    }
}
