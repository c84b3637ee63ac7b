//! PURE. Whether the engine can be asked.

use std::time::Duration;

use crate::budgets::shared::{Lost, Server};

/// What is known of the engine. Times are since the clock's origin.
#[derive(Debug, Default)]
pub(super) struct Standing {
    state: State,
    since: Duration,
    /// For how long it was not there before it was.
    was_away: Duration,
    /// Why it was lost last.
    why: Option<Lost>,
    /// How often it was lost.
    pub(super) losses: u64,
    /// How often somebody had to do something about it.
    refusals: u64,
    pub(super) server: Option<Server>,
    pub(super) disagrees: bool,
    /// How long an answer takes: an eighth of each new one, seven of what was known.
    pub(super) round_trip: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is known yet.
    #[default]
    Connecting,
    Up,
    Lost,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It was there, or nothing was known.
    Lost(Lost),
    /// It was lost, and now it is known that somebody has to do something about it.
    Refused(Lost),
    /// It is there, after so long.
    Up(Duration),
}

/// Which changes were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    losses: u64,
    refusals: u64,
    state: State,
}

impl Standing {
    /// Something that was asked got no answer. Whether that has changed anything.
    pub(super) fn lost(&mut self, now: Duration, why: &Lost) -> bool {
        let refuses = matches!(why, Lost::Refused(_)) && self.why.as_ref() != Some(why);
        self.why = Some(why.clone());
        if self.state != State::Lost {
            self.state = State::Lost;
            self.losses += 1;
            self.since = now;
            return true;
        }
        self.refusals += u64::from(refuses);
        refuses
    }

    /// Leases were renewed. Whether that has changed anything.
    pub(super) fn up(&mut self, now: Duration) -> bool {
        if self.state == State::Up {
            return false;
        }
        self.was_away = now.saturating_sub(self.since);
        self.state = State::Up;
        self.since = now;
        true
    }

    /// What has changed since it was told: of several times, the last.
    pub(super) fn changes(&self, told: &mut Told) -> Vec<Change> {
        let before = *told;
        *told = Told {
            losses: self.losses,
            refusals: self.refusals,
            state: self.state,
        };
        let mut changes = Vec::new();
        let was_lost = before.losses < self.losses;
        if let Some(why) = &self.why {
            if was_lost {
                changes.push(Change::Lost(why.clone()));
            } else if before.refusals < self.refusals {
                changes.push(Change::Refused(why.clone()));
            }
        }
        if self.state == State::Up && (was_lost || before.state != State::Up) {
            changes.push(Change::Up(self.was_away));
        }
        changes
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    pub(super) fn is_lost(&self) -> bool {
        self.state == State::Lost
    }

    /// Whether it knows of all that was sent in the last `window`: it was never lost, or is back for so long.
    pub(super) fn knows_all(&self, now: Duration, window: Duration) -> bool {
        self.is_up() && (self.losses == 0 || now.saturating_sub(self.since) >= window)
    }

    /// Since when it is there, or not, and why not.
    pub(super) fn since(&self) -> (Duration, Option<String>) {
        let why = match self.state {
            State::Up => None,
            State::Connecting => Some("not connected yet".into()),
            State::Lost => self.why.as_ref().map(Lost::to_string),
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
    fn each_change_is_told_once() {
        let (mut standing, mut told) = (Standing::default(), Told::default());
        assert_eq!(standing.changes(&mut told), []);
        assert!(standing.up(SECOND));
        assert!(!standing.up(2 * SECOND));
        assert_eq!(standing.changes(&mut told), [Change::Up(SECOND)]);
        assert!(standing.lost(3 * SECOND, &Lost::Timeout));
        assert!(!standing.lost(4 * SECOND, &Lost::Timeout));
        assert_eq!(standing.changes(&mut told), [Change::Lost(Lost::Timeout)]);
        let why = Some(Lost::Timeout.to_string());
        assert_eq!(standing.since(), (3 * SECOND, why));
        assert!(standing.up(5 * SECOND));
        assert_eq!(standing.changes(&mut told), [Change::Up(2 * SECOND)]);
        assert_eq!(standing.changes(&mut told), []);
        assert_eq!((standing.losses, standing.is_up()), (1, true));
    }

    #[test]
    fn whoever_looks_seldom_hears_that_it_was_lost_and_how_it_is_now() {
        let (mut standing, mut told) = (Standing::default(), Told::default());
        standing.up(SECOND);
        standing.changes(&mut told);
        standing.lost(2 * SECOND, &Lost::Timeout);
        standing.up(3 * SECOND);
        let both = [Change::Lost(Lost::Timeout), Change::Up(SECOND)];
        assert_eq!(standing.changes(&mut told), both);
        standing.lost(4 * SECOND, &Lost::Timeout);
        standing.up(5 * SECOND);
        standing.lost(6 * SECOND, &MEMORY);
        assert_eq!(standing.changes(&mut told), [Change::Lost(MEMORY)]);
    }

    #[test]
    fn what_somebody_has_to_do_something_about_is_told_later_too() {
        let (mut standing, mut told) = (Standing::default(), Told::default());
        standing.lost(SECOND, &Lost::Timeout);
        standing.changes(&mut told);
        assert!(standing.lost(SECOND, &MEMORY));
        assert!(!standing.lost(SECOND, &MEMORY));
        assert_eq!(standing.changes(&mut told), [Change::Refused(MEMORY)]);
        assert_eq!(standing.losses, 1);
    }

    #[test]
    fn what_was_sent_while_it_was_lost_is_unknown_to_it_for_a_window() {
        let mut standing = Standing::default();
        let knows = |standing: &Standing, now: u32| standing.knows_all(now * SECOND, 60 * SECOND);
        assert!(!knows(&standing, 1));
        standing.up(SECOND);
        assert!(knows(&standing, 1));
        standing.lost(100 * SECOND, &Lost::Timeout);
        assert!(!knows(&standing, 100));
        standing.up(101 * SECOND);
        assert!(!knows(&standing, 160));
        assert!(knows(&standing, 161));
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
