//! A server in common: to start one takes longer than most tests do.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::server::{Kind, Server, each};

/// One server for all tests that run at the same time, each with a domain of its own. The last to let go of it
/// stops it.
pub fn in_common(kind: Kind) -> Arc<Server> {
    static RUNNING: [Mutex<Weak<Server>>; 2] = [const { Mutex::new(Weak::new()) }; 2];
    let running = RUNNING[kind as usize].lock();
    let mut running = running.unwrap_or_else(PoisonError::into_inner);
    running.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Server::start(kind));
        *running = Arc::downgrade(&server);
        server
    })
}

/// Runs `test` with a server of each kind, which it leaves as it is.
pub fn each_in_common(test: impl AsyncFn(Arc<Server>)) {
    each(|kind| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(test(in_common(kind)));
    });
}
