//! The metrics as Prometheus reads them.

use std::time::Duration;

use http::Uri;
use redrive::{
    proto::{Executed, Mode, StoppedBy, VerdictClass as Class},
    telemetry::{
        Attempt, BudgetReading, EngineAnswer, EngineReading, Guard, LimitReading, Telemetry,
    },
};

use crate::support::*;

/// The sample lines whose name starts with `prefix`.
fn lines(telemetry: &Telemetry, prefix: &str) -> Vec<String> {
    let text = telemetry.render_metrics().unwrap();
    text.lines()
        .filter(|line| line.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

#[test]
fn before_anything_happens_every_fixed_series_stands_at_zero() {
    let (telemetry, _) = telemetry();
    let text = telemetry.render_metrics().unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_recovered_generation_is_one_generation_and_two_sends() {
    let (telemetry, _) = telemetry();
    play_recovery(generation(&telemetry, &rpc(&telemetry).context()));
    assert_eq!(
        lines(&telemetry, "redrive_generations_total"),
        [
            r#"redrive_generations_total{outcome="cancelled"} 0"#,
            r#"redrive_generations_total{outcome="committed"} 1"#,
            r#"redrive_generations_total{outcome="failed"} 0"#,
        ]
    );
    assert_eq!(
        lines(&telemetry, "redrive_sends_total"),
        [
            r#"redrive_sends_total{target="openai/gpt-5-mini",verdict="accepted"} 1"#,
            r#"redrive_sends_total{target="openai/gpt-5-mini",verdict="transport"} 1"#,
        ]
    );
}

#[test]
fn committed_and_void_tokens_are_counted_apart() {
    let (telemetry, _) = telemetry();
    play_recovery(generation(&telemetry, &rpc(&telemetry).context()));
    assert_eq!(
        lines(&telemetry, "redrive_tokens_total"),
        [
            r#"redrive_tokens_total{disposition="committed"} 5"#,
            r#"redrive_tokens_total{disposition="void"} 1"#,
        ]
    );
}

#[test]
fn the_first_token_of_a_generation_and_each_recovery_are_timed_once() {
    let (telemetry, _) = telemetry();
    play_recovery(generation(&telemetry, &rpc(&telemetry).context()));
    assert_eq!(
        lines(&telemetry, "redrive_time_to_first_token_seconds"),
        [
            r#"redrive_time_to_first_token_seconds_bucket{le="0.05"} 0"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="0.1"} 0"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="0.25"} 0"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="0.5"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="1"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="2"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="4"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="8"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="15"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="30"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="60"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="120"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="300"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="600"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="1800"} 1"#,
            r#"redrive_time_to_first_token_seconds_bucket{le="+Inf"} 1"#,
            "redrive_time_to_first_token_seconds_sum 0.3",
            "redrive_time_to_first_token_seconds_count 1",
        ]
    );
    assert_eq!(
        lines(&telemetry, "redrive_recovery_time_seconds_sum"),
        ["redrive_recovery_time_seconds_sum 0.7"]
    );
    assert_eq!(
        lines(&telemetry, "redrive_recovery_time_seconds_count"),
        ["redrive_recovery_time_seconds_count 1"]
    );
}

#[test]
fn a_cancelled_generation_counts_as_cancelled_and_its_tokens_as_void() {
    let (telemetry, _) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    play_attempt(&mut observer, 1, Some(Class::Cancelled));
    let end = failed(Class::Cancelled, StoppedBy::Cancel, ledger(1, 3, 3));
    observer.failed(&end, Duration::from_secs(1));
    assert_eq!(
        lines(
            &telemetry,
            "redrive_generations_total{outcome=\"cancelled\"}"
        ),
        [r#"redrive_generations_total{outcome="cancelled"} 1"#]
    );
    assert_eq!(
        lines(&telemetry, "redrive_tokens_total"),
        [
            r#"redrive_tokens_total{disposition="committed"} 0"#,
            r#"redrive_tokens_total{disposition="void"} 3"#,
        ]
    );
}

#[test]
fn an_attempt_that_was_never_sent_is_no_send() {
    let (telemetry, _) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    start_attempt(&mut observer, 1);
    observer.attempt_ended(&entry(1, Executed::No, Some(Class::TimeoutConnect)));
    assert_eq!(lines(&telemetry, "redrive_sends_total"), [""; 0]);
}

#[test]
fn a_generation_that_nobody_ended_still_counts_with_its_open_send() {
    let (telemetry, _) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    start_attempt(&mut observer, 1);
    observer.sent();
    assert_eq!(telemetry.gauges().generations.value(), 1);
    drop(observer);
    assert_eq!(telemetry.gauges().generations.value(), 0);
    assert_eq!(
        lines(&telemetry, "redrive_generations_total{outcome=\"failed\"}"),
        [r#"redrive_generations_total{outcome="failed"} 1"#]
    );
    assert_eq!(
        lines(&telemetry, "redrive_sends_total"),
        [r#"redrive_sends_total{target="openai/gpt-5-mini",verdict="unspecified"} 1"#]
    );
}

#[test]
fn a_client_cannot_make_time_series() {
    let (telemetry, _) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    for number in 1..=3 {
        let target = format!("openai/made-up-{number}");
        observer.attempt_started(&Attempt {
            attempt: number,
            target: &target,
            provider: "openai",
            model: "made-up",
            mode: Mode::First,
            base_url: &Uri::from_static("http://localhost"),
        });
        observer.attempt_ended(&entry(number, Executed::Yes, None));
    }
    assert_eq!(
        lines(&telemetry, "redrive_sends_total"),
        [r#"redrive_sends_total{target="openai/_OTHER",verdict="accepted"} 3"#]
    );
}

#[test]
fn what_is_alive_is_read_at_the_scrape() {
    let (telemetry, _) = telemetry();
    let gauges = telemetry.gauges();
    let observer = generation(&telemetry, &rpc(&telemetry).context());
    let guards = (
        Guard::new(&gauges.grpc_connections),
        Guard::new(&gauges.grpc_streams),
        Guard::new(&gauges.provider_connections),
        Guard::new(&gauges.tasks),
        Guard::with_amount(&gauges.transcript_bytes, 4096),
    );
    let alive = |value: [i64; 6]| {
        [
            format!("redrive_generations_active {}", value[0]),
            format!("redrive_grpc_connections_active {}", value[1]),
            format!("redrive_grpc_streams_active {}", value[2]),
            format!("redrive_provider_connections_active {}", value[3]),
            format!("redrive_tasks_active {}", value[4]),
            format!("redrive_transcript_bytes {}", value[5]),
        ]
    };
    let scrape = || -> Vec<String> {
        let text = telemetry.render_metrics().unwrap();
        text.lines()
            .filter(|line| line.contains("_active ") || line.contains("_bytes "))
            .filter(|line| !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(scrape(), alive([1, 1, 1, 1, 1, 4096]));
    drop((observer, guards));
    assert_eq!(scrape(), alive([0; 6]));
}

#[test]
fn switched_off_metrics_show_nothing() {
    let off = redrive::config::Telemetry {
        prometheus: false,
        ..settings()
    };
    let telemetry = Telemetry::new(&off, [TARGET.to_owned()]).unwrap();
    play_recovery(generation(&telemetry, &rpc(&telemetry).context()));
    assert_eq!(telemetry.render_metrics(), None);
}

#[test]
fn budgets_are_read_at_a_scrape_and_their_answers_are_counted() {
    let (telemetry, _) = telemetry();
    telemetry.observe_budgets(|| {
        vec![BudgetReading {
            budget: "main".into(),
            limits: vec![LimitReading {
                limit: "requests/1m".into(),
                used: 7,
                most: 500,
            }],
            fleet: vec![LimitReading {
                limit: "requests/1m".into(),
                used: 490,
                most: 500,
            }],
            waiting: 3,
            resting: true,
            granted: 1,
            waited: 1,
            refused: 0,
            overruns: 2,
        }]
    });
    telemetry.budget_waited("main", Duration::from_millis(300));
    let told = lines(&telemetry, "redrive_budget_");
    let told: Vec<_> = told
        .iter()
        .filter(|line| !line.contains("_bucket"))
        .collect();
    assert_eq!(
        told,
        [
            r#"redrive_budget_decisions_total{budget="main",decision="granted"} 1"#,
            r#"redrive_budget_decisions_total{budget="main",decision="refused"} 0"#,
            r#"redrive_budget_decisions_total{budget="main",decision="waited"} 1"#,
            r#"redrive_budget_fleet_used{budget="main",limit="requests/1m"} 490"#,
            r#"redrive_budget_limit{budget="main",limit="requests/1m"} 500"#,
            r#"redrive_budget_overruns_total{budget="main"} 2"#,
            r#"redrive_budget_resting{budget="main"} 1"#,
            r#"redrive_budget_used{budget="main",limit="requests/1m"} 7"#,
            r#"redrive_budget_wait_seconds_sum{budget="main"} 0.3"#,
            r#"redrive_budget_wait_seconds_count{budget="main"} 1"#,
            r#"redrive_budget_waiting{budget="main"} 3"#,
        ]
    );
}

#[test]
fn the_engine_is_read_at_a_scrape_and_its_answers_are_counted() {
    let (telemetry, _) = telemetry();
    let told = || -> Vec<String> {
        let lines = lines(&telemetry, "redrive_budget_engine_").into_iter();
        lines.filter(|line| !line.contains("_bucket")).collect()
    };
    assert!(told().is_empty(), "without an engine there are no series");
    telemetry.observe_engine(|| {
        Some(EngineReading {
            up: false,
            strict: true,
            lost: 2,
            cut: 5,
            untold: 7,
        })
    });
    telemetry.engine_asked(EngineAnswer::Granted, Duration::from_millis(2));
    telemetry.engine_asked(EngineAnswer::Denied, Duration::from_millis(1));
    telemetry.engine_asked(EngineAnswer::Lost, Duration::from_millis(100));
    assert_eq!(
        told(),
        [
            r#"redrive_budget_engine_calls_total{outcome="denied"} 1"#,
            r#"redrive_budget_engine_calls_total{outcome="granted"} 1"#,
            r#"redrive_budget_engine_calls_total{outcome="learning"} 0"#,
            r#"redrive_budget_engine_calls_total{outcome="lost"} 1"#,
            "redrive_budget_engine_cut_total 5",
            "redrive_budget_engine_lost_total 2",
            "redrive_budget_engine_round_trip_seconds_sum 0.003",
            "redrive_budget_engine_round_trip_seconds_count 2",
            "redrive_budget_engine_strict 1",
            "redrive_budget_engine_untold 7",
            "redrive_budget_engine_up 0",
        ]
    );
}
