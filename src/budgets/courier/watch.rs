//! The one who is told that a send must be cut.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

/// Waits for the word that the send of a lease must be cut. It never comes once the lease is over.
#[derive(Debug)]
pub(in crate::budgets) struct CutWatch {
    told: Option<oneshot::Receiver<()>>,
    is_cut: bool,
}

impl CutWatch {
    pub(super) fn new(told: oneshot::Receiver<()>) -> Self {
        Self {
            told: Some(told),
            is_cut: false,
        }
    }

    /// Ready when the send must be cut, at once.
    pub(in crate::budgets) fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(told) = &mut self.told
            && let Poll::Ready(word) = Pin::new(told).poll(cx)
        {
            self.told = None;
            self.is_cut = word.is_ok();
        }
        if self.is_cut {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
