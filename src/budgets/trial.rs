//! Asking the engine of shared budgets for those whom the desk lets try, and hearing of its state.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{
    Budgets,
    courier::{Courier, Hooks},
    engine::{Engine, micros},
    shared::{Answer, BadOptions, Id, Lost, Turn},
};
use crate::{
    clock::Clock,
    config::{self, Config, SharedEngine},
    limits::{BudgetId, Desk, Micros, Obstacle, OnLoss, Said, Stands, Ticket, Weights},
    telemetry::{EngineAnswer, Telemetry},
};

/// The engine, and where those run who ask it.
pub(super) struct Afar {
    pub(super) courier: Courier,
    runtime: Handle,
    /// Where the engine's answers are counted.
    telemetry: OnceLock<Telemetry>,
}

/// Somebody for whom the engine is to be asked.
pub(super) struct Trial {
    pub(super) ticket: Ticket,
    /// Not all of them need be shared.
    pub(super) budgets: Arc<[BudgetId]>,
    pub(super) stands: Stands,
    pub(super) weights: Weights,
    pub(super) send_within: Micros,
}

impl Budgets {
    /// The budgets of a configuration. Where some are shared, to be called inside a runtime.
    ///
    /// # Errors
    /// As [`sharing`](Self::sharing).
    pub fn of(clock: Clock, config: &Config) -> Result<Self, BadOptions> {
        let budgets = Arc::clone(&config.budgets);
        let mut all = budgets.iter();
        match &config.engine {
            Some(engine) if all.any(|budget| budget.is_shared) => {
                Self::sharing(clock, budgets, engine)
            }
            _ => Ok(Self::new(clock, budgets)),
        }
    }

    /// Budgets of which some may be shared with other processes, by `engine`. To be called inside a runtime,
    /// in which what is told to the engine is carried.
    ///
    /// # Errors
    /// [`BadOptions`]; whether the engine is there is not looked at.
    pub fn sharing(
        clock: Clock,
        configured: impl Into<Arc<[config::Budget]>>,
        engine: &SharedEngine,
    ) -> Result<Self, BadOptions> {
        let configured: Arc<[config::Budget]> = configured.into();
        let on_loss = match engine.on_loss {
            config::OnLoss::Closed => OnLoss::Closed,
            config::OnLoss::LocalShare => OnLoss::LocalShare,
            config::OnLoss::Open => OnLoss::Open,
        };
        let shared = configured.iter().enumerate();
        let shared = shared.filter(|(_, budget)| budget.is_shared);
        let shares = shared.map(|(id, budget)| {
            let own = budget
                .settings
                .with_limits(|limit| engine.local_share.of_pod(limit));
            (id, (on_loss == OnLoss::LocalShare).then_some(own))
        });
        let local = Arc::new(Engine::sharing(clock, Arc::clone(&configured), |desk| {
            desk.with_engine(on_loss, shares)
        }));
        let hooks = Arc::new(Hears(Arc::downgrade(&local)));
        local.share_by(Afar {
            courier: Courier::start(clock, engine, &configured, hooks)?,
            runtime: Handle::current(),
            telemetry: OnceLock::new(),
        });
        Ok(Self { engine: local })
    }

    /// The answers of the engine of shared budgets are counted from now on; those who call again are not heard.
    pub fn measure(&self, telemetry: &Telemetry) {
        if let Some(afar) = self.engine.afar() {
            let _ = afar.telemetry.set(telemetry.clone());
        }
    }
}

impl Engine {
    /// Asks the engine for one who tries. Whoever is gone by the time it answers gives back what it was granted.
    pub(super) fn try_at_engine(self: &Arc<Self>, trial: Trial) {
        let Some(afar) = self.afar() else { return };
        let engine = Arc::clone(self);
        afar.runtime.spawn(async move { engine.asks(trial).await });
    }

    async fn asks(self: Arc<Self>, trial: Trial) {
        let Some(Afar {
            courier, telemetry, ..
        }) = self.afar()
        else {
            return;
        };
        let id = Id::random();
        let Trial {
            ticket,
            budgets,
            stands,
            weights,
            send_within,
        } = trial;
        let within = Duration::from_micros(send_within);
        let asked = self.now();
        let turn = self.turn(&stands);
        let answer = courier.acquire(id, &budgets, weights, within, turn);
        let answer = answer.await;
        if let Some(telemetry) = telemetry.get() {
            telemetry.engine_asked(kind(&answer), self.now().saturating_sub(asked));
        }
        let granted = matches!(answer, Ok(Answer::Granted));
        let taken = self.with(|state, now| {
            let said = said(now, answer, &budgets);
            state.tried(now, ticket, id, said)
        });
        if granted && !taken {
            courier.release(id);
        }
    }

    /// Whose turn it has to be among all pods: of a budget that is shared with them, and shared fairly.
    fn turn<'a>(&self, stands: &'a Stands) -> Option<Turn<'a>> {
        let budget = self.configured().get(stands.domain)?;
        let is_fair = budget.is_shared && budget.fairness.is_some();
        is_fair.then_some(Turn {
            budget: stands.domain,
            flow: &stands.flow,
            weight: stands.weight,
            more: stands.more,
        })
    }

    /// A lease of the engine that nobody takes.
    pub(super) fn give_back_afar(&self, lease: Id) {
        if let Some(afar) = self.afar() {
            afar.courier.release(lease);
        }
    }
}

/// An answer as it is counted. One that was given back before it was granted gave nothing.
fn kind(answer: &Result<Answer, Lost>) -> EngineAnswer {
    match answer {
        Ok(Answer::Granted) => EngineAnswer::Granted,
        Ok(Answer::Denied { .. } | Answer::Turn { .. } | Answer::Never { .. } | Answer::Over) => {
            EngineAnswer::Denied
        }
        Ok(Answer::Learning { .. }) => EngineAnswer::Learning,
        Err(_) => EngineAnswer::Lost,
    }
}

/// An answer as the desk takes it.
fn said(now: Micros, answer: Result<Answer, Lost>, asked: &[BudgetId]) -> Said {
    let first = asked.first().copied().unwrap_or_default();
    let after = |wait| now.saturating_add(micros(wait));
    match answer {
        Ok(Answer::Granted) => Said::Granted,
        Ok(Answer::Denied {
            budget,
            limit,
            wait,
        }) => Said::Denied {
            budget,
            obstacle: Obstacle::Limit(limit),
            until: wait.map(after),
        },
        Ok(Answer::Never { budget, limit }) => Said::Never { budget, limit },
        Ok(Answer::Learning { budget, wait }) => Said::Denied {
            budget,
            obstacle: Obstacle::EngineLearns,
            until: Some(after(wait)),
        },
        Ok(Answer::Turn { budget, wait }) => Said::Turn {
            budget,
            again: after(wait),
        },
        // It was given back before it was granted: it asks again, by another name.
        Ok(Answer::Over) => Said::Turn {
            budget: first,
            again: now,
        },
        Err(_) => Said::Lost,
    }
}

/// Passes on to the desk what the courier hears.
struct Hears(Weak<Engine>);

impl Hears {
    fn desk(&self, work: impl FnOnce(&mut Desk<super::pace::Paces>, Micros)) {
        if let Some(engine) = self.0.upgrade() {
            engine.with(|state, now| work(&mut state.desk, now));
        }
    }
}

impl Hooks for Hears {
    fn engine_up(&self) {
        self.desk(|desk, now| desk.engine_up(now));
    }

    fn engine_lost(&self, _: &Lost) {
        self.desk(|desk, now| desk.engine_lost(now));
    }

    fn freed(&self, budgets: &[BudgetId]) {
        self.desk(|desk, now| desk.freed(now, budgets));
    }
}
