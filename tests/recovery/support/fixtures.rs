//! Parameters and failures with sober defaults.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use redrive::{
    proto::Delivery,
    recovery::{
        Commons, Params, Target, Time,
        settings::{Backoff, CircuitSettings, Policy, Replay, RetryBudgetSettings, Timers},
    },
    verdict::{Class, Failure, Origin, Stage},
};

/// What generations share, as a test holds it.
pub type Shared = Rc<RefCell<Commons>>;

/// Seconds.
pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A point in time, in seconds from the origin.
pub const fn at(seconds: u64) -> Time {
    Time::from_origin(s(seconds))
}

/// A commons in which retries are never refused.
pub fn commons() -> Shared {
    commons_with(1_000_000)
}

/// A commons whose retry budget has this floor, and nothing beyond it.
pub fn commons_with(floor: u32) -> Shared {
    Rc::new(RefCell::new(Commons::new(RetryBudgetSettings {
        ratio: 0.0,
        floor,
        per: s(10),
    })))
}

/// A target `provider/m` of a hosted provider without credentials.
pub fn target(provider: &str) -> Target {
    Target {
        name: format!("{provider}/m").into(),
        provider: provider.into(),
        domains: vec![provider.into()],
        model: "m".into(),
        context_window: None,
        timers: Timers::HOSTED,
        credentials: 0,
        continues: false,
        resumes: false,
        fallback: false,
    }
}

/// The defaults of the design, without jitter, over targets named `a`, `b`, and so on.
pub fn params(targets: usize) -> Params {
    let names = ["a", "b", "c", "d"];
    Params {
        id: "g1".into(),
        targets: names
            .iter()
            .take(targets)
            .map(|name| Target {
                fallback: *name != "a",
                ..target(name)
            })
            .collect(),
        skipped: Box::default(),
        policy: Policy {
            max_attempts: 11,
            deadline: s(600),
            patience: s(5),
            replay: Replay::Restart,
            replay_first_token: false,
            backoff: Backoff {
                base: s(1),
                max: s(60),
                jitter: 0.0,
            },
            circuit: CircuitSettings {
                failures: 5,
                open: s(30),
            },
        },
        gate: None,
        fallback: true,
        delivery: Delivery::Preview,
        detach_grace: Duration::ZERO,
        max_message_bytes: 8 << 20,
        client_idle: Duration::ZERO,
        scope: None,
        caller_deadline: None,
        wall_origin: Duration::ZERO,
        seed: 7,
    }
}

/// The same, changed.
pub fn params_with(targets: usize, change: impl FnOnce(&mut Params)) -> Params {
    let mut params = params(targets);
    change(&mut params);
    params
}

/// Gives every target these timers.
pub fn set_timers(params: &mut Params, timers: Timers) {
    change_targets(params, |target| target.timers = timers);
}

/// Changes every target.
pub fn change_targets(params: &mut Params, change: impl Fn(&mut Target)) {
    let mut targets: Vec<Target> = params.targets.to_vec();
    targets.iter_mut().for_each(change);
    params.targets = Arc::from(targets);
}

/// A failure as a provider's response causes it.
pub fn provider(class: Class) -> Failure {
    Failure::new(
        class,
        Origin::Provider,
        Stage::Response,
        "told by the provider",
    )
}

/// The same, with the wait that the provider asked for.
pub fn provider_wait(class: Class, wait: Duration) -> Failure {
    Failure {
        wait: Some(wait),
        ..provider(class)
    }
}

/// A connection that could not be opened.
pub fn refused() -> Failure {
    Failure::new(
        Class::Transport,
        Origin::Network,
        Stage::Connect,
        "connection refused",
    )
}

/// A connection that was reset inside the stream.
pub fn reset() -> Failure {
    Failure::new(
        Class::Transport,
        Origin::Network,
        Stage::Stream,
        "connection reset",
    )
}
