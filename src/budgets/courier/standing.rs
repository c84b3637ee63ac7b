//! PURE. Whether the engine can be asked.

use std::time::Duration;

use crate::budgets::shared::{Lost, Server};

/// What is known of the engine. Times are since the clock's origin.
#[derive(Debug, Default)]
pub(super) struct Standing {
    state: State,
    since: Duration,
    /// How often it was lost.
    pub(super) losses: u64,
    pub(super) server: Option<Server>,
    pub(super) disagrees: bool,
    /// How long an answer takes: an eighth of each new one, seven of what was known.
    pub(super) round_trip: Option<Duration>,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing is known yet.
    #[default]
    Connecting,
    Up,
    Lost(Lost),
}

impl Standing {
    /// Something that was asked got no answer. Whether that is news.
    pub(super) fn lost(&mut self, now: Duration, why: &Lost) -> bool {
        let is_news = !matches!(self.state, State::Lost(_));
        if is_news {
            self.losses += 1;
            self.since = now;
        }
        self.state = State::Lost(why.clone());
        is_news
    }

    /// Leases were renewed. For how long it was not up, if that is news.
    pub(super) fn up(&mut self, now: Duration) -> Option<Duration> {
        if let State::Up = self.state {
            return None;
        }
        let was_not = now.saturating_sub(self.since);
        self.state = State::Up;
        self.since = now;
        Some(was_not)
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// Since when it is what it is, and why it is lost.
    pub(super) fn since(&self) -> (Duration, Option<&Lost>) {
        match &self.state {
            State::Lost(why) => (self.since, Some(why)),
            State::Connecting | State::Up => (self.since, None),
        }
    }

    /// An answer took so long.
    pub(super) fn answered(&mut self, took: Duration) {
        let known = self.round_trip.unwrap_or(took);
        self.round_trip = Some((known * 7 + took) / 8);
    }
}
