//! Exact error texts: position, key path, message, hints.

use crate::support::*;

#[test]
fn a_file_without_routes() {
    let error = "redrive.yaml:1:1: routes: at least one route is needed, with at least one target";
    assert_eq!(refusal(""), error);
    assert_eq!(refusal("listen: {reflection: true}\n"), error);
    assert_eq!(
        refusal("routes:\n"),
        "redrive.yaml:1:1: routes: at least one route is needed, with at least one target"
    );
}

#[test]
fn a_route_without_targets() {
    assert_eq!(
        refusal("routes:\n  default:\n    client_idle: 1s\n"),
        "redrive.yaml:2:3: routes.default.targets: \
         a route needs at least one target, {provider: NAME, model: NAME}"
    );
}

#[test]
fn a_key_that_is_misspelt_is_told_with_what_may_be_meant() {
    let text = "\
providers:
  openai: {base_url: 'https://api.openai.com/v1'}
routes:
  default:
    targets: [{provider: openai, model: m}]
    timers:
      inter_dleta: 10s
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:7:7: routes.default.timers.inter_dleta: unknown key
  hint: did you mean `inter_delta`?
  hint: keys here: connect, first_token, inter_delta, open_block, no_progress, tail"
    );
}

#[test]
fn a_misspelt_key_is_not_told_as_missing_too() {
    let text = "\
providers:
  openai: {base_ulr: 'https://api.openai.com/v1'}
routes:
  default: {target: [{provider: openai, model: m}]}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:12: providers.openai.base_ulr: unknown key
  hint: did you mean `base_url`?
  hint: keys here: protocol, base_url, dialect, profile, credentials, headers, connections, continue, \
         resume, terminal, tls, proxy
redrive.yaml:4:13: routes.default.target: unknown key
  hint: did you mean `targets`?
  hint: keys here: targets, models, recovery, timers, gate, max_message_bytes, max_output_tokens, client_idle"
    );
}

#[test]
fn a_key_that_stands_there_twice() {
    assert_eq!(
        refusal(&minimal_and("drain: {grace: 1s}\ndrain:\n  grace: 2s\n")),
        "redrive.yaml:6:1: drain: this key stands here twice"
    );
    assert_eq!(
        refusal(&minimal_and("limits:\n  retention: 1s\n  retention: 1s\n")),
        "redrive.yaml:7:3: limits.retention: this key stands here twice"
    );
}

#[test]
fn values_of_the_wrong_type() {
    let text = minimal_and(
        "\
listen:
  grpc: 50051
  reflection: yes
  max_connections: many
  keepalive: 20s
limits:
  retention: 60
drain: {grace: soon}
retry_budget: {ratio: high}
telemetry: [traces]
",
    );
    assert_eq!(
        refusal(&text),
        "redrive.yaml:6:9: listen.grpc: expected a string, found the number 50051
  hint: put it in quotes
redrive.yaml:7:15: listen.reflection: expected true or false, found a string
redrive.yaml:8:20: listen.max_connections: expected a whole number, found a string
redrive.yaml:9:14: listen.keepalive: expected a map, found a string
  hint: keys here: interval, timeout
redrive.yaml:11:14: limits.retention: expected a duration with a unit, such as \"45s\" or \"450ms\", \
         found the number 60
redrive.yaml:12:16: drain.grace: \"soon\" is not a duration; write a number with a unit, such as \
         \"45s\" or \"450ms\"
redrive.yaml:13:23: retry_budget.ratio: expected a number, found a string
redrive.yaml:14:12: telemetry: expected a map, found a list
  hint: keys here: traces, metrics, logs, propagate_to_provider, capture_content, prices"
    );
}

#[test]
fn values_out_of_range() {
    let text = "\
listen: {max_connections: 0, max_request_bytes: 2GiB, keepalive: {timeout: 0}}
providers:
  openai: {base_url: 'https://api.openai.com/v1', connections: {max: 10001}}
routes:
  default:
    targets: [{provider: openai, model: m, context_window: 0, timers: {tail: 11s}}]
    recovery: {max_attempts: 1001, deadline: 0s, backoff: {jitter: 0.26}, circuit: {failures: 0}}
    gate: {max_attempts: 7}
    client_idle: 25h
retry_budget: {ratio: -0.1, floor: -1}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:1:27: listen.max_connections: 0 is out of range: 1 to 65535
redrive.yaml:1:49: listen.max_request_bytes: 2GiB is out of range: 1KiB to 1GiB
redrive.yaml:1:76: listen.keepalive.timeout: 0s is out of range: 1ms to 1h
redrive.yaml:3:70: providers.openai.connections.max: 10001 is out of range: 1 to 10000
redrive.yaml:6:60: routes.default.targets[0].context_window: 0 is out of range: 1 to 1000000000
redrive.yaml:6:78: routes.default.targets[0].timers.tail: 11s is out of range: 0s to 10s
redrive.yaml:7:30: routes.default.recovery.max_attempts: 1001 is out of range: 1 to 500
redrive.yaml:7:46: routes.default.recovery.deadline: 0s is out of range: 1ms to 24h
redrive.yaml:7:68: routes.default.recovery.backoff.jitter: 0.26 is out of range: 0 to 0.25
redrive.yaml:7:95: routes.default.recovery.circuit.failures: 0 is out of range: 1 to 1000
redrive.yaml:8:26: routes.default.gate.max_attempts: 7 is out of range: 1 to 6
redrive.yaml:9:18: routes.default.client_idle: 25h is out of range: 0s to 24h
redrive.yaml:10:23: retry_budget.ratio: -0.1 is out of range: 0 to 1
redrive.yaml:10:36: retry_budget.floor: -1 is out of range: 0 to 1000000"
    );
}

#[test]
fn sizes_that_are_none() {
    for (written, told) in [
        ("3MB", "\"3MB\""),
        ("'-1'", "\"-1\""),
        ("1.5MiB", "\"1.5MiB\""),
        ("99999999999TiB", "\"99999999999TiB\""),
    ] {
        assert_eq!(
            refusal(&minimal_and(&format!(
                "limits: {{max_total_bytes: {written}}}\n"
            ))),
            format!(
                "redrive.yaml:5:27: limits.max_total_bytes: {told} is not a size; write a whole number \
                 of B, KiB, MiB or GiB, such as \"16MiB\""
            )
        );
    }
}

#[test]
fn a_value_that_no_version_knows() {
    let text = "\
providers: {p: {base_url: 'http://h', dialect: opennai}}
routes: {r: {targets: [{provider: p, model: m}]}}
telemetry: {logs: {level: inof}}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:1:48: providers.p.dialect: \"opennai\" is not one of the values here
  hint: did you mean `openai`?
  hint: known values: openai, generic, azure, openrouter, mistral, deepseek, groq, xai, moonshot, qwen, snowflake, vllm, sglang, llamacpp, ollama
redrive.yaml:3:27: telemetry.logs.level: \"inof\" is not one of the values here
  hint: did you mean `info`?
  hint: known values: error, warn, info, debug, trace"
    );
}

#[test]
fn names_that_lead_nowhere() {
    let text = "\
providers:
  openai: {base_url: 'https://api.openai.com/v1'}
routes:
  default:
    targets:
      - {provider: opneai, model: m}
      - {model: m}
      - {provider: openai}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:6:20: routes.default.targets[0].provider: there is no provider \"opneai\"
  hint: did you mean `openai`?
  hint: providers: openai
redrive.yaml:7:9: routes.default.targets[1].provider: a target needs the name of a provider
redrive.yaml:8:9: routes.default.targets[2].model: a target needs a model, as the provider names it"
    );
}

#[test]
fn names_that_stand_there_twice() {
    let text = "\
providers:
  openai:
    base_url: 'https://api.openai.com/v1'
    credentials:
      - {name: main, api_key: {env: OPENAI_API_KEY}}
      - {name: main, api_key: {env: OPENAI_API_KEY}}
routes:
  default: {targets: [{provider: openai, model: m}, {provider: openai, model: m}]}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:6:16: providers.openai.credentials[1].name: credentials[0] has the same name
redrive.yaml:8:53: routes.default.targets[1]: targets[0] is the same provider and model"
    );
}

#[test]
fn names_that_would_not_do_as_labels() {
    let text = "\
providers:
  open/ai: {base_url: 'http://h', credentials: [{name: 'my key', api_key: {env: OPENAI_API_KEY}}]}
routes:
  '': {targets: [{provider: open/ai, model: 'a b'}], models: ['']}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:12: providers.\"open/ai\": a name is 1 to 64 letters, digits, `-`, `_` or `.`
redrive.yaml:2:56: providers.\"open/ai\".credentials[0].name: a name is 1 to 64 letters, digits, `-`, \
         `_` or `.`
redrive.yaml:4:7: routes.\"\": a name is 1 to 64 letters, digits, `-`, `_` or `.`
redrive.yaml:4:45: routes.\"\".targets[0].model: the name of a model is 1 to 256 bytes without spaces
redrive.yaml:4:63: routes.\"\".models[0]: the name of a model is 1 to 256 bytes without spaces"
    );
}

#[test]
fn addresses_that_cannot_be_listened_on() {
    let text = minimal_and(
        "\
listen:
  grpc: localhost:50051
  admin: 0.0.0.0:15090
  public: 0.0.0.0:15090
",
    );
    assert_eq!(
        refusal(&text),
        "redrive.yaml:6:9: listen.grpc: expected an IP address and a port, such as 127.0.0.1:50051 or \
         [::1]:50051
redrive.yaml:7:10: listen.admin: the admin listener must be on a loopback address, such as \
         127.0.0.1:15091
redrive.yaml:8:11: listen.public: the same address as listen.admin"
    );
}

#[test]
fn urls_that_cannot_be_used_are_refused_without_repeating_them() {
    for (url, told) in [
        (
            "api.openai.com/v1",
            "expected a URL that begins with http:// or https://",
        ),
        (
            "ftp://host/v1",
            "expected a URL that begins with http:// or https://",
        ),
        (
            "https://",
            "expected a URL that begins with http:// or https://",
        ),
        ("", "expected a URL that begins with http:// or https://"),
        (
            "https://user:pa55@host/v1",
            "credentials do not belong in a URL",
        ),
        (
            "https://host/v1?key=k",
            "a URL here has neither query nor fragment",
        ),
        (
            "https://host/v1#x",
            "a URL here has neither query nor fragment",
        ),
    ] {
        let text = format!(
            "providers:\n  p: {{base_url: '{url}'}}\nroutes: {{r: {{targets: [{{provider: p, model: m}}]}}}}"
        );
        assert_eq!(
            refusal(&text),
            format!("redrive.yaml:2:17: providers.p.base_url: {told}")
        );
    }
}

#[test]
fn a_provider_without_an_address_is_never_guessed() {
    assert_eq!(
        refusal("providers:\n  vllm:\nroutes: {r: {targets: [{provider: vllm, model: m}]}}"),
        "redrive.yaml:2:3: providers.vllm.base_url: a provider needs a base_url, such as \
         \"https://api.openai.com/v1\""
    );
}

#[test]
fn a_collector_that_cannot_be_reached_by_its_url() {
    for url in ["otel-collector:4317", "grpc://otel:4317", "http://"] {
        assert_eq!(
            refusal(&minimal_and(&format!(
                "telemetry: {{traces: {{otlp: '{url}'}}}}\n"
            ))),
            "redrive.yaml:5:28: telemetry.traces.otlp: expected a URL such as \
             \"http://otel-collector:4317\""
        );
    }
}

#[test]
fn a_proxy_that_cannot_be_used() {
    let text = "\
providers:
  a: {base_url: 'http://h', proxy: {url: 'socks5://p:1'}}
  b: {base_url: 'http://h', proxy: {no_proxy: ['a b']}}
  c: {base_url: 'http://h', proxy: {url: 'http://p:1', no_proxy: ['a b']}}
routes: {r: {targets: [{provider: a, model: m}]}}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:42: providers.a.proxy.url: expected a URL that begins with http://
redrive.yaml:3:29: providers.b.proxy.url: a proxy needs a url, such as \"http://proxy:3128\"
redrive.yaml:4:67: providers.c.proxy.no_proxy[0]: expected a host, a \".suffix\" or an address"
    );
}

#[test]
fn headers_that_are_not_for_the_configuration_to_set() {
    let text = "\
providers:
  p:
    base_url: 'http://h'
    headers: {Host: x, Authorization: 'Bearer sk-inline', 'a b': x, X-Line: \"a\\nb\", X-Number: 1}
routes: {r: {targets: [{provider: p, model: m}]}}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:4:21: providers.p.headers.Host: this header is set by the sidecar
redrive.yaml:4:39: providers.p.headers.Authorization: credentials belong under `credentials`, as \
         references
redrive.yaml:4:66: providers.p.headers.\"a b\": not a header name
redrive.yaml:4:77: providers.p.headers.X-Line: characters that cannot be sent in a header
redrive.yaml:4:95: providers.p.headers.X-Number: expected a string, found the number 1
  hint: put it in quotes"
    );
}

#[test]
fn a_backoff_that_starts_above_its_end() {
    let text = "\
providers: {p: {base_url: 'http://h'}}
routes: {r: {targets: [{provider: p, model: m}], recovery: {backoff: {base: 61s}}}}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:77: routes.r.recovery.backoff.base: backoff.base must not be longer than \
         backoff.max"
    );
}

#[test]
fn an_element_at_fault_does_not_move_the_others() {
    let text = "\
providers: {p: {base_url: 'http://h'}}
routes:
  r:
    targets:
      - p/m
      - {provider: q, model: m}
    models:
      - 4
      - ''
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:5:9: routes.r.targets[0]: expected a map, found a string
  hint: keys here: provider, model, context_window, timers
redrive.yaml:6:20: routes.r.targets[1].provider: there is no provider \"q\"
  hint: providers: p
redrive.yaml:8:9: routes.r.models[0]: expected a string, found the number 4
  hint: put it in quotes
redrive.yaml:9:9: routes.r.models[1]: the name of a model is 1 to 256 bytes without spaces"
    );
}

#[test]
fn a_provider_at_fault_does_not_leave_its_targets_dangling() {
    let text = "\
providers:
  openai: https://api.openai.com/v1
routes:
  default: {targets: [{provider: openai, model: m}]}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:11: providers.openai: expected a map, found a string
  hint: keys here: protocol, base_url, dialect, profile, credentials, headers, connections, continue, \
         resume, terminal, tls, proxy"
    );
}

#[test]
fn what_is_not_yaml() {
    for (text, told) in [
        (
            "routes: [",
            "1:9: not readable as YAML: unclosed bracket '['",
        ),
        (
            "a: *b",
            "1:4: not readable as YAML: reference to unknown value",
        ),
        (
            "listen:\n\tgrpc: x",
            "2:2: not readable as YAML: tabs disallowed within this context (block indentation)",
        ),
        (
            "listen: {}\n---\nlisten: {}\n",
            "3:1: not readable as YAML: only single YAML document expected but multiple found",
        ),
        (
            "listen: !secret x",
            "1:17: not readable as YAML: unsupported tag `!secret`",
        ),
        (
            "- listen",
            "1:1: expected a map, found a list\n  hint: keys here: listen, providers, routes, budgets, \
             engines, retry_budget, telemetry, limits, drain",
        ),
    ] {
        assert_eq!(refusal(text), format!("redrive.yaml:{told}"), "{text}");
    }
}

#[test]
fn no_more_than_a_hundred_errors_are_told() {
    let mut text = String::new();
    for n in 0..300 {
        text.push_str(&format!("key{n}: x\n"));
    }
    assert_eq!(parse(&text).unwrap_err().errors().len(), 100);

    let mut text = String::from("routes:\n");
    for n in 0..300 {
        text.push_str(&format!("  route{n}: {{}}\n"));
    }
    assert_eq!(parse(&text).unwrap_err().errors().len(), 100);
}

#[test]
fn an_unknown_key_without_a_value() {
    assert_eq!(
        refusal(&minimal_and("drian:\n")),
        "redrive.yaml:5:1: drian: unknown key
  hint: did you mean `drain`?
  hint: keys here: listen, providers, routes, budgets, engines, retry_budget, telemetry, limits, drain"
    );
}

#[test]
fn long_texts_are_not_repeated_whole() {
    let long = "x".repeat(10_000);
    let error = refusal(&minimal_and(&format!(
        "drain: {{grace: {long}, {long}: 1}}\n"
    )));
    assert!(error.len() < 500, "{error}");
    let error = refusal(&format!("drain: !{long} x\n"));
    assert!(error.len() < 500, "{error}");
}

#[test]
fn continuing_where_the_server_has_no_form_for_it_or_begins_a_new_answer() {
    for (dialect, column) in [("openai", 56), ("azure", 55)] {
        let text = format!(
            "providers:
  p: {{base_url: 'http://h', dialect: {dialect}, continue: prefill}}
routes:
  default: {{targets: [{{provider: p, model: m}}]}}
"
        );
        assert_eq!(
            refusal(&text),
            format!(
                "redrive.yaml:2:{column}: providers.p.continue: `prefill` has no form in this protocol and \
                 dialect, or is known to begin a new answer there"
            )
        );
    }
}

#[test]
fn stored_responses_of_a_protocol_that_has_none() {
    let text = "\
providers:
  p: {base_url: 'http://h', resume: stored}
routes:
  default: {targets: [{provider: p, model: m}]}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:37: providers.p.resume: only `protocol: openai_responses` has responses that can be stored"
    );
}

#[test]
fn presets_and_rules_of_the_gate_that_there_are_not() {
    let text = "\
providers:
  p: {base_url: 'http://h'}
routes:
  a:
    targets: [{provider: p, model: m}]
    gate: {preset: agnt}
  b:
    targets: [{provider: p, model: m}]
    gate: {accept_bare: true}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:6:20: routes.a.gate.preset: \"agnt\" is not one of the values here
  hint: did you mean `agent`?
  hint: known values: off, agent, lenient
redrive.yaml:9:12: routes.b.gate.accept_bare: unknown key
  hint: keys here: preset, max_attempts, prose_with_tools, accept_bare_final, tool_errors_before_required, tool_errors_veto_with_calls"
    );
}
