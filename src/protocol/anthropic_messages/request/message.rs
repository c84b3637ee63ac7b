//! Messages. Anthropic has two roles: a tool's results stand in a user message, and what follows them
//! there belongs to it. So messages in a row that are of one role on the wire are sent as one, which
//! is also what Anthropic makes of them.
//!
//! The parts of a turn keep their order: a model that thinks between its calls is given its reasoning
//! back where it stood.

use serde::Serialize;

use super::content::{self, Block, Content, kind, misplaced};
use crate::{
    proto::{Conversation, Message, Role, part::Part as Kind},
    protocol::adapter::RequestError,
};

/// A message as it is sent.
#[derive(Serialize)]
pub(super) struct WireMessage<'a> {
    role: WireRole,
    content: Content<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum WireRole {
    User,
    Assistant,
}

/// All messages of `conversation`.
pub(super) fn all(conversation: &Conversation) -> Result<Vec<WireMessage<'_>>, RequestError> {
    if conversation.messages.is_empty() {
        return Err(RequestError::invalid("messages", "must not be empty"));
    }
    let mut turns: Vec<(WireRole, Vec<Block<'_>>)> = Vec::new();
    for (index, message) in conversation.messages.iter().enumerate() {
        let (role, mut blocks) =
            read(message).map_err(|error| error.within(format_args!("messages[{index}]")))?;
        match turns.last_mut() {
            Some((last, turn)) if *last == role => turn.append(&mut blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let wire = |(role, blocks)| WireMessage {
        role,
        content: Content::of(blocks),
    };
    Ok(turns.into_iter().map(wire).collect())
}

fn read(message: &Message) -> Result<(WireRole, Vec<Block<'_>>), RequestError> {
    let role = Role::try_from(message.role)
        .map_err(|_| RequestError::invalid("role", "is not a role of this contract"))?;
    if message.parts.is_empty() {
        return Err(RequestError::invalid("parts", "must not be empty"));
    }
    let wire_role = match role {
        Role::Unspecified => return Err(RequestError::invalid("role", "must be set")),
        Role::User | Role::Tool => WireRole::User,
        Role::Assistant => WireRole::Assistant,
    };
    let mut blocks = Vec::with_capacity(message.parts.len());
    for (index, part) in message.parts.iter().enumerate() {
        let block = kind(part).and_then(|kind| match role {
            Role::Tool => tool(kind),
            Role::Assistant => assistant(kind),
            Role::User | Role::Unspecified => user(kind),
        });
        blocks.push(block.map_err(|error| error.within(format_args!("parts[{index}]")))?);
    }
    Ok((wire_role, blocks))
}

fn user(part: &Kind) -> Result<Block<'_>, RequestError> {
    match part {
        Kind::Text(text) => content::text(text),
        Kind::Media(media) => content::media(media),
        Kind::NativeJson(json) => content::native(json),
        other => Err(misplaced(other, "a user message")),
    }
}

fn tool(part: &Kind) -> Result<Block<'_>, RequestError> {
    match part {
        Kind::ToolResult(result) => {
            content::result(result).map_err(|error| error.within("tool_result"))
        }
        other => Err(misplaced(other, "a tool message")),
    }
}

fn assistant(part: &Kind) -> Result<Block<'_>, RequestError> {
    match part {
        Kind::Text(text) => content::text(text),
        Kind::NativeJson(json) => content::native(json),
        Kind::Reasoning(reasoning) => {
            content::reasoning(reasoning).map_err(|error| error.within("reasoning"))
        }
        Kind::ToolCall(call) => content::call(call).map_err(|error| error.within("tool_call")),
        other => Err(misplaced(other, "an assistant message")),
    }
}
