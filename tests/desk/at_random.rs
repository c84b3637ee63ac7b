//! Random operations: whatever happens and in whatever order, nobody is lost, nobody is passed over, and
//! nothing is left behind.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::select};
use redrive::limits::*;

use crate::support::*;

const BUDGETS: usize = 4;
const MAX_WAITING: usize = 1_000;
const FLOWS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Op {
    Ask {
        sets: Vec<Vec<BudgetId>>,
        flow: usize,
        tokens: u64,
    },
    Withdraw(usize),
    Send(usize),
    Release(usize),
    Settle(usize, u64),
    Penalise(BudgetId, Micros),
    Brake(BudgetId, Micros),
    /// The engine answers one who tries: granted, lost, or denied by a budget for so long.
    Answer(usize, Engine),
    Freed(BudgetId),
    Lost(bool),
    Pass(Micros),
}

#[derive(Clone, Debug)]
enum Engine {
    Granted,
    Lost,
    Denied(usize, Option<Micros>),
}

/// One who waits, as the account has it.
#[derive(Clone, Debug)]
struct Waiting {
    sets: Vec<Vec<BudgetId>>,
    flow: usize,
    weights: Weights,
}

struct World {
    desk: Desk<()>,
    now: Micros,
    waiting: BTreeMap<Ticket, Waiting>,
    /// Those of them for whom the engine is being asked, and for what.
    tries: BTreeMap<Ticket, Vec<BudgetId>>,
    shared: Vec<BudgetId>,
    held: Vec<LeaseId>,
    granted: u64,
}

impl World {
    fn new(settings: Vec<Settings>, shared: Vec<BudgetId>, on_loss: OnLoss) -> Self {
        let own = |id: &BudgetId| {
            let share = settings[*id].with_limits(|limit| limit / 4);
            (*id, (on_loss == OnLoss::LocalShare).then_some(share))
        };
        let shares: Vec<_> = shared.iter().map(own).collect();
        let budgets = settings.into_iter().map(|settings| (settings, MAX_WAITING));
        let mut desk = Desk::new(budgets, ()).with_engine(on_loss, shares);
        for budget in 0..BUDGETS {
            desk.turn(budget, far());
        }
        Self {
            desk,
            now: 1,
            waiting: BTreeMap::new(),
            tries: BTreeMap::new(),
            shared,
            held: Vec::new(),
            granted: 0,
        }
    }

    fn play(&mut self, op: Op) -> Result<(), TestCaseError> {
        let now = self.now;
        match op {
            Op::Ask { sets, flow, tokens } => self.ask(sets, flow, input(tokens)),
            Op::Withdraw(n) => {
                if let Some(ticket) = nth(&self.waiting.keys().copied().collect::<Vec<_>>(), n) {
                    self.waiting.remove(&ticket);
                    self.tries.remove(&ticket);
                    self.desk.withdraw(now, ticket);
                }
            }
            Op::Send(n) => {
                if let Some(lease) = nth(&self.held, n) {
                    self.desk.sent(now, lease);
                }
            }
            Op::Release(n) => {
                if let Some(lease) = nth(&self.held, n) {
                    self.held.retain(|other| *other != lease);
                    self.desk.release(now, lease);
                }
            }
            Op::Settle(n, tokens) => {
                if let Some(lease) = nth(&self.held, n) {
                    self.held.retain(|other| *other != lease);
                    self.desk.settle(now, lease, input(tokens));
                }
            }
            Op::Penalise(budget, length) => self.desk.penalise(now, &[budget], now + length),
            Op::Brake(budget, length) => self.desk.brake(&[budget], now + length),
            Op::Answer(n, engine) => {
                let all: Vec<_> = self.tries.keys().copied().collect();
                if let Some(ticket) = nth(&all, n) {
                    self.answer(ticket, engine);
                }
            }
            Op::Freed(budget) => self.desk.freed(now, &[budget]),
            Op::Lost(true) => self.desk.engine_lost(now),
            Op::Lost(false) => self.desk.engine_up(now),
            Op::Pass(length) => self.pass(length)?,
        }
        self.take_events()
    }

    fn answer(&mut self, ticket: Ticket, engine: Engine) {
        let asked = self.tries.remove(&ticket).unwrap();
        let shared: Vec<_> = asked
            .into_iter()
            .filter(|b| self.shared.contains(b))
            .collect();
        let said = match engine {
            Engine::Granted => Said::Granted,
            Engine::Lost => Said::Lost,
            Engine::Denied(n, wait) => Said::Denied {
                budget: nth(&shared, n).unwrap(),
                obstacle: Obstacle::Limit(Limit::Concurrent(1)),
                until: wait.map(|wait| self.now + wait),
            },
        };
        let granted = self.desk.tried(self.now, ticket, said);
        assert_eq!(granted, said == Said::Granted);
    }

    fn ask(&mut self, sets: Vec<Vec<BudgetId>>, flow: usize, weights: Weights) {
        let ways: Vec<_> = sets
            .iter()
            .map(|set| of(FLOWS[flow], 1 + flow as u32, set))
            .collect();
        match self.desk.ask(self.now, &ways, weights, 200) {
            Asked::Granted { lease, .. } => {
                self.granted += 1;
                self.held.push(lease);
            }
            Asked::Waits { ticket, .. } => {
                let waiting = Waiting {
                    sets,
                    flow,
                    weights,
                };
                self.waiting.insert(ticket, waiting);
            }
            Asked::Refused(_) => {}
        }
    }

    /// Time passes; the desk is looked at when it wants to be.
    fn pass(&mut self, length: Micros) -> Result<(), TestCaseError> {
        let until = self.now + length;
        while let Some(at) = self.desk.next_look().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.desk.look(self.now);
            self.take_events()?;
        }
        self.now = until;
        Ok(())
    }

    fn take_events(&mut self) -> Result<(), TestCaseError> {
        while let Some(event) = self.desk.poll_event() {
            match event {
                Event::Granted { ticket, way, lease } => {
                    let known = self.waiting.remove(&ticket);
                    prop_assert!(!self.tries.contains_key(&ticket));
                    prop_assert!(known.is_some(), "granted to nobody who waits");
                    let known = known.unwrap();
                    prop_assert!(way < known.sets.len());
                    // First come, first served inside a flow, among those who can go that way.
                    let before = self.waiting.range(..ticket).find(|(_, other)| {
                        other.flow == known.flow
                            && other.sets == known.sets
                            && !never(&self.desk, &known.sets[way], other.weights)
                    });
                    prop_assert!(before.is_none(), "{ticket} overtook {before:?}");
                    self.granted += 1;
                    self.held.push(lease);
                }
                Event::Told { ticket, .. } => prop_assert!(self.waiting.contains_key(&ticket)),
                Event::Try {
                    ticket, budgets, ..
                } => {
                    prop_assert!(self.waiting.contains_key(&ticket));
                    for other in self.tries.values() {
                        // One question at a time for each shared budget.
                        let mut both = other.iter().filter(|b| budgets.contains(b));
                        prop_assert!(!both.any(|b| self.shared.contains(b)));
                    }
                    prop_assert!(self.tries.insert(ticket, budgets.to_vec()).is_none());
                }
                Event::Refused { .. } => prop_assert!(false, "there is room"),
            }
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.desk.waiting(), self.waiting.len());
        for budget in 0..BUDGETS {
            let wants = |waiting: &&Waiting| waiting.sets.iter().flatten().any(|b| *b == budget);
            let count = self.waiting.values().filter(wants).count();
            // It has no place where it never fits.
            prop_assert!(self.desk.waiting_for(budget) <= count);
            let now = self.now;
            for (limit, used) in self.desk.used(now, budget) {
                if let Limit::Window(window) = limit
                    && window.measure == Measure::Requests
                {
                    prop_assert!(used <= window.limit);
                }
            }
        }
        let account = self.desk.limits().account();
        prop_assert_eq!(account.granted, self.granted + self.tries.len() as u64);
        Ok(())
    }

    /// Nobody waits who may go: of those who need one of its budgets, somebody is denied by it.
    fn somebody_stands_in_the_way_of_everybody(&self) -> Result<(), TestCaseError> {
        let denies = |waiting: &Waiting, budget: BudgetId| {
            let mut limits = self.desk.limits().clone();
            let check = limits.check(self.now, &[budget], &[far()], waiting.weights);
            check.is_err()
        };
        for (ticket, waiting) in &self.waiting {
            for set in &waiting.sets {
                let held = set.iter().any(|budget| {
                    let mut all = self.waiting.values();
                    all.any(|other| {
                        other.sets.iter().any(|set| set.contains(budget)) && denies(other, *budget)
                    })
                });
                if set.iter().any(|budget| self.shared.contains(budget)) {
                    // The engine has a word there.
                    continue;
                }
                // One who tries holds what it may be granted of, and stands first on its other ways.
                let held = held
                    || set.iter().any(|budget| {
                        let tries = self.tries.keys().filter_map(|t| self.waiting.get(t));
                        tries
                            .into_iter()
                            .any(|t| t.sets.iter().flatten().any(|b| b == budget))
                    });
                let never = never(&self.desk, set, waiting.weights);
                prop_assert!(held || never, "{ticket} of {set:?}");
            }
        }
        Ok(())
    }

    /// Everything ends, and time passes until nobody waits.
    fn end(&mut self) -> Result<(), TestCaseError> {
        self.desk.engine_up(self.now);
        for _ in 0..10_000 {
            while let Some(ticket) = self.tries.keys().next().copied() {
                self.answer(ticket, Engine::Granted);
                self.take_events()?;
            }
            for lease in std::mem::take(&mut self.held) {
                self.desk.sent(self.now, lease);
                self.desk.settle(self.now, lease, Weights::default());
                self.take_events()?;
            }
            if self.held.is_empty() && self.tries.is_empty() {
                let Some(at) = self.desk.next_look() else {
                    break;
                };
                self.now = self.now.max(at);
                self.desk.look(self.now);
                self.take_events()?;
            }
        }
        prop_assert!(
            self.waiting.is_empty(),
            "lost: {:?} {:?} {}",
            self.waiting,
            self.desk.next_look(),
            self.now
        );
        prop_assert!(self.desk.is_idle());
        let account = self.desk.limits().account();
        let over = account.sent + account.returned + account.expired;
        prop_assert_eq!(account.granted, over);
        prop_assert_eq!(self.desk.limits().held(), 0);
        Ok(())
    }
}

fn never(desk: &Desk<()>, set: &[BudgetId], weights: Weights) -> bool {
    let mut limits = desk.limits().clone();
    set.iter().any(|budget| {
        let check = limits.check(0, &[*budget], &[far()], weights);
        matches!(check, Err(Denied::Never { .. }))
    })
}

fn far() -> Day {
    Day {
        number: 1,
        ends: Micros::MAX,
    }
}

fn nth<T: Copy>(all: &[T], n: usize) -> Option<T> {
    all.get(n % all.len().max(1)).copied()
}

fn settings() -> impl Strategy<Value = Settings> {
    let measure = select(vec![Measure::Requests, Measure::InputTokens]);
    let window = (measure, 4_u64..10, 1_u64..1_000);
    let concurrent = prop::option::weighted(0.4, 1_u64..4);
    (vec(window, 0..3), concurrent).prop_map(|(windows, concurrent)| Settings {
        concurrent,
        ..budget(&windows)
    })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let set = prop::sample::subsequence(vec![0_usize, 1, 2, 3], 1..=3);
    let ask = (vec(set, 1..3), 0_usize..3, 0_u64..6).prop_map(|(sets, flow, tokens)| Op::Ask {
        sets,
        flow,
        tokens,
    });
    let op = prop_oneof![
        12 => ask,
        2 => (0_usize..64).prop_map(Op::Withdraw),
        4 => (0_usize..64).prop_map(Op::Send),
        2 => (0_usize..64).prop_map(Op::Release),
        4 => (0_usize..64, 0_u64..8).prop_map(|(n, tokens)| Op::Settle(n, tokens)),
        1 => (0..BUDGETS, 0_u64..500).prop_map(|(budget, length)| Op::Penalise(budget, length)),
        1 => (0..BUDGETS, 0_u64..500).prop_map(|(budget, length)| Op::Brake(budget, length)),
        8 => (0_usize..64, engine()).prop_map(|(n, engine)| Op::Answer(n, engine)),
        1 => (0..BUDGETS).prop_map(Op::Freed),
        1 => any::<bool>().prop_map(Op::Lost),
        4 => (0_u64..300).prop_map(Op::Pass),
    ];
    vec(op, 1..150)
}

fn engine() -> impl Strategy<Value = Engine> {
    let denied = (0_usize..8, prop::option::of(0_u64..500));
    prop_oneof![
        3 => Just(Engine::Granted),
        1 => Just(Engine::Lost),
        2 => denied.prop_map(|(n, wait)| Engine::Denied(n, wait)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nobody_is_lost_nobody_is_passed_over_and_nothing_is_left_behind(
        settings in vec(settings(), BUDGETS),
        shared in prop_oneof![
            Just(Vec::new()),
            prop::sample::subsequence(vec![0_usize, 1, 2, 3], 1..=4),
        ],
        on_loss in select(vec![OnLoss::Closed, OnLoss::LocalShare, OnLoss::Open]),
        ops in ops(),
    ) {
        let mut world = World::new(settings, shared, on_loss);
        for op in ops {
            world.play(op)?;
            world.pass(0)?;
            world.somebody_stands_in_the_way_of_everybody()?;
        }
        world.end()?;
    }
}
