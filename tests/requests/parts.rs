//! Conversations, briefly.

use redrive::proto::{
    Conversation, Media, Message, Part, Reasoning, Role, ToolCall, ToolResult,
    media::Source as MediaSource, part::Part as Kind,
};

/// One user message: the least that can be asked.
pub fn question() -> Conversation {
    conversation([message(Role::User, [text("Why is the sky blue?")])])
}

pub fn message(role: Role, parts: impl IntoIterator<Item = Kind>) -> Message {
    let part = |kind| Part { part: Some(kind) };
    Message {
        role: role as i32,
        parts: parts.into_iter().map(part).collect(),
    }
}

pub fn text(text: &str) -> Kind {
    Kind::Text(text.to_owned())
}

pub fn data(mime_type: &str, data: &[u8]) -> Kind {
    Kind::Media(Media {
        mime_type: mime_type.to_owned(),
        source: Some(MediaSource::Data(data.to_vec())),
    })
}

pub fn uri(mime_type: &str, uri: &str) -> Kind {
    Kind::Media(Media {
        mime_type: mime_type.to_owned(),
        source: Some(MediaSource::Uri(uri.to_owned())),
    })
}

pub fn call(id: &str, name: &str, arguments_json: &str) -> Kind {
    Kind::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments_json: arguments_json.to_owned(),
    })
}

pub fn result(id: &str, is_error: bool, parts: impl IntoIterator<Item = Kind>) -> Kind {
    Kind::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        parts: message(Role::Tool, parts).parts,
        is_error,
    })
}

pub fn reasoning(text: &str) -> Kind {
    Kind::Reasoning(Reasoning {
        text: text.to_owned(),
        ..Default::default()
    })
}

pub fn conversation(messages: impl IntoIterator<Item = Message>) -> Conversation {
    Conversation {
        messages: messages.into_iter().collect(),
        ..Default::default()
    }
}
