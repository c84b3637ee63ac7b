//! The last word before a send: the core's and the lease's, in the same step as the hand-over.
//!
//! Clients speak to the core from other threads. Without this a cancel could end an attempt, and its
//! ledger say that nothing was sent, while the driver hands its request over.

use std::sync::Arc;

use super::Session;
use crate::{recovery::Upstream as Seen, upstream::Permit};

/// Lets the request of one attempt leave.
pub(super) struct LastWord {
    pub session: Arc<Session>,
    pub attempt: u32,
    /// None where no budget matches.
    pub lease: Option<Box<dyn Permit>>,
}

impl Permit for LastWord {
    fn leave(&mut self) -> bool {
        if !self.session.leaves(self.attempt) {
            return false;
        }
        let may = self.lease.as_mut().is_none_or(|lease| lease.leave());
        if !may {
            self.session.tell(self.attempt, Seen::Stayed);
        }
        may
    }

    fn stayed(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.stayed();
        }
        self.session.tell(self.attempt, Seen::Stayed);
    }
}
