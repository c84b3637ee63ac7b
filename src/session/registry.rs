//! All generations that run or are kept, by id and by the client's request id.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Environment, Session};
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
    by_id: HashMap<String, Arc<Session>>,
    by_request: HashMap<String, Arc<Session>>,
    /// Ended ones, in the order in which they are forgotten.
    ended: VecDeque<(Time, String)>,
    running: usize,
    draining: Option<Time>,
}

/// What a start with a request id finds.
pub enum StartOutcome {
    /// It is new and now known.
    New,
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

    /// Looks for a session with the same request id.
    pub fn find_request(&self, request_id: &str, body_hash: u64) -> Option<StartOutcome> {
        let sessions = self.lock();
        sessions
            .by_request
            .get(request_id)
            .map(|known| same_or_conflict(known, body_hash))
    }

    /// Makes a new session known, unless its request id already is.
    pub fn insert(&self, session: &Arc<Session>) -> StartOutcome {
        let mut sessions = self.lock();
        if sessions.draining.is_some() {
            return StartOutcome::Draining;
        }
        if let Some(id) = &session.request_id {
            if let Some(known) = sessions.by_request.get(id) {
                return same_or_conflict(known, session.body_hash);
            }
            sessions.by_request.insert(id.clone(), Arc::clone(session));
        }
        sessions
            .by_id
            .insert(session.id.clone(), Arc::clone(session));
        sessions.running += 1;
        StartOutcome::New
    }

    /// Whether transcripts leave room for new work, after what is only kept was given up for it.
    pub fn make_room(&self) -> bool {
        while self.environment.memory.is_full() {
            let oldest = {
                let mut sessions = self.lock();
                let oldest = sessions.ended.pop_front();
                oldest.and_then(|(_, id)| sessions.forget(&id))
            };
            match oldest {
                Some(oldest) => oldest.forget(),
                None => return false,
            }
        }
        true
    }

    /// By generation id.
    pub fn by_id(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().by_id.get(id).cloned()
    }

    /// By request id.
    pub fn by_request(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().by_request.get(id).cloned()
    }

    /// A session has its terminal frame: it is kept for a while.
    pub fn ended(&self, session: &Session) {
        let mut sessions = self.lock();
        if !sessions.by_id.contains_key(&session.id) {
            return;
        }
        sessions.running = sessions.running.saturating_sub(1);
        let until = self.environment.clock.now() + self.retention;
        let oldest = sessions.keep(until, session.id.clone());
        let forgotten = oldest.and_then(|id| sessions.forget(&id));
        drop(sessions);
        if let Some(forgotten) = forgotten {
            forgotten.forget();
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
            sessions.by_id.values().cloned().collect()
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
            let (expired, next) = self.take_expired(now);
            expired.iter().for_each(|session| session.forget());
            drop(expired);
            match next {
                Some(until) => {
                    tokio::time::sleep_until(self.environment.clock.instant(until)).await
                }
                None => changed.await,
            }
        }
    }

    /// Those whose time has come, and when the next one's comes.
    fn take_expired(&self, now: Time) -> (Vec<Arc<Session>>, Option<Time>) {
        let mut sessions = self.lock();
        let mut expired = Vec::new();
        while let Some((until, _)) = sessions.ended.front()
            && *until <= now
        {
            let session = sessions.ended.pop_front();
            expired.extend(session.and_then(|(_, id)| sessions.forget(&id)));
        }
        let next = sessions.ended.front().map(|(until, _)| *until);
        (expired, next)
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

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// Keeps an ended one; the oldest, where it is one too many.
    fn keep(&mut self, until: Time, id: String) -> Option<String> {
        self.ended.push_back((until, id));
        let too_many = self.ended.len() > MAX_KEPT;
        let (_, oldest) = too_many.then(|| self.ended.pop_front())??;
        Some(oldest)
    }

    fn forget(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?;
        if let Some(request) = &session.request_id {
            self.by_request.remove(request);
        }
        Some(session)
    }
}

fn same_or_conflict(known: &Arc<Session>, body_hash: u64) -> StartOutcome {
    match known.body_hash == body_hash {
        true => StartOutcome::Known(Arc::clone(known)),
        false => StartOutcome::Conflict,
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
