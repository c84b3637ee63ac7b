//! The local engine: one desk behind one lock, a seat for each who waits, and a keeper of time.
//!
//! Where budgets are shared, the desk says whom their engine is to be asked for: one task each, see `trial`.
//!
//! The lock is held for synchronous work only, and nobody is woken under it. The keeper is a task that lives
//! while somebody waits: it sleeps until the desk wants to be looked at. A grant is handed to its waiter
//! under the lock; a waiter that is dropped before it took the grant gives it back.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::Waker,
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    courier::Courier,
    days::Days,
    pace::Paces,
    shared::Id,
    trial::{Afar, Trial},
};
use crate::{
    clock::Clock,
    config,
    limits::{BudgetId, Desk, Event, LeaseId, Micros, Outlook, Refused, Said, Ticket},
    recovery::Time,
};

/// Everything that is shared.
pub(super) struct Engine {
    clock: Clock,
    configured: Arc<[config::Budget]>,
    names: Box<[Arc<str>]>,
    state: Mutex<State>,
    /// The engine of shared budgets, where there are any.
    afar: OnceLock<Afar>,
    /// The keeper has to look at the time again.
    sooner: Notify,
}

/// What the lock guards.
pub(super) struct State {
    pub(super) desk: Desk<Paces>,
    days: Days,
    seats: BTreeMap<Ticket, Seat>,
    /// Whether there is a keeper, and until when it sleeps.
    keeper: Option<Option<Micros>>,
}

/// What is handed to one who waits.
#[derive(Default)]
struct Seat {
    waker: Option<Waker>,
    news: Option<News>,
    /// What the engine granted it.
    afar: Option<Id>,
}

/// News for one who waits. All but what is told are the last.
pub(super) enum News {
    Granted { way: usize, right: Right },
    Told(Outlook),
    Refused(Refused),
}

/// What is granted: a lease here, and the engine's where a budget is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Right {
    pub(super) lease: LeaseId,
    pub(super) afar: Option<Id>,
}

/// What is to be done without the lock.
#[derive(Default)]
struct Delivery {
    woken: Vec<Waker>,
    trials: Vec<Trial>,
    /// Leases of the engine that nobody takes.
    unclaimed: Vec<Id>,
}

impl Engine {
    pub(super) fn new(clock: Clock, configured: Arc<[config::Budget]>) -> Self {
        Self::sharing(clock, configured, |desk| desk)
    }

    /// With a desk of which `share` tells what is shared.
    pub(super) fn sharing(
        clock: Clock,
        configured: Arc<[config::Budget]>,
        share: impl FnOnce(Desk<Paces>) -> Desk<Paces>,
    ) -> Self {
        let budgets = configured
            .iter()
            .map(|budget| (budget.settings.clone(), budget.max_waiting));
        let names = configured
            .iter()
            .map(|budget| budget.settings.name.as_str().into());
        let state = State {
            desk: share(Desk::new(budgets, Paces::new(&configured))),
            days: Days::new(&configured),
            seats: BTreeMap::new(),
            keeper: None,
        };
        Self {
            clock,
            names: names.collect(),
            configured,
            state: Mutex::new(state),
            afar: OnceLock::new(),
            sooner: Notify::new(),
        }
    }

    /// Since the clock's origin.
    pub(super) fn now(&self) -> Duration {
        self.clock.now().since_origin()
    }

    pub(super) fn configured(&self) -> &[config::Budget] {
        &self.configured
    }

    /// The engine of shared budgets, where there are any.
    pub(super) fn afar(&self) -> Option<&Afar> {
        self.afar.get()
    }

    /// What it is told by.
    pub(super) fn courier(&self) -> Option<&Courier> {
        self.afar.get().map(|afar| &afar.courier)
    }

    pub(super) fn share_by(&self, afar: Afar) {
        let _ = self.afar.set(afar);
    }

    pub(super) fn name(&self, budget: BudgetId) -> Option<&Arc<str>> {
        self.names.get(budget)
    }

    /// Does `work` under the lock, then wakes whom it concerns.
    pub(super) fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut State, Micros) -> T) -> T {
        let (result, delivery, keeper) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let now = micros(self.clock.now().since_origin());
            let State { desk, days, .. } = &mut *state;
            days.turn(now, self.clock.wall_origin(), |budget, day| {
                desk.turn(budget, day)
            });
            let result = work(&mut state, now);
            let delivery = state.deliver(now);
            (result, delivery, state.wants_keeper())
        };
        for waker in delivery.woken {
            waker.wake();
        }
        for trial in delivery.trials {
            self.try_at_engine(trial);
        }
        for lease in delivery.unclaimed {
            self.give_back_afar(lease);
        }
        match keeper {
            Keeper::Is => {}
            Keeper::Sooner => self.sooner.notify_one(),
            Keeper::Needed => self.begin_keeping(),
        }
        result
    }

    /// Starts the keeper. Outside of a runtime nobody can wait for time to pass: the next who waits inside
    /// one starts it.
    fn begin_keeping(self: &Arc<Self>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.lock_keeper(None);
            return;
        };
        let keeping = Keeping {
            engine: Arc::clone(self),
            over: false,
        };
        runtime.spawn(keeping.run());
    }

    fn lock_keeper(&self, keeper: Option<Option<Micros>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keeper = keeper;
    }

    /// The keeper's turn: looks at the desk, and says until when to sleep; `None` where nobody waits.
    fn keep(self: &Arc<Self>) -> Option<Option<Micros>> {
        self.with(|state, now| {
            if state.desk.next_look().is_some_and(|at| at <= now) {
                state.desk.look(now);
            }
            // What is looked at again at once is, after others had the lock.
            state.keeper =
                (state.desk.waiting() > 0).then(|| state.desk.next_look().map(|at| at.max(now)));
            state.keeper
        })
    }
}

/// What is to be done about the keeper.
enum Keeper {
    Is,
    Sooner,
    Needed,
}

impl State {
    /// Puts the desk's events into the seats.
    fn deliver(&mut self, now: Micros) -> Delivery {
        let mut delivery = Delivery::default();
        while let Some(event) = self.desk.poll_event() {
            let (ticket, news) = match event {
                Event::Try {
                    ticket,
                    budgets,
                    stands,
                    weights,
                    send_within,
                } => {
                    delivery.trials.push(Trial {
                        ticket,
                        budgets,
                        stands,
                        weights,
                        send_within,
                    });
                    continue;
                }
                Event::Granted { ticket, way, lease } => {
                    let seat = self.seats.get_mut(&ticket);
                    let afar = seat.and_then(|seat| seat.afar.take());
                    let right = Right { lease, afar };
                    (ticket, News::Granted { way, right })
                }
                Event::Told { ticket, outlook } => (ticket, News::Told(outlook)),
                Event::Refused { ticket, why } => (ticket, News::Refused(why)),
            };
            match (self.seats.get_mut(&ticket), news) {
                (Some(seat), news) => {
                    seat.news = Some(news);
                    delivery.woken.extend(seat.waker.take());
                }
                (None, News::Granted { right, .. }) => {
                    self.desk.release(now, right.lease);
                    delivery.unclaimed.extend(right.afar);
                }
                (None, News::Told(_) | News::Refused(_)) => {}
            }
        }
        delivery
    }

    /// What the engine says to `ticket`, which asked with `lease`. `false` if that goes back.
    pub(super) fn tried(&mut self, now: Micros, ticket: Ticket, lease: Id, said: Said) -> bool {
        let Some(seat) = self.seats.get_mut(&ticket) else {
            self.desk.withdraw(now, ticket);
            return false;
        };
        seat.afar = (said == Said::Granted).then_some(lease);
        let granted = self.desk.tried(now, ticket, said);
        if !granted && let Some(seat) = self.seats.get_mut(&ticket) {
            seat.afar = None;
        }
        granted
    }

    fn wants_keeper(&mut self) -> Keeper {
        if self.desk.waiting() == 0 {
            // It ends by itself once it has looked.
            return match self.keeper {
                Some(_) => Keeper::Sooner,
                None => Keeper::Is,
            };
        }
        let next = self.desk.next_look();
        match self.keeper {
            None => {
                self.keeper = Some(next);
                Keeper::Needed
            }
            Some(until) if next.is_some_and(|next| until.is_none_or(|until| next < until)) => {
                self.keeper = Some(next);
                Keeper::Sooner
            }
            Some(_) => Keeper::Is,
        }
    }

    /// A seat for one who waits from now on.
    pub(super) fn sit(&mut self, ticket: Ticket, waker: &Waker) {
        let seat = Seat {
            waker: Some(waker.clone()),
            ..Seat::default()
        };
        self.seats.insert(ticket, seat);
    }

    /// News of `ticket`; with none, `waker` is woken when there are. A grant empties the seat. Also a waker
    /// that is to be dropped without the lock: its task may be another's.
    pub(super) fn news(&mut self, ticket: Ticket, waker: &Waker) -> (Option<News>, Option<Waker>) {
        let Some(seat) = self.seats.get_mut(&ticket) else {
            return (None, None);
        };
        let Some(news) = seat.news.take() else {
            let known = seat.waker.as_ref();
            let same = known.is_some_and(|known| known.will_wake(waker));
            let old = if same {
                None
            } else {
                seat.waker.replace(waker.clone())
            };
            return (None, old);
        };
        let seat = match news {
            News::Granted { .. } | News::Refused(_) => self.seats.remove(&ticket),
            News::Told(_) => None,
        };
        (Some(news), seat.and_then(|seat| seat.waker))
    }

    /// `ticket` gives up; a grant that it did not take goes back, at the engine without the lock. So is its
    /// waker to be dropped.
    pub(super) fn stand_up(&mut self, now: Micros, ticket: Ticket) -> (Option<Waker>, Option<Id>) {
        let Some(seat) = self.seats.remove(&ticket) else {
            return (None, None);
        };
        let mut afar = None;
        match seat.news {
            Some(News::Granted { right, .. }) => {
                self.desk.release(now, right.lease);
                afar = right.afar;
            }
            _ => self.desk.withdraw(now, ticket),
        }
        (seat.waker, afar)
    }
}

/// The keeper of time. Where its runtime drops it, another can begin.
struct Keeping {
    engine: Arc<Engine>,
    over: bool,
}

impl Keeping {
    async fn run(mut self) {
        while let Some(until) = self.engine.keep() {
            let sooner = self.engine.sooner.notified();
            match until {
                None => sooner.await,
                Some(until) => {
                    let until = Time::from_origin(Duration::from_micros(until));
                    tokio::select! {
                        () = sooner => {}
                        () = tokio::time::sleep_until(self.engine.clock.instant(until)) => {}
                    }
                }
            }
        }
        self.over = true;
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if !self.over {
            self.engine.lock_keeper(None);
        }
    }
}

/// Since the origin. Saturates after half a million years.
pub(super) fn micros(time: Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::limits::{Asked, Choice, Refund, Settings, Weights};

    /// Where the waker of one who waits could not be kept, it has a place and no seat.
    #[test]
    fn what_is_granted_to_an_empty_seat_goes_back_and_to_the_next() {
        let budget = config::Budget {
            settings: Settings {
                name: "b".into(),
                windows: Vec::new(),
                concurrent: Some(1),
                daily: Vec::new(),
                refund: Refund::All,
                margin: 0,
            },
            is_shared: false,
            selector: config::Selector::default(),
            zone: TimeZone::UTC,
            fairness: None,
            smoothing: None,
            max_waiting: 9,
            bytes_per_token: 1,
        };
        let engine = Arc::new(Engine::new(Clock::start(), [budget].into()));
        let way = Choice {
            budgets: &[0],
            line: None,
        };
        let ask = || {
            engine.with(|state, now| {
                let asked = state.desk.ask(now, &[way], Weights::default(), 1_000_000);
                match asked {
                    Asked::Granted { lease, .. } => lease,
                    Asked::Waits { ticket, .. } => ticket,
                    other => panic!("{other:?}"),
                }
            })
        };
        let running = ask();
        ask();
        let next = ask();
        engine.with(|state, _| state.sit(next, Waker::noop()));
        engine.with(|state, now| state.desk.release(now, running));
        let (news, _) = engine.with(|state, _| state.news(next, Waker::noop()));
        assert!(matches!(news, Some(News::Granted { .. })));
        engine.with(|state, _| assert_eq!(state.desk.limits().held(), 1));
    }
}
