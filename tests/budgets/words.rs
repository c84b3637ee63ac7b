//! Budgets, and attempts that ask, for rules that hold whoever keeps the budgets: this process alone, on a
//! clock that stands still while nobody waits, or a server, in real time.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use jiff::tz::TimeZone;
use redrive::{
    budgets::{Answer, Ask, Asking, Budgets, Lease, Matched, Wait, Way},
    config::{Budget, Fairness, Selector},
    limits::{Measure, Refund, Settings, Weights, WindowLimit},
};
use tokio::time::timeout;

pub const SECOND: Duration = Duration::from_secs(1);

/// Sooner than a window of a minute lets anybody go, and later than a server answers.
const SOON: Duration = Duration::from_secs(20);

/// Where budgets come from.
pub trait Keeper {
    /// Time passes only while it is waited for.
    const EXACT: bool;

    /// Budgets that nothing has been taken of, and that grant.
    async fn budgets(&self, configured: Vec<Budget>) -> Budgets;

    /// How many leases whoever keeps them knows of.
    async fn held(&self, budgets: &Budgets) -> u64;
}

/// That it took so long: to the microsecond, where that can be.
pub fn took<K: Keeper>(took: Duration, long: Duration) {
    let is_so = if K::EXACT { took == long } else { took >= long };
    assert!(is_so, "{took:?}");
}

/// That so much is left of `whole`: all, where no time has passed.
pub fn is_left<K: Keeper>(left: Option<Duration>, whole: Duration) {
    let left = left.expect("a time");
    let is_so = if K::EXACT {
        left == whole
    } else {
        left <= whole
    };
    assert!(is_so, "{left:?}");
}

/// A budget without limits, of a provider.
pub fn budget(name: &str) -> Budget {
    Budget {
        settings: Settings {
            name: name.into(),
            windows: Vec::new(),
            concurrent: None,
            daily: Vec::new(),
            refund: Refund::All,
            margin: 0,
        },
        is_shared: false,
        selector: Selector {
            provider: Some("openai".into()),
            ..Selector::default()
        },
        zone: TimeZone::UTC,
        fairness: None,
        smoothing: None,
        max_waiting: 10_000,
        bytes_per_token: 1,
    }
}

/// So many requests in a window.
pub fn requests(name: &str, limit: u64, window: Duration) -> Budget {
    window_of(budget(name), Measure::Requests, limit, window)
}

pub fn window_of(mut budget: Budget, measure: Measure, limit: u64, window: Duration) -> Budget {
    budget.settings.windows.push(WindowLimit {
        measure,
        limit,
        window: window.as_micros() as u64,
    });
    budget
}

/// So many at a time.
pub fn concurrent(name: &str, limit: u64) -> Budget {
    let mut budget = budget(name);
    budget.settings.concurrent = Some(limit);
    budget
}

/// Shared fairly between tenants.
pub fn fair(mut budget: Budget, weights: &[(&str, u32)]) -> Budget {
    let weights = weights.iter();
    budget.fairness = Some(Fairness {
        label: "tenant".into(),
        weights: BTreeMap::from_iter(weights.map(|(name, weight)| ((*name).into(), *weight))),
        default_weight: 1,
    });
    budget
}

/// A way through these budgets.
pub fn way(credential: usize, budgets: &[usize]) -> Way {
    let matched = Matched {
        budgets: budgets.into(),
        flow: None,
    };
    Way {
        credential,
        matched: Arc::new(matched),
    }
}

/// An attempt through these budgets.
pub fn through(budgets: &[usize]) -> Ask {
    ask(vec![way(0, budgets)])
}

/// An attempt of a tenant; budget 0 is shared fairly.
pub fn of(tenant: &str, budgets: &[usize]) -> Ask {
    let matched = Matched {
        budgets: budgets.into(),
        flow: Some((0, tenant.into())),
    };
    ask(vec![Way {
        credential: 0,
        matched: Arc::new(matched),
    }])
}

pub fn ask(ways: Vec<Way>) -> Ask {
    Ask {
        ways,
        tokens: Weights::default(),
        send_within: 10 * SECOND,
    }
}

/// Whether it waits by now.
pub fn is_waiting(asking: &mut Asking) -> bool {
    let polled = asking.poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(Answer::Waiting(_)))
}

/// The next answer.
pub async fn answer(asking: &mut Asking) -> Answer {
    let answer = timeout(SOON, poll_fn(|cx| asking.poll(cx)));
    answer.await.expect("an answer")
}

/// A lease, before a window of a minute lets anybody go.
pub async fn lease(asking: &mut Asking) -> Lease {
    loop {
        match answer(asking).await {
            Answer::Granted { lease, .. } => return lease,
            Answer::Waiting(_) => {}
            Answer::Refused(refusal) => panic!("{refusal:?}"),
        }
    }
}

/// Which of them is granted first, and its lease.
pub async fn first<T>(all: &mut [(T, Asking)]) -> (usize, Lease) {
    let first = poll_fn(|cx| {
        for (place, (_, asking)) in all.iter_mut().enumerate() {
            while let Poll::Ready(answer) = asking.poll(cx) {
                match answer {
                    Answer::Granted { lease, .. } => return Poll::Ready((place, lease)),
                    Answer::Waiting(_) => {}
                    Answer::Refused(refusal) => panic!("{refusal:?}"),
                }
            }
        }
        Poll::Pending
    });
    timeout(SOON, first).await.expect("somebody is next")
}

/// Granted, before a window of a minute lets anybody go.
pub async fn granted(budgets: &Budgets, ask: Ask) -> Lease {
    lease(&mut budgets.ask(ask)).await
}

/// Granted, and sent; the lease of a send that runs.
pub async fn sent(budgets: &Budgets, ask: Ask) -> Lease {
    let lease = granted(budgets, ask).await;
    assert!(lease.permit().unwrap().leave());
    lease
}

/// One that has to wait, and what for.
pub async fn waits(budgets: &Budgets, ask: Ask) -> (Asking, Wait) {
    let mut asking = budgets.ask(ask);
    match answer(&mut asking).await {
        Answer::Waiting(wait) => (asking, wait),
        other => panic!("{other:?}"),
    }
}

/// How many wait for budget 0.
pub fn waiting(budgets: &Budgets) -> usize {
    budgets.status()[0].waiting.0
}

/// Waits until it is so.
pub async fn until(is_so: impl Fn() -> bool) {
    let waits = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, waits).await.expect("it never is");
}
