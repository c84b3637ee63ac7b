//! Tells the engine what is to be told.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    AT_ONCE, Inner, PATIENCE,
    book::{End, Step},
    rests::{Rest, Word},
};
use crate::budgets::shared::{Heard, Id, Lost};

/// How long is paused after something was not heard.
const PAUSE: Duration = Duration::from_millis(100);

/// What is told at a time.
enum Telling {
    Rest(Rest),
    Lease(Id, Step),
}

/// For as long as it is polled.
pub(super) async fn tell(inner: &Arc<Inner>) {
    let mut tellings = JoinSet::new();
    let mut paused: Option<Instant> = None;
    loop {
        while paused.is_none()
            && tellings.len() < AT_ONCE
            && let Some(next) = inner.next()
        {
            let inner = Arc::clone(inner);
            tellings.spawn(async move { inner.carry(next).await });
        }
        if tellings.is_empty() {
            inner.progress.notify_waiters();
        }
        let pause = async {
            match paused {
                Some(until) => sleep_until(until).await,
                None => pending().await,
            }
        };
        tokio::select! {
            Some(done) = tellings.join_next() => {
                if matches!(done, Ok(Err(_))) && paused.is_none() {
                    paused = Some(inner.clock.instant(inner.clock.now() + PAUSE));
                }
            }
            () = inner.telling.notified() => {}
            () = pause => paused = None,
        }
    }
}

impl Inner {
    /// What is to be told next; nothing while the engine is lost.
    fn next(&self) -> Option<Telling> {
        if self.standing().is_lost() {
            return None;
        }
        let now = self.now();
        let mut state = self.state();
        if let Some(rest) = state.rests.take(now) {
            return Some(Telling::Rest(rest));
        }
        state.book.next().map(|(id, step)| Telling::Lease(id, step))
    }

    async fn carry(&self, telling: Telling) -> Result<(), Lost> {
        let told = match telling {
            Telling::Rest(rest) => self.tell_rest(rest).await,
            Telling::Lease(id, step) => self.tell_step(id, step).await,
        };
        self.progress.notify_waiters();
        told
    }

    async fn tell_rest(&self, rest: Rest) -> Result<(), Lost> {
        let patience = self.timeout * PATIENCE;
        let left = rest.until.saturating_sub(self.now());
        let told = match rest.word {
            Word::Penalise => self.shared.penalise(&rest.budgets, left, patience).await,
            Word::Brake => self.shared.brake(&rest.budgets, left, patience).await,
        };
        self.state().rests.done(rest, told.is_ok());
        told
    }

    async fn tell_step(&self, id: Id, step: Step) -> Result<(), Lost> {
        let patience = self.timeout * PATIENCE;
        let told = match step {
            Step::Turn(_) => self.shared.tell(id, patience).await,
            Step::Answered => self.shared.answered(id, patience).await,
            Step::End(End::Settle(actual)) => self.shared.settle(id, actual, patience).await,
            Step::End(End::Release) => self.shared.release(id, patience).await,
        };
        let heard: Option<Heard> = told.as_ref().ok().copied();
        let (freed, cuts) = self.state().book.done(id, step, heard);
        cuts.tell();
        if let Some(budgets) = freed {
            self.hooks.freed(&budgets);
        }
        told.map(|_| ())
    }
}
