//! What is taken, and what it amounts to.

use std::time::Duration;

use redrive::{
    config::{Admission, Config, LogFormat, Target},
    gate::{Attempts, Policy as GatePolicy, Preset},
    protocol::{Dialect, Protocol, Terminal},
    recovery::settings::{Replay, Timers},
    upstream::Http2,
};

use crate::support::*;

const EXAMPLE: &str = include_str!("../../examples/redrive.yaml");

fn target(config: &Config) -> &Target {
    &config.routes["default"].targets[0]
}

/// A file with one provider `p` and one route `default` that are written in full.
fn with(provider: &str, route: &str) -> Config {
    let text = format!(
        "providers: {{p: {{{provider}}}}}
routes: {{default: {{targets: [{{provider: p, model: m}}], {route}}}}}"
    );
    parse(&text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_smallest_file_has_the_defaults_of_the_contract() {
    let config = parse(MINIMAL).unwrap();

    assert_eq!(config.listen.grpc.to_string(), "127.0.0.1:50051");
    assert_eq!(config.listen.admin.to_string(), "127.0.0.1:15091");
    assert_eq!(config.listen.public.to_string(), "0.0.0.0:15090");
    assert_eq!(config.listen.max_connections, 1024);
    assert_eq!(config.listen.max_streams_per_connection, 1024);
    assert_eq!(config.listen.max_request_bytes, 16 << 20);
    assert_eq!(config.listen.keepalive_interval, Duration::from_secs(20));
    assert_eq!(config.listen.keepalive_timeout, Duration::from_secs(10));
    assert!(!config.listen.reflection);
    assert_eq!(config.listen.admission, Admission::default());
    assert!(config.budgets.is_empty());

    let provider = &target(&config).provider;
    assert_eq!(provider.name, "openai");
    assert_eq!(provider.protocol, Protocol::OpenaiChat);
    assert_eq!(provider.dialect, Dialect::Openai);
    assert_eq!(provider.terminal, Terminal::FinishReason);
    assert_eq!(provider.endpoint.max_connections, 64);
    assert_eq!(provider.endpoint.http2, Http2::Auto);
    assert!(provider.endpoint.proxy.is_none());
    assert!(provider.credentials.is_empty());

    let route = &config.routes["default"];
    let policy = &route.policy;
    assert_eq!(policy.max_attempts, 11);
    assert_eq!(policy.deadline, Duration::from_secs(600));
    assert_eq!(policy.patience, Duration::from_secs(5));
    assert_eq!(policy.replay, Replay::Restart);
    assert!(!policy.replay_first_token);
    assert_eq!(policy.backoff.base, Duration::from_secs(1));
    assert_eq!(policy.backoff.max, Duration::from_secs(60));
    assert!((policy.backoff.jitter - 0.25).abs() < f64::EPSILON);
    assert_eq!(policy.circuit.failures, 5);
    assert_eq!(policy.circuit.open, Duration::from_secs(30));
    assert_eq!(route.max_message_bytes, 8 << 20);
    assert_eq!(route.max_output_tokens, 4096);
    assert_eq!(route.client_idle, Duration::from_secs(120));
    assert_eq!(target(&config).timers, Timers::HOSTED);

    assert!((config.retry_budget.ratio - 0.2).abs() < f64::EPSILON);
    assert_eq!(config.retry_budget.floor, 20);
    assert_eq!(config.retry_budget.per, Duration::from_secs(10));
    assert_eq!(config.telemetry.traces_otlp, None);
    assert!(config.telemetry.prometheus);
    assert_eq!(config.telemetry.log_format, LogFormat::Json);
    assert_eq!(config.telemetry.log_level, "info");
    assert_eq!(config.limits.max_total_bytes, 128 << 20);
    assert_eq!(config.limits.retention, Duration::from_secs(60));
    assert_eq!(config.drain_grace, Duration::from_secs(120));
}

#[test]
fn the_example_is_the_smallest_file_written_out() {
    let short = "
providers:
  openai:
    base_url: https://api.openai.com/v1
    credentials: [{name: main, api_key: {env: OPENAI_API_KEY}}]
routes:
  default:
    targets:
      - {provider: openai, model: gpt-5-mini, context_window: 400000}
      - {provider: openai, model: gpt-5-nano}
    models: ['gpt-5-*']
budgets:
  - name: openai-main
    match: {provider: openai, credential: main}
    requests: [{limit: 500, window: 60s}, {limit: 20, window: 1s}]
    input_tokens: [{limit: 200000, window: 60s}]
    output_tokens: [{limit: 40000, window: 60s}]
    concurrent: 64
    daily: {requests: 100000}
engines: {redis: {url: 'rediss://valkey:6379'}}
";
    let example = parse(EXAMPLE).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        format!("{example:#?}"),
        format!("{:#?}", parse(short).unwrap())
    );
}

#[test]
fn a_key_without_a_value_has_its_default() {
    let text = minimal_and("listen:\nlimits:\n  retention:\ntelemetry: {metrics: {otlp: null}}\n");
    assert_eq!(
        format!("{:?}", parse(&text).unwrap()),
        format!("{:?}", parse(MINIMAL).unwrap())
    );
}

#[test]
fn empty_values_of_keys_that_come_later_are_taken() {
    let text = minimal_and("engines: {}\ntelemetry: {prices: {}}\n");
    assert!(parse(&text).is_ok());
}

#[test]
fn zero_turns_a_timer_off_however_it_is_written() {
    let config = with(
        "base_url: 'http://h'",
        "timers: {connect: 0, first_token: 0s, inter_delta: '0', open_block: 0ms, no_progress: 1ms, tail: 0}",
    );
    assert_eq!(
        target(&config).timers,
        Timers {
            connect: Duration::ZERO,
            first_token: Duration::ZERO,
            inter_delta: Duration::ZERO,
            open_block: Duration::ZERO,
            no_progress: Duration::from_millis(1),
            tail: Duration::ZERO,
        }
    );
}

#[test]
fn durations_and_sizes_are_taken_in_all_their_units() {
    for (written, meant) in [
        ("450ms", Duration::from_millis(450)),
        ("1m 30s", Duration::from_secs(90)),
        ("0.5s", Duration::from_millis(500)),
        ("2h", Duration::from_secs(7200)),
    ] {
        let config = parse(&minimal_and(&format!("drain: {{grace: {written}}}\n"))).unwrap();
        assert_eq!(config.drain_grace, meant, "{written}");
    }
    for (written, meant) in [
        ("1024", 1024),
        ("'2048'", 2048),
        ("1024B", 1024),
        ("64KiB", 64 << 10),
        ("3 MiB", 3 << 20),
        ("4GiB", 4 << 30),
        ("1TiB", 1 << 40),
    ] {
        let text = minimal_and(&format!("limits: {{max_total_bytes: {written}}}\n"));
        assert_eq!(
            parse(&text).unwrap().limits.max_total_bytes,
            meant,
            "{written}"
        );
    }
}

#[test]
fn timers_are_the_targets_over_the_routes_over_the_profiles() {
    let text = "\
providers: {p: {base_url: 'http://localhost:8000/v1'}}
routes:
  default:
    targets:
      - {provider: p, model: m, timers: {connect: 1s}}
      - {provider: p, model: n}
    timers: {connect: 2s, tail: 3s}
";
    let config = parse(text).unwrap();
    let [first, second] = config.routes["default"].targets.as_slice() else {
        panic!("two targets");
    };
    let from_route = Timers {
        connect: Duration::from_secs(2),
        tail: Duration::from_secs(3),
        ..Timers::SELF_HOSTED
    };
    assert_eq!(second.timers, from_route);
    assert_eq!(
        first.timers,
        Timers {
            connect: Duration::from_secs(1),
            ..from_route
        }
    );
}

#[test]
fn the_profile_follows_the_host_unless_it_is_set() {
    for (provider, timers) in [
        ("base_url: 'https://api.openai.com/v1'", Timers::HOSTED),
        (
            "base_url: 'https://acct.openai.azure.com/openai/v1'",
            Timers::HOSTED,
        ),
        ("base_url: 'https://openrouter.ai/api/v1'", Timers::HOSTED),
        (
            "base_url: 'http://vllm.internal:8000/v1'",
            Timers::SELF_HOSTED,
        ),
        ("base_url: 'http://h', profile: hosted", Timers::HOSTED),
        (
            "base_url: 'https://api.openai.com/v1', profile: self_hosted",
            Timers::SELF_HOSTED,
        ),
    ] {
        assert_eq!(target(&with(provider, "")).timers, timers, "{provider}");
    }
}

#[test]
fn a_bare_off_is_taken_as_the_word() {
    for off in ["off", "\"off\"", "false"] {
        let config = with(
            &format!("base_url: 'http://h', connections: {{http2: {off}}}, continue: {off}"),
            &format!("gate: {{preset: {off}}}"),
        );
        assert_eq!(target(&config).provider.endpoint.http2, Http2::Off, "{off}");
    }
}

#[test]
fn responses_are_spoken_and_stored_only_where_that_is_asked_for() {
    for (resume, stored) in [
        ("", false),
        (", resume: off", false),
        (", resume: stored", true),
    ] {
        let provider = format!("base_url: 'http://h', protocol: openai_responses{resume}");
        let config = with(&provider, "");
        assert_eq!(target(&config).provider.protocol, Protocol::OpenaiResponses);
        assert_eq!(target(&config).provider.resume, stored, "{resume}");
    }
}

#[test]
fn settings_of_a_provider_reach_the_model() {
    let config = with(
        "base_url: 'http://localhost:8000/v1/', dialect: vllm, terminal: done_sentinel, \
         headers: {X-Team: blue}, connections: {max: 3, http2: prior_knowledge}, \
         proxy: {url: 'http://proxy:3128', no_proxy: [.internal, 127.0.0.1]}",
        "",
    );
    let provider = &target(&config).provider;
    assert_eq!(provider.endpoint.name, "p");
    assert_eq!(provider.endpoint.base_url, "http://localhost:8000/v1");
    assert_eq!(provider.dialect, Dialect::Vllm);
    assert_eq!(provider.terminal, Terminal::DoneSentinel);
    assert_eq!(provider.headers[0].0, "x-team");
    assert_eq!(provider.headers[0].1, "blue");
    assert_eq!(provider.endpoint.max_connections, 3);
    assert_eq!(provider.endpoint.http2, Http2::PriorKnowledge);
    let proxy = provider.endpoint.proxy.as_ref().unwrap();
    assert_eq!(proxy.url, "http://proxy:3128");
    assert_eq!(proxy.no_proxy, [".internal", "127.0.0.1"]);
}

#[test]
fn every_dialect_has_a_name_and_says_what_completes_a_response() {
    for dialect in Dialect::ALL {
        let name = dialect.name();
        let config = with(&format!("base_url: 'http://h', dialect: {name}"), "");
        let provider = &target(&config).provider;
        assert_eq!(provider.dialect, dialect);
        let terminal = match dialect {
            Dialect::Snowflake => Terminal::DoneSentinel,
            _ => Terminal::FinishReason,
        };
        assert_eq!(provider.terminal, terminal, "{name}");
    }
    let config = with(
        "base_url: 'http://h', dialect: snowflake, terminal: finish_reason",
        "",
    );
    assert_eq!(target(&config).provider.terminal, Terminal::FinishReason);
}

#[test]
fn settings_of_a_route_reach_the_model() {
    let config = with(
        "base_url: 'http://h'",
        "models: ['m-*'], max_message_bytes: 256MiB, max_output_tokens: 12, client_idle: 0, \
         recovery: {max_attempts: 1, deadline: 60000ms, patience: 0, replay: none, \
                    replay_first_token: true, backoff: {base: 10ms, max: 600ms, jitter: 0}, \
                    circuit: {failures: 1, open: 1s}}",
    );
    let route = &config.routes["default"];
    assert_eq!(route.name, "default");
    assert_eq!(route.models, ["m-*"]);
    assert_eq!(route.max_message_bytes, 256 << 20);
    assert_eq!(route.max_output_tokens, 12);
    assert_eq!(route.client_idle, Duration::ZERO);
    assert_eq!(route.policy.max_attempts, 1);
    assert_eq!(route.policy.deadline, Duration::from_secs(60));
    assert_eq!(route.policy.patience, Duration::ZERO);
    assert_eq!(route.policy.replay, Replay::None);
    assert!(route.policy.replay_first_token);
    assert_eq!(route.policy.backoff.base, Duration::from_millis(10));
    assert_eq!(route.policy.backoff.max, Duration::from_millis(600));
    assert!(route.policy.backoff.jitter.abs() < f64::EPSILON);
    assert_eq!(route.policy.circuit.failures, 1);
    assert_eq!(route.policy.circuit.open, Duration::from_secs(1));
    assert_eq!(route.targets[0].name, "p/m");
}

#[test]
fn the_gate_has_a_preset_and_rules_of_its_own() {
    let gate = |gate: &str| {
        let config = with("base_url: 'http://h'", &format!("gate: {gate}"));
        config.routes["default"].gate
    };
    let off = gate("{}");
    assert_eq!((off.preset, off.attempts), (None, Attempts::default()));
    let agent = gate("{preset: agent, max_attempts: 2}");
    assert_eq!(
        (agent.preset, agent.attempts.get()),
        (Some(Preset::Agent), 2)
    );
    // No wrapper is read, so that no answer can be declared final.
    let expected = GatePolicy {
        accept_bare_final: true,
        ..GatePolicy::AGENT
    };
    assert_eq!(agent.policy(Preset::Agent), expected);
    assert_eq!(
        gate("{preset: lenient}").policy(Preset::Lenient),
        GatePolicy::LENIENT
    );
    let own = gate(
        "{preset: agent, accept_bare_final: false, prose_with_tools: true, \
          tool_errors_before_required: false, tool_errors_veto_with_calls: false}",
    );
    let expected = GatePolicy {
        accept_bare_final: false,
        ..GatePolicy::LENIENT
    };
    assert_eq!(own.policy(Preset::Agent), expected);
}

#[test]
fn settings_of_the_process_reach_the_model() {
    let text = minimal_and(
        "\
listen: {grpc: '[::1]:1', admin: '127.0.0.1:2', public: '127.0.0.1:3', max_connections: 4,
  max_streams_per_connection: 5, max_request_bytes: 6KiB, keepalive: {interval: 0, timeout: 7s},
  reflection: true}
retry_budget: {ratio: 1.0, floor: 100000, per: 8s}
telemetry: {traces: {otlp: 'http://otel:4317', sample: parent}, metrics: {prometheus: false},
  logs: {format: text, level: trace}}
limits: {max_total_bytes: 9KiB, retention: 10s}
drain: {grace: 11s}
",
    );
    let config = parse(&text).unwrap();
    assert_eq!(config.listen.grpc.to_string(), "[::1]:1");
    assert_eq!(config.listen.admin.to_string(), "127.0.0.1:2");
    assert_eq!(config.listen.public.to_string(), "127.0.0.1:3");
    assert_eq!(config.listen.max_connections, 4);
    assert_eq!(config.listen.max_streams_per_connection, 5);
    assert_eq!(config.listen.max_request_bytes, 6 << 10);
    assert_eq!(config.listen.keepalive_interval, Duration::ZERO);
    assert_eq!(config.listen.keepalive_timeout, Duration::from_secs(7));
    assert!(config.listen.reflection);
    assert!((config.retry_budget.ratio - 1.0).abs() < f64::EPSILON);
    assert_eq!(config.retry_budget.floor, 100_000);
    assert_eq!(config.retry_budget.per, Duration::from_secs(8));
    assert_eq!(
        config.telemetry.traces_otlp.as_deref(),
        Some("http://otel:4317")
    );
    assert!(!config.telemetry.prometheus);
    assert_eq!(config.telemetry.log_format, LogFormat::Text);
    assert_eq!(config.telemetry.log_level, "trace");
    assert_eq!(config.limits.max_total_bytes, 9 << 10);
    assert_eq!(config.limits.retention, Duration::from_secs(10));
    assert_eq!(config.drain_grace, Duration::from_secs(11));
}

#[test]
fn traces_may_go_to_a_collector_behind_tls() {
    let text = minimal_and("telemetry: {traces: {otlp: 'https://otel:4317'}}\n");
    let config = parse(&text).unwrap();
    assert_eq!(
        config.telemetry.traces_otlp.as_deref(),
        Some("https://otel:4317")
    );
}

#[test]
fn anchors_and_merges_may_be_used() {
    let text = "\
providers: {p: {base_url: 'http://h'}}
routes:
  a: {targets: [{provider: p, model: m}], timers: &slow {connect: 20s, tail: 1s}}
  b: {targets: [{provider: p, model: m}], timers: *slow}
  c: {targets: [{provider: p, model: m}], timers: {<<: *slow, tail: 5s}}
";
    let config = parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    let timers = |route: &str| config.routes[route].targets[0].timers;
    assert_eq!(timers("b"), timers("a"));
    assert_eq!(timers("c").connect, Duration::from_secs(20));
    assert_eq!(timers("c").tail, Duration::from_secs(5));
}

#[test]
fn a_listener_may_leave_its_port_to_the_system() {
    let text =
        minimal_and("listen: {grpc: '127.0.0.1:0', admin: '127.0.0.1:0', public: '127.0.0.1:0'}\n");
    assert!(parse(&text).is_ok());
}
