//! `budgets` and `listen.admission`: what is taken, and what is said of what is not.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use redrive::{
    config::{Admission, Budget, Config, Fairness, LabelRate, Selector, Smoothing, StreamRate},
    limits::{DailyLimit, MOST_REQUESTS, Measure, Refund, WindowLimit},
};

use crate::support::*;

/// Two providers, three credentials, two routes; the first line of `budgets` is line 12.
const NAMES: &str = "\
providers:
  openai:
    base_url: https://api.openai.com/v1
    credentials: [{name: main, api_key: {env: OPENAI_API_KEY}}, {name: spare, api_key: {env: OPENAI_API_KEY}}]
  local:
    base_url: http://localhost:8000/v1
    credentials: [{name: own, api_key: {env: OPENAI_API_KEY}}]
routes:
  default: {targets: [{provider: openai, model: gpt-5-mini}, {provider: local, model: qwen}], models: ['gpt-5-*']}
  batch: {targets: [{provider: local, model: qwen}]}
budgets:
";

fn with(budgets: &str) -> Config {
    let text = format!("{NAMES}{budgets}");
    parse(&text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn budget(budget: &str) -> Budget {
    with(&format!("  - {{name: b, {budget}}}\n")).budgets[0].clone()
}

/// The error about a file with one budget.
fn refused(budget: &str) -> String {
    refusal(&format!("{NAMES}  - {{name: b, {budget}}}\n"))
}

fn one(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

#[test]
fn the_contract_s_budget_is_taken() {
    let config = with(
        "  - name: openai-main
    match: {provider: openai, credential: main}     # also: target, route, label.<name>
    engine: local                # or redis
    requests: [{limit: 500, window: 60s}, {limit: 20, window: 1s}]
    input_tokens: [{limit: 200000, window: 60s}]
    output_tokens: [{limit: 40000, window: 60s}]
    concurrent: 64
    daily: {requests: 100000, zone: UTC}
    refund: all                  # never | input_only | all
",
    );
    let [budget] = &*config.budgets else {
        panic!("one budget");
    };
    let settings = &budget.settings;
    let window = |measure, limit, seconds: u64| WindowLimit {
        measure,
        limit,
        window: seconds * 1_000_000,
    };
    assert_eq!(settings.name, "openai-main");
    assert_eq!(
        settings.windows,
        [
            window(Measure::Requests, 500, 60),
            window(Measure::Requests, 20, 1),
            window(Measure::InputTokens, 200_000, 60),
            window(Measure::OutputTokens, 40_000, 60),
        ]
    );
    assert_eq!(settings.concurrent, Some(64));
    let daily = DailyLimit {
        measure: Measure::Requests,
        limit: 100_000,
    };
    assert_eq!(settings.daily, [daily]);
    assert_eq!(settings.refund, Refund::All);
    assert_eq!(budget.zone.iana_name(), Some("UTC"));
    assert_eq!(
        budget.selector.to_string(),
        "provider openai, credential main"
    );
    assert!(budget.selector.is_of_a_provider());
}

#[test]
fn a_budget_has_the_documented_defaults() {
    let budget = budget("match: {}, concurrent: 1");
    assert_eq!(budget.selector, Selector::default());
    assert_eq!(budget.settings.windows, []);
    assert_eq!(budget.settings.daily, []);
    assert_eq!(budget.settings.refund, Refund::Never);
    assert_eq!(budget.settings.margin, 250_000);
    assert_eq!(budget.zone.iana_name(), Some("UTC"));
    assert_eq!(budget.fairness, None);
    assert_eq!(budget.smoothing, None);
    assert_eq!(budget.max_waiting, 10_000);
    assert_eq!(budget.bytes_per_token, 1);
}

#[test]
fn what_comes_back_is_as_the_providers_do_that_the_budget_stands_for() {
    let file = |selector: &str| {
        format!(
            "\
providers:
  vendor: {{base_url: 'http://v/v1', credentials: [{{name: main, api_key: {{env: OPENAI_API_KEY}}}}]}}
  azure: {{base_url: 'http://a/v1', dialect: azure}}
  responses: {{base_url: 'http://r/v1', protocol: openai_responses}}
  claude: {{base_url: 'http://c', protocol: anthropic_messages, credentials: [{{name: own, api_key: {{env: OPENAI_API_KEY}}}}]}}
  local: {{base_url: 'http://l/v1', dialect: vllm}}
routes:
  default: {{targets: [{{provider: vendor, model: m}}, {{provider: local, model: m}}], models: ['m-*']}}
  azure: {{targets: [{{provider: azure, model: m}}]}}
  responses: {{targets: [{{provider: responses, model: m}}]}}
  other: {{targets: [{{provider: claude, model: m}}, {{provider: local, model: m}}]}}
budgets:
  - {{name: b, match: {selector}, input_tokens: [{{limit: 9, window: 1s}}]}}
"
        )
    };
    for (selector, refund) in [
        ("{}", Refund::Never),
        ("{provider: vendor}", Refund::Never),
        ("{provider: azure}", Refund::Never),
        ("{provider: responses}", Refund::Never),
        ("{provider: claude}", Refund::All),
        ("{provider: local}", Refund::All),
        ("{credential: main}", Refund::Never),
        ("{credential: own}", Refund::All),
        ("{target: 'vendor/m-*'}", Refund::Never),
        ("{target: 'local/*'}", Refund::All),
        ("{route: default}", Refund::Never),
        ("{route: other}", Refund::All),
        ("{route: default, provider: local}", Refund::All),
        ("{label.tenant: gold}", Refund::Never),
    ] {
        let config = parse(&file(selector)).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(config.budgets[0].settings.refund, refund, "{selector}");
    }
}

#[test]
fn settings_of_a_budget_reach_the_model() {
    let budget = budget(
        "match: {target: 'local/*', route: batch, label.tenant: 'gold-*', label.user.id: ''}, \
         daily: {input_tokens: 5, output_tokens: 6, zone: America/Los_Angeles}, refund: input_only, \
         margin: 0, max_waiting: 0, bytes_per_token: 4, \
         fairness: {label: tenant, weights: {gold: 3, '': 2}, default_weight: 7}, \
         smoothing: {requests: 60, per: 60s, burst: 2}",
    );
    let labels = [("tenant", "gold-*"), ("user.id", "")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(
        budget.selector,
        Selector {
            provider: None,
            credential: None,
            target: Some("local/*".to_owned()),
            route: Some("batch".to_owned()),
            labels: BTreeMap::from(labels),
        }
    );
    let daily = [(Measure::InputTokens, 5), (Measure::OutputTokens, 6)];
    let daily = daily.map(|(measure, limit)| DailyLimit { measure, limit });
    assert_eq!(budget.settings.daily, daily);
    assert_eq!(budget.zone.iana_name(), Some("America/Los_Angeles"));
    assert_eq!(budget.settings.refund, Refund::InputOnly);
    assert_eq!(budget.settings.margin, 0);
    assert_eq!(budget.max_waiting, 0);
    assert_eq!(budget.bytes_per_token, 4);
    assert_eq!(
        budget.fairness,
        Some(Fairness {
            label: "tenant".to_owned(),
            weights: BTreeMap::from([("gold".to_owned(), 3), (String::new(), 2)]),
            default_weight: 7,
        })
    );
    assert_eq!(
        budget.smoothing,
        Some(Smoothing {
            requests: one(60),
            per: Duration::from_secs(60),
            burst: one(2),
        })
    );
}

#[test]
fn budgets_stand_in_the_file_s_order() {
    let config =
        with("  - {name: z, match: {}, concurrent: 1}\n  - {name: a, match: {}, concurrent: 1}\n");
    let names: Vec<&str> = config.budgets.iter().map(|b| &*b.settings.name).collect();
    assert_eq!(names, ["z", "a"]);
}

#[test]
fn one_window_may_have_two_limits_and_two_kinds_the_same_window() {
    let budget = budget(
        "match: {}, requests: [{limit: 5, window: 1s}, {limit: 4, window: 1s}], \
         input_tokens: [{limit: 5, window: 1000ms}]",
    );
    assert_eq!(budget.settings.windows.len(), 3);
}

#[test]
fn limits_and_windows_are_taken_up_to_their_bounds() {
    let window = budget("match: {}, input_tokens: [{limit: 1000000000000, window: 31d}]")
        .settings
        .windows[0];
    assert_eq!(
        (window.limit, window.window),
        (1_000_000_000_000, 2_678_400_000_000)
    );
    for (budget, error) in [
        (
            "requests: [{limit: 0, window: 1s}]",
            "limit: 0 is out of range: 1 to 1000000000000",
        ),
        (
            "requests: [{limit: 1000000000001, window: 1s}]",
            "limit: 1000000000001 is out of range: 1 to 1000000000000",
        ),
        (
            "requests: [{limit: 1, window: 0}]",
            "window: 0s is out of range: 1ms to 744h",
        ),
        (
            "requests: [{limit: 1, window: 32d}]",
            "window: 768h is out of range: 1ms to 744h",
        ),
        (
            "concurrent: 0",
            "concurrent: 0 is out of range: 1 to 1000000",
        ),
        ("margin: 11s", "margin: 11s is out of range: 0s to 10s"),
        (
            "max_waiting: 100001",
            "max_waiting: 100001 is out of range: 0 to 100000",
        ),
        (
            "bytes_per_token: 17",
            "bytes_per_token: 17 is out of range: 1 to 16",
        ),
        (
            "daily: {requests: 0}",
            "daily.requests: 0 is out of range: 1 to 1000000000000",
        ),
        (
            "fairness: {label: t, weights: {a: 0}}",
            "fairness.weights.a: 0 is out of range: 1 to 1000",
        ),
        (
            "refund: some",
            "refund: \"some\" is not one of the values here",
        ),
        (
            "requests: {limit: 1, window: 1s}",
            "requests: expected a list, found a map",
        ),
    ] {
        let errors = refused(&format!("match: {{}}, {budget}"));
        assert!(errors.contains(error), "{budget}: {errors}");
        assert_eq!(errors.matches("redrive.yaml:").count(), 1, "{errors}");
    }
}

#[test]
fn whatever_misses_is_told() {
    assert_eq!(
        refusal(&format!(
            "{NAMES}  - {{match: {{}}, concurrent: 1}}
  - {{name: a, concurrent: 1}}
  - {{name: b, match: , concurrent: 1}}
  - {{name: c, match: {{}}, requests: [{{limit: 5}}, {{window: 1s}}, {{}}]}}
  - {{name: d, match: {{}}, concurrent: 1, fairness: {{}}, smoothing: {{burst: 3}}}}
"
        )),
        "redrive.yaml:12:5: budgets[0].name: a budget needs a name
redrive.yaml:13:5: budgets[1].match: a budget needs a match, such as {provider: openai}; {} is all attempts
redrive.yaml:14:15: budgets[2].match: a budget needs a match, such as {provider: openai}; {} is all attempts
redrive.yaml:15:37: budgets[3].requests[0].window: both are needed, such as {limit: 500, window: 60s}
redrive.yaml:15:49: budgets[3].requests[1].limit: both are needed, such as {limit: 500, window: 60s}
redrive.yaml:15:63: budgets[3].requests[2].limit: both are needed, such as {limit: 500, window: 60s}
redrive.yaml:16:41: budgets[4].fairness.label: the name of a label is needed, such as tenant
redrive.yaml:16:55: budgets[4].smoothing.requests: both are needed, such as {requests: 60, per: 60s}"
    );
}

#[test]
fn a_budget_that_limits_nothing_is_refused() {
    for nothing in [
        "",
        ", daily: {zone: UTC}",
        ", requests: []",
        ", smoothing: {requests: 60, per: 60s}",
    ] {
        assert_eq!(
            refused(&format!("match: {{}}{nothing}")),
            "redrive.yaml:12:5: budgets[0]: a budget needs a limit: requests, input_tokens, \
             output_tokens, concurrent or daily"
        );
    }
}

#[test]
fn names_of_selectors_that_lead_nowhere() {
    for (selector, error) in [
        (
            "provider: opneai",
            "33: budgets[0].match.provider: there is no provider \"opneai\"
  hint: did you mean `openai`?
  hint: providers: openai, local",
        ),
        (
            "route: defualt",
            "30: budgets[0].match.route: there is no route \"defualt\"
  hint: did you mean `default`?
  hint: routes: default, batch",
        ),
        (
            "credential: mian",
            "35: budgets[0].match.credential: there is no credential \"mian\"
  hint: did you mean `main`?
  hint: credentials: main, own, spare",
        ),
        (
            "provider: local, credential: main",
            "52: budgets[0].match.credential: there is no credential of local \"main\"
  hint: credentials: own",
        ),
        (
            "target: openai/gpt-4o",
            "31: budgets[0].match.target: no route has a target \"openai/gpt-4o\"
  hint: did you mean `openai/gpt-5-*`?
  hint: targets: local/qwen, openai/gpt-5-*, openai/gpt-5-mini",
        ),
        (
            "provider: local, target: 'openai/*'",
            "48: budgets[0].match.target: no route has a target of local \"openai/*\"
  hint: targets: local/qwen",
        ),
        (
            "label: {tenant: gold}",
            "23: budgets[0].match.label: unknown key
  hint: keys here: provider, credential, target, route, label.<name>",
        ),
        (
            "provider: ",
            "23: budgets[0].match.provider: expected a string, found nothing",
        ),
        (
            "label.: gold",
            "31: budgets[0].match.\"label.\": the name of a label is 1 to 64 bytes",
        ),
    ] {
        let errors = refusal(&format!(
            "{NAMES}  - {{name: b, match: {{{selector}}}, concurrent: 1}}\n"
        ));
        assert_eq!(errors, format!("redrive.yaml:12:{error}"), "{selector}");
    }
}

#[test]
fn targets_that_clients_may_ask_for_can_be_named() {
    for target in [
        "openai/gpt-5-mini",
        "openai/gpt-5-nano",
        "openai/gpt-5-*",
        "openai/*",
        "*",
        "openai/gpt-5-n*",
        "local/qwen",
    ] {
        budget(&format!("match: {{target: '{target}'}}, concurrent: 1"));
    }
}

#[test]
fn what_is_at_fault_elsewhere_is_not_told_again() {
    let text = "\
providers:
  openai: {base_url: 'https://api.openai.com/v1', credentials: [{nmae: main, api_key: {env: OPENAI_API_KEY}}]}
routes:
  default: {targets: [{provider: openai, modle: m}]}
budgets:
  - {name: b, match: {provider: openai, credential: main, target: openai/m}, concurrent: 1}
";
    let errors = refusal(text);
    assert_eq!(errors.matches("redrive.yaml:").count(), 2, "{errors}");
}

#[test]
fn an_unknown_time_zone_is_refused() {
    assert_eq!(
        refused("match: {}, daily: {requests: 1, zone: Europe/Berlni}"),
        "redrive.yaml:12:53: budgets[0].daily.zone: there is no time zone \"Europe/Berlni\"; write an \
         IANA name, such as America/Los_Angeles
  hint: did you mean `Europe/Berlin`?"
    );
    let errors = refused("match: {}, daily: {requests: 1, zone: PDT}");
    assert!(errors.contains("there is no time zone \"PDT\""), "{errors}");
}

#[test]
fn what_stands_there_twice_is_refused() {
    assert_eq!(
        refused("match: {}, requests: [{limit: 5, window: 1s}, {limit: 5, window: 1000ms}]"),
        "redrive.yaml:12:61: budgets[0].requests[1]: the same limit and window stand here twice"
    );
    let text = "  - {name: a, match: {}, concurrent: 1}\n".repeat(2);
    assert_eq!(
        refusal(&format!("{NAMES}{text}")),
        "redrive.yaml:13:12: budgets[1].name: budgets[0] has the same name"
    );
}

#[test]
fn budgets_and_windows_are_bounded() {
    let budgets = |n: usize| -> String {
        (0..n)
            .map(|n| format!("  - {{name: b{n}, match: {{}}, concurrent: 1}}\n"))
            .collect()
    };
    assert_eq!(with(&budgets(64)).budgets.len(), 64);
    let error = refusal(&format!("{NAMES}{}", budgets(65)));
    assert_eq!(
        error,
        "redrive.yaml:12:3: budgets: there are at most 64 budgets"
    );
    let windows = |n: usize| {
        let windows: Vec<String> = (1..=n)
            .map(|n| format!("{{limit: {n}, window: 1s}}"))
            .collect();
        format!("match: {{}}, requests: [{}]", windows.join(", "))
    };
    assert_eq!(budget(&windows(16)).settings.windows.len(), 16);
    let error = refused(&windows(17));
    assert!(
        error.ends_with("requests: there are at most 16 windows"),
        "{error}"
    );
}

#[test]
fn more_requests_in_a_window_than_a_budget_remembers_are_refused() {
    let requests = |n: u64| format!("match: {{}}, requests: [{{limit: {n}, window: 31d}}]");
    let most = budget(&requests(MOST_REQUESTS)).settings;
    assert_eq!(most.windows[0].limit, 1_000_000);
    assert_eq!(
        refused(&requests(MOST_REQUESTS + 1)),
        "redrive.yaml:12:45: budgets[0].requests[0].limit: a budget remembers 1000000 sends at most, so \
         1000001 in a window could never be used; take a shorter window with a smaller limit"
    );
    for other in [
        "input_tokens: [{limit: 1000001, window: 1m}]",
        "output_tokens: [{limit: 1000001, window: 1m}]",
        "daily: {requests: 1000001}",
    ] {
        budget(&format!("match: {{}}, {other}"));
    }
}

#[test]
fn a_bad_name_of_a_budget_is_refused() {
    let error = refusal(&format!(
        "{NAMES}  - {{name: a b, match: {{}}, concurrent: 1}}\n"
    ));
    assert_eq!(
        error,
        "redrive.yaml:12:12: budgets[0].name: a name is 1 to 64 letters, digits, `-`, `_` or `.`"
    );
}

#[test]
fn rates_of_streams_reach_the_model() {
    let text = minimal_and(
        "listen: {admission: {per_connection: {streams: 100}, \
         per_label: {label: tenant, streams: 50, per: 10s, burst: 5}}}\n",
    );
    assert_eq!(
        parse(&text).unwrap().listen.admission,
        Admission {
            per_connection: Some(StreamRate {
                streams: one(100),
                per: Duration::from_secs(1),
                burst: one(100),
            }),
            per_label: Some(LabelRate {
                label: "tenant".to_owned(),
                rate: StreamRate {
                    streams: one(50),
                    per: Duration::from_secs(10),
                    burst: one(5),
                },
            }),
        }
    );
}

#[test]
fn a_rate_of_streams_that_says_too_little_is_refused() {
    let text = minimal_and(
        "listen:
  admission:
    per_connection: {}
    per_label: {streams: 0, label: ''}
",
    );
    assert_eq!(
        refusal(&text),
        "redrive.yaml:7:5: listen.admission.per_connection.streams: a rate needs a number of streams
redrive.yaml:8:26: listen.admission.per_label.streams: 0 is out of range: 1 to 1000000
redrive.yaml:8:36: listen.admission.per_label.label: the name of a label is 1 to 64 bytes"
    );
}
