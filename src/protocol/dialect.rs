//! The dialects of the provider protocols, by name.

/// Deviations of a server from the protocol it speaks. Settings of one adapter, not copies of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
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
    /// Moonshot AI, the Kimi models.
    Moonshot,
    /// Alibaba Model Studio (DashScope), the Qwen models.
    Qwen,
    /// Snowflake Cortex.
    Snowflake,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// llama.cpp's server.
    Llamacpp,
    /// Ollama, its OpenAI-compatible endpoint.
    Ollama,
}

impl Dialect {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::Openai,
        Self::Generic,
        Self::Azure,
        Self::Openrouter,
        Self::Mistral,
        Self::Deepseek,
        Self::Groq,
        Self::Xai,
        Self::Moonshot,
        Self::Qwen,
        Self::Snowflake,
        Self::Vllm,
        Self::Sglang,
        Self::Llamacpp,
        Self::Ollama,
    ];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Generic => "generic",
            Self::Azure => "azure",
            Self::Openrouter => "openrouter",
            Self::Mistral => "mistral",
            Self::Deepseek => "deepseek",
            Self::Groq => "groq",
            Self::Xai => "xai",
            Self::Moonshot => "moonshot",
            Self::Qwen => "qwen",
            Self::Snowflake => "snowflake",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Llamacpp => "llamacpp",
            Self::Ollama => "ollama",
        }
    }
}
