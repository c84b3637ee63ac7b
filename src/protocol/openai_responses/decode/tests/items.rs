//! Output as it is streamed: text, reasoning, calls, the provider's own items.

use serde_json::json;

use super::*;

#[test]
fn text_is_told_as_it_comes_and_its_whole_once() {
    let whole = "Hello";
    let events = [
        created(),
        json!({"type": "response.in_progress", "response": {"id": "r", "model": "m"}}),
        added(0, &message(&[])),
        json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0,
               "part": {"type": "output_text", "text": ""}}),
        text(0, 0, "Hel"),
        text(0, 0, ""),
        text(0, 0, "lo"),
        json!({"type": "response.output_text.annotation.added", "output_index": 0,
               "content_index": 0, "annotation": {}}),
        json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": whole}),
        json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0,
               "part": {"type": "output_text", "text": whole}}),
        done(0, &message(&[whole])),
        completed(&json!([message(&[whole])])),
    ];
    assert_eq!(
        told(&stream(&events)),
        [
            "started r m",
            "alive",
            "alive",
            "alive",
            "block 0.0 text",
            "text Hel",
            "alive",
            "text lo",
            "alive",
            "whole 0.0: text Hello",
            "alive",
            "end 0.0",
            "finish Stop completed",
            "over false",
        ]
    );
}

#[test]
fn the_type_in_the_data_counts_and_needs_no_event_field() {
    let body = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n\
                event: response.output_text.delta\ndata: {\"delta\":\"b\"}\n\n\
                event: response.refusal.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"c\"}\n\n";
    assert_eq!(told(body), ["block 0.0 text", "text a", "text b", "text c"]);
}

#[test]
fn parts_and_items_that_alternate_are_told_apart() {
    let events = [
        text(0, 0, "a"),
        text(0, 1, "b"),
        text(0, 0, "c"),
        text(1, 0, "d"),
    ];
    let expected = [
        "block 0.0 text",
        "text a",
        "block 0.1 text",
        "text b",
        "block 0.0 text",
        "text c",
        "block 1.0 text",
        "text d",
    ];
    assert_eq!(output(&events), expected);
}

#[test]
fn a_refusal_is_one() {
    let events = [
        json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0,
               "part": {"type": "refusal", "refusal": ""}}),
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I can't"}),
        json!({"type": "response.refusal.done", "output_index": 0, "content_index": 0, "refusal": "I can't"}),
    ];
    let expected = [
        "block 0.0 text",
        "refusal I can't",
        "whole 0.0: refusal I can't",
    ];
    assert_eq!(output(&events), expected);
}

#[test]
fn a_summary_is_reasoning_and_its_item_is_signed_with_the_last_part() {
    let reasoning = json!({"type": "reasoning", "id": "rs", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]});
    let events = [
        added(0, &json!({"type": "reasoning", "id": "rs", "summary": []})),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0,
               "part": {"type": "summary_text", "text": ""}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0,
               "delta": "one"}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1,
               "delta": "two"}),
        done(0, &reasoning),
        completed(&json!([reasoning])),
    ];
    assert_eq!(
        output(&events),
        [
            "block 0.s0 reasoning",
            "block 0.s0 reasoning",
            "reasoning one",
            "block 0.s1 reasoning",
            "reasoning two",
            "whole 0.s0: reasoning one",
            "whole 0.s1: reasoning two",
            r#"signature {"encrypted_content":"gAAA","id":"rs"}"#,
            "end 0.s1",
            "finish Stop completed",
            "over false",
        ]
    );
}

#[test]
fn the_reasoning_of_open_models_is_content_and_says_so() {
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}]});
    let events = [
        json!({"type": "response.reasoning_part.added", "output_index": 0, "content_index": 0,
               "part": {"type": "reasoning_text", "text": ""}}),
        json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm"}),
        json!({"type": "response.reasoning_part.done", "output_index": 0, "content_index": 0,
               "part": {"type": "reasoning_text", "text": "hm"}}),
        // vLLM calls the same a part of content.
        json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0,
               "part": {"type": "reasoning_text", "text": "hm"}}),
        done(0, &reasoning),
    ];
    assert_eq!(
        output(&events),
        [
            "block 0.r0 reasoning",
            "reasoning hm",
            "whole 0.r0: reasoning hm",
            r#"signature {"content":"reasoning_text","id":"rs"}"#,
            "end 0.r0",
        ]
    );
}

#[test]
fn reasoning_without_a_text_is_a_signature_alone_and_only_one_that_leads_somewhere() {
    let hidden = json!({"type": "reasoning", "id": "rs", "summary": []});
    let signature = r#"signature {"id":"rs"}"#;
    let expected = ["block 0.s0 reasoning", signature, "end 0.s0"];
    assert_eq!(output(&[done(0, &hidden)]), expected);

    let not_kept = json!({"type": "response.created", "response": {"id": "r", "store": false}});
    let told = output(&[not_kept, done(0, &hidden)]);
    assert_eq!(told, ["started r -"]);
}

#[test]
fn a_call_begins_with_its_id_and_name() {
    let call = |arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": "call_1", "name": "f", "arguments": arguments});
    let events = [
        added(1, &call("")),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"a\""}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": ":1}"}),
        json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{\"a\":1}"}),
        done(1, &call("{\"a\":1}")),
        completed(&json!([{"type": "message", "content": []}, call("{\"a\":1}")])),
    ];
    assert_eq!(
        output(&events),
        [
            "block 1.0 call",
            "call 1.0 call_1 f",
            r#"args 1.0 {"a""#,
            "args 1.0 :1}",
            r#"whole 1.0: args 1.0 {"a":1}"#,
            "end 1.0",
            "finish Stop completed",
            "over false",
        ]
    );
}

#[test]
fn a_call_without_an_id_is_given_one() {
    let told = output(&[added(0, &json!({"type": "function_call", "name": "f"}))]);
    assert_eq!(told[1], "call 0.0 call_redrive_0 f");
}

#[test]
fn an_item_of_the_providers_own_is_output_from_its_start_and_told_whole() {
    let search = json!({"type": "web_search_call", "id": "ws", "status": "completed"});
    let events = [
        added(
            0,
            &json!({"type": "web_search_call", "id": "ws", "status": "in_progress"}),
        ),
        json!({"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws"}),
        done(0, &search),
        completed(&json!([search])),
    ];
    let whole = format!("native {search}");
    let expected = [
        "block 0.0 native",
        &whole,
        "end 0.0",
        "finish Stop completed",
        "over false",
    ];
    assert_eq!(output(&events), expected);
}

#[test]
fn pieces_of_a_providers_own_item_are_output_and_empty_ones_are_not() {
    let piece = |name: &str, field: &str, piece: &str| json!({"type": name, "output_index": 0, field: piece});
    let events = [
        piece("response.mcp_call_arguments.delta", "delta", "{"),
        piece("response.custom_tool_call_input.delta", "delta", "SELECT"),
        piece(
            "response.image_generation_call.partial_image",
            "partial_image_b64",
            "aGk=",
        ),
        piece("response.shell_call_command.delta", "delta", ""),
    ];
    assert_eq!(output(&events), ["block 0.0 native"; 3]);
}

#[test]
fn a_custom_tool_call_is_the_providers_own_for_its_input_is_no_json() {
    let call =
        json!({"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"});
    let told = output(&[added(0, &call), done(0, &call)]);
    assert_eq!(told[1], format!("native {call}"));
}

#[test]
fn a_part_of_another_kind_is_the_providers_own() {
    let audio = json!({"type": "output_audio", "data": "aGk=", "transcript": "hi"});
    let events = [
        json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": audio}),
        json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": audio}),
    ];
    let whole = format!("whole 0.0: native {audio}");
    assert_eq!(output(&events), ["block 0.0 native", &whole]);
}

#[test]
fn signs_of_life_and_unknown_events_are_told_as_such() {
    let events = [
        json!({"type": "keepalive"}),
        json!({"type": "response.queued", "response": {}}),
        json!({"type": "response.something.new", "delta": "x"}),
        json!({}),
    ];
    let body = format!(": hi\n\n{}", stream(&events));
    assert_eq!(
        told(&body),
        ["comment", "alive", "alive", "unknown", "unknown"]
    );
}

#[test]
fn native_events_come_before_what_is_made_of_them() {
    let options = DecoderOptions {
        native_events: true,
        ..DecoderOptions::default()
    };
    let told = told_with(options, &stream(&[text(0, 0, "a")]));
    assert!(told[0].starts_with("raw "), "{told:?}");
    assert_eq!(told[1..], ["block 0.0 text", "text a"]);
}

#[test]
fn places_beyond_any_answer_are_refused() {
    for (name, index) in [("output_index", 65_536), ("content_index", 16_384)] {
        let mut event = text(0, 0, "a");
        event[name] = index.into();
        assert_eq!(output(&[event]), ["undecodable Json"], "{name}");
    }
    let mut event = text(0, 0, "a");
    event["output_index"] = "x".into();
    assert_eq!(output(&[event]), ["undecodable Json"]);
}

#[test]
fn items_and_blocks_are_bounded() {
    let many: Vec<_> = (0..5000).map(|item| text(item, 0, "a")).collect();
    assert_eq!(output(&many).last().unwrap(), "undecodable TooLarge");
    let many: Vec<_> = (0..5000).map(|item| added(item, &message(&[]))).collect();
    assert_eq!(output(&many).last().unwrap(), "undecodable TooLarge");
    let parts = vec!["a"; 20_000];
    let told = output(&[done(0, &message(&parts))]);
    assert_eq!(told.last().unwrap(), "undecodable TooLarge");
}

#[test]
fn a_piece_of_output_that_is_no_text_is_refused_rather_than_lost() {
    for name in [
        "output_text",
        "refusal",
        "reasoning_text",
        "reasoning_summary_text",
        "function_call_arguments",
    ] {
        let event = |delta: Value| {
            let name = format!("response.{name}.delta");
            output(&[json!({"type": name, "output_index": 0, "delta": delta})])
        };
        for delta in [json!(5), json!({"text": "a"}), json!(["a"])] {
            assert_eq!(event(delta), ["undecodable Json"], "{name}");
        }
        for nothing in [json!(""), json!(null)] {
            assert_eq!(event(nothing), [""; 0], "{name}");
        }
    }
}

#[test]
fn calls_that_are_held_back_are_bounded() {
    let arguments = "a".repeat(1 << 20);
    let call = |index: u32| {
        let item =
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments});
        sse(&done(index, &item))
    };
    let mut decoder = Decoder::new(DecoderOptions::default());
    let mut told = Vec::new();
    for index in 0..20 {
        let event = call(index);
        decoder.feed(event.as_bytes(), &mut |event| told.push(words(&event)));
    }
    assert_eq!(told.len(), 16, "{told:?}");
    assert_eq!(told.last().unwrap(), "undecodable TooLarge");
}
