//! The protocols that ready-made scripts answer in.

/// A provider protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// OpenAI Chat Completions.
    #[default]
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
    ];

    /// The protocol of a request to `path`, which may have a query. What is no path of another protocol
    /// is one of Chat Completions.
    pub fn of(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let last = path.trim_end_matches('/').rsplit('/').next();
        let found = Self::ALL
            .into_iter()
            .find(|protocol| last == protocol.path().rsplit('/').next());
        found.unwrap_or_default()
    }

    /// Its name, as in a configuration of the sidecar.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
        }
    }

    /// How the paths of its requests end.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenaiChat => "/chat/completions",
            Self::OpenaiResponses => "/responses",
            Self::AnthropicMessages => "/messages",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_its_protocol_by_its_last_segment() {
        for (path, protocol) in [
            ("/v1/chat/completions", Protocol::OpenaiChat),
            ("/v1/responses", Protocol::OpenaiResponses),
            ("/openai/responses?api-version=1", Protocol::OpenaiResponses),
            ("/v1/messages/", Protocol::AnthropicMessages),
            ("/messages", Protocol::AnthropicMessages),
            ("/v1/messages/count_tokens", Protocol::OpenaiChat),
            ("/v1/chat?of=/messages", Protocol::OpenaiChat),
            ("/my-messages", Protocol::OpenaiChat),
            ("", Protocol::OpenaiChat),
        ] {
            assert_eq!(Protocol::of(path), protocol, "{path}");
        }
    }
}
