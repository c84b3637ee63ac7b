//! The input: one list of items, in the order of the conversation. What an assistant said is one
//! message for each run of texts, with its reasoning, calls and provider's own items between them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::content::{self, Content, ContentPart};
use crate::{
    proto::{
        Conversation, Message, Part, Reasoning, Role, ToolCall, ToolResult, part::Part as Kind,
    },
    protocol::adapter::RequestError,
};

/// Precedes a failed tool's result: the wire has no field for it, and the model must know.
const TOOL_FAILED: &str = "Error: ";

/// An item as it is sent.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum WireItem<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
    },
    Typed(TypedItem<'a>),
    Native(&'a RawValue),
}

/// An item that says what it is.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TypedItem<'a> {
    Reasoning(WireReasoning<'a>),
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
}

/// A reasoning item.
#[derive(Serialize)]
pub(super) struct WireReasoning<'a> {
    id: Cow<'a, str>,
    /// Required, even without a text.
    summary: Vec<ReasoningText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<ReasoningText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted_content: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReasoningText<'a> {
    SummaryText { text: &'a str },
    ReasoningText { text: &'a str },
}

/// A signature, as the decoder writes it: a reasoning item without its texts.
#[derive(Deserialize)]
struct Signature<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    encrypted_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

/// All messages of `conversation`.
pub(super) fn all(conversation: &Conversation) -> Result<Vec<WireItem<'_>>, RequestError> {
    if conversation.messages.is_empty() {
        return Err(RequestError::invalid("messages", "must not be empty"));
    }
    let mut items = Vec::with_capacity(conversation.messages.len());
    for (index, message) in conversation.messages.iter().enumerate() {
        push(message, &mut items)
            .map_err(|error| error.within(format_args!("messages[{index}]")))?;
    }
    Ok(items)
}

fn push<'a>(message: &'a Message, items: &mut Vec<WireItem<'a>>) -> Result<(), RequestError> {
    let role = Role::try_from(message.role)
        .map_err(|_| RequestError::invalid("role", "is not a role of this contract"))?;
    if message.parts.is_empty() {
        return Err(RequestError::invalid("parts", "must not be empty"));
    }
    match role {
        Role::Unspecified => Err(RequestError::invalid("role", "must be set")),
        Role::User => {
            let content = each(&message.parts, user)?;
            items.push(WireItem::Message {
                role: "user",
                content: Content::of(content),
            });
            Ok(())
        }
        Role::Assistant => assistant(&message.parts, items),
        Role::Tool => {
            items.extend(each(&message.parts, tool)?);
            Ok(())
        }
    }
}

/// Writes each part, naming the one that is wrong.
fn each<'a, T>(
    parts: &'a [Part],
    write: impl Fn(&'a Kind) -> Result<T, RequestError>,
) -> Result<Vec<T>, RequestError> {
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| {
            kind(part)
                .and_then(&write)
                .map_err(|error| error.within(format_args!("parts[{index}]")))
        })
        .collect()
}

fn user(part: &Kind) -> Result<ContentPart<'_>, RequestError> {
    match part {
        Kind::Text(text) => Ok(input_text(text)),
        Kind::Media(media) => content::media(media).map_err(|error| error.within("media")),
        Kind::NativeJson(json) => content::native(json).map(ContentPart::Native),
        other => Err(misplaced(other, "a user message")),
    }
}

fn input_text(text: &str) -> ContentPart<'_> {
    ContentPart::InputText {
        text: Cow::Borrowed(text),
    }
}

/// What the model said earlier, item by item.
#[derive(Default)]
struct Said<'a> {
    items: Vec<WireItem<'a>>,
    /// Of the message that is being said.
    content: Vec<ContentPart<'a>>,
    /// Texts of a reasoning item whose signature has not come, and the part where they began.
    reasoning: Vec<&'a str>,
    unsigned: Option<usize>,
}

fn assistant<'a>(parts: &'a [Part], items: &mut Vec<WireItem<'a>>) -> Result<(), RequestError> {
    let mut said = Said::default();
    for (index, part) in parts.iter().enumerate() {
        kind(part)
            .and_then(|part| said.add(index, part))
            .map_err(|error| error.within(format_args!("parts[{index}]")))?;
    }
    said.all_signed()?;
    said.close_message();
    items.append(&mut said.items);
    Ok(())
}

impl<'a> Said<'a> {
    fn add(&mut self, index: usize, part: &'a Kind) -> Result<(), RequestError> {
        match part {
            Kind::Reasoning(reasoning) => {
                self.unsigned.get_or_insert(index);
                return self
                    .reasoning(reasoning)
                    .map_err(|error| error.within("reasoning"));
            }
            Kind::Text(text) => self.content.push(ContentPart::OutputText {
                text: Cow::Borrowed(text),
            }),
            Kind::Refusal(refusal) => self.content.push(ContentPart::Refusal { refusal }),
            Kind::ToolCall(call) => {
                let call = function_call(call).map_err(|error| error.within("tool_call"))?;
                self.push(WireItem::Typed(call));
            }
            Kind::NativeJson(json) => self.push(WireItem::Native(content::native(json)?)),
            other => return Err(misplaced(other, "an assistant message")),
        }
        Ok(())
    }

    /// Parts of one reasoning item stand together, and the last of them carries its signature.
    fn reasoning(&mut self, reasoning: &'a Reasoning) -> Result<(), RequestError> {
        if !reasoning.redacted.is_empty() {
            let reason = "has no form in OpenAI Responses: leave it out";
            return Err(RequestError::invalid("redacted", reason));
        }
        if !reasoning.text.is_empty() {
            self.reasoning.push(&reasoning.text);
        }
        if reasoning.signature.is_empty() {
            return Ok(());
        }
        let signature: Signature<'_> = serde_json::from_slice(&reasoning.signature)
            .map_err(|_| RequestError::invalid("signature", "is not one of OpenAI Responses"))?;
        let texts = std::mem::take(&mut self.reasoning).into_iter();
        let (mut summary, mut content) = (Vec::new(), Vec::new());
        match signature.content.as_deref() {
            Some("reasoning_text") => {
                content.extend(texts.map(|text| ReasoningText::ReasoningText { text }));
            }
            _ => summary.extend(texts.map(|text| ReasoningText::SummaryText { text })),
        }
        self.unsigned = None;
        self.push(WireItem::Typed(TypedItem::Reasoning(WireReasoning {
            id: signature.id,
            summary,
            content,
            encrypted_content: signature.encrypted_content,
        })));
        Ok(())
    }

    fn push(&mut self, item: WireItem<'a>) {
        self.close_message();
        self.items.push(item);
    }

    fn close_message(&mut self) {
        if !self.content.is_empty() {
            self.items.push(WireItem::Message {
                role: "assistant",
                content: Content::of(std::mem::take(&mut self.content)),
            });
        }
    }

    fn all_signed(&self) -> Result<(), RequestError> {
        match self.unsigned {
            None => Ok(()),
            Some(index) => Err(RequestError::invalid(
                format!("parts[{index}].reasoning.signature"),
                "must be set: without it reasoning has no form in OpenAI Responses",
            )),
        }
    }
}

fn function_call(call: &ToolCall) -> Result<TypedItem<'_>, RequestError> {
    for (field, value) in [("id", &call.id), ("name", &call.name)] {
        if value.is_empty() {
            return Err(RequestError::invalid(field, "must be set"));
        }
    }
    Ok(TypedItem::FunctionCall {
        call_id: &call.id,
        name: &call.name,
        arguments: match call.arguments_json.as_str() {
            "" => "{}",
            arguments => arguments,
        },
    })
}

fn tool(part: &Kind) -> Result<WireItem<'_>, RequestError> {
    match part {
        Kind::ToolResult(result) => tool_result(result)
            .map(WireItem::Typed)
            .map_err(|error| error.within("tool_result")),
        other => Err(misplaced(other, "a tool message")),
    }
}

fn tool_result(result: &ToolResult) -> Result<TypedItem<'_>, RequestError> {
    if result.tool_call_id.is_empty() {
        return Err(RequestError::invalid("tool_call_id", "must be set"));
    }
    let mut output = each(&result.parts, |part| match part {
        Kind::Text(text) => Ok(input_text(text)),
        Kind::NativeJson(json) => content::native(json).map(ContentPart::Native),
        other => Err(misplaced(other, "a tool result")),
    })?;
    if result.is_error {
        match output.first_mut() {
            Some(ContentPart::InputText { text }) => text.to_mut().insert_str(0, TOOL_FAILED),
            _ => output.insert(0, input_text(TOOL_FAILED)),
        }
    }
    Ok(TypedItem::FunctionCallOutput {
        call_id: &result.tool_call_id,
        output: Content::of(output),
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
    let reason = format!("has no form in {place} of OpenAI Responses");
    RequestError::invalid(field, reason)
}
