//! From the output of a completed attempt to its [`Snapshot`]: one way for all protocols, since all are
//! decoded into the same blocks.

use std::borrow::Cow;

use super::{Choice, Fault, Misfit, Schema, Snapshot, ToolError, Tools};
use crate::proto::FinishReason;

/// Stands in a text for what is no text, as Unicode has it: a picture is not nothing.
const OBJECT: &str = "\u{fffc}";

/// A block of an attempt's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text.
    Text(&'a str),
    /// A refusal in the model's words.
    Refusal(&'a str),
    /// A call of one of the client's tools, its arguments as streamed.
    Call {
        /// The tool's name; empty if none came.
        name: &'a str,
        /// JSON text, or what there is of it.
        arguments: &'a str,
    },
    /// Reasoning, which is nothing to read: a sign that what came before it was not cut off.
    Reasoning,
    /// A block of the provider's own: media, a call that is not one of a function, a server tool's result.
    Native,
}

impl<'a> Snapshot<'a> {
    /// What `pieces`, all that a completed attempt gave and in order, show. Text calls, wrappers and what
    /// a platform took are not looked for.
    ///
    /// A call can be handed out if it is of a tool that is offered (or if none is), and its arguments are one
    /// JSON object or empty, and what the tool's schema asks for. Empty ones at the very end of a truncated
    /// answer are no proof that there were none.
    pub fn of(
        pieces: impl IntoIterator<Item = Piece<'a>>,
        finish_reason: FinishReason,
        tools: &Tools,
    ) -> Self {
        let mut snapshot = Snapshot {
            finish_reason,
            has_tools: tools.may_be_called(),
            requires_tool_call: tools.must_be_called(),
            ..Snapshot::default()
        };
        let mut pieces = pieces.into_iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Text(text) => append(&mut snapshot.visible_text, text),
                Piece::Refusal(text) => {
                    append(&mut snapshot.visible_text, text);
                    // Some providers end a refusal as any other answer.
                    if finish_reason == FinishReason::Stop {
                        snapshot.finish_reason = FinishReason::Refusal;
                    }
                }
                Piece::Reasoning => {}
                Piece::Native => {
                    // What was announced before it is done, and so is what was demanded.
                    snapshot.visible_text = Cow::Borrowed(OBJECT);
                    snapshot.requires_tool_call &= tools.choice != Choice::Required;
                }
                Piece::Call { name, arguments } => {
                    let is_cut = finish_reason == FinishReason::Length && pieces.peek().is_none();
                    snapshot.add_call(name, tools.error(name, arguments, is_cut));
                }
            }
        }
        snapshot
    }

    fn add_call(&mut self, name: &str, error: Option<ToolError>) {
        match error {
            Some(error) => self.tool_errors.push(error),
            None => {
                self.tool_calls.push(name.to_owned());
                self.native_tool_calls.push(name.to_owned());
            }
        }
    }
}

impl Tools {
    /// What is wrong with a call, if anything is. With `is_cut` the answer may have ended before its
    /// arguments began.
    pub fn error(&self, name: &str, arguments: &str, is_cut: bool) -> Option<ToolError> {
        let error = |fault, members| {
            let name = name.to_owned();
            Some(ToolError {
                name,
                fault,
                members,
            })
        };
        if name.is_empty() {
            return error(Fault::Unnamed, Vec::new());
        }
        if !self.has(name) {
            return error(Fault::UnknownTool, Vec::new());
        }
        if arguments.is_empty() && is_cut {
            return error(Fault::InvalidArguments, Vec::new());
        }
        let anything = Schema::default();
        let schema = self.schemas.get(name).unwrap_or(&anything);
        match schema.validate(arguments) {
            Ok(()) => None,
            Err(Misfit::NoObject) => error(Fault::InvalidArguments, Vec::new()),
            Err(Misfit::Faults(members)) => error(Fault::SchemaMismatch, members),
        }
    }
}

/// One text, which most answers are, is not copied.
fn append<'a>(text: &mut Cow<'a, str>, more: &'a str) {
    match text.is_empty() {
        true => *text = Cow::Borrowed(more),
        false => text.to_mut().push_str(more),
    }
}
