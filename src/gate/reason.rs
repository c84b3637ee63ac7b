//! Why an attempt is not accepted.

/// Why the gate rejects an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Nothing to read and nothing to call.
    Empty,
    /// Prose that is not declared to be the final answer.
    Bare,
    /// Completion wrappers that are unbalanced or repeated.
    InvalidControl,
    /// A call was demanded and none came.
    RequiredTool,
    /// A call is broken, or of a tool that does not exist.
    ToolError,
    /// Prose beside calls, which the policy does not permit.
    ProseWithTools,
    /// A call never reached the client.
    Intercepted,
    /// A call written as text was malformed.
    MalformedProtocol,
    /// A call was written inside hidden reasoning.
    ThoughtToolCall,
    /// An action was announced and not done.
    MissingTool,
}

/// What became of an attempt that the gate rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// The model was asked again, with a hint.
    Retried,
    /// It was committed as it is: nothing better could be had, or it must not become void.
    Delivered,
    /// The generation failed.
    Failed,
}

impl Then {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Retried, Self::Delivered, Self::Failed];

    /// As metrics and logs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retried => "retried",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Empty,
        Self::Bare,
        Self::InvalidControl,
        Self::RequiredTool,
        Self::ToolError,
        Self::ProseWithTools,
        Self::Intercepted,
        Self::MalformedProtocol,
        Self::ThoughtToolCall,
        Self::MissingTool,
    ];

    /// As `Verdict.gate_reason`, metrics and logs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Bare => "bare",
            Self::InvalidControl => "invalid_control",
            Self::RequiredTool => "required_tool",
            Self::ToolError => "tool_error",
            Self::ProseWithTools => "prose_with_tools",
            Self::Intercepted => "intercepted",
            Self::MalformedProtocol => "malformed_protocol",
            Self::ThoughtToolCall => "thought_tool_call",
            Self::MissingTool => "missing_tool",
        }
    }

    /// The call was made and got lost on its way. Such attempts are retried once in a generation, all
    /// of these reasons together: what a model does twice it does again.
    pub fn is_protocol_recovery(self) -> bool {
        matches!(
            self,
            Self::Intercepted | Self::MalformedProtocol | Self::ThoughtToolCall
        )
    }
}
