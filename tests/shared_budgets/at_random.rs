//! Random operations: whatever happens and in whatever order, the server grants what the pure limits grant,
//! denies what they deny and until the same time, and counts the same.

use std::{collections::BTreeSet, time::Duration};

use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use redrive::{budgets::shared::*, limits::*};

use crate::{
    domain::{Domain, PATIENCE, SECOND, options},
    oracle::Oracle,
    server::{Kind, Server, each},
};

/// How long a day is here. Days are told, so they may be short.
const DAY: Micros = 40 * SECOND;

#[derive(Clone, Debug)]
enum Op {
    Acquire {
        which: Vec<BudgetId>,
        tokens: (u64, u64),
        send_within: Micros,
    },
    /// The n-th of those that were asked for, again.
    Again(usize),
    Leave(usize),
    Stay(usize),
    /// The answer begins.
    Begin(usize),
    Settle(usize, (u64, u64)),
    Release(usize),
    Renew,
    Penalise(Vec<BudgetId>, Micros),
    Brake(Vec<BudgetId>, Micros),
    Pass(Micros),
    /// The server's clock steps.
    Step(i64),
}

#[derive(Clone, Debug)]
struct World {
    settings: Vec<Settings>,
    most: usize,
    life: Micros,
    ops: Vec<Op>,
}

fn budgets() -> impl Strategy<Value = Vec<BudgetId>> {
    vec(0..3_usize, 1..4).prop_map(|which| {
        let mut seen = BTreeSet::new();
        let which = which.into_iter().filter(|budget| seen.insert(*budget));
        which.collect()
    })
}

fn time() -> impl Strategy<Value = Micros> {
    prop_oneof![0..SECOND, 0..10 * SECOND, 0..90 * SECOND]
}

/// Of less than a tenth of a second, forward, nobody knows.
fn step() -> impl Strategy<Value = i64> {
    let hour = 3_600 * SECOND.cast_signed();
    prop_oneof![-hour..0, 100_001..hour]
}

fn op() -> impl Strategy<Value = Op> {
    let tokens = || (0..60_u64, 0..60_u64);
    let nth = || 0..8_usize;
    let acquire = (budgets(), tokens(), 10 * SECOND..25 * SECOND);
    prop_oneof![
        8 => acquire.prop_map(|(which, tokens, send_within)| Op::Acquire { which, tokens, send_within }),
        1 => nth().prop_map(Op::Again),
        5 => nth().prop_map(Op::Leave),
        1 => nth().prop_map(Op::Stay),
        2 => nth().prop_map(Op::Begin),
        4 => (nth(), tokens()).prop_map(|(nth, tokens)| Op::Settle(nth, tokens)),
        1 => nth().prop_map(Op::Release),
        1 => Just(Op::Renew),
        1 => (budgets(), time()).prop_map(|(which, time)| Op::Penalise(which, time)),
        1 => (budgets(), time()).prop_map(|(which, time)| Op::Brake(which, time)),
        6 => time().prop_map(Op::Pass),
        1 => step().prop_map(Op::Step),
    ]
}

fn measure() -> impl Strategy<Value = Measure> {
    select(Measure::ALL.to_vec())
}

fn budget() -> impl Strategy<Value = Settings> {
    let limit = |measure| match measure {
        Measure::Requests => 1..6_u64,
        _ => 30..150_u64,
    };
    let window = measure().prop_flat_map(move |measure| {
        let lengths = select(vec![SECOND, 10 * SECOND, 30 * SECOND, 77_777_777]);
        (Just(measure), limit(measure), lengths)
    });
    let window = window.prop_map(|(measure, limit, window)| WindowLimit {
        measure,
        limit,
        window,
    });
    let daily = measure().prop_flat_map(move |measure| (Just(measure), limit(measure)));
    let daily = daily.prop_map(|(measure, limit)| DailyLimit { measure, limit });
    let refund = select(vec![Refund::Never, Refund::InputOnly, Refund::All]);
    let margin = select(vec![0, 250_000, 3 * SECOND]);
    let concurrent = proptest::option::weighted(0.4, 0..4_u64);
    let parts = (
        vec(window, 0..4),
        concurrent,
        vec(daily, 0..2),
        refund,
        margin,
    );
    parts.prop_map(|(windows, concurrent, daily, refund, margin)| Settings {
        name: String::new(),
        windows,
        concurrent,
        daily,
        refund,
        margin,
    })
}

fn world() -> impl Strategy<Value = World> {
    let most = select(vec![4, 12, 1_000]);
    let life = select(vec![5 * SECOND, 15 * SECOND, 40 * SECOND]);
    let parts = (vec(budget(), 3), most, life, vec(op(), 1..60));
    parts.prop_map(|(mut settings, most, life, ops)| {
        for (place, settings) in settings.iter_mut().enumerate() {
            settings.name = format!("budget-{place}");
        }
        World {
            settings,
            most,
            life,
            ops,
        }
    })
}

fn today(now: Micros) -> (Day, Today) {
    let number = now / DAY;
    let (starts, ends) = (number * DAY, (number + 1) * DAY);
    let number = i64::try_from(number).unwrap();
    let today = Today {
        number,
        starts,
        ends,
    };
    (Day { number, ends }, today)
}

fn weights((input_tokens, output_tokens): (u64, u64)) -> Weights {
    Weights {
        input_tokens,
        output_tokens,
    }
}

/// One run: the server and the oracle side by side.
struct Run {
    domain: Domain,
    oracle: Oracle,
    asked: Vec<u128>,
    next: u128,
}

impl Run {
    async fn step(&mut self, op: &Op) {
        let now = self.oracle.turn(self.domain.now());
        let shared = &self.domain.shared;
        match op {
            Op::Acquire {
                which,
                tokens,
                send_within,
            } => {
                let (day, today) = today(now);
                let id = self.next;
                self.next += 1;
                let ask = Ask {
                    lease: id.into(),
                    budgets: which,
                    days: &vec![today; which.len()],
                    tokens: weights(*tokens),
                    send_within: Duration::from_micros(*send_within),
                    turn: None,
                };
                let answer = shared.acquire(ask, PATIENCE).await.unwrap();
                let days = vec![day; which.len()];
                let expected =
                    self.oracle
                        .acquire(id, which, &days, weights(*tokens), *send_within);
                assert_eq!(answer, expected_answer(expected, now));
                if answer == Answer::Granted {
                    self.asked.push(id);
                }
            }
            Op::Again(nth) => {
                // Those that are over are not remembered forever.
                let id = self.nth(*nth);
                let Some(id) = id.filter(|id| self.oracle.held.contains_key(id)) else {
                    return;
                };
                let before = self.domain.status(&[0, 1, 2]).await;
                let again = Ask {
                    lease: id.into(),
                    budgets: &[0, 1, 2],
                    days: &[],
                    tokens: Weights::default(),
                    send_within: Duration::ZERO,
                    turn: None,
                };
                let answer = shared.acquire(again, PATIENCE).await.unwrap();
                assert!(
                    matches!(answer, Answer::Granted | Answer::Over),
                    "{answer:?}"
                );
                assert_eq!(self.domain.status(&[0, 1, 2]).await, before);
            }
            Op::Leave(nth) => {
                let Some(id) = self.nth(*nth) else { return };
                if shared.leave(id.into()) {
                    let heard = shared.tell(id.into(), PATIENCE).await.unwrap();
                    assert_eq!(heard == Heard::Done, self.oracle.sent(id), "{heard:?}");
                    self.tell_twice(id, heard).await;
                }
            }
            Op::Stay(nth) => {
                let Some(id) = self.nth(*nth) else { return };
                // The pure limits have no lease that is unsent for longer than it was granted for:
                // `leases` shows what becomes of it.
                let held = self.oracle.held.get(&id);
                if held.is_some_and(|held| held.is_renewed()) {
                    return;
                }
                shared.stayed(id.into());
                let heard = shared.tell(id.into(), PATIENCE).await.unwrap();
                let was_sent = self.oracle.held.get(&id).is_some_and(|held| held.is_sent());
                if was_sent {
                    assert_eq!(heard == Heard::Done, self.oracle.stayed(id), "{heard:?}");
                    self.tell_twice(id, heard).await;
                }
            }
            Op::Begin(nth) => {
                let Some(id) = self.nth(*nth) else { return };
                let heard = shared.answered(id.into(), PATIENCE).await.unwrap();
                assert_eq!(heard == Heard::Done, self.oracle.answered(id));
            }
            Op::Settle(nth, actual) => {
                let Some(id) = take(&mut self.asked, *nth) else {
                    return;
                };
                let actual = weights(*actual);
                let heard = shared.settle(id.into(), actual, PATIENCE).await.unwrap();
                assert_eq!(heard == Heard::Done, self.oracle.settle(id, actual));
                let twice = shared.settle(id.into(), actual, PATIENCE).await.unwrap();
                assert_ne!(twice, Heard::Done);
            }
            Op::Release(nth) => {
                let Some(id) = take(&mut self.asked, *nth) else {
                    return;
                };
                let heard = shared.release(id.into(), PATIENCE).await.unwrap();
                assert_eq!(heard == Heard::Done, self.oracle.release(id));
                let twice = shared.release(id.into(), PATIENCE).await.unwrap();
                assert_ne!(twice, Heard::Done);
            }
            Op::Renew => {
                let mut over = shared.renew(PATIENCE).await.unwrap();
                self.oracle.renew();
                let gone = |id: &u128| !self.oracle.held.contains_key(id);
                let mut expected: Vec<Id> = self
                    .asked
                    .iter()
                    .filter(|id| gone(id))
                    .map(|id| Id::from(*id))
                    .collect();
                self.asked.retain(|id| self.oracle.held.contains_key(id));
                over.sort_unstable();
                expected.sort_unstable();
                assert_eq!(over, expected);
            }
            Op::Penalise(which, wait) => {
                let wait_ = Duration::from_micros(*wait);
                shared.penalise(which, wait_, PATIENCE).await.unwrap();
                self.oracle.limits.penalise(which, now + wait);
            }
            Op::Brake(which, wait) => {
                let wait_ = Duration::from_micros(*wait);
                shared.brake(which, wait_, PATIENCE).await.unwrap();
                self.oracle.limits.brake(which, now + wait);
            }
            Op::Pass(time) => self.domain.pass(*time),
            Op::Step(by) => {
                self.domain.step(*by);
                // Back it cannot be, whatever anybody knows.
                if *by > 0 {
                    self.domain.tell_the_time().await;
                }
            }
        }
    }

    /// What was told is told again, as if its answer had been lost.
    async fn tell_twice(&self, id: u128, heard: Heard) {
        let twice = self.domain.shared.tell(id.into(), PATIENCE).await.unwrap();
        assert_eq!(twice, heard);
    }

    async fn compare(&mut self) {
        let now = self.oracle.turn(self.domain.now());
        let (day, today) = today(now);
        let which = [0, 1, 2];
        let shared = &self.domain.shared;
        let status = shared.status(&which, &[today; 3], PATIENCE).await.unwrap();
        assert_eq!(status.account, self.oracle.account());
        for budget in which {
            let used = self.oracle.limits.used(budget, now, day);
            let used = used.into_iter().map(|(_, used)| used).collect();
            let (running, entries, overruns) = self.oracle.limits.gauges(budget).unwrap();
            let expected = BudgetStatus {
                running,
                entries: entries as u64,
                overruns,
                used,
                // The pure limits do not tell of it; `together` does.
                rests: status.budgets[budget].rests,
                ..BudgetStatus::default()
            };
            assert_eq!(status.budgets[budget], expected, "budget {budget}");
        }
    }

    fn nth(&self, nth: usize) -> Option<u128> {
        let count = self.asked.len();
        (count > 0).then(|| self.asked[nth % count])
    }
}

fn take(asked: &mut Vec<u128>, nth: usize) -> Option<u128> {
    let count = asked.len();
    (count > 0).then(|| asked.remove(nth % count))
}

fn expected_answer(expected: Result<(), Denied>, now: Micros) -> Answer {
    match expected {
        Ok(()) => Answer::Granted,
        Err(Denied::Never { budget, limit }) => Answer::Never { budget, limit },
        Err(Denied::Full { budget, full }) => Answer::Denied {
            budget,
            limit: full.limit,
            wait: full.until.map(|until| Duration::from_micros(until - now)),
        },
    }
}

async fn play(server: &Server, world: &World) {
    let options = Options {
        life: Duration::from_micros(world.life),
        longest_unsent: Duration::from_secs(60),
        most_entries: world.most as u64,
        ..options(server)
    };
    let domain = Domain::new(server, options, &world.settings).await;
    let mut run = Run {
        domain,
        oracle: Oracle::new(&world.settings, world.most, world.life),
        asked: Vec::new(),
        next: 1,
    };
    for op in &world.ops {
        run.step(op).await;
        run.compare().await;
    }
}

#[test]
fn the_server_grants_denies_and_counts_what_the_pure_limits_do() {
    each(|kind: Kind| {
        let server = Server::start(kind);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut runner = TestRunner::new(ProptestConfig {
            cases: cases(),
            failure_persistence: None,
            max_shrink_iters: 500,
            ..ProptestConfig::default()
        });
        let result = runner.run(&world(), |world| {
            runtime.block_on(play(&server, &world));
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    });
}

/// More of them where `SHARED_CASES` says so.
fn cases() -> u32 {
    let more = std::env::var("SHARED_CASES").ok();
    more.and_then(|cases| cases.parse().ok()).unwrap_or(64)
}
