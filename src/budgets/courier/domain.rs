//! PURE. The shared budgets among all of the configuration, and how the engine is spoken with.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::{
    budgets::{
        FleetStatus, LimitStatus,
        shared::{Answer, BudgetStatus, Options, Status, Today, Turn},
        words,
    },
    config::{self, OnLoss},
    limits::{BudgetId, Limit, Settings},
};

/// The domain's budgets: those that are shared, in the configuration's order. Outside they are named by
/// their place among all, towards the engine by their place among the shared.
#[derive(Debug)]
pub(super) struct Domain {
    budgets: Box<[One]>,
    /// Of each budget of the configuration, its place here.
    places: Box<[Option<usize>]>,
}

#[derive(Debug)]
struct One {
    id: BudgetId,
    settings: Settings,
    zone: TimeZone,
}

impl Domain {
    pub(super) fn new(engine: &config::SharedEngine, budgets: &[config::Budget]) -> Self {
        let mut shared = Vec::new();
        let places = budgets.iter().enumerate().map(|(id, budget)| {
            budget.is_shared.then(|| {
                shared.push(One {
                    id,
                    settings: settings(engine, budget),
                    zone: budget.zone.clone(),
                });
                shared.len() - 1
            })
        });
        let places = places.collect();
        Self {
            budgets: shared.into(),
            places,
        }
    }

    pub(super) fn settings(&self) -> Vec<Settings> {
        self.budgets
            .iter()
            .map(|one| one.settings.clone())
            .collect()
    }

    /// All of them, as the engine's client knows them.
    pub(super) fn all(&self) -> Vec<BudgetId> {
        (0..self.budgets.len()).collect()
    }

    /// Those of `budgets` that are shared, as the engine's client knows them.
    pub(super) fn inward(&self, budgets: &[BudgetId]) -> Vec<BudgetId> {
        let places = budgets.iter().map(|id| *self.places.get(*id)?);
        places.flatten().collect()
    }

    /// Whose turn it has to be, as the engine's client knows it; of a budget that is not shared it is nobody's.
    pub(super) fn turn<'a>(&self, turn: Option<Turn<'a>>) -> Option<Turn<'a>> {
        let turn = turn?;
        let budget = self.inward(&[turn.budget]).first().copied()?;
        Some(Turn { budget, ..turn })
    }

    /// The name outside of a budget.
    pub(super) fn outward(&self, budget: BudgetId) -> BudgetId {
        self.budgets.get(budget).map_or(budget, |one| one.id)
    }

    /// The days of budgets, as the engine's client knows them, at `wall`; empty where none has caps of a day.
    pub(super) fn days(&self, budgets: &[BudgetId], wall: Duration) -> Vec<Today> {
        let ones = || budgets.iter().map(|budget| self.budgets.get(*budget));
        let daily = |one: &One| !one.settings.daily.is_empty();
        if !ones().flatten().any(daily) {
            return Vec::new();
        }
        let days = ones().map(|one| {
            let one = one.filter(|one| daily(one));
            one.map_or(Today::default(), |one| Today::at(&one.zone, wall))
        });
        days.collect()
    }

    /// Whether one of the budgets, as the engine's client knows them, limits sends at a time.
    pub(super) fn is_fenced(&self, budgets: &[BudgetId]) -> bool {
        let mut ones = budgets
            .iter()
            .filter_map(|budget| self.budgets.get(*budget));
        ones.any(|one| one.settings.concurrent.is_some())
    }

    /// The longest of all windows, with its margin.
    pub(super) fn longest(&self) -> Duration {
        let all = self.budgets.iter().map(|one| &one.settings);
        let lengths = all.flat_map(|settings| {
            let windows = settings.windows.iter();
            windows.map(|window| window.window.saturating_add(settings.margin))
        });
        Duration::from_micros(lengths.max().unwrap_or(0))
    }

    /// An answer with the names of budgets outside.
    pub(super) fn told(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Denied {
                budget,
                limit,
                wait,
            } => Answer::Denied {
                budget: self.outward(budget),
                limit,
                wait,
            },
            Answer::Never { budget, limit } => Answer::Never {
                budget: self.outward(budget),
                limit,
            },
            Answer::Turn { budget, wait } => Answer::Turn {
                budget: self.outward(budget),
                wait,
            },
            Answer::Learning { budget, wait } => Answer::Learning {
                budget: self.outward(budget),
                wait,
            },
            other @ (Answer::Granted | Answer::Over) => other,
        }
    }

    /// How the budgets stand by the engine's word of so long ago, each with its name outside.
    pub(super) fn fleet(&self, status: &Status, age: Duration) -> Vec<(BudgetId, FleetStatus)> {
        let all = self.budgets.iter().zip(&status.budgets);
        all.map(|(one, status)| (one.id, one.fleet(status, age)))
            .collect()
    }
}

impl One {
    fn fleet(&self, status: &BudgetStatus, age: Duration) -> FleetStatus {
        let settings = &self.settings;
        let windows = settings.windows.iter().copied().map(Limit::Window);
        let daily = settings.daily.iter().copied().map(Limit::Daily);
        let limits = windows.chain(daily).zip(status.used.iter().copied());
        let at_once = settings.concurrent.map(Limit::Concurrent);
        let limits = limits.chain(at_once.map(|limit| (limit, status.running)));
        let limits = limits.filter_map(|(limit, used)| {
            Some(LimitStatus {
                which: words::key(&limit)?,
                used,
                limit: words::most(&limit)?,
            })
        });
        FleetStatus {
            limits: limits.collect(),
            running: status.running,
            entries: Some(status.entries),
            overruns: status.overruns,
            learning: status.learning,
            rests: status.rests,
            age,
        }
    }
}

/// What the engine is to grant of a budget: less what pods may take without it.
fn settings(engine: &config::SharedEngine, budget: &config::Budget) -> Settings {
    match engine.on_loss {
        OnLoss::LocalShare => {
            let share = &engine.local_share;
            let settings = &budget.settings;
            settings.with_limits(|limit| share.of_engine(limit))
        }
        OnLoss::Closed | OnLoss::Open => budget.settings.clone(),
    }
}

/// How the engine is spoken with.
pub(super) fn options(engine: &config::SharedEngine) -> Options {
    let defaults = Options::new("");
    Options {
        place: engine.place.clone(),
        username: engine.username.clone(),
        password: engine.password.clone(),
        authority: engine.authority.clone(),
        timeout: engine.timeout,
        connect_timeout: defaults.connect_timeout.max(engine.timeout),
        pod: uuid::Uuid::now_v7().simple().to_string(),
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{EnginePlace, LocalShare, SharedEngine},
        limits::{Account, DailyLimit, Measure, Refund, WindowLimit},
    };

    fn engine(on_loss: OnLoss) -> SharedEngine {
        SharedEngine {
            place: EnginePlace::One("redis://127.0.0.1:6379".into()),
            username: Some("user".into()),
            password: None,
            authority: None,
            domain: "default".into(),
            on_loss,
            local_share: LocalShare {
                fraction: 0.1,
                max_pods: 10,
            },
            timeout: Duration::from_secs(2),
        }
    }

    fn budget(is_shared: bool, concurrent: Option<u64>, daily: &[DailyLimit]) -> config::Budget {
        config::Budget {
            settings: Settings {
                name: "b".into(),
                windows: vec![WindowLimit {
                    measure: Measure::Requests,
                    limit: 500,
                    window: 60_000_000,
                }],
                concurrent,
                daily: daily.into(),
                refund: Refund::All,
                margin: 0,
            },
            is_shared,
            selector: config::Selector::default(),
            zone: TimeZone::UTC,
            fairness: None,
            smoothing: None,
            max_waiting: 9,
            bytes_per_token: 1,
        }
    }

    const DAILY: DailyLimit = DailyLimit {
        measure: Measure::Requests,
        limit: 1_000,
    };

    fn domain(on_loss: OnLoss) -> Domain {
        let budgets = [
            budget(false, Some(9), &[]),
            budget(true, None, &[]),
            budget(false, None, &[]),
            budget(true, Some(200), &[DAILY]),
        ];
        Domain::new(&engine(on_loss), &budgets)
    }

    #[test]
    fn shared_budgets_have_other_names_towards_the_engine() {
        let domain = domain(OnLoss::Closed);
        assert_eq!(domain.all(), [0, 1]);
        assert_eq!(domain.inward(&[0, 1, 2, 3, 99]), [0, 1]);
        assert_eq!(domain.inward(&[3]), [1]);
        assert_eq!((domain.outward(0), domain.outward(1)), (1, 3));
        let never = |budget| Answer::Never {
            budget,
            limit: Limit::Cooldown,
        };
        assert_eq!(domain.told(never(1)), never(3));
        let denied = |budget| Answer::Denied {
            budget,
            limit: Limit::Cooldown,
            wait: None,
        };
        assert_eq!(domain.told(denied(0)), denied(1));
        let learning = |budget| Answer::Learning {
            budget,
            wait: Duration::ZERO,
        };
        assert_eq!(domain.told(learning(1)), learning(3));
    }

    #[test]
    fn sends_at_a_time_are_fenced_where_the_engine_counts_them() {
        let domain = domain(OnLoss::Closed);
        let fenced = |budgets: &[BudgetId]| domain.is_fenced(&domain.inward(budgets));
        assert!(fenced(&[1, 3]));
        assert!(!fenced(&[0, 1]));
    }

    #[test]
    fn only_budgets_with_caps_of_a_day_have_days() {
        let domain = domain(OnLoss::Closed);
        let noon = Duration::from_secs(20_605 * 86_400 + 43_200);
        assert_eq!(domain.days(&[0], noon), []);
        let days = domain.days(&[0, 1], noon);
        assert_eq!(days, [Today::default(), Today::at(&TimeZone::UTC, noon)]);
        assert_eq!(days[1].number, 20_605);
    }

    #[test]
    fn the_longest_window_is_of_those_that_are_shared() {
        assert_eq!(domain(OnLoss::Open).longest(), Duration::from_secs(60));
        let local = Domain::new(&engine(OnLoss::Open), &[budget(false, None, &[])]);
        assert_eq!(local.longest(), Duration::ZERO);
    }

    #[test]
    fn the_engine_never_grants_what_pods_may_take_without_it() {
        let limits = |on_loss| {
            let settings = &domain(on_loss).settings()[1];
            let windows = settings.windows[0].limit;
            (windows, settings.daily[0].limit, settings.concurrent)
        };
        assert_eq!(limits(OnLoss::LocalShare), (450, 900, Some(180)));
        for on_loss in [OnLoss::Closed, OnLoss::Open] {
            assert_eq!(limits(on_loss), (500, 1_000, Some(200)));
        }
    }

    #[test]
    fn how_full_limits_are_is_told_by_their_names() {
        let said = |running, used: &[u64]| BudgetStatus {
            running,
            entries: 9,
            overruns: 1,
            learning: Duration::ZERO,
            rests: Duration::from_secs(2),
            used: used.into(),
        };
        let status = Status {
            account: Account::default(),
            budgets: vec![said(4, &[40]), said(5, &[50, 60])],
        };
        let fleet = domain(OnLoss::Closed).fleet(&status, Duration::from_secs(3));
        let told = |(budget, status): &(BudgetId, FleetStatus)| {
            let limits = status.limits.iter();
            let limits = limits.map(|limit| (limit.which.clone(), limit.used, limit.limit));
            (*budget, limits.collect::<Vec<_>>())
        };
        let expected = [
            (1, vec![("requests/1m".into(), 40, 500)]),
            (
                3,
                vec![
                    ("requests/1m".into(), 50, 500),
                    ("requests/day".into(), 60, 1_000),
                    ("concurrent".into(), 5, 200),
                ],
            ),
        ];
        assert_eq!(fleet.iter().map(told).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_engine_is_spoken_with_as_configured() {
        let options = options(&engine(OnLoss::Closed));
        let place = EnginePlace::One("redis://127.0.0.1:6379".into());
        assert_eq!(options.place, place);
        assert_eq!(options.username.as_deref(), Some("user"));
        assert_eq!(options.timeout, Duration::from_secs(2));
        assert_eq!(options.connect_timeout, Duration::from_secs(2));
        assert_eq!(options.pod.len(), 32);
    }
}
