//! The final message: which tool calls are whole, and the frames that carry it.

use prost::Message;
use serde::de::IgnoredAny;

use super::{
    state::Finish,
    transcript::{Block, Kind, split_at_most},
};
use crate::{
    proto::{Committed, FinishReason, Ledger, Part, Reasoning, ToolCall, committed::Flag, part},
    verdict::{Class, Failure, Origin, Stage},
};

/// Message bytes in one frame, which with everything else stays under 1 MiB.
pub const FRAME_BYTES: usize = 900 << 10;

/// The largest tool call, which has a frame of its own; also all withheld calls together.
pub const UNSPLIT_BYTES: usize = 3 << 20;

/// Bytes of protobuf around one part, at most.
const PART_OVERHEAD: usize = 32;

/// Everything of the final frame but the message.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// The last frame, without message and part number.
    pub last: Committed,
    /// Blocks that are not part of the message.
    withheld: Vec<usize>,
}

/// How far a client has been given the final message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCursor {
    block: usize,
    offset: usize,
    part: u32,
}

/// What of an accepted attempt the gate leaves out of the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The blocks of broken calls beside which others are accepted; they are withheld.
    pub calls: Vec<usize>,
    /// All text.
    pub text: bool,
}

/// Decides what of the accepted attempt is final.
///
/// Arguments are parsed strictly and never repaired. A response that was cut by the token limit gives
/// its incomplete calls as withheld, and a call that is its last block and has no arguments yet; a
/// filtered one all its calls; any other malformed call fails the attempt, unless it is `left_out`.
pub(super) fn close(
    blocks: &[Block],
    finish: &Finish,
    left_out: &LeftOut,
) -> Result<Closing, Failure> {
    use FinishReason::{ContentFilter, Length, Refusal, Stop, ToolCalls};
    let mut withheld = Vec::new();
    let mut withheld_calls = Vec::new();
    let mut callable = 0usize;
    let newest = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter().enumerate() {
        let Kind::ToolCall { id, name } = &block.kind else {
            if !block.kind.splits() && block.text.len() > UNSPLIT_BYTES {
                return Err(too_large(
                    "a block of the provider's own is larger than 3 MiB",
                ));
            }
            if left_out.text && block.kind == Kind::Text {
                withheld.push(index);
            }
            continue;
        };
        // A limit may have cut the newest call before its arguments began: no proof that it has none.
        let cut_short = finish.reason == Length && block.text.is_empty() && index == newest;
        let broken = left_out.calls.contains(&index);
        let whole = is_whole(name, &block.text) && !cut_short && !broken;
        let refused = matches!(finish.reason, ContentFilter | Refusal);
        if whole && !refused {
            if block.text.len() + name.len() + id.len() > UNSPLIT_BYTES {
                return Err(too_large("a tool call is larger than 3 MiB"));
            }
            callable += 1;
        } else if refused || broken || finish.reason == Length {
            withheld.push(index);
            withheld_calls.push(ToolCall {
                id: id.clone(),
                name: name.clone(),
                arguments_json: block.text.clone(),
            });
        } else {
            return Err(malformed(name));
        }
    }
    if withheld_calls
        .iter()
        .map(Message::encoded_len)
        .sum::<usize>()
        > UNSPLIT_BYTES
    {
        return Err(too_large("the withheld tool calls are larger than 3 MiB"));
    }
    let reason = match finish.reason {
        Stop if callable > 0 => ToolCalls,
        reason => reason,
    };
    let mut flags = Vec::new();
    if blocks.is_empty() {
        flags.push(Flag::Empty.into());
    }
    if !withheld_calls.is_empty() {
        flags.push(Flag::ToolCallsWithheld.into());
    }
    if left_out.text {
        flags.push(Flag::ContentSuppressed.into());
    }
    if finish.reason == FinishReason::Pause {
        flags.push(Flag::ContinuationRequired.into());
    }
    let last = Committed {
        r#final: true,
        finish_reason: reason.into(),
        native_finish_reason: finish.native.clone(),
        flags,
        withheld_tool_calls: withheld_calls,
        ..Committed::default()
    };
    Ok(Closing { last, withheld })
}

impl Closing {
    /// Marks the usage as an estimate, or as missing.
    pub fn flag_usage_estimated(&mut self) {
        self.last.flags.push(Flag::UsageEstimated.into());
    }

    /// Marks that a final snapshot differed from what had been streamed.
    pub fn flag_snapshot_mismatch(&mut self) {
        self.last.flags.push(Flag::SnapshotMismatch.into());
    }

    /// Adds the account.
    pub fn set_ledger(&mut self, ledger: Ledger) {
        self.last.ledger = Some(ledger);
    }

    /// The next frame; the last one has `final = true`.
    pub fn next_frame(&self, blocks: &[Block], cursor: &mut PartCursor) -> Committed {
        let (message, room) = self.next_parts(blocks, cursor);
        let is_last =
            cursor.block >= blocks.len() && (message.is_empty() || self.last.encoded_len() <= room);
        let mut frame = if is_last {
            self.last.clone()
        } else {
            Committed::default()
        };
        if !is_last || cursor.part > 0 {
            cursor.part += 1;
            frame.part = cursor.part;
        }
        frame.message = message;
        frame
    }

    /// As much of the message as one frame holds, and the room that is left in it.
    fn next_parts(&self, blocks: &[Block], cursor: &mut PartCursor) -> (Vec<Part>, usize) {
        let mut room = FRAME_BYTES;
        let mut parts = Vec::new();
        while let Some(block) = blocks.get(cursor.block) {
            if self.withheld.binary_search(&cursor.block).is_ok() {
                cursor.block += 1;
                continue;
            }
            let splits = block.kind.splits();
            let rest = block.text.get(cursor.offset..).unwrap_or_default();
            let size = rest.len() + block.other_bytes() + PART_OVERHEAD;
            if size <= room || (!splits && parts.is_empty()) {
                block.add_to(&mut parts, rest, true);
                *cursor = PartCursor {
                    block: cursor.block + 1,
                    offset: 0,
                    part: cursor.part,
                };
                room = room.saturating_sub(size);
                continue;
            }
            if splits && room > PART_OVERHEAD + 4 {
                let piece = split_at_most(rest, room - PART_OVERHEAD);
                block.add_to(&mut parts, piece, false);
                cursor.offset += piece.len();
                room = 0;
            }
            break;
        }
        (parts, room)
    }
}

impl Kind {
    /// Whether its text may come in several frames.
    fn splits(&self) -> bool {
        matches!(self, Kind::Text | Kind::Reasoning | Kind::Refusal)
    }
}

impl Block {
    /// Bytes of its part beside its text.
    fn other_bytes(&self) -> usize {
        let signature = self
            .signature
            .as_ref()
            .map_or(0, |signature| signature.len());
        match &self.kind {
            Kind::ToolCall { id, name } => id.len() + name.len(),
            _ => signature,
        }
    }

    /// Adds a part of it; one whose text goes on with the block before is one part with it.
    fn add_to(&self, parts: &mut Vec<Part>, text: &str, last: bool) {
        if self.joins
            && let Some(part::Part::Text(before)) = parts.last_mut().and_then(|p| p.part.as_mut())
        {
            return before.push_str(text);
        }
        parts.push(self.to_part(text, last));
    }

    /// A part of it; the `last` one carries what belongs to the whole.
    fn to_part(&self, text: &str, last: bool) -> Part {
        let signature = self.signature.as_ref().filter(|_| last);
        let part = match &self.kind {
            Kind::Text => part::Part::Text(text.to_owned()),
            Kind::Reasoning => part::Part::Reasoning(Reasoning {
                text: text.to_owned(),
                signature: signature.map_or_else(Vec::new, |signed| signed.as_bytes().to_vec()),
                ..Reasoning::default()
            }),
            Kind::Redacted => part::Part::Reasoning(Reasoning {
                redacted: text.as_bytes().to_vec(),
                ..Reasoning::default()
            }),
            Kind::Native => part::Part::NativeJson(text.as_bytes().to_vec()),
            Kind::Refusal => part::Part::Refusal(text.to_owned()),
            Kind::ToolCall { id, name } => part::Part::ToolCall(ToolCall {
                id: id.clone(),
                name: name.clone(),
                arguments_json: if text.is_empty() {
                    "{}".to_owned()
                } else {
                    text.to_owned()
                },
            }),
        };
        Part { part: Some(part) }
    }
}

/// A call can be handed out: it has a name, and its arguments are empty or one JSON value.
fn is_whole(name: &str, arguments: &str) -> bool {
    !name.is_empty()
        && (arguments.is_empty() || serde_json::from_str::<IgnoredAny>(arguments).is_ok())
}

fn malformed(name: &str) -> Failure {
    let message = match name {
        "" => "a tool call has no name".to_owned(),
        name => format!("the arguments of tool call {name} are not one valid JSON value"),
    };
    Failure::new(
        Class::MalformedOutput,
        Origin::Provider,
        Stage::Stream,
        message,
    )
}

fn too_large(message: &str) -> Failure {
    Failure::new(Class::TooLarge, Origin::Us, Stage::Stream, message)
}
