//! The published schema, the example and the documentation know the same keys as the contract.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::*;

const EXAMPLE: &str = include_str!("../../examples/redrive.yaml");
const DOCUMENTATION: &str = include_str!("../../docs/configuration.md");

/// The key paths of the contract. `*` stands for any name, `[]` for an element of a list.
const CONTRACT: &str = "
    listen.grpc listen.admin listen.public listen.tls listen.token listen.max_connections
    listen.max_streams_per_connection listen.max_request_bytes listen.keepalive.interval
    listen.keepalive.timeout
    providers.*.protocol providers.*.base_url providers.*.dialect providers.*.profile
    providers.*.credentials[].name providers.*.credentials[].api_key providers.*.headers.*
    providers.*.connections.max providers.*.connections.http2 providers.*.continue
    providers.*.terminal
    routes.*.targets[].provider routes.*.targets[].model routes.*.targets[].context_window
    routes.*.targets[].timers.connect routes.*.targets[].timers.first_token
    routes.*.targets[].timers.inter_delta routes.*.targets[].timers.open_block
    routes.*.targets[].timers.no_progress routes.*.targets[].timers.tail
    routes.*.models[] routes.*.recovery.max_attempts routes.*.recovery.deadline
    routes.*.recovery.patience routes.*.recovery.replay routes.*.recovery.replay_first_token
    routes.*.recovery.backoff.base routes.*.recovery.backoff.max routes.*.recovery.backoff.jitter
    routes.*.recovery.circuit.failures routes.*.recovery.circuit.open
    routes.*.timers.connect routes.*.timers.first_token routes.*.timers.inter_delta
    routes.*.timers.open_block routes.*.timers.no_progress routes.*.timers.tail
    routes.*.gate.preset routes.*.gate.max_attempts routes.*.max_message_bytes routes.*.client_idle
    budgets[].name budgets[].match.provider budgets[].match.credential budgets[].match.target
    budgets[].match.route budgets[].match.label.* budgets[].engine
    budgets[].requests[].limit budgets[].requests[].window
    budgets[].input_tokens[].limit budgets[].input_tokens[].window
    budgets[].output_tokens[].limit budgets[].output_tokens[].window
    budgets[].concurrent budgets[].daily.requests budgets[].daily.zone budgets[].refund
    engines.redis.url engines.redis.username engines.redis.password engines.redis.on_loss
    engines.redis.timeout
    retry_budget.ratio retry_budget.floor retry_budget.per
    telemetry.traces.otlp telemetry.traces.sample telemetry.metrics.prometheus
    telemetry.metrics.otlp telemetry.logs.format telemetry.logs.level
    telemetry.propagate_to_provider telemetry.capture_content telemetry.prices
    limits.max_total_bytes limits.retention drain.grace";

/// What this project adds to it.
const ADDED: &str = "
    listen.admission.per_connection.streams listen.admission.per_connection.per
    listen.admission.per_connection.burst listen.admission.per_label.label
    listen.admission.per_label.streams listen.admission.per_label.per listen.admission.per_label.burst
    routes.*.max_output_tokens
    routes.*.gate.prose_with_tools routes.*.gate.accept_bare_final
    routes.*.gate.tool_errors_before_required routes.*.gate.tool_errors_veto_with_calls
    budgets[].daily.input_tokens budgets[].daily.output_tokens budgets[].margin
    budgets[].max_waiting budgets[].bytes_per_token budgets[].fairness.label
    budgets[].fairness.weights.* budgets[].fairness.default_weight budgets[].smoothing.requests
    budgets[].smoothing.per budgets[].smoothing.burst
    engines.redis.cluster[] engines.redis.sentinel.master engines.redis.sentinel.urls[]
    engines.redis.ca engines.redis.domain engines.redis.local_share.fraction
    engines.redis.local_share.max_pods
    listen.reflection providers.*.resume providers.*.tls.ca providers.*.proxy.url providers.*.proxy.no_proxy[]";

fn known() -> BTreeSet<String> {
    CONTRACT
        .split_whitespace()
        .chain(ADDED.split_whitespace())
        .map(str::to_owned)
        .collect()
}

/// Collects the paths of all values in the schema that hold no further keys of ours.
fn paths(root: &Value, schema: &Value, path: &str, into: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = root.pointer(name.trim_start_matches('#')).unwrap();
        return paths(root, definition, path, into);
    }
    if let Some(choices) = schema["anyOf"].as_array()
        && let Some(object) = choices.iter().find(|choice| choice["$ref"].is_string())
    {
        return paths(root, object, path, into);
    }
    if let Some(keys) = schema["properties"].as_object() {
        assert_eq!(schema["additionalProperties"], false, "{path} is closed");
        for (key, schema) in keys {
            let inner = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            assert!(schema["description"].is_string(), "{inner} is described");
            paths(root, schema, &inner, into);
        }
        if let Some(pattern) = schema["patternProperties"].as_object() {
            let keys: Vec<&String> = pattern.keys().collect();
            assert_eq!(keys, [r"^label\..+$"], "of {path}");
            into.insert(format!("{path}.label.*"));
        }
    } else if schema["additionalProperties"].is_object() {
        paths(
            root,
            &schema["additionalProperties"],
            &format!("{path}.*"),
            into,
        );
    } else if schema["items"].is_object() {
        paths(root, &schema["items"], &format!("{path}[]"), into);
    } else {
        into.insert(path.to_owned());
    }
}

#[test]
fn the_schema_has_every_key_of_the_contract_closed_and_described() {
    let schema = redrive::config::schema();
    let mut found = BTreeSet::new();
    paths(&schema, &schema, "", &mut found);
    assert_eq!(found, known());
}

#[test]
fn the_parser_knows_every_key() {
    for path in known() {
        // Nested flow maps, each around the next key; a key without a value has its default.
        let mut text = String::from("~");
        // A label is one key, with a dot in it.
        let path = path.replace(".label.*", ".label/*");
        for key in path.rsplit('.') {
            let (key, list) = match key.strip_suffix("[]") {
                Some(key) => (key, true),
                None => (key, false),
            };
            let value = if list { format!("[{text}]") } else { text };
            text = format!("{{{}: {value}}}", key.replace('*', "any").replace('/', "."));
        }
        let errors = refusal(&text);
        assert!(!errors.contains("unknown key"), "{path}: {errors}");
    }
}

#[test]
fn the_documentation_has_every_key() {
    for path in known() {
        assert!(
            DOCUMENTATION.contains(&format!("| `{path}` |")),
            "{path} has a row"
        );
    }
}

#[test]
fn the_documentation_has_no_other_key() {
    let keys = DOCUMENTATION
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(key, _)| key.to_owned());
    for key in keys {
        assert!(known().contains(&key), "{key} is a key");
    }
}

#[test]
fn the_example_has_every_key() {
    for path in known() {
        let key = path.trim_end_matches("[]").trim_end_matches(".*");
        let key = key.rsplit('.').next().unwrap();
        assert!(
            EXAMPLE.contains(&format!("{key}:")),
            "{path} stands in the example"
        );
    }
}

#[test]
fn the_defaults_in_the_schema_are_those_in_force() {
    let schema = redrive::config::schema();
    let default = |path: &str| schema.pointer(path).unwrap().clone();
    assert_eq!(
        default("/$defs/Listen/properties/grpc/default"),
        "127.0.0.1:50051"
    );
    assert_eq!(
        default("/$defs/Listen/properties/max_request_bytes/default"),
        "16MiB"
    );
    assert_eq!(
        default("/$defs/Recovery/properties/deadline/default"),
        "600s"
    );
    assert_eq!(
        default("/$defs/Recovery/properties/max_attempts/default"),
        11
    );
    assert_eq!(default("/$defs/Backoff/properties/jitter/default"), 0.25);

    // All of them at once, written back as a file, are the smallest file.
    let mut file = serde_json::Map::new();
    for (key, schema) in schema["properties"].as_object().unwrap() {
        file.insert(key.clone(), schema["default"].clone());
    }
    let minimal: Value = serde_json::json!({
        "providers": {"openai": {"base_url": "https://api.openai.com/v1"}},
        "routes": {"default": {"targets": [{"provider": "openai", "model": "m"}]}},
    });
    for (key, value) in minimal.as_object().unwrap() {
        file.insert(key.clone(), value.clone());
    }
    let written = serde_json::to_string(&file).unwrap();
    assert_eq!(
        format!("{:?}", parse(&written).unwrap()),
        format!("{:?}", parse(MINIMAL).unwrap())
    );
}

#[test]
fn the_schema_leaves_out_what_is_not_available() {
    let schema = redrive::config::schema().to_string();
    for later in ["bedrock_converse", "gemini"] {
        assert!(!schema.contains(&format!("\"const\":{later:?}")), "{later}");
        assert!(!schema.contains(&format!("[{later:?}")), "{later}");
    }
    for built in [
        "openai_chat",
        "anthropic_messages",
        "sglang",
        "redis",
        "agent",
    ] {
        assert!(schema.contains(&format!("\"const\":{built:?}")), "{built}");
    }
}
