//! `redrive check` and `redrive schema`.

use std::path::PathBuf;

use clap::{Args, Command, FromArgMatches};
use redrive::cli::{
    check::{self, CheckArgs},
    schema::{self, SchemaArgs},
};

use crate::support::*;

/// Exit code, standard output and standard error of `check`.
fn check(text: &str, no_secrets: bool, environment: Scripted) -> (u8, String, String) {
    let args = CheckArgs {
        file: PathBuf::from("redrive.yaml"),
        no_secrets,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let environment = environment.file("redrive.yaml", text);
    let code = check::run(&args, &environment, &mut out, &mut err).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

#[test]
fn check_tells_what_a_file_amounts_to() {
    let text = "\
listen: {grpc: '0.0.0.0:50051'}
providers:
  openai:
    base_url: https://api.openai.com/v1
    credentials: [{name: main, api_key: {env: OPENAI_API_KEY}}]
  local: {base_url: 'http://localhost:8000/v1', dialect: vllm}
routes:
  default:
    targets:
      - {provider: openai, model: gpt-5-mini, timers: {tail: 0}}
      - {provider: local, model: qwen}
    models: ['gpt-5-*', qwen]
  once:
    targets: [{provider: local, model: qwen}]
    recovery: {replay: none, deadline: 1500ms}
";
    let (code, out, err) = check(text, false, environment());
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "\
redrive.yaml can be used.

listens on 0.0.0.0:50051 (gRPC), 127.0.0.1:15091 (admin), 0.0.0.0:15090 (health, metrics)
  note: other hosts can reach gRPC, which asks for no credentials

route default: at most 11 attempts within 600s
  clients may ask for gpt-5-*, qwen
  1. openai/gpt-5-mini
     at https://api.openai.com/v1, dialect openai, credentials main
     connect 10s, first_token 600s, inter_delta 45s, open_block 300s, no_progress 300s, tail off
  2. local/qwen
     at http://localhost:8000/v1, dialect vllm, no credentials
     connect 10s, first_token 1800s, inter_delta 600s, open_block 600s, no_progress 1200s, tail 2s

route once: at most 1 attempt within 1s 500ms
  1. local/qwen
     at http://localhost:8000/v1, dialect vllm, no credentials
     connect 10s, first_token 1800s, inter_delta 600s, open_block 600s, no_progress 1200s, tail 2s
"
    );
}

#[test]
fn check_tells_the_limits_too() {
    let text = "\
listen: {admission: {per_connection: {streams: 100}, per_label: {label: tenant, streams: 60, per: 60s, burst: 5}}}
providers: {openai: {base_url: 'https://api.openai.com/v1'}}
routes: {default: {targets: [{provider: openai, model: gpt-5-mini}]}}
budgets:
  - name: main
    match: {provider: openai, target: 'openai/gpt-*', label.tenant: gold}
    requests: [{limit: 500, window: 60s}, {limit: 20, window: 500ms}]
    output_tokens: [{limit: 40000, window: 60s}]
    daily: {requests: 10000, zone: America/Los_Angeles}
    fairness: {label: tenant, weights: {gold: 3}}
    smoothing: {requests: 60, per: 30s}
  - {name: all, match: {}, concurrent: 64}
  - {name: ours, match: {}, refund: input_only, input_tokens: [{limit: 10000, window: 60s}]}
";
    let (code, out, err) = check(text, false, environment());
    assert_eq!((code, err.as_str()), (0, ""));
    let at = |text| {
        out.find(text)
            .unwrap_or_else(|| panic!("no {text:?} in {out}"))
    };
    at("(health, metrics)
  streams per connection: 100 in 1s, 100 at once
  streams per tenant: 60 in 60s, 5 at once

route default");
    let budgets = at("
budget main: provider openai, target openai/gpt-*, label.tenant gold
  500 requests in any 60s
  20 requests in any 500ms
  40000 output tokens in any 60s
  10000 requests a day (America/Los_Angeles)
  reserved tokens that were not used stay taken
  fair between the values of tenant
  paced: 60 in 30s, 1 at once

budget all: everything
  64 at a time

budget ours: everything
  10000 input tokens in any 60s
  reserved tokens that were not used come back, of prompts alone
");
    assert!(budgets > at("route default"));
}

#[test]
fn check_tells_everything_that_is_wrong_on_standard_error() {
    let (code, out, err) = check("listne: {}\n", false, environment());
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "redrive.yaml:1:1: listne: unknown key
  hint: did you mean `listen`?
  hint: keys here: listen, providers, routes, budgets, engines, retry_budget, telemetry, limits, drain
"
    );
}

#[test]
fn check_reads_secrets_unless_told_not_to() {
    let text = "\
providers: {p: {base_url: 'http://h', credentials: [{name: main, api_key: {env: NOT_HERE}}]}}
routes: {r: {targets: [{provider: p, model: m}]}}
";
    let (code, _, err) = check(text, false, environment());
    assert_eq!(code, 2);
    assert!(
        err.contains("environment variable \"NOT_HERE\" is not set"),
        "{err}"
    );
    assert_eq!(check(text, true, environment()).0, 0);
}

#[test]
fn schema_prints_one_json_document() {
    let mut out = Vec::new();
    assert_eq!(schema::run(&SchemaArgs {}, &mut out).unwrap(), 0);
    let printed: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(printed, redrive::config::schema());
    assert!(out.ends_with(b"}\n"));
}

#[test]
fn the_arguments_of_check_are_a_file_and_a_switch() {
    let command = CheckArgs::augment_args(Command::new("check"));
    let matches = command
        .clone()
        .get_matches_from(["check", "--no-secrets", "f.yaml"]);
    let args = CheckArgs::from_arg_matches(&matches).unwrap();
    assert_eq!(args.file, PathBuf::from("f.yaml"));
    assert!(args.no_secrets);
    assert!(command.try_get_matches_from(["check"]).is_err());
}

#[test]
fn check_tells_the_engine_and_its_warnings() {
    let budgets = "budgets: [{name: main, match: {}, engine: redis, concurrent: 5}]\n";
    let lines = |engine: &str| {
        let text = minimal_and(&format!("engines: {{redis: {{{engine}}}}}\n{budgets}"));
        let (code, out, err) = check(&text, false, environment().variable("P", "hunter2"));
        assert_eq!((code, err.as_str()), (0, ""));
        out.split_once("\nbudget ").unwrap().1.to_owned()
    };
    assert_eq!(
        lines("url: 'rediss://valkey:6379', username: redrive, password: {env: P}"),
        "\
main: everything, counted for all pods together
  5 at a time

engine redis: rediss://valkey:6379, domain default, user redrive
  answers within 100ms; while it is lost, nothing is sent
"
    );
}
