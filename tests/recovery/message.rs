//! The message: its blocks, its tool calls, its size.

use prost::Message;
use redrive::{
    proto::{Committed, FinishReason, generate_response::Frame, part},
    protocol::Delta,
    recovery::Event,
};

use crate::support::*;

const MIB: usize = 1 << 20;

fn finished(reason: FinishReason, fill: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::start(params_with(1, |p| p.max_message_bytes = 16 * MIB));
    script.open();
    fill(&mut script);
    script.finish(reason);
    script.usage(1);
    script.done();
    script
}

fn parts(script: &Script) -> Vec<Committed> {
    script
        .frames
        .iter()
        .filter_map(|frame| match frame.frame.clone() {
            Some(Frame::Committed(committed)) => Some(committed),
            _ => None,
        })
        .collect()
}

#[test]
fn blocks_follow_the_change_of_kind() {
    let script = finished(FinishReason::Stop, |script| {
        script.delta(Delta::Reasoning("hm"));
        script.text("a");
        script.text("b");
        script.delta(Delta::Refusal("no"));
        script.text("c");
    });
    assert_eq!(
        script.last(),
        "committed stop reasoning \"hm\" \"ab\" refusal \"no\" \"c\""
    );
}

#[test]
fn interleaved_tool_calls_are_kept_apart() {
    let script = finished(FinishReason::ToolCalls, |script| {
        script.tool_call(0, "f", "{\"a\"");
        script.tool_call(1, "g", "[");
        for (call, fragment) in [(0, ":1}"), (1, "]")] {
            script.delta(Delta::ToolArguments { call, fragment });
        }
    });
    assert_eq!(
        script.last(),
        "committed tool_calls call id0 f \"{\\\"a\\\":1}\" call id1 g \"[]\""
    );
}

#[test]
fn empty_arguments_surface_as_an_empty_object() {
    let script = finished(FinishReason::ToolCalls, |script| {
        script.tool_call(0, "f", "")
    });
    assert_eq!(script.last(), "committed tool_calls call id0 f \"{}\"");
}

#[test]
fn stop_with_tool_calls_is_tool_calls_and_the_native_word_is_kept() {
    let script = finished(FinishReason::Stop, |script| script.tool_call(0, "f", "{}"));
    assert_eq!(script.last(), "committed tool_calls call id0 f \"{}\"");
    assert_eq!(parts(&script)[0].native_finish_reason, "native");
}

#[test]
fn malformed_arguments_fail_and_are_never_repaired() {
    for arguments in ["{\"a\":", "{}{}", "{'a':1}", "not json", "{\"a\":1,}"] {
        let script = finished(FinishReason::ToolCalls, |script| {
            script.tool_call(0, "f", arguments);
        });
        assert_eq!(
            script.last(),
            "failed malformed_output by not_retryable",
            "{arguments}"
        );
        assert_eq!(script.sent_count(), 1);
    }
}

#[test]
fn a_call_without_a_name_is_malformed() {
    let script = finished(FinishReason::ToolCalls, |script| {
        script.delta(Delta::ToolArguments {
            call: 0,
            fragment: "{}",
        });
    });
    assert_eq!(script.last(), "failed malformed_output by not_retryable");
}

#[test]
fn a_token_limit_withholds_the_call_that_it_cut() {
    let script = finished(FinishReason::Length, |script| {
        script.text("a");
        script.tool_call(0, "f", "{}");
        script.tool_call(1, "g", "{\"a\":");
    });
    assert_eq!(
        script.last(),
        "committed length \"a\" call id0 f \"{}\" FLAG_TOOL_CALLS_WITHHELD withheld g \"{\\\"a\\\":\""
    );
}

#[test]
fn a_filtered_answer_withholds_all_calls() {
    for reason in [FinishReason::ContentFilter, FinishReason::Refusal] {
        let script = finished(reason, |script| script.tool_call(0, "f", "{}"));
        assert!(
            script
                .last()
                .ends_with("FLAG_TOOL_CALLS_WITHHELD withheld f \"{}\"")
        );
    }
}

#[test]
fn a_second_finish_reason_changes_nothing() {
    let script = finished(FinishReason::Length, |script| {
        script.text("a");
        script.finish(FinishReason::Length);
        script.finish(FinishReason::Stop);
    });
    assert_eq!(script.last(), "committed length \"a\"");
}

#[test]
fn a_large_message_comes_in_parts_under_one_mebibyte_whose_sum_is_the_whole() {
    let text = "ä€x".repeat(MIB / 2);
    let script = finished(FinishReason::Stop, |script| {
        script.text(&text);
        script.tool_call(0, "f", "{}");
        script.delta(Delta::Reasoning("end"));
    });
    let parts = parts(&script);
    let numbers: Vec<u32> = parts.iter().map(|part| part.part).collect();
    assert_eq!(numbers, (1..=parts.len() as u32).collect::<Vec<_>>());
    assert!(parts.len() > 3);
    assert!(parts.iter().all(|part| part.encoded_len() < MIB));
    let (last, before) = parts.split_last().unwrap();
    assert!(last.r#final && last.ledger.is_some() && last.usage.is_some());
    for part in before {
        let bare = Committed {
            part: part.part,
            message: part.message.clone(),
            ..Committed::default()
        };
        assert_eq!(*part, bare);
    }
    let whole: String = parts
        .iter()
        .flat_map(|part| &part.message)
        .filter_map(|part| match part.part.as_ref() {
            Some(part::Part::Text(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(whole, text);
}

#[test]
fn every_delta_frame_stays_under_one_mebibyte() {
    let mut script = Script::start(params_with(1, |p| p.max_message_bytes = 16 * MIB));
    script.open();
    script.reads = false;
    script.text(&"x".repeat(3 * MIB));
    script.tool_call(0, "f", &"1".repeat(2 * MIB));
    script.read();
    assert!(script.frames.iter().all(|frame| frame.encoded_len() < MIB));
    assert!(script.frames.len() > 10);
}

#[test]
fn a_tool_call_up_to_three_mebibytes_has_a_frame_of_its_own() {
    let arguments = format!("\"{}\"", "x".repeat(2 * MIB));
    let script = finished(FinishReason::ToolCalls, |script| {
        script.text("before");
        script.tool_call(0, "f", &arguments);
        script.text("after");
    });
    let sizes: Vec<usize> = parts(&script)
        .iter()
        .map(|part| part.message.len())
        .collect();
    assert_eq!(sizes, [1, 1, 1]);
    let arguments = format!("\"{}\"", "x".repeat(3 * MIB));
    let script = finished(FinishReason::ToolCalls, |script| {
        script.tool_call(0, "f", &arguments)
    });
    assert_eq!(script.last(), "failed too_large by not_retryable");
}

#[test]
fn a_message_over_its_bound_is_too_large_and_pays_only_once() {
    let mut script = Script::start(params_with(2, |p| p.max_message_bytes = 1000));
    script.open();
    script.text(&"x".repeat(800));
    assert!(!script.generation.has_ended());
    script.text(&"x".repeat(100));
    assert_eq!(script.last(), "failed too_large by not_retryable");
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn a_flood_of_tiny_blocks_is_bounded_too() {
    let mut script = Script::start(params_with(1, |p| p.max_message_bytes = 10_000));
    script.open();
    let mut blocks = 0;
    while !script.generation.has_ended() {
        script.tool_call(blocks, "f", "");
        blocks += 1;
    }
    assert!(blocks < 100);
}

#[test]
fn a_name_that_no_frame_can_hold_is_too_large() {
    let mut script = Script::start(params_with(1, |p| p.max_message_bytes = 16 * MIB));
    script.open();
    let name = "n".repeat(MIB);
    script.delta(Delta::ToolCallStart {
        call: 0,
        id: "",
        name: &name,
    });
    assert_eq!(script.last(), "failed too_large by not_retryable");
}

#[test]
fn the_bound_of_all_transcripts_ends_the_one_that_would_pass_it() {
    let mut script = Script::start(params(2));
    script.open();
    script.text("a");
    script.handle(Event::OutOfMemory);
    assert_eq!(script.last(), "failed too_large by not_retryable");
    assert_eq!(script.generation.transcript_bytes(), 0);
}
