//! One attempt that asks.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::{
    Answer, Ask, Lease, Refusal, RefusalKind, Wait, Way,
    engine::{Engine, News, Right, micros},
    words,
};
use crate::{
    config,
    limits::{Asked, BudgetId, Choice, Line, Micros, Obstacle, Outlook, Refused, Ticket},
    proto::waiting,
};

/// A place in the queue. Dropping it leaves nothing behind, and gives back a grant that was not taken.
pub struct Asking {
    engine: Arc<Engine>,
    ask: Ask,
    stage: Stage,
}

enum Stage {
    /// Has not asked yet.
    New,
    Waits(Ticket),
    Over,
}

impl Asking {
    pub(super) fn new(engine: Arc<Engine>, ask: Ask) -> Self {
        let stage = Stage::New;
        Self { engine, ask, stage }
    }

    /// The next answer. Not called again after `Granted` or `Refused`.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.stage {
            Stage::New => self.begin(cx),
            Stage::Waits(ticket) => self.wait(ticket, cx),
            Stage::Over => Poll::Pending,
        }
    }

    fn begin(&mut self, cx: &Context<'_>) -> Poll<Answer> {
        self.stage = Stage::Over;
        let free = |way: &&Way| way.matched.budgets.is_empty();
        let ways = &self.ask.ways;
        if ways.is_empty() || ways.first().filter(free).is_some() {
            return Poll::Ready(Answer::Granted {
                credential: ways.first().map_or(0, |way| way.credential),
                lease: Lease::none(),
            });
        }
        let configured = self.engine.configured();
        let choices: Vec<_> = ways.iter().map(|way| choice(configured, way)).collect();
        let (tokens, within) = (self.ask.tokens, micros(self.ask.send_within));
        let (asked, now) = self.engine.with(|state, now| {
            let asked = state.desk.ask(now, &choices, tokens, within);
            if let Asked::Waits { ticket, .. } = asked {
                state.sit(ticket, cx.waker());
            }
            (asked, now)
        });
        match asked {
            Asked::Granted { way, lease } => {
                Poll::Ready(self.granted(way, Right { lease, afar: None }))
            }
            Asked::Waits { ticket, outlook } => {
                self.stage = Stage::Waits(ticket);
                match outlook.obstacle {
                    // Nobody knows yet whether it waits.
                    Obstacle::EngineAsked => Poll::Pending,
                    _ => Poll::Ready(Answer::Waiting(self.told(&outlook, now))),
                }
            }
            Asked::Refused(why) => Poll::Ready(Answer::Refused(self.refused(&why, now))),
        }
    }

    fn refused(&self, why: &Refused, now: Micros) -> Refusal {
        match why {
            Refused::Never { budget, limit } => Refusal {
                kind: RefusalKind::Never,
                budget: self.name(*budget),
                limit: words::limit(limit),
                asked: words::measure(limit).map_or(1, |measure| self.ask.tokens.of(measure)),
                retry_after: None,
            },
            Refused::QueueFull { budget, outlook } => Refusal {
                kind: RefusalKind::QueueFull,
                budget: self.name(*budget),
                limit: words::queue(self.engine.configured().get(*budget)),
                asked: 1,
                retry_after: from_now(outlook, now),
            },
        }
    }

    fn wait(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<Answer> {
        let ((news, _old), now) = self
            .engine
            .with(|state, now| (state.news(ticket, cx.waker()), now));
        match news {
            None => Poll::Pending,
            Some(News::Told(outlook)) => Poll::Ready(Answer::Waiting(self.told(&outlook, now))),
            Some(News::Granted { way, right }) => {
                self.stage = Stage::Over;
                Poll::Ready(self.granted(way, right))
            }
            Some(News::Refused(why)) => {
                self.stage = Stage::Over;
                Poll::Ready(Answer::Refused(self.refused(&why, now)))
            }
        }
    }

    fn granted(&self, way: usize, right: Right) -> Answer {
        let way = self.ask.ways.get(way);
        let matched = way.map(|way| Arc::clone(&way.matched));
        let engine = Arc::clone(&self.engine);
        let matched = matched.unwrap_or_default();
        Answer::Granted {
            credential: way.map_or(0, |way| way.credential),
            lease: Lease::of(engine, right, matched, self.ask.tokens),
        }
    }

    fn told(&self, outlook: &Outlook, now: Micros) -> Wait {
        let budget = self.engine.configured().get(outlook.budget);
        Wait {
            reason: match outlook.obstacle {
                obstacle if obstacle.is_rest() => waiting::Reason::Cooldown,
                obstacle if obstacle.is_engine() => waiting::Reason::LimiterUnavailable,
                _ => waiting::Reason::Budget,
            },
            budget: self.name(outlook.budget),
            limit: words::obstacle(&outlook.obstacle, budget),
            expected: from_now(outlook, now),
        }
    }

    fn name(&self, budget: BudgetId) -> Arc<str> {
        self.engine.name(budget).cloned().unwrap_or_default()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Stage::Waits(ticket) = self.stage {
            let (_waker, afar) = self.engine.with(|state, now| state.stand_up(now, ticket));
            if let Some(lease) = afar {
                self.engine.give_back_afar(lease);
            }
        }
    }
}

fn from_now(outlook: &Outlook, now: Micros) -> Option<Duration> {
    let expected = outlook.expected?;
    Some(Duration::from_micros(expected.saturating_sub(now)))
}

/// A way as the desk sees it.
fn choice<'a>(configured: &[config::Budget], way: &'a Way) -> Choice<'a> {
    let line = way.matched.flow.as_ref().map(|(domain, flow)| {
        let fairness = configured.get(*domain);
        let fairness = fairness.and_then(|budget| budget.fairness.as_ref());
        let weight = fairness.map_or(1, |fairness| {
            let own = fairness.weights.get(&**flow);
            own.copied().unwrap_or(fairness.default_weight)
        });
        Line {
            domain: *domain,
            flow,
            weight,
        }
    });
    Choice {
        budgets: &way.matched.budgets,
        line,
    }
}
