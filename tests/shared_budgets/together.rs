//! Budgets of several processes, as attempts ask for them: one engine decides over all, what it says is told, and
//! when it is lost the configuration says what becomes of who asks.

use std::{future::poll_fn, sync::Arc, time::Duration};

use jiff::tz::TimeZone;
use redrive::{
    budgets::{Answer, Ask, Asking, Budgets, Lease, Matched, RefusalKind, Wait, Way, shared::Id},
    clock::Clock,
    config::{
        self, Budget, EnginePlace, Fairness, LocalShare, LogFormat, OnLoss, Selector, SharedEngine,
    },
    limits::{Settings, Spent, Weights},
    proto::waiting::Reason,
    telemetry::Telemetry,
};
use tokio::time::timeout;

use crate::{domain::*, server::*};

const LIMIT: Duration = Duration::from_secs(60);

fn budget(settings: Settings, is_shared: bool) -> Budget {
    Budget {
        settings,
        is_shared,
        selector: Selector {
            provider: Some("openai".into()),
            ..Selector::default()
        },
        zone: TimeZone::UTC,
        fairness: None,
        smoothing: None,
        max_waiting: 100,
        bytes_per_token: 1,
    }
}

fn at_a_time(name: &str, limit: u64) -> Settings {
    Settings {
        concurrent: Some(limit),
        ..settings(name, &[])
    }
}

/// A domain of its own on the server at `url`.
pub fn engine(url: String, on_loss: OnLoss) -> SharedEngine {
    SharedEngine {
        place: EnginePlace::One(url),
        username: None,
        password: None,
        authority: None,
        domain: Id::random().to_string(),
        on_loss,
        timeout: Duration::from_secs(1),
        local_share: LocalShare {
            fraction: 0.5,
            max_pods: 2,
        },
    }
}

fn pod(engine: &SharedEngine, budgets: &[Budget]) -> Budgets {
    Budgets::sharing(Clock::start(), budgets, engine).unwrap()
}

/// An attempt that takes part of all of these.
fn ask(pod: &Budgets, budgets: &[usize]) -> Asking {
    let matched = Matched {
        budgets: budgets.into(),
        flow: None,
    };
    let way = Way {
        credential: 0,
        matched: Arc::new(matched),
    };
    pod.ask(Ask {
        ways: vec![way],
        tokens: Weights::default(),
        send_within: Duration::from_secs(5),
    })
}

async fn answer(asking: &mut Asking) -> Answer {
    let answer = timeout(LIMIT, poll_fn(|cx| asking.poll(cx))).await;
    answer.expect("an answer")
}

async fn waits(asking: &mut Asking) -> Wait {
    match answer(asking).await {
        Answer::Waiting(wait) => wait,
        other => panic!("{other:?}"),
    }
}

/// A lease, however long it takes.
async fn lease(asking: &mut Asking) -> Lease {
    loop {
        match answer(asking).await {
            Answer::Granted { lease, .. } => return lease,
            Answer::Waiting(_) => {}
            Answer::Refused(refusal) => panic!("{refusal:?}"),
        }
    }
}

/// A lease at once.
async fn granted(pod: &Budgets, budgets: &[usize]) -> Lease {
    match answer(&mut ask(pod, budgets)).await {
        Answer::Granted { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

fn leaves(lease: &Lease) {
    assert!(lease.permit().unwrap().leave());
}

#[test]
fn a_limit_is_one_for_all_pods_and_what_one_gives_back_another_gets() {
    with_each(async |server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let budgets = [budget(at_a_time("a", 2), true)];
        let (one, other) = (pod(&engine, &budgets), pod(&engine, &budgets));
        let first = granted(&one, &[0]).await;
        let second = granted(&other, &[0]).await;
        leaves(&first);
        leaves(&second);
        let mut third = ask(&one, &[0]);
        let wait = waits(&mut third).await;
        assert_eq!(wait.reason, Reason::Budget);
        assert_eq!(&*wait.budget, "a");
        assert_eq!(wait.limit, "concurrent: 2");
        assert_eq!(wait.expected, None);
        second.settle(Spent::default());
        let third = lease(&mut third).await;
        leaves(&third);
    });
}

#[test]
fn what_the_engine_answers_is_counted() {
    with_each(async |server| {
        let settings = config::Telemetry {
            traces_otlp: None,
            prometheus: true,
            log_format: LogFormat::Json,
            log_level: "info".into(),
        };
        let telemetry = Telemetry::new(&settings, []).unwrap();
        let engine = engine(server.url(), OnLoss::Closed);
        let budgets = [budget(at_a_time("a", 1), true)];
        let (one, other) = (pod(&engine, &budgets), pod(&engine, &budgets));
        one.measure(&telemetry);
        let lease = granted(&one, &[0]).await;
        drop(lease);
        one.told().await;
        let _held = granted(&other, &[0]).await;
        waits(&mut ask(&one, &[0])).await;
        let text = telemetry.render_metrics().unwrap();
        let count = |series: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(series));
            line.map_or(0, |count| count.trim().parse::<u64>().unwrap())
        };
        let calls = |outcome: &str| {
            count(&format!(
                "redrive_budget_engine_calls_total{{outcome=\"{outcome}\"}}"
            ))
        };
        // Who waits asks again.
        let [granted, denied] = [calls("granted"), calls("denied")];
        assert!(granted == 1 && denied >= 1, "{text}");
        let round_trips = count("redrive_budget_engine_round_trip_seconds_count");
        assert_eq!(round_trips, granted + denied, "{text}");
    });
}

#[test]
fn who_gives_up_while_the_engine_is_asked_leaves_nothing_behind() {
    with_each(async |server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let budgets = [budget(at_a_time("a", 1), true)];
        let (one, other) = (pod(&engine, &budgets), pod(&engine, &budgets));
        drop(granted(&other, &[0]).await);
        for _ in 0..20 {
            let mut asking = ask(&one, &[0]);
            let once = poll_fn(|cx| std::task::Poll::Ready(asking.poll(cx))).await;
            assert!(once.is_pending());
            drop(asking);
        }
        drop(lease(&mut ask(&other, &[0])).await);
        let (account, held) = one.account();
        assert_eq!((account.granted, held), (0, 0));
    });
}

#[test]
fn a_fresh_domain_learns_its_windows_and_says_for_how_long() {
    with_each(async |server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let pod = pod(&engine, &[budget(requests(5, 1), true)]);
        let mut asking = ask(&pod, &[0]);
        let wait = waits(&mut asking).await;
        assert_eq!(wait.reason, Reason::LimiterUnavailable);
        assert_eq!(&*wait.budget, "a");
        let expected = wait.expected.unwrap();
        assert!(expected <= Duration::from_secs(11), "{expected:?}");
        assert!(expected > Duration::from_secs(9), "{expected:?}");
    });
}

#[test]
fn what_never_fits_is_refused_without_a_question() {
    with_each(async |server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let pod = pod(&engine, &[budget(at_a_time("a", 0), true)]);
        match answer(&mut ask(&pod, &[0])).await {
            Answer::Refused(refusal) => assert_eq!(refusal.kind, RefusalKind::Never),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn while_the_engine_is_lost_closed_waits_and_goes_on_when_it_is_back() {
    with_each(async |mut server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let budgets = [
            budget(at_a_time("a", 5), true),
            budget(at_a_time("b", 5), false),
        ];
        let pod = pod(&engine, &budgets);
        drop(granted(&pod, &[0]).await);
        server.kill();
        let mut asking = ask(&pod, &[0, 1]);
        let wait = waits(&mut asking).await;
        assert_eq!(wait.reason, Reason::LimiterUnavailable);
        assert_eq!(wait.expected, None);
        // What is not shared goes on.
        drop(granted(&pod, &[1]).await);
        server.start_again();
        drop(lease(&mut asking).await);
    });
}

#[test]
fn while_the_engine_is_lost_open_sends_as_if_it_were_alone() {
    with_each(async |mut server| {
        let engine = engine(server.url(), OnLoss::Open);
        let pod = pod(&engine, &[budget(at_a_time("a", 2), true)]);
        drop(granted(&pod, &[0]).await);
        server.kill();
        let first = lease(&mut ask(&pod, &[0])).await;
        let second = granted(&pod, &[0]).await;
        leaves(&first);
        leaves(&second);
        let wait = waits(&mut ask(&pod, &[0])).await;
        assert_eq!(wait.reason, Reason::Budget);
    });
}

#[test]
fn while_the_engine_is_lost_a_local_share_is_all_that_goes() {
    with_each(async |mut server| {
        let engine = engine(server.url(), OnLoss::LocalShare);
        let budgets = [budget(at_a_time("a", 8), true)];
        let (one, other) = (pod(&engine, &budgets), pod(&engine, &budgets));
        // Half is for the pods: the engine grants four.
        let mut held = Vec::new();
        for pod in [&one, &other, &one, &other] {
            held.push(lease(&mut ask(pod, &[0])).await);
        }
        waits(&mut ask(&one, &[0])).await;
        server.kill();
        for pod in [&one, &other] {
            let mut asking = ask(pod, &[0]);
            held.push(lease(&mut asking).await);
            held.push(granted(pod, &[0]).await);
            let wait = waits(&mut ask(pod, &[0])).await;
            assert_eq!(wait.limit, "concurrent: 2");
        }
        assert_eq!(held.len(), 8);
    });
}

#[test]
fn a_provider_s_rest_is_one_for_all_pods_then_one_probes_then_all_go() {
    with_each(async |server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let budgets = [budget(at_a_time("a", 10), true)];
        let (one, other) = (pod(&engine, &budgets), pod(&engine, &budgets));
        let refused = granted(&one, &[0]).await;
        leaves(&refused);
        refused.penalise(Duration::from_secs(3));
        drop(refused);
        // Told in the background: at the latest with what the same pod asks next.
        let wait = waits(&mut ask(&one, &[0])).await;
        assert_eq!(wait.reason, Reason::Cooldown);
        let mut first = ask(&other, &[0]);
        let wait = loop {
            match answer(&mut first).await {
                Answer::Waiting(wait) => break wait,
                Answer::Granted { lease, .. } => {
                    // It was on its way.
                    drop(lease);
                    first = ask(&other, &[0]);
                }
                Answer::Refused(refusal) => panic!("{refusal:?}"),
            }
        };
        assert_eq!(wait.reason, Reason::Cooldown);
        // An operator sees it at any pod.
        let third = pod(&engine, &budgets);
        let rests = async {
            while third.status()[0].rests.is_none() {
                third.refresh().await;
            }
        };
        timeout(LIMIT, rests).await.unwrap();
        let probe = lease(&mut first).await;
        leaves(&probe);
        let mut second = ask(&other, &[0]);
        assert_eq!(waits(&mut second).await.reason, Reason::Cooldown);
        probe.answered();
        let _second = lease(&mut second).await;
        let _third = lease(&mut ask(&one, &[0])).await;
    });
}

#[test]
fn tenants_in_different_pods_are_served_by_weight() {
    with_each(async |server| {
        let engine = engine(server.url(), OnLoss::Closed);
        let weights = [("gold".to_owned(), 3), ("free".to_owned(), 1)];
        let fair = Budget {
            fairness: Some(Fairness {
                label: "tenant".into(),
                weights: weights.into(),
                default_weight: 1,
            }),
            ..budget(at_a_time("a", 1), true)
        };
        let budgets = [fair];
        let ask = |pod: &Budgets, tenant: &str| {
            let matched = Matched {
                budgets: [0].into(),
                flow: Some((0, tenant.into())),
            };
            let way = Way {
                credential: 0,
                matched: Arc::new(matched),
            };
            pod.ask(Ask {
                ways: vec![way],
                tokens: Weights::default(),
                send_within: Duration::from_secs(5),
            })
        };
        let (served, mut all) = tokio::sync::mpsc::channel(1);
        let mut tasks = tokio::task::JoinSet::new();
        for tenant in ["gold", "free"] {
            let (pod, served) = (pod(&engine, &budgets), served.clone());
            tasks.spawn(async move {
                loop {
                    let lease = lease(&mut ask(&pod, tenant)).await;
                    leaves(&lease);
                    drop(lease);
                    served.send(tenant).await.unwrap();
                }
            });
        }
        let mut gold = 0;
        for _ in 0..80 {
            let tenant = timeout(LIMIT, all.recv()).await.unwrap().unwrap();
            gold += u32::from(tenant == "gold");
        }
        assert!((52..=68).contains(&gold), "{gold} of 80");
    });
}
