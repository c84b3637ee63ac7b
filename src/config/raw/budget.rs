//! `budgets[]`, as they are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector::Selector;
use crate::config::value::{Count, DAY, SECOND, Span};

/// The most that a limit can be. Fixed: sums of it stay far from the end of 64 bits.
const MOST: u64 = 1_000_000_000_000;

/// A rate limit shared by generations.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["name", "match"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Budget {
    /// Its name, for waits, metrics and errors; once. Required.
    pub(in crate::config) name: Option<String>,
    /// Which attempts take part of it: those that match all of these. `{}` is all attempts. Required.
    pub(in crate::config) r#match: Option<Selector>,
    /// Where it is counted.
    pub(in crate::config) engine: Engine,
    /// Sends per sliding window.
    pub(in crate::config) requests: Vec<Window>,
    /// Tokens of prompts per sliding window.
    pub(in crate::config) input_tokens: Vec<Window>,
    /// Tokens of answers per sliding window.
    pub(in crate::config) output_tokens: Vec<Window>,
    /// Sends at a time.
    pub(in crate::config) concurrent: Option<Count<1, 1_000_000, 1>>,
    /// Caps of a calendar day.
    pub(in crate::config) daily: Daily,
    /// What of reserved tokens comes back when fewer were used. By default as the providers do that it
    /// stands for: `never` where one of them is OpenAI or Azure, which count what was asked for; else `all`.
    pub(in crate::config) refund: Option<Refund>,
    /// By how much later than another a send may arrive although it left at the same time; every window
    /// is longer by it.
    pub(in crate::config) margin: Span<0, { 10 * SECOND }, 250>,
    /// How many attempts may wait for it; further ones are refused.
    pub(in crate::config) max_waiting: Count<0, 100_000, 10_000>,
    /// Where no tokenizer is known for the model: so many bytes of the prompt count as one token.
    pub(in crate::config) bytes_per_token: Count<1, 16, 1>,
    /// Those who wait are served in turn by the values of a label. Without it: first come, first served.
    pub(in crate::config) fairness: Option<Fairness>,
    /// Spreads sends inside the windows. Without it they go as soon as the windows have room.
    pub(in crate::config) smoothing: Option<Smoothing>,
}

/// Where a budget is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Engine {
    /// In this process.
    #[default]
    Local,
    /// In `engines.redis`, by all sidecars that share it.
    Redis,
}

/// At most `limit` in any `window`.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["limit", "window"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Window {
    /// The most. Required.
    pub(in crate::config) limit: Option<Count<1, MOST, 1>>,
    /// In any stretch of time of this length. Required.
    pub(in crate::config) window: Option<Span<1, { 31 * DAY }, 0>>,
}

/// Caps of a calendar day.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Daily {
    /// Sends.
    pub(in crate::config) requests: Option<Count<1, MOST, 1>>,
    /// Tokens of prompts.
    pub(in crate::config) input_tokens: Option<Count<1, MOST, 1>>,
    /// Tokens of answers.
    pub(in crate::config) output_tokens: Option<Count<1, MOST, 1>>,
    /// Where days begin at midnight: an IANA name, such as `America/Los_Angeles`.
    pub(in crate::config) zone: String,
}

impl Default for Daily {
    fn default() -> Daily {
        Daily {
            requests: None,
            input_tokens: None,
            output_tokens: None,
            zone: "UTC".to_owned(),
        }
    }
}

/// What of reserved tokens comes back when fewer were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Refund {
    /// Nothing: the provider counts what was asked for.
    Never,
    /// Tokens of the prompt.
    InputOnly,
    /// All tokens.
    All,
}

/// Those who wait are served in turn by the values of a label.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["label"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Fairness {
    /// The name of a label of `start.labels`. Required.
    pub(in crate::config) label: Option<String>,
    /// Shares by value of the label.
    pub(in crate::config) weights: BTreeMap<String, Count<1, 1000, 1>>,
    /// The share of every other value.
    pub(in crate::config) default_weight: Count<1, 1000, 1>,
}

/// Spreads sends: `burst` at once, then `requests` evenly over each `per`.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["requests", "per"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Smoothing {
    /// Sends. Required.
    pub(in crate::config) requests: Option<Count<1, 1_000_000, 1>>,
    /// In this time. Required.
    pub(in crate::config) per: Option<Span<1, DAY, 0>>,
    /// At once.
    pub(in crate::config) burst: Count<1, 1_000_000, 1>,
}
