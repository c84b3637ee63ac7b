//! The lines of the truth table.

use redrive::{
    gate::{ControlKind::*, Fault, Policy, Reason, Snapshot},
    proto::FinishReason,
    protocol::{DecoderOptions, Event, Protocol, adapter::adapter},
};

use crate::{
    bent, calls, calls_without_text, error, one_call, retry, stop, truth::Row, unknown_tool,
};

const ANNOUNCED: &str = "I'll run the tests now.";

const AGENT: Policy = Policy::AGENT;
const LENIENT: Policy = Policy::LENIENT;

/// Lenient but for the veto.
const VETO: Policy = Policy {
    tool_errors_veto_with_calls: true,
    ..LENIENT
};

/// What the decoder of Anthropic Messages makes of a finish reason in the provider's own word.
fn finish(native: &str) -> FinishReason {
    let mut decoder = adapter(Protocol::AnthropicMessages)
        .unwrap()
        .decoder(DecoderOptions::default());
    let event = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{native}"}},"usage":{{"output_tokens":1}}}}"#
    );
    let stream =
        format!("event: message_delta\ndata: {event}\n\ndata: {{\"type\":\"message_stop\"}}\n\n");
    let mut found = None;
    decoder.feed(stream.as_bytes(), &mut |event| {
        if let Event::Finish { reason, .. } = event {
            found = Some(reason);
        }
    });
    found.expect("the stream has a finish reason")
}

fn all_evidence(s: &mut Snapshot<'static>) {
    s.intercepted_tool_names = one_call();
    s.orphan_residue = true;
    s.think_evidence = true;
    s.visible_text = ANNOUNCED.into();
}

fn row(
    number: u32,
    says: &'static str,
    policy: Policy,
    expected: redrive::gate::Decision,
    bend: impl FnOnce(&mut Snapshot<'static>),
) -> Row {
    Row {
        number,
        says,
        snapshot: bent(bend),
        policy,
        expected,
    }
}

// A table is read by its lines.
#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    vec![
        row(1, "nothing to read is empty", LENIENT, retry(Reason::Empty),
            |s| s.visible_text = "".into()),
        row(2, "text without a wrapper is bare under agent", AGENT, retry(Reason::Bare),
            |s| s.control_kind = Some(Bare)),
        row(2, "text without a wrapper is an answer under lenient", LENIENT, stop(),
            |s| s.control_kind = Some(Bare)),
        row(3, "prose of a model without wrappers is bare under agent", AGENT, retry(Reason::Bare),
            |s| s.visible_text = "prose".into()),
        row(4, "a broken wrapper is invalid_control", LENIENT, retry(Reason::InvalidControl),
            |s| s.control_kind = Some(InvalidControl)),
        row(5, "a demanded call that is missing is required_tool", LENIENT, retry(Reason::RequiredTool),
            |s| s.requires_tool_call = true),
        row(6, "a call of an unknown tool is tool_error", LENIENT, retry(Reason::ToolError),
            |s| s.tool_errors = unknown_tool()),
        row(7, "prose beside a call is prose_with_tools under agent", AGENT, retry(Reason::ProseWithTools),
            |s| s.tool_calls = one_call()),
        row(7, "prose beside a call is fine under lenient", LENIENT, calls(),
            |s| s.tool_calls = one_call()),
        row(8, "a call that was taken is intercepted", LENIENT, retry(Reason::Intercepted),
            |s| s.intercepted_tool_names = one_call()),
        row(9, "debris is malformed_protocol", LENIENT, retry(Reason::MalformedProtocol),
            |s| s.orphan_residue = true),
        row(10, "a call in hidden reasoning is thought_tool_call", LENIENT, retry(Reason::ThoughtToolCall),
            |s| s.think_evidence = true),
        row(11, "an announcement is missing_tool", LENIENT, retry(Reason::MissingTool),
            |s| s.visible_text = ANNOUNCED.into()),
        row(12, "demanded and broken: the demand first under lenient", LENIENT, retry(Reason::RequiredTool),
            |s| { s.requires_tool_call = true; s.tool_errors = unknown_tool(); }),
        row(12, "demanded and broken: the error first under agent", AGENT, retry(Reason::ToolError),
            |s| { s.requires_tool_call = true; s.tool_errors = unknown_tool(); }),
        row(13, "a good call beside a broken one is accepted under lenient", LENIENT, calls(),
            |s| { s.tool_calls = one_call(); s.tool_errors = unknown_tool(); }),
        row(13, "a good call beside a broken one is rejected with the veto", VETO, retry(Reason::ToolError),
            |s| { s.tool_calls = one_call(); s.tool_errors = unknown_tool(); }),
        row(14, "calls that were delivered win over everything", LENIENT, calls(),
            |s| { s.calls_delivered = true; s.tool_errors = unknown_tool(); s.intercepted_tool_names = one_call(); s.visible_text = "".into(); s.requires_tool_call = true; }),
        row(15, "a structured call wins over a broken one, and keeps its text", LENIENT, calls(),
            |s| { s.native_tool_calls = one_call(); s.tool_errors = unknown_tool(); }),
        row(16, "a structured call beside a broken text call loses the text", LENIENT, calls_without_text(),
            |s| { s.native_tool_calls = one_call(); s.tool_errors = unknown_tool(); s.text_tool_errors = unknown_tool(); }),
        row(16, "a structured call beside debris loses the text", LENIENT, calls_without_text(),
            |s| { s.native_tool_calls = one_call(); s.orphan_residue = true; }),
        row(17, "calls of a cut text are accepted with their prose under lenient", LENIENT, calls(),
            |s| { s.text_channel_cut = true; s.tool_calls = one_call(); }),
        row(17, "calls of a cut text lose their prose under agent", AGENT, calls_without_text(),
            |s| { s.text_channel_cut = true; s.tool_calls = one_call(); }),
        row(18, "calls of a cut text beside a broken one lose the text", LENIENT, calls_without_text(),
            |s| { s.text_channel_cut = true; s.tool_calls = one_call(); s.tool_errors = unknown_tool(); }),
        row(18, "calls of a cut text beside debris lose the text", LENIENT, calls_without_text(),
            |s| { s.text_channel_cut = true; s.tool_calls = one_call(); s.orphan_residue = true; }),
        row(19, "a cut text without calls is judged as any other", LENIENT, retry(Reason::Empty),
            |s| { s.text_channel_cut = true; s.visible_text = "".into(); }),
        row(20, "a truncated answer may be empty", LENIENT, stop(),
            |s| { s.finish_reason = FinishReason::Length; s.visible_text = "".into(); }),
        row(21, "a filtered answer is accepted whatever it shows", LENIENT, stop(),
            |s| { s.finish_reason = FinishReason::ContentFilter; s.intercepted_tool_names = one_call(); s.orphan_residue = true; s.think_evidence = true; s.visible_text = ANNOUNCED.into(); }),
        row(22, "a truncated answer with a broken text call is tool_error", LENIENT, retry(Reason::ToolError),
            |s| { s.finish_reason = FinishReason::Length; s.tool_errors = unknown_tool(); s.text_tool_errors = unknown_tool(); }),
        row(23, "a truncated answer with a broken structured call is accepted", LENIENT, stop(),
            |s| { s.finish_reason = FinishReason::Length; s.tool_errors = vec![error("Bash", Fault::InvalidArguments)]; }),
        row(24, "without tools nothing is demanded, taken or thought", LENIENT, stop(),
            |s| { s.has_tools = false; s.requires_tool_call = true; s.intercepted_tool_names = one_call(); s.think_evidence = true; }),
        row(25, "a demanded call that came is accepted", LENIENT, calls(),
            |s| { s.requires_tool_call = true; s.tool_calls = one_call(); }),
        row(26, "a final wrapper with text is an answer", AGENT, stop(),
            |s| s.control_kind = Some(Final)),
        row(26, "a blocked wrapper with text is an answer", AGENT, stop(),
            |s| s.control_kind = Some(Blocked)),
        row(27, "a final wrapper without text is empty", AGENT, retry(Reason::Empty),
            |s| { s.control_kind = Some(Final); s.visible_text = "".into(); }),
        row(27, "a blocked wrapper without text is empty", AGENT, retry(Reason::Empty),
            |s| { s.control_kind = Some(Blocked); s.visible_text = "".into(); }),
        row(28, "neither wrapper nor text is empty", AGENT, retry(Reason::Empty),
            |s| s.control_kind = Some(Empty)),
        row(29, "a final wrapper may tell of an action", AGENT, stop(),
            |s| { s.control_kind = Some(Final); s.visible_text = ANNOUNCED.into(); }),
        row(30, "of all evidence the intercepted call counts first", LENIENT, retry(Reason::Intercepted),
            all_evidence),
        row(30, "then the debris", LENIENT, retry(Reason::MalformedProtocol),
            |s| { all_evidence(s); s.intercepted_tool_names.clear(); }),
        row(30, "then the call in hidden reasoning", LENIENT, retry(Reason::ThoughtToolCall),
            |s| { all_evidence(s); s.intercepted_tool_names.clear(); s.orphan_residue = false; }),
        row(30, "then the announcement", LENIENT, retry(Reason::MissingTool),
            |s| { all_evidence(s); s.intercepted_tool_names.clear(); s.orphan_residue = false; s.think_evidence = false; }),
        row(31, "max_tokens is as length under lenient", LENIENT, stop(),
            |s| { s.finish_reason = finish("max_tokens"); s.visible_text = "".into(); }),
        row(31, "max_tokens is as length under agent", AGENT, stop(),
            |s| { s.finish_reason = finish("max_tokens"); s.visible_text = "".into(); }),
        row(32, "a truncated answer without the demanded call is required_tool", AGENT, retry(Reason::RequiredTool),
            |s| { s.finish_reason = FinishReason::Length; s.requires_tool_call = true; }),
        row(32, "a filtered answer without the demanded call is accepted", AGENT, stop(),
            |s| { s.finish_reason = FinishReason::ContentFilter; s.requires_tool_call = true; }),
        row(32, "so is a refusal", LENIENT, stop(),
            |s| { s.finish_reason = FinishReason::Refusal; s.requires_tool_call = true; }),
        row(32, "so is a paused turn, which the client has to send back", AGENT, stop(),
            |s| { s.finish_reason = FinishReason::Pause; s.requires_tool_call = true; s.visible_text = "".into(); }),
        row(33, "once the recovery is spent, debris is judged by its wrapper", AGENT, stop(),
            |s| { s.orphan_residue = true; s.protocol_recovery_spent = true; s.control_kind = Some(Final); }),
        row(33, "once the recovery is spent, debris without a wrapper is bare", AGENT, retry(Reason::Bare),
            |s| { s.orphan_residue = true; s.protocol_recovery_spent = true; }),
        row(34, "once the recovery is spent, debris beside a structured call is still left out", AGENT, calls_without_text(),
            |s| { s.native_tool_calls = one_call(); s.orphan_residue = true; s.protocol_recovery_spent = true; }),
    ]
}
