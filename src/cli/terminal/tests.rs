//! Golden strings: what a terminal gets, and what a pipe gets.

use super::*;
use crate::proto::{
    Accepted, AttemptStarted, Delta, Executed, LedgerEntry, Mode, PreviewReset, Reasoning,
    ToolCall, ToolCallStart, Usage, Verdict, VerdictClass, WaitSource, Waiting, delta::Content,
    part, waiting::Reason,
};

const WINDOW: Window = Window {
    columns: 20,
    rows: 10,
};

/// What `frames` look like.
fn shown(look: Look, frames: impl IntoIterator<Item = Frame>) -> String {
    let mut out = Vec::new();
    let mut view = View::new(&mut out, look);
    for frame in frames {
        view.frame(&frame).unwrap();
    }
    String::from_utf8(out).unwrap()
}

fn delta(block: u32, content: Content) -> Frame {
    Frame::Delta(Delta {
        attempt: 1,
        block,
        content: Some(content),
    })
}

fn text(text: &str) -> Frame {
    delta(0, Content::Text(text.to_owned()))
}

fn stall() -> Verdict {
    Verdict {
        class: VerdictClass::Stall.into(),
        message: "silence".to_owned(),
        ..Verdict::default()
    }
}

fn reset(blocks: &[u32]) -> Frame {
    Frame::PreviewReset(PreviewReset {
        attempt: 1,
        blocks: blocks.to_vec(),
        verdict: Some(stall()),
        ..PreviewReset::default()
    })
}

fn parts(parts: impl IntoIterator<Item = part::Part>) -> Vec<Part> {
    parts
        .into_iter()
        .map(|part| Part { part: Some(part) })
        .collect()
}

fn committed(message: Vec<Part>) -> Frame {
    Frame::Committed(Committed {
        r#final: true,
        message,
        finish_reason: 1,
        ..Committed::default()
    })
}

fn committed_text(text: &str) -> Frame {
    committed(parts([part::Part::Text(text.to_owned())]))
}

fn seconds(seconds: f64) -> Option<prost_types::Duration> {
    std::time::Duration::from_secs_f64(seconds).try_into().ok()
}

/// A generation that recovers from a stall.
fn recovery() -> [Frame; 8] {
    [
        Frame::Accepted(Accepted {
            generation_id: "0198".to_owned(),
            allowance: 11,
            deadline: seconds(599.9),
            attached: false,
        }),
        text("The sky"),
        text(" is"),
        reset(&[]),
        Frame::Waiting(Waiting {
            reason: Reason::Backoff.into(),
            expected: seconds(0.3),
            ..Waiting::default()
        }),
        Frame::AttemptStarted(AttemptStarted {
            attempt: 2,
            target: "p/m".to_owned(),
            mode: Mode::Restart.into(),
            fallback: true,
            ..AttemptStarted::default()
        }),
        text("Because."),
        committed_text("Because."),
    ]
}

#[test]
fn a_pipe_gets_lines_and_no_escape_codes() {
    let expected = "\
· accepted: generation 0198, 11 attempts in 10m
preview: The sky is
void: ~~The sky is~~
· reset: attempt 1 is void: stall (silence)
· waiting 300 ms before the next attempt
· attempt 2 on p/m (fallback), from the start
preview: Because.
committed: Because.
· committed: stop
";
    assert_eq!(shown(Look::Plain, recovery()), expected);
}

#[test]
fn a_wait_for_the_engine_of_a_budget_is_named() {
    let away = |expected| {
        Frame::Waiting(Waiting {
            reason: Reason::LimiterUnavailable.into(),
            budget: "main".to_owned(),
            expected,
        })
    };
    let expected = "\
· waiting for the engine of budget main
· waiting 1m 10s for the engine of budget main
";
    let frames = [away(None), away(seconds(70.0))];
    assert_eq!(shown(Look::Plain, frames), expected);
}

#[test]
fn a_terminal_gets_dim_preview_that_is_struck_through_or_made_plain_in_place() {
    let expected = "\
\x1b[36m· accepted: generation 0198, 11 attempts in 10m\x1b[0m
\x1b[2mThe sky\x1b[0m\x1b[2m is\x1b[0m\r\x1b[J\x1b[2;9mThe sky is\x1b[0m
\x1b[36m· reset: attempt 1 is void: stall (silence)\x1b[0m
\x1b[36m· waiting 300 ms before the next attempt\x1b[0m
\x1b[36m· attempt 2 on p/m (fallback), from the start\x1b[0m
\x1b[2mBecause.\x1b[0m\r\x1b[JBecause.
\x1b[36m· committed: stop\x1b[0m
";
    assert_eq!(shown(Look::Styled(WINDOW), recovery()), expected);
}

#[test]
fn lines_are_broken_before_the_terminal_would_so_that_all_rows_are_taken_back() {
    let long = "seventeen letters and more 語語語語語語語語語語";
    let frames = [text(long), committed_text(long)];
    let expected = "\
\x1b[2mseventeen letters a
nd more 語語語語語
語語語語語\x1b[0m\r\x1b[2A\x1b[J\
seventeen letters and more 語語語語語語語語語語
\x1b[36m· committed: stop\x1b[0m
";
    assert_eq!(shown(Look::Styled(WINDOW), frames), expected);
}

#[test]
fn what_has_left_the_screen_is_not_written_over_but_again_below() {
    let window = Window { rows: 2, ..WINDOW };
    let frames = [text("1\n2\n3"), committed_text("1\n2\n3")];
    let expected = "\
\x1b[2m1
2
3\x1b[0m
1
2
3
\x1b[36m· committed: stop\x1b[0m
";
    assert_eq!(shown(Look::Styled(window), frames), expected);
}

#[test]
fn a_very_long_preview_is_not_kept_and_its_reset_is_still_told() {
    let long = "x".repeat(100 << 10);
    for look in [Look::Plain, Look::Styled(WINDOW)] {
        let told = shown(look, [text(&long), text("more"), reset(&[])]);
        assert!(told.contains("more"), "the rest is shown too");
        assert_eq!(told.matches("reset: attempt 1 is void").count(), 1);
        assert!(told.len() < 120 << 10, "the void text is not written again");
    }
}

#[test]
fn reasoning_and_tool_calls_have_lines_of_their_own() {
    let call = ToolCallStart {
        id: "call_1".to_owned(),
        name: "weather".to_owned(),
    };
    let message = parts([
        part::Part::Reasoning(Reasoning {
            text: "Where?".to_owned(),
            ..Reasoning::default()
        }),
        part::Part::Text("Let me".to_owned()),
        part::Part::Text(" look.".to_owned()),
        part::Part::ToolCall(ToolCall {
            id: "call_1".to_owned(),
            name: "weather".to_owned(),
            arguments_json: "{}".to_owned(),
        }),
    ]);
    let frames = [
        delta(0, Content::Reasoning("Where?".to_owned())),
        delta(1, Content::Text("Let me look.".to_owned())),
        delta(2, Content::ToolCall(call)),
        delta(2, Content::ToolArguments("{}".to_owned())),
        committed(message),
    ];
    let expected = "\
preview (reasoning): Where?
preview: Let me look.
preview: tool call weather: {}
· reasoning: Where?
committed: Let me look.
· tool call weather (call_1): {}
· committed: stop
";
    assert_eq!(shown(Look::Plain, frames.clone()), expected);
    let expected = "\
\x1b[2;3mWhere?\x1b[0m
\x1b[2mLet me look.\x1b[0m
\x1b[2mtool call weather: \x1b[0m\x1b[2m{}\x1b[0m\r\x1b[2A\x1b[J\
\x1b[36m· reasoning: Where?\x1b[0m
Let me look.
\x1b[36m· tool call weather (call_1): {}\x1b[0m
\x1b[36m· committed: stop\x1b[0m
";
    let wide = Window {
        columns: 40,
        ..WINDOW
    };
    assert_eq!(shown(Look::Styled(wide), frames), expected);
}

#[test]
fn a_reset_of_an_attempt_leaves_the_text_that_it_was_to_continue() {
    let continued = |text: &str| {
        Frame::Delta(Delta {
            attempt: 2,
            block: 1,
            content: Some(Content::Text(text.to_owned())),
        })
    };
    let void = Frame::PreviewReset(PreviewReset {
        attempt: 2,
        verdict: Some(stall()),
        ..PreviewReset::default()
    });
    let frames = [
        text("The sky"),
        continued(" was"),
        void,
        continued(" is blue."),
        committed_text("The sky is blue."),
    ];
    let expected = "\
preview: The sky
preview:  was
void: ~~ was~~
· reset: attempt 2 is void: stall (silence)
preview: The sky
preview:  is blue.
committed: The sky is blue.
· committed: stop
";
    assert_eq!(shown(Look::Plain, frames), expected);
}

#[test]
fn a_reset_of_some_blocks_leaves_the_others_as_preview() {
    let frames = [
        delta(0, Content::Reasoning("Hm.".to_owned())),
        delta(1, Content::Text("Wrong.".to_owned())),
        reset(&[1]),
        delta(2, Content::Text("Right.".to_owned())),
        committed_text("Right."),
    ];
    let expected = "\
preview (reasoning): Hm.
preview: Wrong.
void: ~~Wrong.~~
· reset: block 1 of attempt 1 is void: stall (silence)
preview (reasoning): Hm.
preview: Right.
committed: Right.
· committed: stop
";
    assert_eq!(shown(Look::Plain, frames.clone()), expected);
    let expected = "\
\x1b[2;3mHm.\x1b[0m
\x1b[2mWrong.\x1b[0m\r\x1b[1A\x1b[J\x1b[2;3mHm.\x1b[0m
\x1b[2;9mWrong.\x1b[0m
\x1b[36m· reset: block 1 of attempt 1 is void: stall (silence)\x1b[0m
\x1b[2;3mHm.\x1b[0m
\x1b[2mRight.\x1b[0m\r\x1b[1A\x1b[JRight.
\x1b[36m· committed: stop\x1b[0m
";
    assert_eq!(shown(Look::Styled(WINDOW), frames), expected);
}

#[test]
fn a_silence_is_told_where_it_falls_and_short_ones_are_not() {
    let progress = |silent_for| {
        Frame::Progress(Progress {
            attempt: 1,
            silent_for: seconds(silent_for),
        })
    };
    let frames = [
        progress(0.2),
        text("One,"),
        progress(10.0),
        text("two."),
        reset(&[]),
    ];
    let expected = "\
preview: One,
· the provider is alive, but has written nothing for 10 s
preview: two.
void: ~~One,~~
void: ~~two.~~
· reset: attempt 1 is void: stall (silence)
";
    assert_eq!(shown(Look::Plain, frames.clone()), expected);
    let silence = "\x1b[36m\n· the provider is alive, but has written nothing for 10 s\n\x1b[0m";
    let expected = format!(
        "\x1b[2mOne,\x1b[0m{silence}\x1b[2mtwo.\x1b[0m\r\x1b[2A\x1b[J\
         \x1b[2;9mOne,\x1b[0m{silence}\x1b[2;9mtwo.\x1b[0m\n\
         \x1b[36m· reset: attempt 1 is void: stall (silence)\x1b[0m\n"
    );
    let wide = Window {
        columns: 80,
        ..WINDOW
    };
    assert_eq!(shown(Look::Styled(wide), frames), expected);
}

#[test]
fn a_message_in_parts_is_shown_once_and_whole() {
    let mut first = Committed {
        part: 1,
        message: parts([part::Part::Text("Half ".to_owned())]),
        ..Committed::default()
    };
    let frames = [Frame::Committed(first.clone()), {
        first.part = 2;
        first.r#final = true;
        first.finish_reason = 2;
        first.message = parts([part::Part::Text("and half.".to_owned())]);
        Frame::Committed(first)
    }];
    let expected = "committed: Half and half.\n· committed: length\n";
    assert_eq!(shown(Look::Plain, frames), expected);
}

#[test]
fn a_failure_voids_the_preview_and_says_all_that_is_known() {
    let failed = Failed {
        verdict: Some(Verdict {
            retry_after: seconds(90.0),
            ..stall()
        }),
        stopped_by: 4,
        safe_to_send_again: true,
        ledger: None,
    };
    let expected = "\
preview: Half
void: ~~Half~~
· failed: stall (silence)
· stopped by: wait_too_long
· retry after: 1m 30s
· sending it again is safe
";
    let frames = [text("Half"), Frame::Failed(failed)];
    assert_eq!(shown(Look::Plain, frames), expected);
}

#[test]
fn what_a_model_or_a_provider_writes_is_never_obeyed() {
    let mut verdict = stall();
    verdict.message = "two\nlines\x1b[2J".to_owned();
    let frames = [
        text("a\x1b[31mb"),
        Frame::PreviewReset(PreviewReset {
            attempt: 1,
            verdict: Some(verdict),
            ..PreviewReset::default()
        }),
        committed_text("c\rd"),
    ];
    let expected = "\
preview: a\\u{1b}[31mb
void: ~~a\\u{1b}[31mb~~
· reset: attempt 1 is void: stall (two lines\\u{1b}[2J)
committed: c\\u{d}d
· committed: stop
";
    assert_eq!(shown(Look::Plain, frames), expected);
}

#[test]
fn a_ledger_is_a_table_with_a_line_of_sums() {
    let failed = LedgerEntry {
        attempt: 1,
        target: "p/m".to_owned(),
        executed: Executed::Yes.into(),
        verdict: Some(stall()),
        time_to_first_token: seconds(0.25),
        usage: Some(Usage {
            output_tokens: 17,
            ..Usage::default()
        }),
        usage_estimated: true,
        ..LedgerEntry::default()
    };
    let accepted = LedgerEntry {
        attempt: 2,
        target: "other/model".to_owned(),
        executed: Executed::Maybe.into(),
        waited: seconds(1.25),
        wait_source: WaitSource::Provider.into(),
        ..LedgerEntry::default()
    };
    let ledger = Ledger {
        entries: vec![failed, accepted],
        attempts: 2,
        sends: 2,
        void_output_tokens: 17,
        waited: seconds(1.25),
        ..Ledger::default()
    };
    let mut out = Vec::new();
    View::new(&mut out, Look::Plain).ledger(&ledger).unwrap();
    let expected = [
        "  #  target       executed  verdict   wait             tokens    first token\n",
        "  1  p/m          yes       stall     -                ~17 void  250 ms\n",
        "  2  other/model  maybe     accepted  1.25 s provider  -         -\n",
        "  attempts 2, sends 2, void tokens 17, waited 1.25 s\n",
    ];
    assert_eq!(String::from_utf8(out).unwrap(), expected.concat());
}
