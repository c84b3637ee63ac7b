//! PURE. Whether the engine can be asked.

use std::{mem, time::Duration};

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

/// Whether there is something new to say of an engine without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    No,
    /// It was there before.
    Lost,
    /// It was lost before, and somebody has to do something about it.
    Refused,
}

impl Standing {
    /// Something that was asked got no answer.
    pub(super) fn lost(&mut self, now: Duration, why: &Lost) -> News {
        let before = mem::replace(&mut self.state, State::Lost(why.clone()));
        match before {
            State::Connecting | State::Up => {
                self.losses += 1;
                self.since = now;
                News::Lost
            }
            State::Lost(known) if matches!(why, Lost::Refused(_)) && known != *why => News::Refused,
            State::Lost(_) => News::No,
        }
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

    /// Since when it is there, or not, and why not.
    pub(super) fn since(&self) -> (Duration, Option<String>) {
        let why = match &self.state {
            State::Up => None,
            State::Connecting => Some("not connected yet".into()),
            State::Lost(why) => Some(why.to_string()),
        };
        (self.since, why)
    }

    /// An answer took so long. Whether it was thought lost.
    pub(super) fn answered(&mut self, took: Duration) -> bool {
        let known = self.round_trip.unwrap_or(took);
        self.round_trip = Some((known * 7 + took) / 8);
        self.is_lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budgets::shared::Refused;

    const SECOND: Duration = Duration::from_secs(1);
    const MEMORY: Lost = Lost::Refused(Refused::Memory);

    #[test]
    fn a_loss_is_news_once() {
        let mut standing = Standing::default();
        assert_eq!(standing.up(SECOND), Some(SECOND));
        assert_eq!(standing.up(2 * SECOND), None);
        assert_eq!(standing.lost(3 * SECOND, &Lost::Timeout), News::Lost);
        assert_eq!(standing.lost(4 * SECOND, &Lost::Timeout), News::No);
        let why = Some(Lost::Timeout.to_string());
        assert_eq!(standing.since(), (3 * SECOND, why));
        assert_eq!(standing.up(5 * SECOND), Some(2 * SECOND));
        assert_eq!((standing.losses, standing.is_up()), (1, true));
    }

    #[test]
    fn so_is_what_somebody_has_to_do_something_about() {
        let mut standing = Standing::default();
        assert_eq!(standing.lost(SECOND, &Lost::Timeout), News::Lost);
        assert_eq!(standing.lost(SECOND, &MEMORY), News::Refused);
        assert_eq!(standing.lost(SECOND, &MEMORY), News::No);
        assert_eq!(standing.lost(SECOND, &Lost::Timeout), News::No);
        assert_eq!(standing.losses, 1);
    }

    #[test]
    fn a_round_trip_is_smoothed() {
        let mut standing = Standing::default();
        assert!(!standing.answered(8 * SECOND));
        standing.answered(16 * SECOND);
        assert_eq!(standing.round_trip, Some(9 * SECOND));
        standing.lost(SECOND, &Lost::Timeout);
        assert!(standing.answered(SECOND), "it is there after all");
    }
}
