//! All generations that run or are kept, by id and by the client's request id.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Environment, RequestKey, Session};
use crate::recovery::{Event, Time};

/// Ended generations that are kept at most; beyond it the oldest are forgotten before their time. Fixed.
const MAX_KEPT: usize = 16_384;

/// Finds sessions again: for attach, for idempotent starts, for a drain.
pub struct Registry {
    environment: Arc<Environment>,
    retention: Duration,
    sessions: Mutex<Sessions>,
    changed: Notify,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<String, Known>,
    by_request: HashMap<String, Arc<Session>>,
    /// Ended ones, in the order in which they are forgotten.
    ended: VecDeque<(Time, String)>,
    running: usize,
    draining: Option<Time>,
}

struct Known {
    session: Arc<Session>,
    running: bool,
}

/// What a start finds.
pub enum StartOutcome {
    /// Nothing like it: the session was created and is now known.
    New(Arc<Session>),
    /// The same start is running or kept.
    Known(Arc<Session>),
    /// Another start has this request id.
    Conflict,
    /// No new generations: the process is going down.
    Draining,
}

impl Registry {
    /// Knows nothing yet; keeps ended generations for `retention`.
    pub fn new(environment: Arc<Environment>, retention: Duration) -> Self {
        Self {
            environment,
            retention,
            sessions: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// What a start with this request finds already, before anything is made for it.
    pub fn find(&self, request: &RequestKey) -> Option<StartOutcome> {
        self.lock().find(request)
    }

    /// Creates a session and makes it known, unless its request already is or the process goes down.
    /// A session that would not be known is never created: it would have joined its scope and begun
    /// its span. `create` runs under the registry's lock.
    pub fn insert<E>(
        &self,
        request: Option<&RequestKey>,
        create: impl FnOnce() -> Result<Arc<Session>, E>,
    ) -> Result<StartOutcome, E> {
        let mut sessions = self.lock();
        if let Some(outcome) = request.and_then(|request| sessions.find(request)) {
            return Ok(outcome);
        }
        if sessions.draining.is_some() {
            return Ok(StartOutcome::Draining);
        }
        let session = create()?;
        if let Some(request) = request {
            sessions
                .by_request
                .insert(request.id.clone(), Arc::clone(&session));
        }
        let known = Known {
            session: Arc::clone(&session),
            running: true,
        };
        sessions.by_id.insert(session.id.clone(), known);
        sessions.running += 1;
        Ok(StartOutcome::New(session))
    }

    /// Whether transcripts leave room for new work, after what is only kept was given up for it.
    pub fn make_room(&self) -> bool {
        while self.environment.memory.is_full() {
            let Some(oldest) = self.forget_one(|_| true) else {
                return false;
            };
            oldest.release();
        }
        true
    }

    /// By generation id.
    pub fn by_id(&self, id: &str) -> Option<Arc<Session>> {
        let sessions = self.lock();
        let known = sessions.by_id.get(id)?;
        Some(Arc::clone(&known.session))
    }

    /// By request id.
    pub fn by_request(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().by_request.get(id).cloned()
    }

    /// A session has its terminal frame: it is kept for a while. Again: nothing.
    pub fn ended(&self, session: &Session) {
        let mut sessions = self.lock();
        match sessions.by_id.get_mut(&session.id) {
            Some(known) if known.running => known.running = false,
            _ => return,
        }
        sessions.running = sessions.running.saturating_sub(1);
        let until = self.environment.clock.now() + self.retention;
        let oldest = sessions.keep(until, session.id.clone());
        let forgotten = oldest.and_then(|id| sessions.forget(&id));
        drop(sessions);
        if let Some(forgotten) = forgotten {
            forgotten.release();
        }
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// How many generations run.
    pub fn running(&self) -> usize {
        self.lock().running
    }

    /// No new generations; running ones end as draining at `until`.
    pub fn drain(&self, until: Time) {
        let running: Vec<_> = {
            let mut sessions = self.lock();
            sessions.draining = Some(until);
            let running = sessions.by_id.values().filter(|known| known.running);
            running.map(|known| Arc::clone(&known.session)).collect()
        };
        for session in running {
            session.handle(Event::Drain { until });
        }
    }

    /// Whether a drain has begun.
    pub fn is_draining(&self) -> bool {
        self.lock().draining.is_some()
    }

    /// Returns once no generation runs.
    pub async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.running() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Forgets ended sessions as their time comes. Runs until it is dropped.
    pub async fn sweep(&self) {
        loop {
            let changed = self.changed.notified();
            let now = self.environment.clock.now();
            while let Some(expired) = self.forget_one(|until| until <= now) {
                expired.release();
            }
            let next = self.lock().ended.front().map(|(until, _)| *until);
            match next {
                Some(until) => {
                    tokio::time::sleep_until(self.environment.clock.instant(until)).await
                }
                None => changed.await,
            }
        }
    }

    /// Forgets all sessions; a drain stays.
    pub fn clear(&self) {
        let mut sessions = self.lock();
        let forgotten = (
            std::mem::take(&mut sessions.by_id),
            std::mem::take(&mut sessions.by_request),
            std::mem::take(&mut sessions.ended),
        );
        drop(sessions);
        drop(forgotten);
    }

    /// Forgets the session that ended first, if it was to be kept until a time that is `over`.
    fn forget_one(&self, over: impl FnOnce(Time) -> bool) -> Option<Arc<Session>> {
        let mut sessions = self.lock();
        let (until, _) = sessions.ended.front()?;
        if !over(*until) {
            return None;
        }
        let (_, id) = sessions.ended.pop_front()?;
        sessions.forget(&id)
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn find(&self, request: &RequestKey) -> Option<StartOutcome> {
        let known = self.by_request.get(&request.id)?;
        let is_same = known.request.as_ref() == Some(request);
        Some(match is_same {
            true => StartOutcome::Known(Arc::clone(known)),
            false => StartOutcome::Conflict,
        })
    }

    /// Keeps an ended one; the oldest, where it is one too many.
    fn keep(&mut self, until: Time, id: String) -> Option<String> {
        self.ended.push_back((until, id));
        let too_many = self.ended.len() > MAX_KEPT;
        let (_, oldest) = too_many.then(|| self.ended.pop_front())??;
        Some(oldest)
    }

    fn forget(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?.session;
        if let Some(request) = &session.request {
            self.by_request.remove(&request.id);
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_kept_than_the_bound_and_the_oldest_goes_first() {
        let mut sessions = Sessions::default();
        let mut keep = |n: usize| sessions.keep(Time::from_origin(Duration::ZERO), n.to_string());
        for number in 0..MAX_KEPT {
            assert_eq!(keep(number), None);
        }
        assert_eq!(keep(MAX_KEPT), Some("0".to_owned()));
        assert_eq!(sessions.ended.len(), MAX_KEPT);
    }
}
