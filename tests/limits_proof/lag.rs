//! How late a loop is. A provider that stamps late, or a sidecar that was kept from its processor between
//! a send's stamp and its bytes, makes arrivals bunch: that is jitter, which the margin is there for, and
//! more of it than the margin says that a run proves nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// From one look to the next.
const TICK: Duration = Duration::from_millis(2);

/// The latest that a loop was.
#[derive(Clone, Default)]
pub struct Lag(Arc<AtomicU64>);

impl Lag {
    /// Watches the runtime that this is called in, until it ends.
    pub fn watch(&self) {
        let worst = Arc::clone(&self.0);
        tokio::spawn(async move {
            loop {
                let due = Instant::now() + TICK;
                sleep_until(due).await;
                let late = due.elapsed().as_micros() as u64;
                worst.fetch_max(late, Ordering::Relaxed);
            }
        });
    }

    /// From here on.
    #[allow(dead_code, reason = "where processes are started before")]
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub fn worst(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}
