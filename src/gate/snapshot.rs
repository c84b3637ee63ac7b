//! What the gate knows of one completed attempt.

use std::borrow::Cow;

use crate::proto::FinishReason;

/// One completed attempt. Describes this attempt alone: nothing of those before it, but for the
/// allowance.
///
/// The fields on control wrappers, text channels and residue are for models that write their tool calls
/// as text; for all others they stay as [`Snapshot::default`] has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<'a> {
    /// Why the provider stopped. The contract's word and not the provider's own, which each protocol
    /// spells in another way.
    pub finish_reason: FinishReason,
    /// The text that a client sees of this attempt, from the last block of the provider's own on; a refusal
    /// counts, reasoning does not.
    pub visible_text: Cow<'a, str>,
    /// What the completion wrapper says. `None` where the model has no such wrapper.
    pub control_kind: Option<ControlKind>,
    /// The names of the calls that could be handed out, whatever channel they came through.
    pub tool_calls: Vec<String>,
    /// What is wrong with the others, whatever channel they came through.
    pub tool_errors: Vec<ToolError>,
    /// Those of them that were written as text.
    pub text_tool_errors: Vec<ToolError>,
    /// The names of the structured calls that passed the checks of their schema.
    pub native_tool_calls: Vec<String>,
    /// The names of calls that a platform took for its own, so that they never reached the client.
    pub intercepted_tool_names: Vec<String>,
    /// A call was written inside hidden reasoning.
    pub think_evidence: bool,
    /// A callable tool call has already reached the client.
    pub calls_delivered: bool,
    /// The guard against runaway text cut the text off.
    pub text_channel_cut: bool,
    /// The visible text holds debris of the protocol of text calls.
    pub orphan_residue: bool,
    /// The request offers tools. `true` unless it is known to offer none.
    pub has_tools: bool,
    /// The request demands a call.
    pub requires_tool_call: bool,
    /// The one protocol recovery of the generation is spent; see [`Reason::is_protocol_recovery`].
    ///
    /// [`Reason::is_protocol_recovery`]: super::Reason::is_protocol_recovery
    pub protocol_recovery_spent: bool,
}

/// What a completion wrapper around the visible text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlKind {
    /// The task is done.
    Final,
    /// The task waits for its user.
    Blocked,
    /// Neither wrapper nor text.
    Empty,
    /// Wrappers that are unbalanced or repeated.
    InvalidControl,
    /// Text without a wrapper.
    Bare,
}

/// A tool call that cannot be handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The name that the model gave; empty if it gave none.
    pub name: String,
    /// What is wrong with it.
    pub fault: Fault,
    /// With [`Fault::SchemaMismatch`]: which members the schema does not permit, and why, as far as it is known; see
    /// [`Misfit::Faults`](super::Misfit::Faults).
    pub members: Vec<String>,
}

/// What is wrong with a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request offers no tool of that name.
    UnknownTool,
    /// The arguments are not one whole JSON object.
    InvalidArguments,
    /// The arguments are not what the tool's schema asks for.
    SchemaMismatch,
    /// There is no name.
    Unnamed,
}

impl Snapshot<'_> {
    /// Whether there is nothing to read.
    pub(super) fn is_blank(&self) -> bool {
        self.visible_text.trim().is_empty()
    }
}

impl Default for Snapshot<'_> {
    /// An attempt that stopped by itself and gave nothing, to a request with tools.
    fn default() -> Self {
        Self {
            finish_reason: FinishReason::Stop,
            visible_text: Cow::Borrowed(""),
            control_kind: None,
            tool_calls: Vec::new(),
            tool_errors: Vec::new(),
            text_tool_errors: Vec::new(),
            native_tool_calls: Vec::new(),
            intercepted_tool_names: Vec::new(),
            think_evidence: false,
            calls_delivered: false,
            text_channel_cut: false,
            orphan_residue: false,
            has_tools: true,
            requires_tool_call: false,
            protocol_recovery_spent: false,
        }
    }
}
