//! What can be used as it is, and may surprise.

use std::time::Duration;

use super::{
    model::{Budget, Config, OnLoss, SharedEngine},
    value::in_words,
};
use crate::limits::Measure;

impl Config {
    /// What may surprise, one sentence each, in the file's order.
    pub fn warnings(&self) -> Vec<String> {
        let Some(engine) = &self.engine else {
            return Vec::new();
        };
        if engine.on_loss != OnLoss::LocalShare {
            return Vec::new();
        }
        let shared = self.budgets.iter().filter(|budget| budget.is_shared);
        shared
            .flat_map(|budget| shares_of_nothing(budget, engine))
            .collect()
    }
}

/// The limits of which a pod may send nothing while the engine is lost.
fn shares_of_nothing(budget: &Budget, engine: &SharedEngine) -> Vec<String> {
    let settings = &budget.settings;
    let windows = settings.windows.iter().map(|window| {
        let length = in_words(Duration::from_micros(window.window));
        (window.limit, format!("{} in {length}", key(window.measure)))
    });
    let concurrent = settings.concurrent.iter();
    let concurrent = concurrent.map(|limit| (*limit, "concurrent".to_owned()));
    let daily = settings.daily.iter();
    let daily = daily.map(|daily| (daily.limit, format!("daily.{}", key(daily.measure))));
    let share = &engine.local_share;
    let nothing = windows
        .chain(concurrent)
        .chain(daily)
        .filter(|(limit, _)| share.of_pod(*limit) == 0);
    nothing
        .map(|(limit, what)| {
            format!(
                "budget {}: {what}: {limit} leaves a pod no share, so it sends nothing while the engine is lost: \
                 {} of it for {} pods is less than one each",
                settings.name, share.fraction, share.max_pods
            )
        })
        .collect()
}

fn key(measure: Measure) -> &'static str {
    match measure {
        Measure::Requests => "requests",
        Measure::InputTokens => "input_tokens",
        Measure::OutputTokens => "output_tokens",
    }
}
