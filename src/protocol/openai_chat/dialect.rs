//! What each dialect changes in a request. One table; nothing else in this folder asks which dialect
//! it is. Streams are decoded alike: what one server does is tolerated from all.
//!
//! Facts are from the vendors' API references and the servers' sources, as named beside each row.

use crate::protocol::{Dialect, Terminal};

/// What a server wants written otherwise, or cannot be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Where the credential goes.
    pub(super) credential: CredentialHeader,
    /// The member that bounds the tokens of an answer.
    pub(super) max_tokens: &'static str,
    /// The member that asks for a repeatable answer.
    pub(super) seed: &'static str,
    /// Whether `stream_options` asks for token counts; elsewhere they come unasked.
    pub(super) stream_options: bool,
    /// Whether a `tool_choice` may name the tool.
    pub(super) named_tool: bool,
    /// Whether a `response_format` may hold a schema.
    pub(super) json_schema: bool,
    /// Whether an earlier refusal goes back as one.
    pub(super) refusal: bool,
    /// How earlier reasoning goes back.
    pub(super) reasoning: ReasoningForm,
    /// How audio is sent.
    pub(super) audio: Audio,
    /// How a PDF is sent.
    pub(super) pdf: Pdf,
    /// What completes a response, unless it is configured.
    pub(super) terminal: Terminal,
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
    /// A part of the content, of type `thinking`.
    ThinkingPart,
}

/// How audio is sent, as an `input_audio` part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audio {
    /// Not at all.
    No,
    /// `{"data", "format"}`, by value.
    Data,
    /// `{"data", "format"}`, the data being an address: that of the audio, or a `data:` one.
    Address,
    /// The data alone, by value.
    Bare,
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
    /// As a `document_url` part, by value or by address.
    DocumentUrl,
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
        seed: "seed",
        stream_options: true,
        named_tool: true,
        json_schema: true,
        refusal: true,
        reasoning: ReasoningForm::No,
        audio: Audio::Data,
        pdf: Pdf::Data,
        terminal: Terminal::FinishReason,
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
            Dialect::Openai => Self::OPENAI,
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
            // mistralai/client-python, `ChatCompletionStreamRequest`; members that it does not know are
            // refused (422, "Extra inputs are not permitted"). `AssistantMessage.prefix`.
            Dialect::Mistral => Self {
                seed: "random_seed",
                stream_options: false,
                refusal: false,
                reasoning: ReasoningForm::ThinkingPart,
                audio: Audio::Bare,
                pdf: Pdf::DocumentUrl,
                continuation: Some(Continuation::Flag("prefix")),
                ..Self::GENERIC
            },
            // api-docs.deepseek.com, "Create Chat Completion": formats are `text` and `json_object`.
            // "Chat Prefix Completion": of the base URL that ends in `/beta`.
            Dialect::Deepseek => Self {
                json_schema: false,
                audio: Audio::No,
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Flag("prefix")),
                ..Self::GENERIC
            },
            // groq/groq-python, `completion_create_params` and `ChatCompletionAssistantMessageParam`.
            Dialect::Groq => Self {
                audio: Audio::No,
                reasoning: ReasoningForm::Reasoning,
                pdf: Pdf::No,
                ..Self::OPENAI
            },
            // docs.x.ai, `ChatRequest`: `max_tokens` is deprecated.
            Dialect::Xai => Self {
                audio: Audio::No,
                pdf: Pdf::No,
                ..Self::OPENAI
            },
            // platform.moonshot.ai, "Partial Mode".
            Dialect::Moonshot => Self {
                audio: Audio::No,
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Flag("partial")),
                ..Self::GENERIC
            },
            // alibabacloud.com/help/en/model-studio: "Partial mode"; "Qwen-Omni" for audio.
            Dialect::Qwen => Self {
                audio: Audio::Address,
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Flag("partial")),
                ..Self::GENERIC
            },
            // docs.snowflake.com, "Cortex REST API". Its streams have no finish reason (recordings).
            Dialect::Snowflake => Self {
                audio: Audio::No,
                pdf: Pdf::No,
                terminal: Terminal::DoneSentinel,
                ..Self::OPENAI
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
                audio: Audio::No,
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::ContinueFinal),
                ..Self::GENERIC
            },
            // ggml-org/llama.cpp, `oaicompat_chat_params_parse`: a `tool_choice` that is no string is
            // taken for `auto`; a last message of the assistant is continued (`--prefill-assistant`).
            Dialect::Llamacpp => Self {
                named_tool: false,
                reasoning: ReasoningForm::ReasoningContent,
                pdf: Pdf::No,
                continuation: Some(Continuation::Bare),
                ..Self::GENERIC
            },
            // ollama/ollama, `openai.go`: other names than `max_tokens` are not read.
            Dialect::Ollama => Self {
                audio: Audio::No,
                reasoning: ReasoningForm::Reasoning,
                pdf: Pdf::No,
                continuation: Some(Continuation::Bare),
                ..Self::GENERIC
            },
        }
    }
}
