//! The message: its blocks, its tool calls, its size.

use proptest::prelude::*;
use prost::Message;
use redrive::{
    proto::{Committed, FinishReason, generate_response::Frame, part},
    protocol::{self, Delta},
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
fn a_token_limit_withholds_the_call_that_it_cut_before_its_arguments() {
    let script = finished(FinishReason::Length, |script| {
        script.tool_call(0, "first", "");
        script.tool_call(1, "second", "");
    });
    assert_eq!(
        script.last(),
        "committed length call id0 first \"{}\" FLAG_TOOL_CALLS_WITHHELD withheld second \"\""
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_sum_of_the_parts_is_the_message_however_large_its_blocks(
        blocks in prop::collection::vec((0usize..3, 0usize..1_400_000), 1..7)
    ) {
        let mut said: Vec<(usize, String)> = Vec::new();
        let script = finished(FinishReason::Stop, |script| {
            script.reads = false;
            for (call, (kind, size)) in blocks.into_iter().enumerate() {
                let text = format!("\"{}\"", "é".repeat(size / 2));
                match kind {
                    0 => script.text(&text),
                    1 => script.delta(Delta::Reasoning(&text)),
                    _ => script.tool_call(call as u32, "f", &text),
                }
                match said.last_mut().filter(|(last, _)| *last == kind && kind < 2) {
                    Some((_, whole)) => whole.push_str(&text),
                    None => said.push((kind, text)),
                }
            }
            script.reads = true;
        });
        let parts = parts(&script);
        let mut summed: Vec<(usize, String)> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let single = part.message.len() == 1;
            prop_assert!(part.encoded_len() < MIB || (single && part.encoded_len() < 3 * MIB));
            prop_assert_eq!(part.part as usize, if parts.len() > 1 { number + 1 } else { 0 });
            for (index, piece) in part.message.iter().enumerate() {
                let (kind, text) = match piece.part.clone().unwrap() {
                    part::Part::Text(text) => (0, text),
                    part::Part::Reasoning(reasoning) => (1, reasoning.text),
                    part::Part::ToolCall(call) => (2, call.arguments_json),
                    other => panic!("never said: {other:?}"),
                };
                match summed.last_mut().filter(|(last, _)| index == 0 && *last == kind && kind < 2) {
                    Some((_, whole)) => whole.push_str(&text),
                    None => summed.push((kind, text)),
                }
            }
        }
        prop_assert!(summed == said, "the sum of the parts is not what was said");
    }
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
fn what_a_provider_calls_itself_is_cut_to_what_a_frame_can_hold() {
    let long = "x".repeat(2 * MIB);
    let mut script = Script::start(params(1));
    script.open();
    script.decoded(protocol::Event::Started {
        response_id: Some(&long),
        model: Some(&long),
    });
    script.decoded(protocol::Event::Finish {
        reason: FinishReason::Stop,
        native: &long,
    });
    script.done();
    assert!(parts(&script)[0].encoded_len() < 4096);
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
