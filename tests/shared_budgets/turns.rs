//! Whose turn it is: flows of a budget share it by their weights, whichever pod they are in.

use std::time::Duration;

use redrive::{
    budgets::shared::*,
    limits::{Measure, Micros, Settings, Weights},
};

use crate::{
    domain::*,
    server::{Server, with_each},
};

/// Time passes in such steps.
const STEP: Micros = 5_000;

/// A tenant, in a pod of its own, that always wants more.
struct Tenant {
    pod: Shared,
    flow: &'static str,
    weight: u32,
    /// Whether it says that it always wants more.
    more: bool,
    /// When it asks again; a second at the latest.
    asks: Micros,
    sent: Vec<Micros>,
}

impl Tenant {
    fn new(pod: Shared, flow: &'static str, weight: u32) -> Self {
        Self {
            pod,
            flow,
            weight,
            more: true,
            asks: 0,
            sent: Vec::new(),
        }
    }

    fn turn(&self) -> Turn<'static> {
        Turn {
            budget: 0,
            flow: self.flow,
            weight: self.weight,
            more: self.more,
        }
    }

    async fn ask(&self, id: u128, budgets: &[usize], tokens: Weights) -> Answer {
        let ask = Ask {
            budgets,
            tokens,
            turn: Some(self.turn()),
            ..one(id)
        };
        self.pod.acquire(ask, PATIENCE).await.unwrap()
    }

    /// Asks once if it is time; whether it was granted.
    async fn goes_on(&mut self, now: Micros, id: u128) -> bool {
        if now < self.asks {
            return false;
        }
        let wait = match self.ask(id, &[0], Weights::default()).await {
            Answer::Granted => {
                assert!(self.pod.leave(id.into()));
                self.pod.tell(id.into(), PATIENCE).await.unwrap();
                let settled = self.pod.settle(id.into(), Weights::default(), PATIENCE);
                assert_eq!(settled.await, Ok(Heard::Done));
                self.sent.push(now);
                return true;
            }
            Answer::Denied { wait, .. } => wait.unwrap_or(Duration::MAX),
            Answer::Turn { budget: 0, wait } => wait,
            other => panic!("{other:?}"),
        };
        let wait = wait.min(Duration::from_secs(1));
        self.asks = now + u64::try_from(wait.as_micros()).unwrap();
        false
    }
}

/// Lets tenants ask as often as they are granted, for so long.
async fn play(domain: &mut Domain, tenants: &mut [Tenant], time: Micros, next: &mut u128) {
    let ends = domain.now() + time;
    while domain.now() < ends {
        loop {
            // One after the other, as on a wire.
            let mut granted = false;
            for tenant in tenants.iter_mut() {
                *next += 1;
                granted |= tenant.goes_on(domain.now(), *next).await;
            }
            if !granted {
                break;
            }
        }
        domain.pass(STEP);
    }
}

fn since(tenant: &Tenant, from: Micros) -> usize {
    tenant.sent.iter().filter(|at| **at >= from).count()
}

/// The most that any window holds.
fn worst(tenants: &[Tenant], window: Micros) -> usize {
    let mut all: Vec<_> = tenants
        .iter()
        .flat_map(|tenant| tenant.sent.iter().copied())
        .collect();
    all.sort_unstable();
    let counts = all.iter().map(|from| {
        all.iter()
            .filter(|at| (*from..from + window).contains(at))
            .count()
    });
    counts.max().unwrap_or(0)
}

/// Two tenants of weights 3 and 1 in pods of their own.
async fn tenants(server: &Server, settings: &[Settings]) -> (Domain, Vec<Tenant>) {
    let domain = Domain::new(server, options(server), settings).await;
    let pod = || domain.pod(options(server), settings);
    let tenants = [("gold", 3), ("basic", 1)];
    let tenants = tenants.map(|(flow, weight)| Tenant::new(pod(), flow, weight));
    (domain, tenants.into())
}

#[test]
fn tenants_that_want_all_get_it_by_their_weights_and_all_of_it() {
    with_each(async |server| {
        for (limit, window) in [(100, 10), (40, 2), (20, 1)] {
            let budget = requests(limit, window);
            let (mut domain, mut tenants) = tenants(&server, &[budget]).await;
            let window = window * SECOND;
            let mut next = 0;
            // The first window is not yet full of both.
            play(&mut domain, &mut tenants, window, &mut next).await;
            let begun = domain.now();
            let windows = 8;
            play(&mut domain, &mut tenants, windows * window, &mut next).await;
            let [gold, basic] = [0, 1].map(|which| since(&tenants[which], begun));
            let most = worst(&tenants, window);
            let fits = limit * windows;
            println!(
                "{:?}: {gold} and {basic} of {fits}; worst window {most} of {limit}",
                server.kind
            );
            let share = gold as f64 / (gold + basic) as f64;
            assert!((0.75 * 0.9..0.75 * 1.1).contains(&share), "{share}");
            assert!((gold + basic) as f64 >= 0.95 * fits as f64);
            assert!(most as u64 <= limit, "{most}");
        }
    });
}

#[test]
fn one_alone_gets_everything_and_nothing_is_kept_of_it() {
    with_each(async |server| {
        let (mut domain, mut tenants) = tenants(&server, &[requests(20, 1)]).await;
        tenants.truncate(1);
        assert_eq!(
            tenants[0].ask(1, &[0], Weights::default()).await,
            Answer::Granted
        );
        let key = domain.key("meta");
        assert!(!domain.beside.run::<bool>(&["HEXISTS", &key, "t:a"]));
        tenants[0].pod.release(1.into(), PATIENCE).await.unwrap();
        play(&mut domain, &mut tenants, 5 * SECOND, &mut 9).await;
        assert_eq!(tenants[0].sent.len(), 100);
    });
}

#[test]
fn one_that_dies_while_it_is_first_is_not_waited_for() {
    with_each(async |server| {
        let (mut domain, mut tenants) = tenants(&server, &[requests(20, 10)]).await;
        let mut next = 0;
        play(&mut domain, &mut tenants, 22 * SECOND, &mut next).await;
        // Gold is owed most, and is gone.
        let mut basic = tenants.split_off(1);
        let gone = domain.now();
        play(&mut domain, &mut basic, 30 * SECOND, &mut next).await;
        let sent = &basic[0].sent;
        let after = sent.iter().filter(|at| **at >= gone).count();
        assert!(after >= 57, "{after} of 60");
        // All that was to come, less than 1.2 s later than it could.
        let mut all: Vec<_> = [&tenants[0].sent, sent].into_iter().flatten().collect();
        all.sort_unstable();
        for pair in all.windows(21) {
            let late = (pair[20] - pair[0]).saturating_sub(10 * SECOND);
            assert!(*pair[20] < gone || late <= 1_200_000 + STEP, "{late}");
        }
    });
}

#[test]
fn who_waits_for_something_of_its_own_is_in_nobodys_way() {
    with_each(async |server| {
        let own = Settings {
            name: "own".into(),
            ..requests(1, 3_600)
        };
        let both = [requests(20, 10), own];
        let (domain, tenants) = tenants(&server, &both).await;
        let [gold, basic] = [&tenants[0], &tenants[1]];
        let none = Weights::default();
        assert_eq!(gold.ask(1, &[0, 1], none).await, Answer::Granted);
        for id in 2..20 {
            assert_eq!(basic.ask(id, &[0], none).await, Answer::Granted);
            let denied = gold.ask(99, &[0, 1], none).await;
            assert!(
                matches!(denied, Answer::Denied { budget: 1, .. }),
                "{denied:?}"
            );
        }
        drop(domain);
    });
}

#[test]
fn a_large_one_is_not_overtaken_by_small_ones_for_ever() {
    with_each(async |server| {
        let window = (Measure::InputTokens, 100, 10 * SECOND);
        let (mut domain, tenants) = tenants(&server, &[settings("a", &[window])]).await;
        let [gold, basic] = [&tenants[0], &tenants[1]];
        for id in 0..9 {
            assert_eq!(basic.ask(id, &[0], tokens(10, 0)).await, Answer::Granted);
            basic.pod.leave(id.into());
            basic.pod.tell(id.into(), PATIENCE).await.unwrap();
            domain.pass(SECOND);
        }
        // Ten are left, and it wants twenty.
        let denied = gold.ask(20, &[0], tokens(20, 0)).await;
        assert_eq!(wait_of(&denied), Some(SECOND));
        // Nothing is kept of one who was alone: that much it may still have.
        assert_eq!(basic.ask(30, &[0], tokens(10, 0)).await, Answer::Granted);
        let denied = gold.ask(20, &[0], tokens(20, 0)).await;
        assert_eq!(wait_of(&denied), Some(2 * SECOND));
        domain.pass(SECOND);
        let held = basic.ask(31, &[0], tokens(10, 0)).await;
        assert!(matches!(held, Answer::Turn { budget: 0, .. }), "{held:?}");
        domain.pass(SECOND);
        let granted = gold.ask(20, &[0], tokens(20, 0)).await;
        assert_eq!(granted, Answer::Granted);
    });
}

#[test]
fn one_that_says_that_more_wait_behind_it_is_waited_for_longer() {
    with_each(async |server| {
        for more in [true, false] {
            let (mut domain, mut tenants) = tenants(&server, &[requests(20, 10)]).await;
            tenants[0].more = more;
            let none = Weights::default();
            let mut next = 0;
            let mut basic = tenants.split_off(1);
            play(&mut domain, &mut basic, STEP, &mut next).await;
            domain.pass(10 * SECOND - 2 * STEP);
            let [gold, basic] = [&tenants[0], &basic[0]];
            let denied = gold.ask(30, &[0], none).await;
            assert_eq!(wait_of(&denied), Some(STEP));
            domain.pass(STEP);
            assert_eq!(basic.ask(31, &[0], none).await, Answer::Granted);
            assert_eq!(gold.ask(32, &[0], none).await, Answer::Granted);
            domain.pass(150_000);
            let answer = basic.ask(33, &[0], none).await;
            let wait = Duration::from_micros(50_000);
            let expected = match more {
                true => Answer::Turn { budget: 0, wait },
                false => Answer::Granted,
            };
            assert_eq!(answer, expected);
        }
    });
}

#[test]
fn one_that_was_idle_has_nothing_to_make_good() {
    with_each(async |server| {
        let (mut domain, mut tenants) = tenants(&server, &[requests(20, 1)]).await;
        let mut next = 0;
        let mut gold = tenants.split_off(0);
        let mut basic = gold.split_off(1);
        play(&mut domain, &mut basic, 10 * SECOND, &mut next).await;
        gold.append(&mut basic);
        let begun = domain.now();
        play(&mut domain, &mut gold, 4 * SECOND, &mut next).await;
        let [gold, basic] = [0, 1].map(|which| since(&gold[which], begun));
        let share = gold as f64 / (gold + basic) as f64;
        assert!(share < 0.75 * 1.1, "{gold} and {basic}");
    });
}

#[test]
fn so_many_flows_are_remembered() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 60)]).await;
        domain.send(0).await;
        for id in 1..100_u128 {
            let flow = format!("tenant \"{id}\"\n");
            let ask = Ask {
                turn: Some(Turn {
                    budget: 0,
                    flow: &flow,
                    weight: u32::MAX,
                    more: true,
                }),
                ..one(id)
            };
            let answer = domain.shared.acquire(ask, PATIENCE).await.unwrap();
            assert_eq!(wait_of(&answer), Some(60 * SECOND));
        }
        let key = domain.key("meta");
        let line: String = domain.beside.run(&["HGET", &key, "t:a"]);
        assert_eq!(line.split(',').count(), 64 * 4, "{line}");
    });
}
