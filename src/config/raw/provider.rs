//! `providers.*`, as it is written.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{route::Profile, secret::Secret};
use crate::{
    config::value::Count,
    protocol::{self, adapter::ADAPTERS},
};

/// Where a provider is, what it speaks, and with which credentials.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["base_url"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Provider {
    /// What it speaks.
    pub(in crate::config) protocol: Protocol,
    /// Scheme, host and the path that request paths are appended to, such as
    /// `https://api.openai.com/v1`. Required.
    pub(in crate::config) base_url: Option<String>,
    /// Deviations of the server from its protocol.
    pub(in crate::config) dialect: Dialect,
    /// Which timers apply where neither target nor route sets them. Default: hosted for the vendors' own
    /// hosts, self_hosted for any other base_url.
    pub(in crate::config) profile: Option<Profile>,
    /// In order of preference; without any, requests go without a credential.
    pub(in crate::config) credentials: Vec<Credential>,
    /// Fixed extra headers. Credentials do not belong here.
    pub(in crate::config) headers: BTreeMap<String, String>,
    /// Connections to it.
    pub(in crate::config) connections: Connections,
    /// Continue cut-off messages by prefill, where the protocol and dialect have a form for it.
    pub(in crate::config) r#continue: Continue,
    /// Ask the provider to store responses, so that a cut-off one can be read on. Only for
    /// openai_responses.
    pub(in crate::config) resume: Resume,
    /// What completes a response. Default: done_sentinel for the dialect snowflake, finish_reason for all
    /// others.
    pub(in crate::config) terminal: Option<Terminal>,
    /// TLS towards it.
    pub(in crate::config) tls: Tls,
    /// A proxy on the way to it. Proxy settings of the environment are never used.
    pub(in crate::config) proxy: Option<Proxy>,
}

/// What a provider speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = only_built)]
pub(in crate::config) enum Protocol {
    /// OpenAI Chat Completions.
    #[default]
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
    /// Gemini.
    Gemini,
    /// Bedrock ConverseStream.
    BedrockConverse,
    /// Ollama's own.
    Ollama,
}

impl Protocol {
    /// As the contract has it.
    pub(in crate::config) fn of_contract(self) -> protocol::Protocol {
        match self {
            Self::OpenaiChat => protocol::Protocol::OpenaiChat,
            Self::OpenaiResponses => protocol::Protocol::OpenaiResponses,
            Self::AnthropicMessages => protocol::Protocol::AnthropicMessages,
            Self::Gemini => protocol::Protocol::Gemini,
            Self::BedrockConverse => protocol::Protocol::BedrockConverse,
            Self::Ollama => protocol::Protocol::Ollama,
        }
    }
}

/// Leaves the names of protocols that are not built out of the schema.
fn only_built(schema: &mut Schema) {
    let built = |choice: &Value| {
        let mut built = ADAPTERS.iter();
        built.any(|(_, name, _)| choice["const"] == *name)
    };
    if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.retain(built);
    }
}

/// Deviations of a server from its protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Dialect {
    /// The vendor of the protocol, and servers that follow it closely.
    #[default]
    Openai,
    /// Servers that follow the protocol as it was first published.
    Generic,
    /// Azure OpenAI and Foundry.
    Azure,
    /// OpenRouter.
    Openrouter,
    /// Mistral.
    Mistral,
    /// DeepSeek.
    Deepseek,
    /// Groq.
    Groq,
    /// xAI.
    Xai,
    /// Moonshot AI (Kimi).
    Moonshot,
    /// Alibaba Model Studio (DashScope, Qwen).
    Qwen,
    /// Snowflake Cortex.
    Snowflake,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// llama.cpp's server.
    Llamacpp,
    /// Ollama's OpenAI-compatible endpoint.
    Ollama,
}

impl From<Dialect> for protocol::Dialect {
    fn from(raw: Dialect) -> Self {
        match raw {
            Dialect::Openai => Self::Openai,
            Dialect::Generic => Self::Generic,
            Dialect::Azure => Self::Azure,
            Dialect::Openrouter => Self::Openrouter,
            Dialect::Mistral => Self::Mistral,
            Dialect::Deepseek => Self::Deepseek,
            Dialect::Groq => Self::Groq,
            Dialect::Xai => Self::Xai,
            Dialect::Moonshot => Self::Moonshot,
            Dialect::Qwen => Self::Qwen,
            Dialect::Snowflake => Self::Snowflake,
            Dialect::Vllm => Self::Vllm,
            Dialect::Sglang => Self::Sglang,
            Dialect::Llamacpp => Self::Llamacpp,
            Dialect::Ollama => Self::Ollama,
        }
    }
}

/// A named credential.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["name", "api_key"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Credential {
    /// Its name, for logs and the ledger. Required.
    pub(in crate::config) name: Option<String>,
    /// The API key. Required.
    pub(in crate::config) api_key: Option<Secret>,
}

/// Connections to a provider.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Connections {
    /// Connections at most; HTTP/1.1 carries one request each.
    pub(in crate::config) max: Count<1, 10_000, 64>,
    /// How HTTP/2 is used.
    pub(in crate::config) http2: Http2,
}

/// How HTTP/2 is used towards a provider.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Http2 {
    /// Where the server offers it in the TLS handshake.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Off,
    /// Cleartext HTTP/2 without negotiation; on https: HTTP/2 required.
    PriorKnowledge,
}

/// How cut-off messages are continued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Continue {
    /// Not at all.
    #[default]
    Off,
    /// By prefill: the text so far is sent as the beginning of the answer.
    Prefill,
}

/// Whether the provider is asked to store responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Resume {
    /// No.
    #[default]
    Off,
    /// Yes: they can be read on after a cut.
    Stored,
}

/// What completes a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Terminal {
    /// A finish reason.
    FinishReason,
    /// `[DONE]` alone, for servers that never send a finish reason.
    DoneSentinel,
}

/// TLS towards a provider.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Tls {
    /// PEM of further certificate authorities to trust, beside the public ones.
    pub(in crate::config) ca: Option<Secret>,
}

/// A proxy on the way to a provider.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("required" = ["url"]))]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Proxy {
    /// `http://host:port` of a proxy that accepts CONNECT. Required.
    pub(in crate::config) url: Option<String>,
    /// Hosts that are reached directly: exact names, ".suffix", addresses, each with an optional port.
    pub(in crate::config) no_proxy: Vec<String>,
}
