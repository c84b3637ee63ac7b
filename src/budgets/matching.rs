//! Which budgets an attempt takes part of.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use super::Budgets;
use crate::{
    config::{self, Budget, Selector},
    limits::BudgetId,
};

/// The budgets of one way an attempt can go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// In the configuration's order.
    pub budgets: Box<[BudgetId]>,
    /// Whom it stands in line with: the first of the budgets that is shared fairly between the values
    /// of a label, and the client's value of that label (empty where it has none).
    pub flow: Option<(BudgetId, Box<str>)>,
}

/// What selectors look at.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The credential's name, where the provider has any.
    pub credential: Option<&'a str>,
    /// `provider/model`.
    pub target: &'a str,
    /// The route's name.
    pub route: &'a str,
    /// The labels of the start.
    pub labels: &'a HashMap<String, String>,
}

/// Most starts match no budget, or there is none: they share this.
static NOTHING: LazyLock<Arc<Matched>> = LazyLock::new(Arc::default);

impl Budgets {
    /// The budgets whose selectors all match. Asked for each way of each start.
    pub fn matching(&self, occasion: &Occasion<'_>) -> Arc<Matched> {
        matching(self.engine.configured(), occasion)
    }
}

fn matching(budgets: &[Budget], occasion: &Occasion<'_>) -> Arc<Matched> {
    let all = budgets.iter().enumerate();
    let matched: Vec<BudgetId> = all
        .filter(|(_, budget)| holds(&budget.selector, occasion))
        .map(|(id, _)| id)
        .collect();
    if matched.is_empty() {
        return Arc::clone(&NOTHING);
    }
    let flow = matched.iter().find_map(|&id| {
        let label = &budgets.get(id)?.fairness.as_ref()?.label;
        let value = occasion.labels.get(label);
        Some((id, value.map(String::as_str).unwrap_or_default().into()))
    });
    Arc::new(Matched {
        budgets: matched.into(),
        flow,
    })
}

/// Whether all of `selector` is so.
fn holds(selector: &Selector, occasion: &Occasion<'_>) -> bool {
    let is =
        |wanted: &Option<String>, name: Option<&str>| wanted.is_none() || wanted.as_deref() == name;
    let target = selector.target.as_deref();
    is(&selector.provider, Some(occasion.provider))
        && is(&selector.credential, occasion.credential)
        && is(&selector.route, Some(occasion.route))
        && target.is_none_or(|pattern| config::matches(pattern, occasion.target))
        && selector.labels.iter().all(|(label, pattern)| {
            let value = occasion.labels.get(label);
            value.is_some_and(|value| config::matches(pattern, value))
        })
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::{
        config::Fairness,
        limits::{Refund, Settings},
    };

    fn budget(selector: Selector) -> Budget {
        Budget {
            settings: Settings {
                name: "b".into(),
                windows: Vec::new(),
                concurrent: Some(1),
                daily: Vec::new(),
                refund: Refund::All,
                margin: 0,
            },
            is_shared: false,
            selector,
            zone: TimeZone::UTC,
            fairness: None,
            smoothing: None,
            max_waiting: 1,
            bytes_per_token: 1,
        }
    }

    /// `key=value`s, as of a selector.
    fn selector(text: &str) -> Selector {
        let mut selector = Selector::default();
        for pair in text.split_whitespace() {
            let (key, value) = pair.split_once('=').expect("key=value");
            let value = value.to_owned();
            match key {
                "provider" => selector.provider = Some(value),
                "credential" => selector.credential = Some(value),
                "target" => selector.target = Some(value),
                "route" => selector.route = Some(value),
                label => drop(selector.labels.insert(label.into(), value)),
            }
        }
        selector
    }

    fn labels(text: &str) -> HashMap<String, String> {
        selector(text).labels.into_iter().collect()
    }

    fn occasion<'a>(
        credential: Option<&'a str>,
        labels: &'a HashMap<String, String>,
    ) -> Occasion<'a> {
        Occasion {
            provider: "openai",
            credential,
            target: "openai/gpt-5-mini",
            route: "default",
            labels,
        }
    }

    #[test]
    fn a_budget_matches_where_all_of_its_selectors_do() {
        let labels = labels("tenant=gold-7 empty=");
        for (text, expected) in [
            ("", true),
            ("provider=openai", true),
            ("provider=open*", false),
            ("provider=local", false),
            ("credential=main", true),
            ("credential=spare", false),
            ("route=default", true),
            ("route=batch", false),
            ("target=openai/gpt-5-mini", true),
            ("target=openai/gpt-5", false),
            ("target=openai/gpt-5-*", true),
            ("target=*", true),
            ("target=*/gpt-5-mini", true),
            ("target=local/*", false),
            ("tenant=gold-7", true),
            ("tenant=gold", false),
            ("tenant=gold-*", true),
            ("tenant=*", true),
            ("empty=", true),
            ("empty=*", true),
            ("absent=", false),
            ("absent=*", false),
            (
                "provider=openai credential=main target=*mini route=default tenant=* empty=",
                true,
            ),
            ("provider=openai credential=main target=*nano", false),
            ("provider=local credential=main", false),
            ("provider=openai credential=spare", false),
            ("provider=openai route=batch", false),
            ("tenant=* absent=*", false),
        ] {
            let budgets = [budget(selector(text))];
            let matched = matching(&budgets, &occasion(Some("main"), &labels));
            assert_eq!(!matched.budgets.is_empty(), expected, "{text}");
        }
    }

    #[test]
    fn a_provider_without_credentials_matches_no_credential() {
        let labels = HashMap::new();
        let budgets = [
            budget(selector("credential=main")),
            budget(selector("provider=openai")),
        ];
        let matched = matching(&budgets, &occasion(None, &labels));
        assert_eq!(*matched.budgets, [1]);
    }

    #[test]
    fn budgets_come_in_the_file_s_order() {
        let labels = HashMap::new();
        let texts = ["target=*", "route=batch", "", "provider=openai"];
        let budgets = texts.map(|text| budget(selector(text)));
        let matched = matching(&budgets, &occasion(None, &labels));
        assert_eq!(*matched.budgets, [0, 2, 3]);
        assert_eq!(matched.flow, None);
    }

    #[test]
    fn whoever_waits_stands_in_the_line_of_the_first_budget_that_is_fair() {
        let fair = |text: &str, label: &str| Budget {
            fairness: Some(Fairness {
                label: label.into(),
                weights: Default::default(),
                default_weight: 1,
            }),
            ..budget(selector(text))
        };
        let budgets = [
            budget(selector("")),
            fair("route=batch", "nobody"),
            fair("", "tenant"),
            fair("", "user"),
        ];
        for (given, value) in [("tenant=gold user=u", "gold"), ("user=u", "")] {
            let labels = labels(given);
            let matched = matching(&budgets, &occasion(None, &labels));
            assert_eq!(matched.flow, Some((2, value.into())), "{given}");
        }
    }

    #[test]
    fn what_matches_nothing_is_shared() {
        let labels = HashMap::new();
        let other = [budget(selector("route=batch"))];
        let none = matching(&[], &occasion(None, &labels));
        let no_match = matching(&other, &occasion(None, &labels));
        assert!(none.budgets.is_empty());
        assert!(Arc::ptr_eq(&none, &no_match));
    }
}
