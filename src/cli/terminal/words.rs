//! Frames in words: one line each.

use std::time::Duration;

use crate::{
    proto::{
        Accepted, AttemptStarted, Committed, Executed, Failed, FinishReason, Mode, Part,
        PreviewReset, Progress, StoppedBy, ToolCall, Verdict, WaitSource, Waiting, committed::Flag,
        part::Part as Kind, waiting::Reason,
    },
    verdict::class,
};

pub(super) fn accepted(accepted: &Accepted) -> String {
    let what = if accepted.attached {
        "attached to"
    } else {
        "accepted:"
    };
    let attempts = match accepted.allowance {
        1 => "1 attempt".to_owned(),
        many => format!("{many} attempts"),
    };
    format!(
        "{what} generation {}, {attempts} in {}",
        accepted.generation_id,
        duration(accepted.deadline.as_ref()),
    )
}

pub(super) fn waiting(waiting: &Waiting) -> String {
    let why = match waiting.reason() {
        Reason::Unspecified => String::new(),
        Reason::Budget => format!(" for budget {}", waiting.budget),
        Reason::Cooldown => " until the credential may be used again".to_owned(),
        Reason::Backoff => " before the next attempt".to_owned(),
        Reason::Circuit => " for a circuit to close".to_owned(),
        Reason::LimiterUnavailable => format!(" for the engine of budget {}", waiting.budget),
        Reason::Connection => " for a free connection".to_owned(),
    };
    match &waiting.expected {
        Some(expected) => format!("waiting {}{why}", duration(Some(expected))),
        None => format!("waiting{why}"),
    }
}

pub(super) fn attempt_started(started: &AttemptStarted) -> String {
    let how = match started.mode() {
        Mode::Unspecified | Mode::First => "",
        Mode::Restart => ", from the start",
        Mode::Continue => ", from where it broke off",
        Mode::Resume => ", from what the provider stored",
        Mode::GateRetry => ", with a hint",
    };
    let fallback = if started.fallback { " (fallback)" } else { "" };
    format!(
        "attempt {} on {}{fallback}{how}",
        started.attempt, started.target
    )
}

/// `None` for a silence that nobody notices.
pub(super) fn progress(progress: &Progress) -> Option<String> {
    let silent = read(progress.silent_for.as_ref());
    (silent >= Duration::from_secs(1)).then(|| {
        let silent = duration(progress.silent_for.as_ref());
        format!("the provider is alive, but has written nothing for {silent}")
    })
}

pub(super) fn reset(reset: &PreviewReset) -> String {
    let attempt = format!("attempt {}", reset.attempt);
    let what = match reset.blocks.as_slice() {
        [] => format!("{attempt} is void"),
        [block] => format!("block {block} of {attempt} is void"),
        blocks => {
            let blocks: Vec<String> = blocks.iter().map(u32::to_string).collect();
            format!("blocks {} of {attempt} are void", blocks.join(", "))
        }
    };
    match &reset.verdict {
        Some(verdict) => format!("reset: {what}: {}", self::verdict(verdict)),
        None => format!("reset: {what}, another version comes"),
    }
}

pub(super) fn committed(committed: &Committed) -> String {
    let mut line = format!(
        "committed: {}",
        word(committed.finish_reason().as_str_name(), "FINISH_REASON_")
    );
    if committed.finish_reason() == FinishReason::Other {
        line.push_str(&format!(" ({})", committed.native_finish_reason));
    }
    if let Some(usage) = &committed.usage {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        line.push_str(&format!(", tokens in {input}, out {output}"));
    }
    for flag in committed.flags() {
        line.push_str(match flag {
            Flag::Unspecified => "",
            Flag::Empty => ", empty",
            Flag::ToolCallsWithheld => ", tool calls withheld",
            Flag::ContinuationRequired => ", to be continued",
            Flag::UsageEstimated => ", usage estimated",
            Flag::SnapshotMismatch => ", the snapshot differed from the stream",
            Flag::ContentSuppressed => ", shown output was suppressed",
        });
    }
    line
}

pub(super) fn failed(failed: &Failed) -> Vec<String> {
    let verdict = failed.verdict.clone().unwrap_or_default();
    let mut lines = vec![format!("failed: {}", self::verdict(&verdict))];
    if failed.stopped_by() != StoppedBy::Unspecified {
        let stopped_by = word(failed.stopped_by().as_str_name(), "STOPPED_BY_");
        lines.push(format!("stopped by: {stopped_by}"));
    }
    if let Some(wait) = &verdict.retry_after {
        lines.push(format!("retry after: {}", duration(Some(wait))));
    }
    let again = if failed.safe_to_send_again {
        "safe"
    } else {
        "not safe"
    };
    lines.push(format!("sending it again is {again}"));
    lines
}

/// A class, and the words that came with it.
fn verdict(verdict: &Verdict) -> String {
    let class = class::label(verdict.class());
    match verdict.message.as_str() {
        "" => class.to_owned(),
        message => format!("{class} ({message})"),
    }
}

pub(super) fn withheld(call: &ToolCall) -> String {
    format!(
        "withheld, not to be run: {} {}",
        call.name, call.arguments_json
    )
}

/// What of a message is text for the user.
pub(super) fn text(part: &Part) -> Option<&str> {
    match &part.part {
        Some(Kind::Text(text) | Kind::Refusal(text)) => Some(text),
        _ => None,
    }
}

/// What of a message is not text for the user, in a line.
pub(super) fn beside_text(part: &Part) -> Option<String> {
    match part.part.as_ref()? {
        Kind::Text(_) | Kind::Refusal(_) => None,
        Kind::Reasoning(reasoning) => Some(format!("reasoning: {}", reasoning.text)),
        Kind::ToolCall(call) => Some(format!(
            "tool call {} ({}): {}",
            call.name, call.id, call.arguments_json
        )),
        Kind::ToolResult(result) => Some(format!("result of tool call {}", result.tool_call_id)),
        Kind::Media(media) => Some(format!("media: {}", media.mime_type)),
        Kind::NativeJson(json) => Some(format!("native: {}", String::from_utf8_lossy(json))),
    }
}

pub(super) fn executed(executed: Executed) -> String {
    word(executed.as_str_name(), "EXECUTED_")
}

pub(super) fn wait_source(source: WaitSource) -> String {
    match source {
        WaitSource::Unspecified => String::new(),
        source => word(source.as_str_name(), "WAIT_SOURCE_"),
    }
}

/// A length of time: milliseconds below a second, hundredths below a minute, else seconds.
pub(super) fn duration(duration: Option<&prost_types::Duration>) -> String {
    let duration = read(duration);
    let milliseconds = duration
        .saturating_add(Duration::from_micros(500))
        .as_millis();
    if milliseconds == 0 {
        return "0 s".to_owned();
    }
    if milliseconds < 1000 {
        return format!("{milliseconds} ms");
    }
    if milliseconds < 60_000 {
        let text = format!("{:.2}", duration.as_secs_f64());
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return format!("{text} s");
    }
    let rounded = duration
        .saturating_add(Duration::from_millis(500))
        .as_secs();
    humantime::format_duration(Duration::from_secs(rounded)).to_string()
}

fn read(duration: Option<&prost_types::Duration>) -> Duration {
    let duration = duration.and_then(|duration| Duration::try_from(*duration).ok());
    duration.unwrap_or_default()
}

/// The name of an enum's value as a word.
fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix)
        .unwrap_or(name)
        .to_ascii_lowercase()
}
