//! What each dialect changes in a request. One table; nothing else in this folder asks which dialect
//! it is. Streams are decoded alike: what one server does is tolerated from all.
//!
//! Facts are from the vendors' API references and the servers' sources, as named beside each row.

use crate::protocol::Dialect;

/// What a server wants written otherwise, or cannot be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Where the credential goes.
    pub(super) credential: CredentialHeader,
    /// The member that bounds the tokens of an answer.
    pub(super) max_tokens: &'static str,
    /// How earlier reasoning goes back, where the server reads it.
    pub(super) reasoning: ReasoningForm,
    /// How a PDF is sent.
    pub(super) pdf: Pdf,
    /// How the rest of a cut-off message is asked for, where the server continues one.
    pub(super) continuation: Option<Continuation>,
}

/// Where the credential goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialHeader {
    /// `authorization: Bearer …`.
    Bearer,
    /// `api-key: …`. A bearer token on such a server is another kind of credential.
    ApiKey,
}

/// Where the reasoning of an earlier answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningForm {
    /// Nowhere: the server does not read it.
    No,
    /// `reasoning` of the message.
    Reasoning,
    /// `reasoning_content` of the message.
    ReasoningContent,
}

/// How a PDF is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pdf {
    /// Not at all.
    No,
    /// As a `file` part, by value.
    Data,
    /// As a `file` part, by value or by address.
    DataOrAddress,
}

/// How a server is told that the last message is the beginning of its answer. Everywhere this message
/// is the last one and of the assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    /// It needs no telling.
    Bare,
    /// As [`Self::Bare`], without white space at its end, which some of the models refuse.
    BareTrimmed,
    /// This member of the message, `true`.
    Flag(&'static str),
    /// `continue_final_message` of the body, `true`.
    ContinueFinal,
    /// As [`Self::ContinueFinal`], and `add_generation_prompt`, `false`: both `true` are refused.
    ContinueFinalWithoutPrompt,
}

impl Settings {
    /// OpenAI: openai/openai-openapi, `CreateChatCompletionRequest`. Its reasoning models refuse
    /// `max_tokens`. It takes a last message of the assistant and begins a new answer after it.
    const OPENAI: Self = Self {
        credential: CredentialHeader::Bearer,
        max_tokens: "max_completion_tokens",
        reasoning: ReasoningForm::No,
        pdf: Pdf::Data,
        continuation: None,
    };

    /// The protocol as it was first published, which nearly every server knows.
    const GENERIC: Self = Self {
        max_tokens: "max_tokens",
        ..Self::OPENAI
    };

    /// The settings of `dialect`.
    pub(super) const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Openai | Dialect::Snowflake => Self::OPENAI,
            Dialect::Generic => Self::GENERIC,
            Dialect::Azure => Self {
                credential: CredentialHeader::ApiKey,
                ..Self::OPENAI
            },
            // OpenRouterTeam/docs: "Assistant prefill"; whether it continues is up to the model.
            Dialect::Openrouter => Self {
                reasoning: ReasoningForm::Reasoning,
                pdf: Pdf::DataOrAddress,
                continuation: Some(Continuation::BareTrimmed),
                ..Self::GENERIC
            },
            // mistralai/client-python, `AssistantMessage.prefix`.
            Dialect::Mistral => Self {
                continuation: Some(Continuation::Flag("prefix")),
                ..Self::GENERIC
            },
            // api-docs.deepseek.com, "Chat Prefix Completion": of the base URL that ends in `/beta`.
            Dialect::Deepseek => Self {
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Flag("prefix")),
                ..Self::GENERIC
            },
            // groq/groq-python, `completion_create_params` and `ChatCompletionAssistantMessageParam`.
            Dialect::Groq => Self {
                reasoning: ReasoningForm::Reasoning,
                pdf: Pdf::No,
                ..Self::OPENAI
            },
            // docs.x.ai, `ChatRequest`: `max_tokens` is deprecated.
            Dialect::Xai => Self {
                pdf: Pdf::No,
                ..Self::OPENAI
            },
            // platform.moonshot.ai, "Partial Mode".
            Dialect::Moonshot => Self {
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Flag("partial")),
                ..Self::GENERIC
            },
            // alibabacloud.com/help/en/model-studio/partial-mode.
            Dialect::Qwen => Self {
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Flag("partial")),
                ..Self::GENERIC
            },
            // vllm-project/vllm, `ChatCompletionRequest`; it calls the older `reasoning_content` the same.
            Dialect::Vllm => Self {
                reasoning: ReasoningForm::Reasoning,
                pdf: Pdf::No,
                continuation: Some(Continuation::ContinueFinalWithoutPrompt),
                ..Self::GENERIC
            },
            // sgl-project/sglang, `ChatCompletionRequest` and `_handle_last_assistant_message`.
            Dialect::Sglang => Self {
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::ContinueFinal),
                ..Self::GENERIC
            },
            // ggml-org/llama.cpp, `oaicompat_chat_params_parse`: the flag `--prefill-assistant` is on.
            Dialect::Llamacpp => Self {
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Bare),
                ..Self::GENERIC
            },
            // ollama/ollama, `openai.go`: other names than `max_tokens` are not read.
            Dialect::Ollama => Self {
                reasoning: ReasoningForm::Reasoning,
                pdf: Pdf::No,
                continuation: Some(Continuation::Bare),
                ..Self::GENERIC
            },
        }
    }
}
