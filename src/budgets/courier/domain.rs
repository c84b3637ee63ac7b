//! PURE. The shared budgets among all of the configuration, and how the engine is spoken with.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::{
    budgets::shared::{Answer, BadOptions, Options, Today},
    config::{self, EnginePlace, OnLoss},
    limits::{BudgetId, Settings},
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
}

/// What the engine is to grant of a budget: less what pods may take without it.
fn settings(engine: &config::SharedEngine, budget: &config::Budget) -> Settings {
    let mut settings = budget.settings.clone();
    if engine.on_loss == OnLoss::LocalShare {
        let share = &engine.local_share;
        for window in &mut settings.windows {
            window.limit = share.of_engine(window.limit);
        }
        for daily in &mut settings.daily {
            daily.limit = share.of_engine(daily.limit);
        }
        let concurrent = settings.concurrent;
        settings.concurrent = concurrent.map(|limit| share.of_engine(limit));
    }
    settings
}

/// How the engine is spoken with.
pub(super) fn options(engine: &config::SharedEngine) -> Result<Options, BadOptions> {
    let defaults = Options::new("");
    let (urls, cluster) = match &engine.place {
        EnginePlace::One(url) => (vec![url.clone()], false),
        EnginePlace::Cluster(urls) => (urls.clone(), true),
        EnginePlace::Sentinel { .. } => return Err(BadOptions::ManyUrls),
    };
    Ok(Options {
        urls,
        cluster,
        username: engine.username.clone(),
        password: engine.password.clone(),
        authority: engine.authority.clone(),
        timeout: engine.timeout,
        connect_timeout: defaults.connect_timeout.max(engine.timeout),
        pod: uuid::Uuid::now_v7().simple().to_string(),
        ..defaults
    })
}
