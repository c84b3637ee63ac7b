//! The decision: seventeen rules, of which the first that matches counts.

use super::{ControlKind, Policy, Reason, Snapshot, announced};
use crate::proto::FinishReason;

/// What the gate makes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Commit it.
    Accept {
        /// As what. What the client is told as finish reason is the attempt's own: a truncated answer
        /// stays one.
        finish: Finish,
        /// Its visible text is not to be delivered: debris, or prose that the policy does not permit.
        suppress_text: bool,
    },
    /// Try again.
    Retry {
        /// Why.
        reason: Reason,
    },
}

/// As what an attempt is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// An answer.
    Stop,
    /// Tool calls.
    ToolCalls,
}

/// Judges a completed attempt.
///
/// Pure and total: every snapshot has an answer under every policy.
pub fn decide(snapshot: &Snapshot<'_>, policy: &Policy) -> Decision {
    certain_calls(snapshot, policy)
        .or_else(|| errors_and_demands(snapshot, policy))
        .or_else(|| calls_or_terminal(snapshot, policy))
        .or_else(|| lost_calls(snapshot))
        .unwrap_or_else(|| answer(snapshot, policy))
}

/// Rules 1 to 3: calls that no other evidence can take back.
fn certain_calls(s: &Snapshot<'_>, policy: &Policy) -> Option<Decision> {
    // 1. The client has them already.
    if s.calls_delivered {
        return Some(accept(Finish::ToolCalls, false));
    }
    // 2. Structured calls are harder evidence than any text.
    if !s.native_tool_calls.is_empty() {
        let debris = !s.text_tool_errors.is_empty() || s.orphan_residue;
        return Some(accept(Finish::ToolCalls, debris));
    }
    // 3. To try again would set off the same runaway text.
    if s.text_channel_cut && !s.tool_calls.is_empty() {
        let debris = !s.tool_errors.is_empty() || s.orphan_residue;
        let unwanted = !policy.prose_with_tools && !s.is_blank();
        return Some(accept(Finish::ToolCalls, debris || unwanted));
    }
    None
}

/// Rules 4 to 6: broken calls, and demanded ones that are missing.
fn errors_and_demands(s: &Snapshot<'_>, policy: &Policy) -> Option<Decision> {
    let veto = is_vetoed(s, policy);
    // 4.
    if policy.tool_errors_before_required && veto {
        return Some(retry(Reason::ToolError));
    }
    // 5. A refusal, a filter or a pause is no violation, and costs one send. A truncated answer may only
    // have been too long to come to its call.
    let is_excused = is_terminal(s.finish_reason) && s.finish_reason != FinishReason::Length;
    if s.has_tools && s.requires_tool_call && s.tool_calls.is_empty() && !is_excused {
        return Some(retry(Reason::RequiredTool));
    }
    // 6.
    veto.then_some(retry(Reason::ToolError))
}

/// Whether broken calls reject the attempt. Where the provider itself cut it off, a structured call that
/// is incomplete only shows where the cut was.
fn is_vetoed(s: &Snapshot<'_>, policy: &Policy) -> bool {
    let errors = match is_terminal(s.finish_reason) {
        true => &s.text_tool_errors,
        false => &s.tool_errors,
    };
    !errors.is_empty() && (s.tool_calls.is_empty() || policy.tool_errors_veto_with_calls)
}

/// Rules 7 and 8.
fn calls_or_terminal(s: &Snapshot<'_>, policy: &Policy) -> Option<Decision> {
    // 7. The provider has said why there is no more; to ask again would not help.
    if is_terminal(s.finish_reason) {
        return Some(accept(Finish::Stop, false));
    }
    // 8. Where there is no wrapper, even calls without text are not known to be without prose.
    if s.tool_calls.is_empty() {
        return None;
    }
    let prose = s.control_kind != Some(ControlKind::Empty) || !s.is_blank();
    match prose && !policy.prose_with_tools {
        true => Some(retry(Reason::ProseWithTools)),
        false => Some(accept(Finish::ToolCalls, false)),
    }
}

/// Rules 9 to 12: there is no call, but signs that there should have been one. The strongest comes
/// first. Without tools there are no such signs.
fn lost_calls(s: &Snapshot<'_>) -> Option<Decision> {
    if !s.has_tools {
        return None;
    }
    // 9.
    if !s.intercepted_tool_names.is_empty() {
        return Some(retry(Reason::Intercepted));
    }
    // 10.
    if s.orphan_residue && !s.protocol_recovery_spent {
        return Some(retry(Reason::MalformedProtocol));
    }
    // 11.
    if s.think_evidence {
        return Some(retry(Reason::ThoughtToolCall));
    }
    // 12. Where there is a wrapper, it says what the prose is.
    let announced = s.control_kind.is_none() && announced::is_announced(&s.visible_text);
    announced.then_some(retry(Reason::MissingTool))
}

/// Rules 13 to 17: what the wrapper makes of the text.
fn answer(s: &Snapshot<'_>, policy: &Policy) -> Decision {
    use ControlKind::{Bare, Blocked, Empty, Final, InvalidControl};
    match s.control_kind {
        // 13.
        Some(Final | Blocked) if s.is_blank() => retry(Reason::Empty),
        Some(Final | Blocked) => accept(Finish::Stop, false),
        // 14.
        Some(Empty) => retry(Reason::Empty),
        // 15.
        Some(InvalidControl) => retry(Reason::InvalidControl),
        // 17, where nothing says that there is text.
        None if s.is_blank() => retry(Reason::Empty),
        // 16, and 17 with text.
        Some(Bare) | None if policy.accept_bare_final => accept(Finish::Stop, false),
        Some(Bare) | None => retry(Reason::Bare),
    }
}

/// Whether the provider ended the attempt for a reason that trying again does not remove. A pause is one:
/// the client has to send the turn back before it goes on.
fn is_terminal(reason: FinishReason) -> bool {
    use FinishReason::{
        ContentFilter, Length, Other, Pause, Refusal, Stop, ToolCalls, Unspecified,
    };
    match reason {
        Length | ContentFilter | Refusal | Pause => true,
        Unspecified | Stop | ToolCalls | Other => false,
    }
}

fn accept(finish: Finish, suppress_text: bool) -> Decision {
    Decision::Accept {
        finish,
        suppress_text,
    }
}

fn retry(reason: Reason) -> Decision {
    Decision::Retry { reason }
}
