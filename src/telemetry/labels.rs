//! Label values of metrics, logs and spans. Every set is fixed or comes from the configuration, so
//! that no client can make time series.

use std::collections::BTreeSet;

use crate::{
    proto::{Executed, Mode, waiting::Reason},
    verdict::class::{self, Class},
};

/// How a generation ended, as metrics, logs and spans have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a final `Committed`.
    Committed,
    /// With `Failed` of any class but `cancelled`.
    Failed,
    /// With `Failed` of class `cancelled`.
    Cancelled,
}

impl Outcome {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Committed, Self::Failed, Self::Cancelled];

    /// The outcome of a generation that failed with `class`.
    pub fn of_failure(class: Class) -> Self {
        match class {
            Class::Cancelled => Self::Cancelled,
            _ => Self::Failed,
        }
    }

    /// The label value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Which pace of new streams a client was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Its connection's.
    Connection,
    /// That of its value of a label.
    Label,
}

impl Pace {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Connection, Self::Label];

    /// Its name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Label => "label",
        }
    }
}

/// What the engine of shared budgets answered to one who asked for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineAnswer {
    /// A lease.
    Granted,
    /// That it does not fit now, or never.
    Denied,
    /// That it does not know what was sent before, and grants nothing yet.
    Learning,
    /// Nothing, or nothing that can be acted on.
    Lost,
}

impl EngineAnswer {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Granted, Self::Denied, Self::Learning, Self::Lost];

    /// The label value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Learning => "learning",
            Self::Lost => "lost",
        }
    }
}

/// The `verdict` label of an attempt: its class, or `accepted` without one.
pub(super) fn verdict(class: Option<Class>) -> &'static str {
    class.map_or("accepted", class::label)
}

/// A mode in snake_case.
pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Unspecified => "unspecified",
        Mode::First => "first",
        Mode::Restart => "restart",
        Mode::Continue => "continue",
        Mode::Resume => "resume",
        Mode::GateRetry => "gate_retry",
    }
}

/// Whether an attempt was executed, in snake_case.
pub(super) fn executed(executed: Executed) -> &'static str {
    match executed {
        Executed::Unspecified => "unspecified",
        Executed::No => "no",
        Executed::Maybe => "maybe",
        Executed::Yes => "yes",
    }
}

/// The reason of a wait in snake_case.
pub(super) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unspecified => "unspecified",
        Reason::Budget => "budget",
        Reason::Cooldown => "cooldown",
        Reason::Backoff => "backoff",
        Reason::Circuit => "circuit",
        Reason::LimiterUnavailable => "limiter_unavailable",
        Reason::Connection => "connection",
    }
}

/// The longest name (of a model, a target) that is recorded, in characters.
const MAX_NAME: usize = 128;

/// `name`, cut to what is worth recording: clients and providers choose some of the names.
pub(super) fn clip(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

/// What stands for a model or a target that the configuration does not name.
const OTHER: &str = "_OTHER";

/// The targets of the configuration: only these become values of the `target` label.
///
/// A client may ask for any model that matches a route's patterns; those count under
/// `provider/_OTHER`.
#[derive(Debug, Default)]
pub(super) struct TargetNames(BTreeSet<String>);

impl TargetNames {
    /// The label value of `target`.
    pub(super) fn label(&self, target: &str) -> String {
        if self.0.contains(target) {
            return target.to_owned();
        }
        match target.split_once('/') {
            Some((provider, _)) if self.has_provider(provider) => format!("{provider}/{OTHER}"),
            _ => OTHER.to_owned(),
        }
    }

    fn has_provider(&self, provider: &str) -> bool {
        self.0
            .iter()
            .filter_map(|name| name.split_once('/'))
            .any(|(known, _)| known == provider)
    }
}

impl FromIterator<String> for TargetNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_targets_become_label_values() {
        let names = TargetNames::from_iter(["openai/gpt-5-mini".to_owned()]);
        assert_eq!(names.label("openai/gpt-5-mini"), "openai/gpt-5-mini");
        assert_eq!(
            names.label("openai/gpt-5-what-the-client-typed"),
            "openai/_OTHER"
        );
        assert_eq!(names.label("elsewhere/model"), "_OTHER");
        assert_eq!(names.label("no-slash"), "_OTHER");
    }

    #[test]
    fn only_the_class_cancelled_is_the_outcome_cancelled() {
        assert_eq!(Outcome::of_failure(Class::Cancelled), Outcome::Cancelled);
        assert_eq!(Outcome::of_failure(Class::Draining), Outcome::Failed);
        assert_eq!(Outcome::of_failure(Class::Deadline), Outcome::Failed);
    }
}
