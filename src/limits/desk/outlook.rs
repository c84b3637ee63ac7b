//! What those who wait are told.

use super::{Desk, Event, Pace};
use crate::limits::{
    Ahead, BudgetId, Limit, Micros, Weights,
    fairness::{Place, Ticket},
};

/// What has moved by less is not told. One second.
pub(super) const WORTH_TELLING: Micros = 1_000_000;

/// How long after being told of a wait of unknown length it is looked at again. Half a
/// minute: it only matters where others' sends decide.
const LOOKED_AT_AGAIN: Micros = 30_000_000;

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A limit of the budget.
    Limit(Limit),
    /// Its pace.
    Pace,
    /// Others who share it are first.
    Turn,
    /// The engine that it is shared by is being asked.
    EngineAsked,
    /// That engine does not know yet what was sent before.
    EngineLearns,
    /// That engine gives no answers.
    EngineLost,
}

/// What waiters tell apart.
#[derive(PartialEq, Eq)]
enum Kind {
    Use,
    Rest,
    Engine,
    Nothing,
}

impl Obstacle {
    /// Whether a provider asked for it.
    pub fn is_rest(&self) -> bool {
        matches!(self, Obstacle::Limit(Limit::Cooldown | Limit::Probe))
    }

    /// Whether it is the engine, and not the budget.
    pub fn is_engine(&self) -> bool {
        matches!(self, Obstacle::EngineLearns | Obstacle::EngineLost)
    }

    fn kind(&self) -> Kind {
        match self {
            _ if self.is_rest() => Kind::Rest,
            _ if self.is_engine() => Kind::Engine,
            Obstacle::EngineAsked => Kind::Nothing,
            _ => Kind::Use,
        }
    }
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The budget that stands in the way the longest.
    pub budget: BudgetId,
    /// What of it.
    pub obstacle: Obstacle,
    /// A lower bound of when it is over; unknown where it depends on when others end.
    pub expected: Option<Micros>,
}

impl Outlook {
    /// When to look at it again.
    pub(super) fn review(&self, now: Micros) -> Micros {
        match self.expected {
            Some(at) => at.max(now).saturating_add(WORTH_TELLING),
            None if self.is_asked() => now.saturating_add(WORTH_TELLING),
            None => now.saturating_add(LOOKED_AT_AGAIN),
        }
    }

    /// Whether somebody who was told `self` has to hear of `other`.
    fn differs(&self, now: Micros, other: &Outlook) -> bool {
        let later = match (self.expected, other.expected) {
            (Some(told), Some(later)) => later > told.saturating_add(WORTH_TELLING),
            (Some(told), None) => told <= now,
            (None, later) => later.is_some(),
        };
        !self.is_of_the_same(other) || later
    }

    /// Whether the time that `self` told stays, for a while, where `other` knows none: between a grant and
    /// its send nobody knows when the next will be. It is looked at again when that time has passed.
    fn stands_for(&self, other: &Outlook) -> bool {
        self.is_of_the_same(other) && self.expected.is_some() && other.expected.is_none()
    }

    /// Whether there is nothing to tell yet.
    pub(super) fn is_asked(&self) -> bool {
        self.obstacle == Obstacle::EngineAsked
    }

    fn is_of_the_same(&self, other: &Outlook) -> bool {
        self.budget == other.budget && self.obstacle.kind() == other.obstacle.kind()
    }
}

/// Whether a change is told that is less than a rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// If nobody has looked for a while.
    IfOther,
    /// At once.
    Now,
}

impl<P: Pace> Desk<P> {
    /// Looks again at what those are waiting for whose time has come.
    pub(super) fn review(&mut self, now: Micros) {
        let mut left = super::TOLD_A_LOOK;
        while left > 0
            && let Some(from) = self.retell
        {
            let next = self.waiters.range(from..).next();
            let Some((&ticket, _)) = next else {
                self.retell = None;
                break;
            };
            self.retell = Some(ticket + 1);
            self.reconsider(now, ticket, Told::Now);
            left -= 1;
        }
        while left > 0
            && let Some(&(at, ticket)) = self.reviews.first()
            && at <= now
        {
            self.reconsider(now, ticket, Told::Now);
            left -= 1;
        }
    }

    /// Tells `ticket` what it waits for if that has changed.
    pub(super) fn reconsider(&mut self, now: Micros, ticket: Ticket, told: Told) {
        let Some(waiter) = self.waiters.get(&ticket) else {
            return;
        };
        let quiet = told == Told::IfOther && now < waiter.looked_at.saturating_add(WORTH_TELLING);
        if quiet {
            return;
        }
        let places = waiter.places.clone();
        let mut outlook = self.outlook(now, &places, waiter.weights);
        let Some(waiter) = self.waiters.get_mut(&ticket) else {
            return;
        };
        waiter.looked_at = now;
        if told == Told::IfOther && waiter.told.stands_for(&outlook) {
            return;
        }
        let mut review = None;
        if outlook.is_asked() {
            if !waiter.told.is_asked() {
                outlook = waiter.told;
                // What was told of the engine is over, however long it was to last.
                let soon = now.saturating_add(WORTH_TELLING);
                review = outlook.obstacle.is_engine().then_some(soon);
            } else if waiter.review <= now {
                // One question is short. If it is still asked, it is for others.
                outlook.obstacle = Obstacle::Turn;
            }
        }
        let review = review.unwrap_or_else(|| outlook.review(now));
        self.reviews.remove(&(waiter.review, ticket));
        self.reviews.insert((review, ticket));
        waiter.review = review;
        if waiter.told.differs(now, &outlook) {
            waiter.told = outlook;
            self.events.push_back(Event::Told { ticket, outlook });
        }
    }

    /// By which of its ways it can be over first.
    pub(super) fn outlook(
        &mut self,
        now: Micros,
        places: &[(usize, Place)],
        weights: Weights,
    ) -> Outlook {
        let mut best: Option<Outlook> = None;
        for (_, place) in places {
            let ahead = self.queue.ahead(place);
            let outlook = self.outlook_of_set(now, &place.set, weights, ahead);
            // An unknown time may be any time.
            let first = best.is_none_or(|best| match (best.expected, outlook.expected) {
                (Some(best), Some(other)) => other < best,
                (Some(told), None) => told <= now,
                (None, _) => false,
            });
            if first {
                best = Some(outlook);
            }
        }
        best.unwrap_or(Outlook {
            budget: 0,
            obstacle: Obstacle::Pace,
            expected: None,
        })
    }

    /// The budget of a set that opens last.
    pub(super) fn outlook_of_set(
        &mut self,
        now: Micros,
        set: &[BudgetId],
        weights: Weights,
        ahead: Ahead,
    ) -> Outlook {
        let mut last: Option<(Outlook, bool)> = None;
        for &budget in set {
            let holder = self.holder(budget).map(|holder| holder.obstacle);
            let before = holder.map_or(Ahead::default(), |_| ahead);
            let day = [self.day(budget)];
            let limits = (self.limits).earliest(now, &[budget], &day, weights, before);
            let paced = self.pace.next(now, budget);
            let afar = self.opens_afar(now, budget, weights);
            let expected = limits.map(|at| at.max(paced));
            let closed = matches!(afar, Some((Obstacle::EngineLost, _)));
            let expected = afar.map_or(expected, |(_, until)| expected.max(until));
            let expected = expected.filter(|at| *at > now && !closed);
            let shut = self.shut(now, budget, weights).map(|shut| shut.obstacle);
            let obstacle = match (expected, afar) {
                _ if closed => Some(Obstacle::EngineLost),
                (Some(at), Some((obstacle, Some(until)))) if at == until => Some(obstacle),
                (Some(at), _) if at == paced => Some(Obstacle::Pace),
                _ => shut.or(holder),
            };
            let stands = obstacle.is_some();
            let outlook = Outlook {
                budget,
                obstacle: obstacle.unwrap_or(Obstacle::Pace),
                expected,
            };
            let later = last.is_none_or(|(last, stood)| match (last.expected, expected) {
                (Some(last), Some(at)) => at > last,
                (None, Some(_)) => true,
                (None, None) => stands && !stood,
                (Some(_), None) => false,
            });
            if later {
                last = Some((outlook, stands));
            }
        }
        last.map_or(
            Outlook {
                budget: 0,
                obstacle: Obstacle::Pace,
                expected: None,
            },
            |(outlook, _)| outlook,
        )
    }
}
