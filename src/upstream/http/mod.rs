//! The only way out: HTTP/1.1 and HTTP/2 towards providers, below the seam of [`super`].
//!
//! # Where *sent* begins
//!
//! A request is handed over exactly once, in one synchronous step, to a connection that is ready at
//! that moment. Before that step the request is a value in this process and dropping the exchange
//! drops it: nothing can have left. From that step on it may have left, and it is never handed to a
//! second connection.
//!
//! - **HTTP/1.1** runs on `hyper`'s connection, which the exchange itself polls, so no other task can
//!   write behind its back. The step polls the connection (which reads first and so sees a close that
//!   came while it was idle), hands over, and polls once more. If `hyper` gives the message back, its
//!   contract is that not a byte of it was written; only then may another connection be asked, and
//!   [`Signal::Sent`](super::Signal::Sent) has not been reported yet.
//! - **HTTP/2** runs on `h2` itself, not on `hyper`'s wrapper (1.12), for two reasons seen against raw
//!   servers. After a GOAWAY, while a stream goes on, `hyper` still says it is ready, takes the next
//!   request and gives it back later from a task of its own; with `h2` readiness and hand-over are
//!   one synchronous step that succeeds or leaves nothing behind. And `hyper` reports a body that is
//!   cut by RST_STREAM(NO_ERROR) as cleanly ended, so that a truncated answer passes for a whole one.
//!
//! No HTTP client stands in between: nothing here follows a redirect, retries, or reads the
//! environment. A body poll as the mark (as in `reqwest`) would be later than the truth on HTTP/2,
//! where the head leaves first.
//!
//! # Who owns what
//!
//! [`Door`] keeps a site per endpoint: its slots (`slots`), its connections (`pool`), its address
//! and TLS (`dial`). `exchange` drives one request over one connection of `h1` or `h2`.
//! `gunzip` undoes the one content-encoding we accept. `errors` names failures.

mod counted;
mod dial;
mod errors;
mod exchange;
mod gunzip;
mod h1;
mod h2;
mod last_words;
mod link;
mod message;
mod pool;
mod proxy;
mod slots;
mod target;
mod tls;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak, atomic::AtomicI64},
};

use pool::Site;

use super::{Endpoint, Exchange, Permit, Request, Slot, SlotFuture, Upstream};

pub use tls::parse_authorities;

/// The door out over real sockets. Lives inside a tokio runtime.
#[derive(Default)]
pub struct Door {
    sites: Mutex<Sites>,
    open: Arc<AtomicI64>,
}

/// By the address of the endpoint; the weak reference keeps that address from being reused.
type Sites = HashMap<usize, (Weak<Endpoint>, Arc<Site>)>;

impl Door {
    /// A door without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// A door without connections that keeps count of its open ones.
    pub fn counting(open: Arc<AtomicI64>) -> Self {
        Self {
            sites: Mutex::default(),
            open,
        }
    }

    /// The site of `endpoint`. Sites of endpoints that a reload replaced are let go here.
    fn site(&self, endpoint: &Arc<Endpoint>) -> Arc<Site> {
        let key = Arc::as_ptr(endpoint).addr();
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, site)) = sites.get(&key) {
            return site.clone();
        }
        sites.retain(|_, (endpoint, _)| endpoint.strong_count() > 0);
        let site = Site::new(endpoint, &self.open);
        sites.insert(key, (Arc::downgrade(endpoint), site.clone()));
        site
    }
}

impl Upstream for Door {
    fn slot(&self, endpoint: &Arc<Endpoint>) -> SlotFuture {
        let site = self.site(endpoint);
        Box::pin(async move {
            site.slots
                .take()
                .await
                .map(|slot| Box::new(slot) as Box<dyn Slot>)
        })
    }

    fn open(
        &self,
        endpoint: &Arc<Endpoint>,
        slot: Box<dyn Slot>,
        request: Request,
        permit: Option<Box<dyn Permit>>,
    ) -> Box<dyn Exchange> {
        Box::new(exchange::HttpExchange::open(
            self.site(endpoint),
            slot,
            request,
            permit,
        ))
    }
}
