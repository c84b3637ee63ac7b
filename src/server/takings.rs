//! What a target's attempts take of budgets, settled before anything is sent.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;

use crate::{
    budgets::{Budgets, Matched, Occasion},
    config::{Budget, Route, Target},
    session::Estimate,
};

/// Whose attempts, and of what.
#[derive(Clone, Copy)]
pub(super) struct Takings<'a> {
    /// Answers which of them match.
    pub(super) budgets: &'a Budgets,
    /// The same, as they are configured.
    pub(super) configured: &'a [Budget],
    /// The generation's route.
    pub(super) route: &'a Route,
    /// The labels of its start.
    pub(super) labels: &'a HashMap<String, String>,
}

impl Takings<'_> {
    /// What attempts at `target` match, by the index of their credential; one entry where the provider
    /// has none.
    pub(super) fn matched(&self, target: &Target) -> Vec<Arc<Matched>> {
        let matching = |credential| {
            self.budgets.matching(&Occasion {
                provider: &target.provider.name,
                credential,
                target: &target.name,
                route: &self.route.name,
                labels: self.labels,
            })
        };
        match target.provider.credentials.as_slice() {
            [] => vec![matching(None)],
            credentials => {
                let credentials = credentials.iter();
                credentials
                    .map(|credential| matching(Some(&credential.name)))
                    .collect()
            }
        }
    }

    /// The most tokens that `body` takes; none where no budget in `matched` limits any.
    pub(super) fn tokens(&self, model: &str, body: &Bytes, matched: &[Arc<Matched>]) -> Estimate {
        let budgets = matched.iter().flat_map(|matched| &*matched.budgets);
        let bytes_per_token = budgets
            .filter_map(|id| self.configured.get(*id))
            .filter(|budget| budget.settings.limits_tokens())
            .map(|budget| budget.bytes_per_token)
            .min();
        let most = self.route.max_output_tokens;
        bytes_per_token.map_or_else(Estimate::default, |bytes_per_token| {
            Estimate::new(model, body.clone(), bytes_per_token, most)
        })
    }

    /// What the retry budget of attempts that match `matched` is called: the first budget that stands
    /// for quota at a provider, else the provider. A provider's name has no colon.
    pub(super) fn domain(&self, target: &Target, matched: &Matched) -> Arc<str> {
        let budgets = matched.budgets.iter();
        let mut budgets = budgets.filter_map(|id| self.configured.get(*id));
        match budgets.find(|budget| budget.selector.is_of_a_provider()) {
            Some(budget) => format!("budget:{}", budget.settings.name).into(),
            None => target.provider.name.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env::VarError, io, path::Path, time::Duration};

    use super::*;
    use crate::{
        clock::Clock,
        config::{Config, Environment},
        limits::Weights,
        proto::{Conversation, Message, Part, Role, Start, part, start::Input},
        server::start::{Circumstances, Prepared, prepare},
    };

    struct Keys;

    impl Environment for Keys {
        fn variable(&self, _: &str) -> Result<String, VarError> {
            Ok("key".into())
        }

        fn file(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// What attempts at each target take: the budgets by credential, the domains, and the tokens.
    type Taken = Vec<(Vec<Vec<usize>>, Vec<String>, Weights)>;

    fn taken(budgets: &str, edit: fn(&mut Start)) -> Taken {
        let text = format!(
            "\
providers:
  a: {{base_url: 'http://a/v1', credentials: [{{name: x, api_key: {{env: K}}}}, {{name: y, api_key: {{env: K}}}}]}}
  b: {{base_url: 'http://b/v1'}}
routes:
  default:
    targets: [{{provider: a, model: m}}, {{provider: b, model: n}}]
    models: ['m-*']
    max_output_tokens: 77
budgets:
{budgets}"
        );
        let config = Config::parse(&text, Path::new("redrive.yaml"), &Keys)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let message = Message {
            role: Role::User.into(),
            parts: vec![Part {
                part: Some(part::Part::Text("Say hello.".into())),
            }],
        };
        let mut start = Start {
            route: "default".into(),
            input: Some(Input::Conversation(Conversation {
                messages: vec![message],
                ..Conversation::default()
            })),
            ..Start::default()
        };
        edit(&mut start);
        let circumstances = Circumstances {
            budgets: &Budgets::new(Clock::start(), Arc::clone(&config.budgets)),
            id: "id".into(),
            caller_deadline: None,
            wall_origin: Duration::ZERO,
            seed: 0,
        };
        let Prepared { params, plan, .. } =
            prepare(&config, &start, circumstances).expect("a good start");
        let targets = plan.targets.iter().zip(params.targets.iter());
        targets
            .map(|(planned, target)| {
                let known = planned.tokens.known();
                assert!(
                    known.is_none_or(|known| known == Weights::default()),
                    "counted before it is reserved"
                );
                let budgets = planned.budgets.iter().map(|m| m.budgets.to_vec());
                let domains = target.domains.iter().map(|domain| domain.to_string());
                (budgets.collect(), domains.collect(), planned.tokens.count())
            })
            .collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_credential_has_its_budgets_and_its_retry_budget() {
        let budgets = "
  - {name: all, match: {}, concurrent: 1}
  - {name: a, match: {credential: y}, concurrent: 1}
  - {name: gold, match: {label.tenant: gold}, concurrent: 1}
  - {name: late, match: {provider: a}, concurrent: 1}
";
        let none = Weights::default();
        assert_eq!(
            taken(budgets, |start| drop(
                start.labels.insert("tenant".into(), "gold".into())
            )),
            [
                (
                    vec![vec![0, 2, 3], vec![0, 1, 2, 3]],
                    names(&["budget:late", "budget:a"]),
                    none
                ),
                (vec![vec![0, 2]], names(&["b"]), none),
            ]
        );
    }

    #[test]
    fn without_budgets_retries_count_against_the_provider() {
        let none = Weights::default();
        assert_eq!(
            taken("  []\n", |_| {}),
            [
                (vec![vec![], vec![]], names(&["a", "a"]), none),
                (vec![vec![]], names(&["b"]), none),
            ]
        );
    }

    #[test]
    fn the_model_that_is_asked_for_is_the_one_that_matches() {
        let budgets = "
  - {name: m, match: {target: a/m}, concurrent: 1}
  - {name: m-large, match: {target: 'a/m-*'}, concurrent: 1}
";
        let of_first = |edit| taken(budgets, edit).remove(0).0;
        assert_eq!(of_first(|_| {}), [[0], [0]]);
        assert_eq!(of_first(|start| start.model = "m-large".into()), [[1], [1]]);
    }

    #[test]
    fn tokens_are_reserved_where_a_budget_limits_them() {
        for (limit, counted) in [
            ("input_tokens: [{limit: 9, window: 1s}]", true),
            ("output_tokens: [{limit: 9, window: 1s}]", true),
            ("daily: {input_tokens: 9}", true),
            ("daily: {output_tokens: 9}", true),
            (
                "requests: [{limit: 9, window: 1s}], daily: {requests: 9}",
                false,
            ),
        ] {
            let budgets = format!("  - {{name: b, match: {{provider: b}}, {limit}}}\n");
            let taken = taken(&budgets, |_| {});
            assert_eq!(taken[0].2, Weights::default(), "{limit}: of a");
            let tokens = taken[1].2;
            assert_eq!(tokens.input_tokens > 0, counted, "{limit}: of b");
            assert_eq!(
                tokens.output_tokens,
                if counted { 77 } else { 0 },
                "{limit}"
            );
        }
    }

    #[test]
    fn the_smallest_count_of_bytes_of_those_that_limit_tokens_holds() {
        let budgets = |bytes: [u8; 3]| {
            let [coarse, fine, requests] = bytes;
            format!(
                "
  - {{name: coarse, match: {{}}, input_tokens: [{{limit: 9, window: 1s}}], bytes_per_token: {coarse}}}
  - {{name: fine, match: {{}}, output_tokens: [{{limit: 9, window: 1s}}], bytes_per_token: {fine}}}
  - {{name: requests, match: {{}}, concurrent: 1, bytes_per_token: {requests}}}
"
            )
        };
        let tokens = |bytes| taken(&budgets(bytes), |_| {})[1].2.input_tokens;
        let fine = tokens([1, 1, 1]);
        assert_eq!(tokens([4, 1, 1]), fine);
        assert!(tokens([4, 2, 1]) < fine);
        assert!(tokens([4, 4, 1]) < tokens([4, 2, 1]));
    }
}
