//! What a budget allows.

use super::Micros;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Sends.
    Requests,
    /// Tokens of the prompt.
    InputTokens,
    /// Tokens of the answer.
    OutputTokens,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 3] = [
        Measure::Requests,
        Measure::InputTokens,
        Measure::OutputTokens,
    ];
}

/// At most `limit` in any `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// What is counted.
    pub measure: Measure,
    /// The most of it.
    pub limit: u64,
    /// In any stretch of time of this length.
    pub window: Micros,
}

/// At most `limit` in a calendar day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyLimit {
    /// What is counted.
    pub measure: Measure,
    /// The most of it.
    pub limit: u64,
}

/// What of a reservation comes back when less was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refund {
    /// Nothing: the provider counts what was asked for.
    Never,
    /// Tokens of the prompt only.
    InputOnly,
    /// All tokens.
    #[default]
    All,
}

impl Refund {
    /// Whether what was not used of `measure` comes back.
    pub(super) fn gives_back(self, measure: Measure) -> bool {
        match measure {
            Measure::Requests => false,
            Measure::InputTokens => self != Refund::Never,
            Measure::OutputTokens => self == Refund::All,
        }
    }
}

/// A rate limit shared by generations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its name in the configuration.
    pub name: String,
    /// Sliding windows; several of one measure are allowed.
    pub windows: Vec<WindowLimit>,
    /// Sends at a time.
    pub concurrent: Option<u64>,
    /// Caps of a calendar day.
    pub daily: Vec<DailyLimit>,
    /// What settling gives back.
    pub refund: Refund,
    /// By how much later than another a send may arrive although it left at the same time. Every window
    /// is longer by it.
    pub margin: Micros,
}

impl Settings {
    /// The same with other limits: what `change` makes of each.
    #[must_use]
    pub fn with_limits(&self, change: impl Fn(u64) -> u64) -> Self {
        let mut changed = self.clone();
        for window in &mut changed.windows {
            window.limit = change(window.limit);
        }
        for daily in &mut changed.daily {
            daily.limit = change(daily.limit);
        }
        changed.concurrent = changed.concurrent.map(change);
        changed
    }

    /// Whether anything limits `measure`.
    pub fn limits(&self, measure: Measure) -> bool {
        let windows = self.windows.iter().map(|limit| limit.measure);
        let mut all = windows.chain(self.daily.iter().map(|limit| limit.measure));
        all.any(|limited| limited == measure)
    }

    /// Whether anything limits tokens.
    pub fn limits_tokens(&self) -> bool {
        self.limits(Measure::InputTokens) || self.limits(Measure::OutputTokens)
    }
}
