//! `budgets[]`: rate limits shared by generations.

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroU32,
    time::Duration,
};

use jiff::tz::{self, TimeZone};

use super::{MAX_LABEL, Resolver, refund, refund::Routes, selector::Names};
use crate::{
    config::{
        hint,
        model::{Budget, Fairness, Smoothing},
        path::Path,
        raw,
    },
    limits::{DailyLimit, MOST_REQUESTS, Measure, Micros, Refund, Settings, WindowLimit},
};

/// Budgets at most. Fixed: every attempt looks at all of them.
const MAX_BUDGETS: usize = 64;

/// Windows of one measure at most. Fixed.
const MAX_WINDOWS: usize = 16;

impl Resolver<'_> {
    pub(super) fn budgets(
        &mut self,
        at: &Path,
        raw: Vec<raw::Budget>,
        names: &Names<'_>,
        routes: &Routes,
    ) -> Vec<Budget> {
        if raw.len() > MAX_BUDGETS {
            self.refuse(at, format!("there are at most {MAX_BUDGETS} budgets"));
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut budgets = Vec::new();
        for (index, raw) in raw.into_iter().enumerate() {
            let at = at.index(index);
            if let Some(name) = &raw.name {
                self.check_name(&at.key("name"), name);
                if let Some(first) = seen.insert(name.clone(), index) {
                    let message = format!("budgets[{first}] has the same name");
                    self.refuse(&at.key("name"), message);
                }
            }
            budgets.extend(self.budget(&at, raw, names, routes));
        }
        budgets
    }

    fn budget(
        &mut self,
        at: &Path,
        raw: raw::Budget,
        names: &Names<'_>,
        routes: &Routes,
    ) -> Option<Budget> {
        if raw.name.is_none() {
            let path = at.key("name");
            self.errors
                .missing(self.tree, &path, "a budget needs a name");
        }
        if raw.r#match.is_none() {
            let message = "a budget needs a match, such as {provider: openai}; {} is all attempts";
            self.errors.missing(self.tree, &at.key("match"), message);
        }
        let selector = raw
            .r#match
            .map(|raw| self.selector(&at.key("match"), raw, names));
        let as_providers_do = || {
            selector
                .as_ref()
                .map(|selector| refund::of(selector, routes))
        };
        let windows = [
            ("requests", Measure::Requests, raw.requests),
            ("input_tokens", Measure::InputTokens, raw.input_tokens),
            ("output_tokens", Measure::OutputTokens, raw.output_tokens),
        ]
        .into_iter()
        .flat_map(|(key, measure, raw)| self.windows(&at.key(key), measure, &raw))
        .collect();
        let daily = daily(&raw.daily);
        let zone = self.zone(&at.key("daily").key("zone"), &raw.daily.zone);
        let settings = Settings {
            name: raw.name.unwrap_or_default(),
            windows,
            concurrent: raw.concurrent.map(|limit| limit.u64()),
            daily,
            refund: match raw.refund {
                Some(raw::Refund::Never) => Refund::Never,
                Some(raw::Refund::InputOnly) => Refund::InputOnly,
                Some(raw::Refund::All) => Refund::All,
                None => as_providers_do().unwrap_or_default(),
            },
            margin: micros(raw.margin.0),
        };
        let limits_nothing = settings.windows.is_empty()
            && settings.daily.is_empty()
            && settings.concurrent.is_none();
        if limits_nothing && !self.errors.any_within(at) {
            let message = "a budget needs a limit: requests, input_tokens, output_tokens, concurrent or \
                           daily";
            self.refuse(at, message);
        }
        Some(Budget {
            settings,
            is_shared: raw.engine == raw::Engine::Redis,
            selector: selector?,
            zone: zone?,
            fairness: raw
                .fairness
                .and_then(|raw| self.fairness(&at.key("fairness"), raw)),
            smoothing: raw
                .smoothing
                .and_then(|raw| self.smoothing(&at.key("smoothing"), &raw)),
            max_waiting: raw.max_waiting.usize(),
            bytes_per_token: raw.bytes_per_token.u32(),
        })
    }

    fn windows(&mut self, at: &Path, measure: Measure, raw: &[raw::Window]) -> Vec<WindowLimit> {
        if raw.len() > MAX_WINDOWS {
            self.refuse(at, format!("there are at most {MAX_WINDOWS} windows"));
        }
        let mut windows: Vec<WindowLimit> = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            let at = at.index(index);
            for (key, absent) in [
                ("limit", raw.limit.is_none()),
                ("window", raw.window.is_none()),
            ] {
                if absent {
                    let message = "both are needed, such as {limit: 500, window: 60s}";
                    self.errors.missing(self.tree, &at.key(key), message);
                }
            }
            let (Some(limit), Some(window)) = (raw.limit, raw.window) else {
                continue;
            };
            let window = WindowLimit {
                measure,
                limit: limit.u64(),
                window: micros(window.0),
            };
            if measure == Measure::Requests && window.limit > MOST_REQUESTS {
                let message = format!(
                    "a budget remembers {MOST_REQUESTS} sends at most, so {} in a window could never be \
                     used; take a shorter window with a smaller limit",
                    window.limit
                );
                self.refuse(&at.key("limit"), message);
            }
            if windows.contains(&window) {
                self.refuse(&at, "the same limit and window stand here twice");
            }
            windows.push(window);
        }
        windows
    }

    fn zone(&mut self, at: &Path, name: &str) -> Option<TimeZone> {
        let zone = TimeZone::get(name).ok();
        if zone.is_none() {
            let all: Vec<String> = tz::db().available().map(|name| name.to_string()).collect();
            let near = hint::nearest(name, all.iter().map(String::as_str));
            let hints = near.map(|near| format!("did you mean `{near}`?"));
            let message = format!(
                "there is no time zone {}; write an IANA name, such as America/Los_Angeles",
                hint::shown(name)
            );
            let hints = hints.into_iter().collect();
            self.errors.refuse_with(self.tree, at, message, hints);
        }
        zone
    }

    fn fairness(&mut self, at: &Path, raw: raw::Fairness) -> Option<Fairness> {
        let label = self.label(&at.key("label"), raw.label.as_deref());
        let mut weights = BTreeMap::new();
        for (value, weight) in raw.weights {
            if value.len() > MAX_LABEL {
                let message = format!("the value of a label has at most {MAX_LABEL} bytes");
                self.refuse(&at.key("weights").key(&value), message);
            }
            weights.insert(value, weight.u32());
        }
        Some(Fairness {
            label: label?,
            weights,
            default_weight: raw.default_weight.u32(),
        })
    }

    fn smoothing(&mut self, at: &Path, raw: &raw::Smoothing) -> Option<Smoothing> {
        for (key, absent) in [
            ("requests", raw.requests.is_none()),
            ("per", raw.per.is_none()),
        ] {
            if absent {
                let message = "both are needed, such as {requests: 60, per: 60s}";
                self.errors.missing(self.tree, &at.key(key), message);
            }
        }
        Some(Smoothing {
            requests: NonZeroU32::new(raw.requests?.u32())?,
            per: raw.per?.0,
            burst: NonZeroU32::new(raw.burst.u32())?,
        })
    }
}

fn daily(raw: &raw::Daily) -> Vec<DailyLimit> {
    let limits = [
        (Measure::Requests, raw.requests),
        (Measure::InputTokens, raw.input_tokens),
        (Measure::OutputTokens, raw.output_tokens),
    ];
    let limits = limits.into_iter();
    limits
        .filter_map(|(measure, limit)| {
            let limit = limit?.u64();
            Some(DailyLimit { measure, limit })
        })
        .collect()
}

/// Saturates, which no length in use reaches.
fn micros(length: Duration) -> Micros {
    Micros::try_from(length.as_micros()).unwrap_or(Micros::MAX)
}
