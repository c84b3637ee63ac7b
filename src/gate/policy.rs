//! How strict the gate is.

/// What a client makes of an answer, so what the gate has to insist on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Prose beside calls written as text is fine.
    pub prose_with_tools: bool,
    /// Prose without a completion wrapper is a final answer.
    pub accept_bare_final: bool,
    /// A broken call is the reason to try again even if a demanded one is missing too.
    pub tool_errors_before_required: bool,
    /// A broken call rejects the attempt even with a good one beside it.
    pub tool_errors_veto_with_calls: bool,
}

impl Policy {
    /// For a client that runs the calls of an answer as a set: half of it would be the wrong action.
    ///
    /// It wants a final answer to be declared. A model without a completion wrapper cannot do that, so
    /// every plain answer of it is [`Reason::Bare`](super::Reason::Bare) unless `accept_bare_final` is set.
    pub const AGENT: Self = Self {
        prose_with_tools: false,
        accept_bare_final: false,
        tool_errors_before_required: true,
        tool_errors_veto_with_calls: true,
    };

    /// For a client that acts on each block by itself.
    pub const LENIENT: Self = Self {
        prose_with_tools: true,
        accept_bare_final: true,
        tool_errors_before_required: false,
        tool_errors_veto_with_calls: false,
    };
}

/// A policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// [`Policy::AGENT`].
    Agent,
    /// [`Policy::LENIENT`].
    Lenient,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Lenient];

    /// The preset of this name; `None` if there is none, `off` included.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == name)
    }

    /// Its name in the configuration and in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Lenient => "lenient",
        }
    }

    /// What it stands for.
    pub fn policy(self) -> Policy {
        match self {
            Self::Agent => Policy::AGENT,
            Self::Lenient => Policy::LENIENT,
        }
    }
}
