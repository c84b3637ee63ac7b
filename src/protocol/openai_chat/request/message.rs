//! Messages. Each role has its own shape on the wire; a part without a place in it is refused.
//!
//! Chat Completions keeps an assistant's text, refusal, reasoning and tool calls in fields of their
//! own, so their order among each other has no form: it is the same message either way.

use std::borrow::Cow;

use serde::Serialize;

use super::{
    super::dialect::{ReasoningForm, Settings},
    content::{self, Content, ContentPart},
};
use crate::{
    proto::{
        Conversation, Message, Part, Reasoning, Role, ToolCall, ToolResult, part::Part as Kind,
    },
    protocol::adapter::RequestError,
};

/// Precedes a failed tool's result: the wire has no field for it, and the model must know.
const TOOL_FAILED: &str = "Error: ";

/// A message as it is sent.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant(AssistantMessage<'a>),
    Tool {
        tool_call_id: &'a str,
        content: Content<'a>,
    },
}

/// What the model said earlier.
#[derive(Serialize)]
pub(super) struct AssistantMessage<'a> {
    /// `null` where there is none: some servers demand the member.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireToolCall<'a>>,
}

impl AssistantMessage<'_> {
    /// Puts reasoning into the field where the server reads it.
    fn think(&mut self, reasoning: &Reasoning, form: ReasoningForm) -> Result<(), RequestError> {
        let text = reasoning_text(reasoning)?;
        let place = match form {
            ReasoningForm::No | ReasoningForm::ThinkingPart => {
                return Err(no_reasoning("text"));
            }
            ReasoningForm::Reasoning => &mut self.reasoning,
            ReasoningForm::ReasoningContent => &mut self.reasoning_content,
        };
        place.get_or_insert_default().push_str(text);
        Ok(())
    }
}

/// The text alone: a signature or a redacted block has no form anywhere.
fn reasoning_text(reasoning: &Reasoning) -> Result<&str, RequestError> {
    if !reasoning.signature.is_empty() {
        return Err(no_reasoning("signature"));
    }
    if !reasoning.redacted.is_empty() {
        return Err(no_reasoning("redacted"));
    }
    Ok(&reasoning.text)
}

fn no_reasoning(field: &str) -> RequestError {
    RequestError::invalid(
        field,
        "has no form in OpenAI Chat Completions: leave it out",
    )
}

/// The system prompt and all messages of `conversation`.
pub(super) fn all(
    conversation: &Conversation,
    settings: Settings,
) -> Result<Vec<WireMessage<'_>>, RequestError> {
    if conversation.messages.is_empty() {
        return Err(RequestError::invalid("messages", "must not be empty"));
    }
    let mut wire = Vec::with_capacity(conversation.messages.len() + 1);
    if !conversation.system.is_empty() {
        wire.push(WireMessage::System {
            content: &conversation.system,
        });
    }
    for (index, message) in conversation.messages.iter().enumerate() {
        push(message, settings, &mut wire)
            .map_err(|error| error.within(format_args!("messages[{index}]")))?;
    }
    Ok(wire)
}

fn push<'a>(
    message: &'a Message,
    settings: Settings,
    wire: &mut Vec<WireMessage<'a>>,
) -> Result<(), RequestError> {
    let role = Role::try_from(message.role)
        .map_err(|_| RequestError::invalid("role", "is not a role of this contract"))?;
    if message.parts.is_empty() {
        return Err(RequestError::invalid("parts", "must not be empty"));
    }
    match role {
        Role::Unspecified => return Err(RequestError::invalid("role", "must be set")),
        Role::User => wire.push(user(&message.parts, settings)?),
        Role::Assistant => wire.push(assistant(&message.parts, settings)?),
        Role::Tool => {
            for (index, part) in message.parts.iter().enumerate() {
                let result =
                    tool(part).map_err(|error| error.within(format_args!("parts[{index}]")))?;
                wire.push(result);
            }
        }
    }
    Ok(())
}

fn user(parts: &[Part], settings: Settings) -> Result<WireMessage<'_>, RequestError> {
    let mut content = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let part = match kind(part) {
            Ok(Kind::Text(text)) => Ok(ContentPart::Text {
                text: Cow::Borrowed(text),
            }),
            Ok(Kind::Media(media)) => {
                content::media(media, settings).map_err(|error| error.within("media"))
            }
            Ok(Kind::NativeJson(json)) => content::native(json),
            Ok(other) => Err(misplaced(other, "a user message")),
            Err(error) => Err(error),
        };
        content.push(part.map_err(|error| error.within(format_args!("parts[{index}]")))?);
    }
    Ok(WireMessage::User {
        content: Content::of(content),
    })
}

fn assistant(parts: &[Part], settings: Settings) -> Result<WireMessage<'_>, RequestError> {
    let mut content = Vec::new();
    let mut message = AssistantMessage {
        content: None,
        reasoning: None,
        reasoning_content: None,
        refusal: None,
        tool_calls: Vec::new(),
    };
    for (index, part) in parts.iter().enumerate() {
        let pushed = match kind(part) {
            Ok(Kind::Text(text)) => {
                content.push(ContentPart::Text {
                    text: Cow::Borrowed(text),
                });
                Ok(())
            }
            Ok(Kind::NativeJson(json)) => content::native(json).map(|part| content.push(part)),
            Ok(Kind::Refusal(_)) if !settings.refusal => Err(RequestError::invalid(
                "refusal",
                "has no form in this dialect of OpenAI Chat Completions: send it as text",
            )),
            Ok(Kind::Refusal(text)) => {
                message.refusal.get_or_insert_default().push_str(text);
                Ok(())
            }
            Ok(Kind::Reasoning(reasoning)) => match settings.reasoning {
                ReasoningForm::ThinkingPart => {
                    reasoning_text(reasoning).map(|text| content.push(content::thinking(text)))
                }
                form => message.think(reasoning, form),
            }
            .map_err(|error| error.within("reasoning")),
            Ok(Kind::ToolCall(call)) => WireToolCall::new(call)
                .map(|call| message.tool_calls.push(call))
                .map_err(|error| error.within("tool_call")),
            Ok(other) => Err(misplaced(other, "an assistant message")),
            Err(error) => Err(error),
        };
        pushed.map_err(|error| error.within(format_args!("parts[{index}]")))?;
    }
    message.content = (!content.is_empty()).then(|| Content::of(content));
    Ok(WireMessage::Assistant(message))
}

fn tool(part: &Part) -> Result<WireMessage<'_>, RequestError> {
    match kind(part)? {
        Kind::ToolResult(result) => {
            tool_result(result).map_err(|error| error.within("tool_result"))
        }
        other => Err(misplaced(other, "a tool message")),
    }
}

fn tool_result(result: &ToolResult) -> Result<WireMessage<'_>, RequestError> {
    if result.tool_call_id.is_empty() {
        return Err(RequestError::invalid("tool_call_id", "must be set"));
    }
    let mut content = Vec::with_capacity(result.parts.len());
    for (index, part) in result.parts.iter().enumerate() {
        let part = match kind(part) {
            Ok(Kind::Text(text)) => Ok(ContentPart::Text {
                text: Cow::Borrowed(text),
            }),
            Ok(Kind::NativeJson(json)) => content::native(json),
            Ok(other) => Err(misplaced(other, "a tool result")),
            Err(error) => Err(error),
        };
        content.push(part.map_err(|error| error.within(format_args!("parts[{index}]")))?);
    }
    if result.is_error {
        match content.first_mut() {
            Some(ContentPart::Text { text }) => text.to_mut().insert_str(0, TOOL_FAILED),
            _ => content.insert(
                0,
                ContentPart::Text {
                    text: Cow::Borrowed(TOOL_FAILED),
                },
            ),
        }
    }
    Ok(WireMessage::Tool {
        tool_call_id: &result.tool_call_id,
        content: Content::of(content),
    })
}

fn kind(part: &Part) -> Result<&Kind, RequestError> {
    part.part
        .as_ref()
        .ok_or_else(|| RequestError::invalid("part", "must be set"))
}

fn misplaced(kind: &Kind, place: &str) -> RequestError {
    let field = match kind {
        Kind::Text(_) => "text",
        Kind::Media(_) => "media",
        Kind::ToolCall(_) => "tool_call",
        Kind::ToolResult(_) => "tool_result",
        Kind::Reasoning(_) => "reasoning",
        Kind::Refusal(_) => "refusal",
        Kind::NativeJson(_) => "native_json",
    };
    let reason = format!("has no form in {place} of OpenAI Chat Completions");
    RequestError::invalid(field, reason)
}

#[derive(Serialize)]
struct WireToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

impl<'a> WireToolCall<'a> {
    fn new(call: &'a ToolCall) -> Result<Self, RequestError> {
        for (field, value) in [("id", &call.id), ("name", &call.name)] {
            if value.is_empty() {
                return Err(RequestError::invalid(field, "must be set"));
            }
        }
        Ok(Self {
            id: &call.id,
            kind: "function",
            function: CalledFunction {
                name: &call.name,
                arguments: match call.arguments_json.as_str() {
                    "" => "{}",
                    arguments => arguments,
                },
            },
        })
    }
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}
