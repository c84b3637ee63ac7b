//! Frames as one line each, complete but for the ledger.

use std::time::Duration;

use redrive::proto::{
    Committed, Failed, FinishReason, GenerateResponse, Mode, Part, StoppedBy, Verdict,
    VerdictClass, committed::Flag, delta::Content, generate_response::Frame, part, waiting,
};

/// The frames, in order.
pub fn show_all(frames: &[GenerateResponse]) -> Vec<String> {
    frames.iter().map(show).collect()
}

/// One frame.
pub fn show(response: &GenerateResponse) -> String {
    match response.frame.as_ref().expect("a frame") {
        Frame::Accepted(f) => {
            let attached = if f.attached { " attached" } else { "" };
            format!(
                "accepted left={} deadline={}{attached}",
                f.allowance,
                time(f.deadline)
            )
        }
        Frame::Waiting(f) => {
            let reason = short(waiting::Reason::try_from(f.reason).unwrap().as_str_name());
            let budget = match f.budget.as_str() {
                "" => String::new(),
                budget => format!(" {budget}"),
            };
            match f.expected {
                Some(_) => format!("waiting {reason}{budget} {}", time(f.expected)),
                None => format!("waiting {reason}{budget}"),
            }
        }
        Frame::AttemptStarted(f) => {
            let mode = short(Mode::try_from(f.mode).unwrap().as_str_name());
            let fallback = if f.fallback { " fallback" } else { "" };
            assert_eq!(f.target, format!("{}/{}", f.provider, f.model));
            format!(
                "attempt {} {} {mode} left={}{fallback}",
                f.attempt, f.target, f.allowance_left
            )
        }
        Frame::Delta(f) => {
            let content = match f.content.as_ref().expect("content") {
                Content::Text(t) => format!("{t:?}"),
                Content::Reasoning(t) => format!("reasoning {t:?}"),
                Content::Refusal(t) => format!("refusal {t:?}"),
                Content::ToolCall(c) => format!("call {} {}", c.id, c.name),
                Content::ToolArguments(t) => format!("arguments {t:?}"),
                other => format!("{other:?}"),
            };
            format!("delta {}.{} {content}", f.attempt, f.block)
        }
        Frame::Progress(f) => format!("progress {} {}", f.attempt, time(f.silent_for)),
        Frame::PreviewReset(f) => {
            let class = class(f.verdict.as_ref());
            let blocks: String = f.blocks.iter().map(|block| format!(".{block}")).collect();
            match f.wait {
                Some(_) => format!("reset {}{blocks} {class} wait={}", f.attempt, time(f.wait)),
                None => format!("reset {}{blocks} {class}", f.attempt),
            }
        }
        Frame::Committed(f) => show_committed(f),
        Frame::Failed(f) => show_failed(f),
    }
}

fn show_committed(f: &Committed) -> String {
    if !f.r#final && f.part == 0 {
        let bare = Committed {
            through_sequence: f.through_sequence,
            ..Committed::default()
        };
        assert_eq!(*f, bare, "a confirmation carries nothing else");
        return format!("confirmed through {}", f.through_sequence);
    }
    let mut line = String::from("committed");
    if f.part > 0 {
        line += &format!(" part={}", f.part);
    }
    if f.r#final {
        let finish = FinishReason::try_from(f.finish_reason).unwrap();
        line += &format!(
            " {}",
            short(finish.as_str_name().trim_start_matches("FINISH_"))
        );
    }
    for part in &f.message {
        line += &format!(" {}", show_part(part));
    }
    for flag in &f.flags {
        line += &format!(" {}", Flag::try_from(*flag).unwrap().as_str_name());
    }
    for call in &f.withheld_tool_calls {
        line += &format!(" withheld {} {:?}", call.name, call.arguments_json);
    }
    line
}

fn show_part(part: &Part) -> String {
    match part.part.as_ref().expect("a part") {
        part::Part::Text(t) => format!("{t:?}"),
        part::Part::Reasoning(r) => format!("reasoning {:?}", r.text),
        part::Part::Refusal(t) => format!("refusal {t:?}"),
        part::Part::ToolCall(c) => format!("call {} {} {:?}", c.id, c.name, c.arguments_json),
        other => format!("{other:?}"),
    }
}

fn show_failed(f: &Failed) -> String {
    let by = StoppedBy::try_from(f.stopped_by).unwrap().as_str_name();
    let by = by.trim_start_matches("STOPPED_BY_").to_lowercase();
    let safe = if f.safe_to_send_again { "" } else { " unsafe" };
    let verdict = f.verdict.as_ref();
    let wait = match verdict.and_then(|v| v.retry_after) {
        Some(wait) => format!(" retry_after={}", time(Some(wait))),
        None => String::new(),
    };
    let budget = match verdict.map_or("", |v| &v.budget) {
        "" => String::new(),
        budget => format!(" budget={budget}"),
    };
    format!("failed {} by {by}{wait}{budget}{safe}", class(verdict))
}

/// The class of a verdict in snake_case, and why the gate rejected, if it did.
pub fn class(verdict: Option<&Verdict>) -> String {
    let verdict = verdict.expect("a verdict");
    let class = VerdictClass::try_from(verdict.class).unwrap();
    let class = redrive::verdict::class::label(class);
    match verdict.gate_reason.as_str() {
        "" => class.to_owned(),
        reason => format!("{class}/{reason}"),
    }
}

fn short(name: &str) -> String {
    let word = name.split_once('_').map_or(name, |(_, word)| word);
    word.to_lowercase()
}

fn time(value: Option<prost_types::Duration>) -> String {
    let value = value.expect("a duration");
    format!(
        "{:?}",
        Duration::new(value.seconds as u64, value.nanos as u32)
    )
}
