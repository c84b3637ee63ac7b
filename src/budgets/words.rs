//! Limits in words, for a person.

use std::time::Duration;

use crate::{
    config,
    limits::{DailyLimit, Limit, Measure, Micros, Obstacle, WindowLimit},
};

/// `requests: 500 in 1m`.
pub(super) fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Window(WindowLimit {
            measure,
            limit,
            window,
        }) => format!("{}: {limit} in {}", name(*measure), length(*window)),
        Limit::Concurrent(most) => format!("concurrent: {most}"),
        Limit::Daily(DailyLimit { measure, limit }) => format!("{}: {limit} a day", name(*measure)),
        Limit::Cooldown => "the provider asked for a rest".into(),
        Limit::Probe => "one send tries whether the provider's rest is over".into(),
    }
}

/// `requests/1m`: the same limit whatever its size.
pub(super) fn key(limit: &Limit) -> Option<String> {
    match limit {
        Limit::Window(WindowLimit {
            measure, window, ..
        }) => Some(format!("{}/{}", name(*measure), length(*window))),
        Limit::Concurrent(_) => Some("concurrent".into()),
        Limit::Daily(DailyLimit { measure, .. }) => Some(format!("{}/day", name(*measure))),
        Limit::Cooldown | Limit::Probe => None,
    }
}

/// What stands in the way, of `budget`.
pub(super) fn obstacle(obstacle: &Obstacle, budget: Option<&config::Budget>) -> String {
    match (obstacle, budget.and_then(|budget| budget.smoothing)) {
        (Obstacle::Limit(known), _) => limit(known),
        (Obstacle::Pace, Some(smoothing)) => format!(
            "smoothing: {} in {}",
            smoothing.requests,
            humantime::format_duration(smoothing.per)
        ),
        (Obstacle::Pace, None) | (Obstacle::Turn | Obstacle::EngineAsked, _) => {
            "others are first".into()
        }
        (Obstacle::EngineLearns, _) => "its engine learns what was sent before".into(),
        (Obstacle::EngineLost, _) => "its engine gives no answers".into(),
    }
}

/// `max_waiting: 10000`.
pub(super) fn queue(budget: Option<&config::Budget>) -> String {
    format!(
        "max_waiting: {}",
        budget.map_or(0, |budget| budget.max_waiting)
    )
}

/// What a limit counts.
pub(super) fn measure(limit: &Limit) -> Option<Measure> {
    match limit {
        Limit::Window(window) => Some(window.measure),
        Limit::Daily(daily) => Some(daily.measure),
        Limit::Concurrent(_) | Limit::Cooldown | Limit::Probe => None,
    }
}

/// The most of a limit.
pub(super) fn most(limit: &Limit) -> Option<u64> {
    match limit {
        Limit::Window(window) => Some(window.limit),
        Limit::Daily(daily) => Some(daily.limit),
        Limit::Concurrent(most) => Some(*most),
        Limit::Cooldown | Limit::Probe => None,
    }
}

fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Requests => "requests",
        Measure::InputTokens => "input_tokens",
        Measure::OutputTokens => "output_tokens",
    }
}

fn length(micros: Micros) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_micros(micros))
}
