//! The events of a Responses stream, by what they mean to us.

use super::blocks::Place;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The response was created, is queued or under way.
    Lifecycle,
    /// The response is over, in the way its type says.
    Over(Over),
    /// An error; the response is over.
    Error,
    /// An output item begins.
    ItemAdded,
    /// An output item is whole.
    ItemDone,
    /// A part of an item begins.
    PartAdded(Place),
    /// A part of an item is whole.
    PartDone(Place),
    /// A piece of text, reasoning or refusal.
    Delta(Place, Text),
    /// The whole of it.
    Whole(Place, Text),
    /// A piece of a function call's arguments.
    ArgumentsDelta,
    /// The whole of them.
    ArgumentsWhole,
    /// A piece of an item of the provider's own.
    NativeDelta,
    /// Proof of life.
    Keepalive,
    /// Nothing that this version knows.
    Unknown,
}

/// How a response ended, as the type of the event has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Output,
    Reasoning,
    Refusal,
}

impl Kind {
    /// The kind of an event of this `type`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "response.output_text.delta" => Self::Delta(Place::Content, Text::Output),
            "response.function_call_arguments.delta" => Self::ArgumentsDelta,
            "response.reasoning_summary_text.delta" => Self::Delta(Place::Summary, Text::Reasoning),
            "response.reasoning_text.delta" => Self::Delta(Place::Reasoning, Text::Reasoning),
            "response.refusal.delta" => Self::Delta(Place::Content, Text::Refusal),

            "response.output_text.done" => Self::Whole(Place::Content, Text::Output),
            "response.function_call_arguments.done" => Self::ArgumentsWhole,
            "response.reasoning_summary_text.done" => Self::Whole(Place::Summary, Text::Reasoning),
            "response.reasoning_text.done" => Self::Whole(Place::Reasoning, Text::Reasoning),
            "response.refusal.done" => Self::Whole(Place::Content, Text::Refusal),

            "response.output_item.added" => Self::ItemAdded,
            "response.output_item.done" => Self::ItemDone,
            "response.content_part.added" => Self::PartAdded(Place::Content),
            "response.content_part.done" => Self::PartDone(Place::Content),
            "response.reasoning_summary_part.added" => Self::PartAdded(Place::Summary),
            "response.reasoning_summary_part.done" => Self::PartDone(Place::Summary),
            // Undocumented; Bedrock and vLLM send them.
            "response.reasoning_part.added" => Self::PartAdded(Place::Reasoning),
            "response.reasoning_part.done" => Self::PartDone(Place::Reasoning),

            "response.created" | "response.queued" | "response.in_progress" => Self::Lifecycle,
            // The subscription endpoint's older name is `response.done`; its status says how.
            "response.completed" | "response.done" => Self::Over(Over::Completed),
            "response.incomplete" => Self::Over(Over::Incomplete),
            "response.failed" => Self::Over(Over::Failed),
            // A webhook by its documentation; should it ever be streamed, it is an end.
            "response.cancelled" => Self::Over(Over::Cancelled),
            "error" => Self::Error,

            // `keepalive` is undocumented, and takes a sequence number.
            "keepalive" | "ping" | "response.output_text.annotation.added" => Self::Keepalive,
            other => Self::of_native(other),
        }
    }

    /// Events of items of the provider's own: `response.<item>_call.<state>`,
    /// `response.<item>_call_<field>.delta` and such, and those of audio.
    fn of_native(name: &str) -> Self {
        let Some(rest) = name.strip_prefix("response.") else {
            return Self::Unknown;
        };
        let of_an_item = ["_call", "mcp_list_tools"]
            .iter()
            .any(|item| rest.contains(item))
            || rest.starts_with("audio");
        match rest.rsplit('.').next() {
            _ if !of_an_item => Self::Unknown,
            Some("delta" | "partial_image") => Self::NativeDelta,
            _ => Self::Keepalive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_providers_own_items_are_told_from_their_states_and_from_the_unknown() {
        for name in [
            "response.mcp_call_arguments.delta",
            "response.custom_tool_call_input.delta",
            "response.code_interpreter_call_code.delta",
            "response.apply_patch_call_operation_diff.delta",
            "response.shell_call_command.delta",
            "response.image_generation_call.partial_image",
            "response.audio.delta",
            "response.audio.transcript.delta",
        ] {
            assert_eq!(Kind::of(name), Kind::NativeDelta, "{name}");
        }
        for name in [
            "response.web_search_call.searching",
            "response.mcp_list_tools.failed",
            "response.mcp_call_arguments.done",
            "response.shell_call_command.added",
            "response.audio.done",
        ] {
            assert_eq!(Kind::of(name), Kind::Keepalive, "{name}");
        }
        for name in [
            "",
            "response.",
            "response.dream.delta",
            "session.update",
            "chat_call.delta",
        ] {
            assert_eq!(Kind::of(name), Kind::Unknown, "{name}");
        }
    }
}
