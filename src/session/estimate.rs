//! What an attempt at one target takes of budgets that limit tokens: counted when it is first reserved,
//! and once.
//!
//! A mebibyte of a prompt takes up to 185 ms to count. So nothing is counted for a target that nobody goes
//! to, and a body that is not small is counted beside the runtime, by so many threads at once as there are
//! cores; all others wait in line. Who gives up leaves the line; what is being counted for it by then is
//! counted to its end, unseen.

use std::{
    future::{Future, pending},
    panic::resume_unwind,
    pin::Pin,
    sync::{Arc, OnceLock},
    thread::available_parallelism,
};

use bytes::Bytes;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::limits::{Weights, tokens};

/// Up to so many bytes a body is counted at once, which takes 3 ms at most. Fixed.
const SMALL: usize = 16 << 10;

/// What an attempt takes at most; of the default, nothing.
#[derive(Clone, Default)]
pub struct Estimate {
    of: Option<Arc<Prompt>>,
}

struct Prompt {
    model: String,
    body: Bytes,
    bytes_per_token: u32,
    max_output_tokens: u64,
    counted: OnceLock<Weights>,
}

/// The result of counting.
pub(super) enum Counted {
    /// It is there.
    Now(Weights),
    /// It will be.
    Later(Counting),
}

/// Counting beside the runtime.
pub(super) type Counting = Pin<Box<dyn Future<Output = Weights> + Send>>;

impl Estimate {
    /// For `body` as it is sent to `model`. Where it states no bound of its output, that is
    /// `max_output_tokens`.
    pub fn new(model: &str, body: Bytes, bytes_per_token: u32, max_output_tokens: u64) -> Self {
        let prompt = Prompt {
            model: model.to_owned(),
            body,
            bytes_per_token,
            max_output_tokens,
            counted: OnceLock::new(),
        };
        Self {
            of: Some(Arc::new(prompt)),
        }
    }

    /// What it comes to, if that was counted or there is nothing to count.
    pub fn known(&self) -> Option<Weights> {
        match &self.of {
            None => Some(Weights::default()),
            Some(prompt) => prompt.counted.get().copied(),
        }
    }

    /// Counts here and now.
    pub fn count(&self) -> Weights {
        let prompt = self.of.as_deref();
        prompt.map_or_else(Weights::default, Prompt::count)
    }

    fn is_small(&self) -> bool {
        let prompt = self.of.as_deref();
        prompt.is_none_or(|prompt| prompt.body.len() <= SMALL)
    }
}

impl Prompt {
    fn count(&self) -> Weights {
        *self.counted.get_or_init(|| Weights {
            input_tokens: tokens::input(&self.model, &self.body, self.bytes_per_token),
            output_tokens: tokens::output(&self.body).unwrap_or(self.max_output_tokens),
        })
    }
}

/// The line of those who count beside the runtime.
pub(super) struct Counters {
    seats: Arc<Semaphore>,
}

impl Counters {
    /// As many as there are cores.
    pub fn new() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            seats: Arc::new(Semaphore::new(cores)),
        }
    }

    /// What `estimate` comes to.
    pub fn count(&self, estimate: &Estimate) -> Counted {
        match estimate.known() {
            Some(weights) => Counted::Now(weights),
            None if estimate.is_small() => Counted::Now(estimate.count()),
            None => Counted::Later(self.count_beside(estimate.clone())),
        }
    }

    fn count_beside(&self, estimate: Estimate) -> Counting {
        let seats = Arc::clone(&self.seats);
        Box::pin(async move {
            // Never closed. Kept by the work itself, which goes on if nobody waits for it any more.
            let seat = seats.acquire_owned().await.ok();
            let counting = spawn_blocking(move || {
                let _seat = seat;
                estimate.count()
            });
            match counting.await {
                Ok(weights) => weights,
                // A bug of ours ends this generation, as it does where it counts at once.
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The runtime ends, and with it who waits here.
                    Err(_) => pending().await,
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn estimate(bytes: usize) -> Estimate {
        Estimate::new("m", vec![b'x'; bytes].into(), 1, 7)
    }

    fn one_seat() -> Counters {
        Counters {
            seats: Arc::new(Semaphore::new(1)),
        }
    }

    fn later(counters: &Counters, estimate: &Estimate) -> Counting {
        match counters.count(estimate) {
            Counted::Later(counting) => counting,
            Counted::Now(_) => panic!("counted at once"),
        }
    }

    fn poll(counting: &mut Counting) -> Poll<Weights> {
        let mut cx = Context::from_waker(Waker::noop());
        counting.as_mut().poll(&mut cx)
    }

    #[test]
    fn what_is_small_or_known_is_counted_at_once() {
        let counters = one_seat();
        let small = estimate(SMALL);
        assert_eq!(small.known(), None);
        assert!(matches!(counters.count(&small), Counted::Now(w) if w.output_tokens == 7));
        assert!(small.known().is_some());
        let large = estimate(SMALL + 1);
        drop(later(&counters, &large));
        assert_eq!(large.known(), None, "nobody waited for it");
        large.count();
        assert!(matches!(counters.count(&large), Counted::Now(_)));
        assert_eq!(Estimate::default().known(), Some(Weights::default()));
    }

    #[test]
    fn no_more_are_counted_at_once_than_there_are_seats() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            // Nothing is counted before this is dropped.
            let (release, held) = std::sync::mpsc::channel::<()>();
            spawn_blocking(move || held.recv().is_err());
            let counters = one_seat();
            let [first, second] = [1, 2].map(|more| estimate(SMALL + more));
            let mut given_up = later(&counters, &first);
            let mut next = later(&counters, &second);
            assert!(poll(&mut given_up).is_pending() && poll(&mut next).is_pending());
            drop(given_up);
            assert_eq!(counters.seats.available_permits(), 0, "until it is counted");
            assert!(poll(&mut next).is_pending());
            drop(release);
            next.await;
            assert!(first.known().is_some(), "unseen");
            assert!(second.known().is_some());
            assert_eq!(counters.seats.available_permits(), 1);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_in_line_leaves_nothing_behind() {
        let counters = one_seat();
        let seat = Arc::clone(&counters.seats).acquire_owned().await.unwrap();
        let large = estimate(SMALL + 1);
        let mut counting = later(&counters, &large);
        assert!(poll(&mut counting).is_pending());
        drop(counting);
        drop(seat);
        assert_eq!(counters.seats.available_permits(), 1);
        assert_eq!(large.known(), None);
    }
}
