//! Many pods at once, by the server's own clock: no window of what left holds more than its limit. And what
//! a decision costs, printed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redrive::{
    budgets::shared::*,
    limits::{Measure, Settings},
};
use tokio::task::JoinSet;

use crate::{
    domain::*,
    server::{Beside, Kind, Server, each},
    work::{Cost, Ends, work},
};

const PODS: u128 = 8;

/// Those who are denied ask again soon: the limit is always wanted.
const AGAIN: Duration = Duration::from_millis(2);

/// At most so many sends in any so long.
const LIMIT: u64 = 200;
const WINDOW: Duration = Duration::from_secs(1);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    { runtime }
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

fn quick(server: &Server) -> Options {
    Options {
        life: Duration::from_secs(1),
        longest_unsent: Duration::from_secs(1),
        ..options(server)
    }
}

/// Waits until something is granted.
async fn learn(shared: &Shared) {
    let begun = Instant::now();
    loop {
        match ask(shared, u128::MAX).await.unwrap() {
            Answer::Learning { wait, .. } => tokio::time::sleep(wait).await,
            _ => break,
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    shared.release(u128::MAX.into(), PATIENCE).await.unwrap();
}

/// Asks, sends and settles until `ends`; when each send left.
async fn pod(shared: Arc<Shared>, pod: u128, ends: Instant) -> Vec<Instant> {
    let mut left = Vec::new();
    for number in 0.. {
        if Instant::now() >= ends {
            break;
        }
        let id = pod << 64 | number;
        match ask(&shared, id).await.unwrap() {
            Answer::Granted => {}
            Answer::Denied { wait, .. } => {
                let wait = wait.unwrap_or(Duration::from_millis(1));
                tokio::time::sleep(wait.min(AGAIN)).await;
                continue;
            }
            Answer::Learning { .. } => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            other => panic!("{other:?}"),
        }
        // Some are slow to leave, some never do.
        match number % 16 {
            0 => tokio::time::sleep(Duration::from_millis(20)).await,
            1 => {
                shared.release(id.into(), PATIENCE).await.unwrap();
                continue;
            }
            _ => {}
        }
        if shared.leave(id.into()) {
            left.push(Instant::now());
            shared.tell(id.into(), PATIENCE).await.unwrap();
        }
        shared
            .settle(id.into(), tokens(5, 5), PATIENCE)
            .await
            .unwrap();
    }
    left
}

/// The most that any window holds.
fn sweep(mut log: Vec<Instant>) -> usize {
    log.sort_unstable();
    let windows = log.iter().enumerate();
    let counts = windows.map(|(first, begins)| {
        let inside = log[first..].iter().take_while(|at| **at - *begins < WINDOW);
        inside.count()
    });
    counts.max().unwrap_or(0)
}

async fn hammer(pods: &[Arc<Shared>], time: Duration) -> Vec<Instant> {
    let ends = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for (number, shared) in pods.iter().enumerate() {
        tasks.spawn(pod(Arc::clone(shared), number as u128 + 1, ends));
    }
    tasks.join_all().await.concat()
}

fn pods(server: &Server, budgets: &[Settings]) -> Vec<Arc<Shared>> {
    pods_of(&unused_name(), &quick(server), budgets)
}

fn pods_of(name: &str, options: &Options, budgets: &[Settings]) -> Vec<Arc<Shared>> {
    let pods = 0..PODS;
    pods.map(|_| Arc::new(connect(options.clone(), name, budgets)))
        .collect()
}

/// What tests hammer at.
fn budget() -> Settings {
    let window = u64::try_from(WINDOW.as_micros()).unwrap();
    Settings {
        margin: 10_000,
        concurrent: Some(64),
        ..settings("a", &[(Measure::Requests, LIMIT, window)])
    }
}

#[test]
fn nor_when_the_server_forgets_in_between() {
    each(|kind| {
        let server = Server::start(kind);
        run(async {
            let pods = pods(&server, &[budget()]);
            learn(&pods[0]).await;
            let mut beside = server.beside();
            let forget = async {
                for what in ["FLUSHALL", "SCRIPT", "FLUSHALL"] {
                    tokio::time::sleep(Duration::from_millis(1_500)).await;
                    let words = [what, "FLUSH"];
                    let count = if what == "SCRIPT" { 2 } else { 1 };
                    beside.run::<()>(&words[..count]);
                }
            };
            let (log, ()) = tokio::join!(hammer(&pods, Duration::from_secs(8)), forget);
            let sent = log.len();
            let most = sweep(log);
            println!("{kind:?}, flushed twice: worst window {most} of {LIMIT}; {sent} sends");
            let limit = usize::try_from(LIMIT).unwrap();
            assert!(most <= limit, "{most}");
            // Before, between and after.
            assert!(sent > limit, "{sent}");
        });
    });
}

#[test]
fn nor_when_the_servers_clock_steps_and_that_costs_nothing() {
    each(|kind| {
        let server = Server::start(kind);
        run(async {
            let name = unused_name();
            let options = Options {
                // A step of less than this would go unnoticed.
                timeout: Duration::from_millis(500),
                ..with_steps(quick(&server))
            };
            let pods = pods_of(&name, &options, &[budget()]);
            learn(&pods[0]).await;
            let mut beside = server.beside();
            let step = async {
                for ahead in ["5", "0", "3600", "0"] {
                    tokio::time::sleep(Duration::from_millis(1_300)).await;
                    let key = format!("{{redrive:{name}}}:meta:test_step");
                    beside.run::<()>(&["SET", &key, ahead]);
                }
            };
            let time = Duration::from_secs(7);
            let (log, ()) = tokio::join!(hammer(&pods, time), step);
            let sent = log.len();
            let most = sweep(log);
            let fits = fits(time);
            println!(
                "{kind:?}, stepped: worst window {most} of {LIMIT}; {sent} sends, {fits:.0} fit"
            );
            assert!(most <= usize::try_from(LIMIT).unwrap(), "{most}");
            // Not one window less.
            assert!(sent as f64 > fits - LIMIT as f64, "{sent} of {fits}");
        });
    });
}

/// How many sends fit into so long.
fn fits(time: Duration) -> f64 {
    LIMIT as f64 * time.as_secs_f64() / (WINDOW.as_secs_f64() + 0.01)
}

#[test]
fn no_window_holds_more_than_its_limit_however_many_ask() {
    each(|kind| {
        let server = Server::start(kind);
        run(async {
            let pods = pods(&server, &[budget()]);
            learn(&pods[0]).await;
            let time = Duration::from_secs(4);
            let log = hammer(&pods, time).await;
            let sent = log.len();
            let most = sweep(log);
            let fits = fits(time);
            println!("{kind:?}: worst window {most} of {LIMIT}; {sent} sends, {fits:.0} fit");
            assert!(most <= usize::try_from(LIMIT).unwrap(), "{most}");
            assert!(most > 0);
        });
    });
}

/// Asks as a pod does for one tenant until `ends`; when it was granted.
async fn tenant(
    shared: Arc<Shared>,
    pod: u128,
    turn: Turn<'static>,
    ends: Instant,
) -> Vec<Instant> {
    let mut granted = Vec::new();
    for number in 0.. {
        if Instant::now() >= ends {
            break;
        }
        let id = pod << 64 | number;
        let ask = Ask {
            turn: Some(turn),
            ..one(id)
        };
        let wait = match shared.acquire(ask, PATIENCE).await.unwrap() {
            Answer::Granted => {
                granted.push(Instant::now());
                let shared = Arc::clone(&shared);
                // The next one waits already.
                tokio::spawn(async move {
                    assert!(shared.leave(id.into()));
                    shared.tell(id.into(), PATIENCE).await.unwrap();
                    let settled = shared.settle(id.into(), tokens(5, 5), PATIENCE);
                    assert_eq!(settled.await, Ok(Heard::Done));
                });
                continue;
            }
            Answer::Denied { wait, .. } => wait.unwrap_or(Duration::MAX),
            Answer::Turn { wait, .. } | Answer::Learning { wait, .. } => wait,
            other => panic!("{other:?}"),
        };
        tokio::time::sleep(wait.min(Duration::from_secs(1))).await;
    }
    granted
}

#[test]
fn tenants_in_many_pods_get_what_they_weigh() {
    each(|kind| {
        let server = Server::start(kind);
        run(async {
            let budget = Settings {
                concurrent: None,
                ..budget()
            };
            let pods = pods(&server, &[budget]);
            learn(&pods[0]).await;
            let time = Duration::from_secs(6);
            // The first window is whose who comes first.
            let begins = Instant::now() + WINDOW;
            let ends = begins + time;
            let mut tasks = JoinSet::new();
            for (number, pod) in pods.iter().enumerate() {
                for (flow, weight) in [("gold", 3), ("basic", 1)] {
                    let turn = Turn {
                        budget: 0,
                        flow,
                        weight,
                        more: true,
                    };
                    let id = number as u128 + 1 + 100 * u128::from(weight);
                    let asking = tenant(Arc::clone(pod), id, turn, ends);
                    tasks.spawn(async move { (flow, asking.await) });
                }
            }
            let granted = tasks.join_all().await;
            let of = |name| -> usize {
                let mine = granted.iter().filter(|(flow, _)| *flow == name);
                let counts = mine.map(|(_, at)| at.iter().filter(|at| **at >= begins).count());
                counts.sum()
            };
            let (gold, basic) = (of("gold"), of("basic"));
            let fits = fits(time);
            println!("{kind:?}: 3 to 1 got {gold} and {basic}, {fits:.0} fit");
            let share = gold as f64 / (gold + basic) as f64;
            assert!((0.75 * 0.9..0.75 * 1.1).contains(&share), "{share}");
            assert!((gold + basic) as f64 >= 0.8 * fits);
        });
    });
}

/// Measured, not asserted: machines differ.
#[test]
fn what_a_decision_costs() {
    each(|kind| {
        let server = Server::start(kind);
        run(async {
            let mut beside = server.beside();
            let window = |measure, limit| (measure, limit, SECOND);
            let open = Settings {
                concurrent: Some(1 << 40),
                ..settings(
                    "a",
                    &[
                        window(Measure::Requests, 1 << 40),
                        window(Measure::InputTokens, 1 << 40),
                        window(Measure::OutputTokens, 1 << 40),
                    ],
                )
            };
            let shut = settings("a", &[window(Measure::Requests, 1)]);
            for (what, budget) in [("grants", open), ("denials", shut)] {
                let pods = pods(&server, &[budget]);
                learn(&pods[0]).await;
                measure(what, kind, &pods, &mut beside).await;
            }
        });
    });
}

async fn measure(what: &str, kind: Kind, pods: &[Arc<Shared>], beside: &mut Beside) {
    let before = Cost::so_far(beside);
    let begun = Instant::now();
    let sends = hammer(pods, Duration::from_secs(2)).await.len();
    let took = begun.elapsed().as_secs_f64();
    let after = Cost::so_far(beside);
    let (processor, script) = after.per_call(&before);
    println!(
        "{kind:?}, {what}: {:.0} calls/s, {:.0} sends/s; a call takes {processor:.1} us of the server's \
         processor, the script {script:.1}",
        (after.calls - before.calls) / took,
        sends as f64 / took,
    );
}

/// How many grants are asked for, unless `REDRIVE_HAMMER_GRANTS` says.
const GRANTS: u64 = 3_000;

/// So many in a second and a margin of 10 ms: near what a server can decide, so that it is kept, too.
const MOST: u64 = 4_000;

/// Many connections, each with many calls under way: every grant is a send, and none is too many.
#[test]
fn grants_are_counted_however_many_there_are() {
    let asked = std::env::var("REDRIVE_HAMMER_GRANTS").map(|count| count.parse().unwrap());
    let grants = asked.unwrap_or(GRANTS);
    let test = |kind| {
        let server = Server::start(kind);
        run(async {
            let window = u64::try_from(WINDOW.as_micros()).unwrap();
            let budget = Settings {
                margin: 10_000,
                ..settings("a", &[(Measure::Requests, MOST, window)])
            };
            // In an hour a machine stands still for more than a second.
            let lives = if grants > GRANTS {
                options(&server)
            } else {
                quick(&server)
            };
            let pods = pods_of(&unused_name(), &lives, &[budget]);
            learn(&pods[0]).await;
            let mut beside = server.beside();
            let before = Cost::so_far(&mut beside);
            let mut done = work(&pods, 64, Ends::Granted(grants)).await;
            let after = Cost::so_far(&mut beside);
            let status = pods[0].status(&[0], &[], PATIENCE).await.unwrap();
            let (processor, script) = after.per_call(&before);
            let took = done.took.as_secs_f64();
            println!(
                "{kind:?}: {grants} grants in {took:.1} s, {:.0} calls/s; an acquire takes {} us, of a hundred \
                 one {} us; a call {processor:.1} us of the server's processor, the script {script:.1}; worst \
                 window {} of {MOST}",
                (after.calls - before.calls) / took,
                done.percentile(50),
                done.percentile(99),
                done.worst(WINDOW),
            );
            assert_eq!(done.granted, grants);
            assert!(done.worst(WINDOW) as u64 <= MOST);
            let account = status.account;
            // One more showed that it grants, and was given back.
            assert_eq!((account.granted, account.sent), (grants + 1, grants));
            assert_eq!((account.returned, account.expired), (1, 0));
        });
    };
    // The long run is of one server.
    if grants > GRANTS {
        test(Kind::Redis);
    } else {
        each(test);
    }
}
