//! What the client asks, and of which sidecar.

use redrive::proto::{
    Conversation, Delivery as Shown, NativeBody, Protocol as Native, Start, Tool, ToolChoice,
    start::Input, tool_choice,
};
use serde_json::{Value, json};

use crate::{
    scenario::{Delivery, Policy, Protocol, Scenario},
    support::*,
};

const PROVIDERS: &str = "\
providers:
  chat: {base_url: 'http://a.test/v1', profile: hosted}
  prefill: {base_url: 'http://p.test/v1', profile: hosted, dialect: deepseek, continue: prefill}
  messages: {protocol: anthropic_messages, base_url: 'http://c.test/v1', profile: hosted}
  responses: {protocol: openai_responses, base_url: 'http://r.test/v1', profile: hosted}
";

const QUESTION: &str = "What is in a.txt?";

/// Of the tool `read`: its `path` is a text and required.
const SCHEMA: &str =
    r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;

/// A route of one target at a provider of `protocol`.
pub fn config(scenario: &Scenario, protocol: Protocol, policy: Policy) -> String {
    let gate = match policy {
        Policy::Agent => "preset: agent",
        Policy::Lenient => "preset: lenient",
        Policy::Strict => "preset: agent, accept_bare_final: false",
    };
    let allowance = scenario.allowance;
    let allowance = allowance.map(|attempts| format!("max_attempts: {attempts}, "));
    let (provider, allowance) = (protocol.as_str(), allowance.unwrap_or_default());
    format!(
        "{PROVIDERS}\
routes:
  default:
    targets: [{{provider: {provider}, model: m}}]
    recovery: {{{allowance}backoff: {{jitter: 0}}}}
    gate: {{{gate}}}
"
    )
}

/// The question.
pub fn ask(scenario: &Scenario, protocol: Protocol, delivery: Delivery) -> Start {
    let input = match delivery {
        Delivery::Native => Input::Native(native(scenario, protocol)),
        _ => Input::Conversation(conversation_of(scenario)),
    };
    let shown = match delivery {
        Delivery::CommittedOnly => Shown::CommittedOnly,
        Delivery::NoReset => Shown::PreviewNoReset,
        Delivery::Preview | Delivery::Effects | Delivery::Native => Shown::Preview,
    };
    Start {
        input: Some(input),
        ..start_delivered(shown)
    }
}

fn conversation_of(scenario: &Scenario) -> Conversation {
    let read = Tool {
        name: "read".into(),
        parameters_json: SCHEMA.into(),
        ..Tool::default()
    };
    Conversation {
        tools: scenario.offers.then_some(read).into_iter().collect(),
        tool_choice: scenario.demands.then(|| ToolChoice {
            mode: tool_choice::Mode::Required.into(),
            ..ToolChoice::default()
        }),
        ..conversation(QUESTION)
    }
}

fn native(scenario: &Scenario, protocol: Protocol) -> NativeBody {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let messages = json!([{"role": "user", "content": QUESTION}]);
    let choice = if scenario.demands { "required" } else { "auto" };
    let (protocol, body) = match protocol {
        Protocol::Chat | Protocol::Prefill => (
            Native::OpenaiChat,
            json!({
                "messages": messages,
                "tools": [{"type": "function", "function": {"name": "read", "parameters": schema}}],
                "tool_choice": choice,
            }),
        ),
        Protocol::Messages => (
            Native::AnthropicMessages,
            json!({
                "max_tokens": 1024,
                "messages": messages,
                "tools": [{"name": "read", "input_schema": schema}],
                "tool_choice": {"type": if scenario.demands { "any" } else { "auto" }},
            }),
        ),
        Protocol::Responses => (
            Native::OpenaiResponses,
            json!({
                "input": QUESTION,
                "tools": [{"type": "function", "name": "read", "parameters": schema}],
                "tool_choice": choice,
            }),
        ),
    };
    NativeBody {
        protocol: protocol.into(),
        json: body.to_string().into(),
    }
}
