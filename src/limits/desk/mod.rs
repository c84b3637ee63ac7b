//! Who may send now, and who waits: [`Limits`] and the queue before them.
//!
//! Inputs are values and the time; outputs are the answers, [`Desk::poll_event`], and
//! [`Desk::next_look`], the only timer. Whoever drives it calls [`Desk::look`] when that time has come and
//! takes all events after each call.
//!
//! - An ask is granted at once where nobody who waits comes first on any of its budgets; else it waits in
//!   the lanes of all its ways, and goes by the first that opens.
//! - The first of a lane that is denied holds every budget that denies it: nobody behind it gets any of
//!   those, however little they ask for, so that what asks for much is not starved. Others go on, also by
//!   those of its budgets that are open: a full budget never makes an open one wait.
//! - Waiting takes nothing. Whoever withdraws leaves nothing behind.
//! - Of a budget that others take of, too, nothing is granted before their engine was asked.
//!
//! # What it costs
//!
//! An ask looks at its own budgets only. Whatever may open something (a send that ends, a lease that
//! comes back, the timer) costs one round: a look at the first of each set of budgets in which somebody
//! waits, and one for each grant, of which a round makes at most [`GRANTS_A_LOOK`]. Waiters behind the
//! first cost nothing; they are told anew at most once a second each, [`TOLD_A_LOOK`] at a time.

mod ask;
mod outlook;
mod serve;
mod shared;
mod trial;
mod types;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use outlook::{Obstacle, Outlook};
pub use shared::OnLoss;
pub use trial::Said;
pub use types::{Asked, Choice, Counts, Event, Pace, Refused, Stands};

use self::{shared::Afar, trial::Trial};
use super::{
    BudgetId, Day, LeaseId, Limits, Measure, Micros, Settings, Weights,
    fairness::{Place, Queue, SetKey, Ticket},
};

/// How many grants one look makes at most; what is left is looked at at once again.
pub const GRANTS_A_LOOK: usize = 256;

/// How many waiters one look tells anew at most.
pub const TOLD_A_LOOK: usize = 64;

/// Who waits.
#[derive(Debug)]
struct Waiter {
    /// Each with the index of its way.
    places: Box<[(usize, Place)]>,
    weights: Weights,
    send_within: Micros,
    told: Outlook,
    /// When its outlook was looked at last.
    looked_at: Micros,
    /// When its outlook is looked at again.
    review: Micros,
    /// The engine is being asked for it.
    trial: Option<Trial>,
}

/// Who holds a budget: nobody behind it gets any of it.
#[derive(Clone, Debug)]
struct Holder {
    ticket: Ticket,
    /// The set that it is the first of.
    set: SetKey,
    obstacle: Obstacle,
}

/// A budget, as the queue sees it.
#[derive(Debug)]
struct Counter {
    max_waiting: usize,
    waiting: usize,
    counts: Counts,
    holder: Option<Holder>,
    day: Day,
    /// Until when it rests by a provider's word, and until when those who wait were told so.
    rests: Micros,
    rests_told: Micros,
    /// Of a shared budget.
    afar: Option<Afar>,
}

/// Limits, and who waits for them.
#[derive(Debug)]
pub struct Desk<P> {
    limits: Limits,
    pace: P,
    counters: Vec<Counter>,
    queue: Queue,
    waiters: BTreeMap<Ticket, Waiter>,
    reviews: BTreeSet<(Micros, Ticket)>,
    /// All waiters from this one on are to be told anew.
    retell: Option<Ticket>,
    next_ticket: Ticket,
    on_loss: OnLoss,
    /// The engine of shared budgets gives no answers.
    lost: bool,
    events: VecDeque<Event>,
    look: Option<Micros>,
}

impl<P: Pace> Desk<P> {
    /// Nobody waits, nothing was taken. With each budget, how many may wait for it.
    pub fn new(budgets: impl IntoIterator<Item = (Settings, usize)>, pace: P) -> Self {
        let (settings, counters): (Vec<_>, Vec<_>) = budgets
            .into_iter()
            .map(|(settings, max_waiting)| {
                let counter = Counter {
                    max_waiting,
                    waiting: 0,
                    counts: Counts::default(),
                    holder: None,
                    day: Day::default(),
                    rests: 0,
                    rests_told: 0,
                    afar: None,
                };
                (settings, counter)
            })
            .unzip();
        Self {
            limits: Limits::new(settings),
            pace,
            counters,
            queue: Queue::default(),
            waiters: BTreeMap::new(),
            reviews: BTreeSet::new(),
            retell: None,
            next_ticket: 0,
            on_loss: OnLoss::default(),
            lost: false,
            events: VecDeque::new(),
            look: None,
        }
    }

    /// Tells the calendar day of a budget. To be told before anything else is done once it has ended.
    pub fn turn(&mut self, budget: BudgetId, day: Day) {
        if let Some(counter) = self.counters.get_mut(budget) {
            counter.day = day;
            if let Some(afar) = &mut counter.afar {
                afar.begins_on(day);
            }
        }
    }

    /// The first byte of a lease may leave now; see [`Limits::sent`].
    pub fn sent(&mut self, now: Micros, lease: LeaseId) -> bool {
        let concerns = self.concerns(lease);
        let may = self.limits.sent(now, lease);
        // When its window frees up is known only now.
        if concerns {
            self.serve(now);
        }
        may
    }

    /// See [`Limits::stayed`].
    pub fn stayed(&mut self, now: Micros, lease: LeaseId) {
        let concerns = self.concerns(lease);
        self.limits.stayed(now, lease);
        if concerns {
            self.serve(now);
        }
    }

    /// See [`Limits::release`].
    pub fn release(&mut self, now: Micros, lease: LeaseId) {
        let concerns = self.concerns(lease);
        self.limits.release(now, lease);
        if concerns {
            self.serve(now);
        }
    }

    /// See [`Limits::settle`].
    pub fn settle(&mut self, now: Micros, lease: LeaseId, actual: Weights) {
        let concerns = self.concerns(lease);
        self.limits.settle(now, lease, actual);
        if concerns {
            self.serve(now);
        }
    }

    /// See [`Limits::answered`].
    pub fn answered(&mut self, now: Micros, lease: LeaseId) {
        if self.limits.answered(now, lease) {
            self.serve(now);
        }
    }

    /// See [`Limits::penalise`]. Everybody who waits is told.
    pub fn penalise(&mut self, now: Micros, which: &[BudgetId], until: Micros) {
        self.limits.penalise(which, until);
        self.rested(which, until);
        self.serve(now);
    }

    /// See [`Limits::brake`]. Everybody who waits is told. It opens nothing.
    pub fn brake(&mut self, which: &[BudgetId], until: Micros) {
        self.limits.brake(which, until);
        self.rested(which, until);
    }

    /// Gives up a place. Nothing is left behind.
    pub fn withdraw(&mut self, now: Micros, ticket: Ticket) {
        let Some(waiter) = self.remove(ticket) else {
            return;
        };
        if let Some(trial) = waiter.trial {
            self.forget_trial(now, ticket, trial);
        }
        if waiter.trial.is_some() || self.holds(ticket) {
            self.serve(now);
        }
    }

    /// What happened to those who wait, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Desk::look`] is to be called, if nothing happens before.
    pub fn next_look(&self) -> Option<Micros> {
        if self.waiters.is_empty() {
            return None;
        }
        if self.retell.is_some() {
            return Some(0);
        }
        let review = self.reviews.first().map(|(at, _)| *at);
        match (self.look, review) {
            (Some(look), Some(review)) => Some(look.min(review)),
            (look, review) => look.or(review),
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// How many flows something is kept of.
    pub fn flows(&self) -> usize {
        self.queue.flows()
    }

    /// How many wait for a budget.
    pub fn waiting_for(&self, budget: BudgetId) -> usize {
        let counter = self.counters.get(budget);
        counter.map_or(0, |counter| counter.waiting)
    }

    /// Until when a provider's word lets a budget rest, if it ever said one.
    pub fn rests_until(&self, budget: BudgetId) -> Option<Micros> {
        let counter = self.counters.get(budget)?;
        (counter.rests > 0).then_some(counter.rests)
    }

    /// What was decided about a budget.
    pub fn counts(&self, budget: BudgetId) -> Counts {
        let counter = self.counters.get(budget);
        counter.map(|counter| counter.counts).unwrap_or_default()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How much of each limit of a budget is used.
    pub fn used(&mut self, now: Micros, budget: BudgetId) -> Vec<(super::Limit, u64)> {
        let day = self.day(budget);
        self.limits.used(budget, now, day)
    }

    /// Whether nothing is kept of anybody who waited.
    pub fn is_idle(&self) -> bool {
        self.waiters.is_empty()
            && self.queue.is_empty()
            && self.reviews.is_empty()
            && self.events.is_empty()
            && self.counters.iter().all(|counter| counter.waiting == 0)
    }

    /// Whether somebody waits for a budget of this lease. If not, its end opens nothing: of whoever waits,
    /// something else stands in the way.
    fn concerns(&self, lease: LeaseId) -> bool {
        let parts = self.limits.leases.get(&lease).map(|lease| &lease.parts);
        let mut parts = parts.into_iter().flatten();
        parts.any(|part| self.holder(part.budget).is_some())
    }

    fn day(&self, budget: BudgetId) -> Day {
        let counter = self.counters.get(budget);
        counter.map(|counter| counter.day).unwrap_or_default()
    }

    fn rested(&mut self, which: &[BudgetId], until: Micros) {
        for &budget in which {
            let Some(counter) = self.counters.get_mut(budget) else {
                continue;
            };
            counter.rests = counter.rests.max(until);
            // Many sends may be refused at once: that it lasts a little longer is not told.
            if until > counter.rests_told.saturating_add(outlook::WORTH_TELLING) {
                counter.rests_told = until;
                if counter.waiting > 0 {
                    self.retell = Some(0);
                }
            }
        }
    }

    /// Takes `ticket` out of everything.
    fn remove(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.waiters.remove(&ticket)?;
        self.reviews.remove(&(waiter.review, ticket));
        for (_, place) in &waiter.places {
            self.queue.leave(place, ticket, waiter.weights);
        }
        for_each_budget(&waiter.places, |budget| {
            if let Some(counter) = self.counters.get_mut(budget) {
                counter.waiting -= 1;
            }
        });
        if self.waiters.is_empty() {
            self.look = None;
            self.retell = None;
            for counter in &mut self.counters {
                counter.holder = None;
            }
        }
        Some(waiter)
    }

    /// Microseconds of a budget's capacity that a send takes: of the window of which it takes the most
    /// time, or else of the day; 1 where there is neither.
    fn cost(&self, domain: BudgetId, weights: Weights) -> u64 {
        const DAY: u128 = 24 * 3600 * 1_000_000;
        let Some(settings) = self.limits.settings(domain) else {
            return 1;
        };
        let time = |measure: Measure, limit: u64, window: u128| {
            u128::from(weights.of(measure)) * window / u128::from(limit.max(1))
        };
        let windows = settings.windows.iter();
        let windows = windows.map(|w| time(w.measure, w.limit, u128::from(w.window)));
        let days = settings.daily.iter();
        let days = days.map(|daily| time(daily.measure, daily.limit, DAY));
        let cost = windows.max().or_else(|| days.max()).unwrap_or(1);
        u64::try_from(cost).unwrap_or(u64::MAX).max(1)
    }
}

/// Calls `each` once for every budget of all places.
fn for_each_budget(places: &[(usize, Place)], mut each: impl FnMut(BudgetId)) {
    for (nth, (_, place)) in places.iter().enumerate() {
        for &budget in place.set.iter() {
            let mut before = places.iter().take(nth);
            if !before.any(|(_, other)| other.set.contains(&budget)) {
                each(budget);
            }
        }
    }
}
