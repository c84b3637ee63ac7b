//! A connection's place among its endpoint's, counted while it is open.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use tokio::sync::OwnedSemaphorePermit;

/// Held by a connection; given back when it closes.
pub(super) struct Counted {
    _place: OwnedSemaphorePermit,
    open: Arc<AtomicI64>,
}

impl Counted {
    /// One more connection is open.
    pub(super) fn new(place: OwnedSemaphorePermit, open: &Arc<AtomicI64>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self {
            _place: place,
            open: Arc::clone(open),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
