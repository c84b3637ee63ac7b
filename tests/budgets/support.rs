//! Budgets, attempts that ask, and a paused clock.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    num::NonZeroU32,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use jiff::tz::TimeZone;
use redrive::{
    budgets::{Answer, Ask, Asking, Budgets, Lease, Matched, Wait, Way},
    clock::Clock,
    config::{Budget, Fairness, Selector, Smoothing},
    limits::{Measure, Refund, Settings, Weights, WindowLimit},
};

pub const SECOND: Duration = Duration::from_secs(1);

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

pub fn smooth(mut budget: Budget, requests: u32, per: Duration, burst: u32) -> Budget {
    budget.smoothing = Some(Smoothing {
        requests: NonZeroU32::new(requests).unwrap(),
        per,
        burst: NonZeroU32::new(burst).unwrap(),
    });
    budget
}

pub fn budgets(configured: impl Into<Arc<[Budget]>>) -> Budgets {
    Budgets::new(Clock::start(), configured)
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

/// What it is told by now, without waiting.
pub fn poll(asking: &mut Asking) -> Poll<Answer> {
    asking.poll(&mut Context::from_waker(Waker::noop()))
}

/// The next answer.
pub async fn answer(asking: &mut Asking) -> Answer {
    poll_fn(|cx| asking.poll(cx)).await
}

/// A lease, however long that takes.
pub async fn lease(asking: &mut Asking) -> Lease {
    loop {
        match answer(asking).await {
            Answer::Granted { lease, .. } => return lease,
            Answer::Waiting(_) => {}
            Answer::Refused(refusal) => panic!("{refusal:?}"),
        }
    }
}

/// A lease at once.
pub fn at_once(budgets: &Budgets, ask: Ask) -> Lease {
    match poll(&mut budgets.ask(ask)) {
        Poll::Ready(Answer::Granted { lease, .. }) => lease,
        other => panic!("{other:?}"),
    }
}

/// Sent at once; the lease of a send that runs.
pub fn sent(budgets: &Budgets, ask: Ask) -> Lease {
    let lease = at_once(budgets, ask);
    assert!(lease.permit().unwrap().leave());
    lease
}

/// One that has to wait, and what for.
pub fn waits(budgets: &Budgets, ask: Ask) -> (Asking, Wait) {
    let mut asking = budgets.ask(ask);
    match poll(&mut asking) {
        Poll::Ready(Answer::Waiting(wait)) => (asking, wait),
        other => panic!("{other:?}"),
    }
}

/// How many wait for budget 0.
pub fn waiting(budgets: &Budgets) -> usize {
    budgets.status()[0].waiting.0
}
