//! What the contract names and this version does not do: refused, never ignored.

use crate::support::*;

#[test]
fn what_is_not_available_in_this_version_is_refused_by_name() {
    let text = "\
listen:
  grpc: unix:/run/redrive/redrive.sock
  tls: {cert: {file: tls.crt}, key: {file: tls.key}, client_ca: {file: ca.crt}}
  token: {file: token}
providers:
  a: {base_url: 'https://a.example/v1', protocol: bedrock_converse}
  b: {base_url: 'https://b.example/v1'}
routes:
  default:
    targets: [{provider: a, model: m}]
  other:
    targets: [{provider: b, model: m}]
telemetry:
  metrics: {otlp: 'http://collector:4317'}
  propagate_to_provider: true
  capture_content: true
  prices: {a/m: {input_per_million: 0.25}}
";
    assert_eq!(
        refusal(text),
        "redrive.yaml:2:9: listen.grpc: Unix sockets are not available in this version
redrive.yaml:3:8: listen.tls: not available in this version
redrive.yaml:4:10: listen.token: not available in this version
redrive.yaml:6:51: providers.a.protocol: `bedrock_converse` is not available in this version
redrive.yaml:14:19: telemetry.metrics.otlp: not available in this version
redrive.yaml:15:26: telemetry.propagate_to_provider: `true` is not available in this version
redrive.yaml:16:20: telemetry.capture_content: `true` is not available in this version
redrive.yaml:17:11: telemetry.prices: not available in this version"
    );
}

#[test]
fn every_other_protocol_of_the_contract_is_refused_by_name() {
    let later = ["gemini", "bedrock_converse", "ollama"];
    for value in later {
        let text = format!(
            "providers: {{p: {{base_url: 'http://h', protocol: {value}}}}}
routes: {{r: {{targets: [{{provider: p, model: m}}]}}}}"
        );
        let error = format!("providers.p.protocol: `{value}` is not available in this version");
        assert!(refusal(&text).contains(&error), "{}", refusal(&text));
    }
}
