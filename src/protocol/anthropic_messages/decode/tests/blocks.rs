//! Content blocks.

use super::*;

/// What is told between the start of the message and a plain end of it.
fn of_blocks(events: &[&str]) -> Vec<String> {
    let stopped = stopped("end_turn");
    let all = [&[START], events, &[&stopped, STOP]].concat();
    let mut told = told(&all);
    told.retain(|words| !words.starts_with("usage") && words != "finishing");
    assert_eq!(told[0], "started msg_1 claude");
    let end = ["finish Stop end_turn", "end false"];
    assert!(told.ends_with(&end.map(str::to_owned)), "{told:?}");
    told[1..told.len() - 2].to_vec()
}

#[test]
fn text_streams() {
    let told = of_blocks(&[
        &start(r#"{"type":"text","text":""}"#),
        r#"{"type": "ping"}"#,
        &delta(r#"{"type":"text_delta","text":"Hel"}      "#),
        &delta(r#"{"type":"text_delta","text":""}"#),
        &delta(r#"{"type":"text_delta","text":"lo\n\u00e9"}"#),
        BLOCK_STOP,
    ]);
    let expected = [
        "block 0 Text",
        "alive",
        "text Hel",
        "alive",
        "text lo\né",
        "end of 0",
    ];
    assert_eq!(told, expected);
}

#[test]
fn text_that_stands_in_the_start_is_told() {
    let told = of_blocks(&[
        &start(r#"{"type":"text","text":"Hi","citations":null}"#),
        BLOCK_STOP,
    ]);
    assert_eq!(told, ["block 0 Text", "text Hi", "end of 0"]);
}

#[test]
fn thinking_is_signed_at_its_end() {
    let told = of_blocks(&[
        &start(r#"{"type":"thinking","thinking":"","signature":""}"#),
        &delta(r#"{"type":"thinking_delta","thinking":"hm"}"#),
        &delta(r#"{"type":"signature_delta","signature":"sig"}"#),
        BLOCK_STOP,
    ]);
    let expected = [
        "block 0 Reasoning",
        "reasoning hm",
        "alive",
        "signature sig",
        "end of 0",
    ];
    assert_eq!(told, expected);
}

#[test]
fn thinking_that_is_not_shown_still_has_its_signature() {
    let told = of_blocks(&[
        &start(r#"{"type":"thinking","thinking":"","signature":""}"#),
        &delta(r#"{"type":"thinking_delta","thinking":""}"#),
        &delta(r#"{"type":"signature_delta","signature":"sig"}"#),
        BLOCK_STOP,
    ]);
    assert_eq!(
        told,
        [
            "block 0 Reasoning",
            "alive",
            "alive",
            "signature sig",
            "end of 0"
        ]
    );
}

#[test]
fn redacted_thinking_is_whole_in_its_start() {
    let told = of_blocks(&[
        &start(r#"{"type":"redacted_thinking","data":"xyz"}"#),
        BLOCK_STOP,
    ]);
    assert_eq!(told, ["block 0 Reasoning", "redacted xyz", "end of 0"]);
}

#[test]
fn a_tool_call_streams_its_arguments() {
    let told = of_blocks(&[
        &start(r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{}}"#),
        &delta(r#"{"type":"input_json_delta","partial_json":""}"#),
        &delta(r#"{"type":"input_json_delta","partial_json":"{\"a\":"}"#),
        &delta(r#"{"type":"input_json_delta","partial_json":"1}"}"#),
        BLOCK_STOP,
    ]);
    let expected = [
        "block 0 ToolCall",
        "call 0 toolu_1 f",
        "alive",
        "args 0 {\"a\":",
        "args 0 1}",
        "end of 0",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_call_without_arguments_has_none() {
    let told = of_blocks(&[
        &start(r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{ }}"#),
        BLOCK_STOP,
    ]);
    assert_eq!(told, ["block 0 ToolCall", "call 0 toolu_1 f", "end of 0"]);
}

#[test]
fn arguments_that_stand_in_the_start_are_told_at_the_end_unless_they_streamed() {
    let call = start(r#"{"type":"tool_use","id":"t","name":"f","input":{"a": 1}}"#);
    let told = of_blocks(&[&call, BLOCK_STOP]);
    assert_eq!(
        told,
        [
            "block 0 ToolCall",
            "call 0 t f",
            "args 0 {\"a\": 1}",
            "end of 0"
        ]
    );
    let streamed = delta(r#"{"type":"input_json_delta","partial_json":"{\"a\":2}"}"#);
    let told = of_blocks(&[&call, &streamed, BLOCK_STOP]);
    assert_eq!(
        told,
        [
            "block 0 ToolCall",
            "call 0 t f",
            "args 0 {\"a\":2}",
            "end of 0"
        ]
    );
}

#[test]
fn a_server_tools_call_is_one_value_with_its_input_put_in() {
    let told = of_blocks(&[
        &start(
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{},"caller":{"type":"direct"}}"#,
        ),
        &delta(r#"{"type":"input_json_delta","partial_json":""}"#),
        &delta(r#"{"type":"input_json_delta","partial_json":"{\"q\":"}"#),
        &delta(r#"{"type":"input_json_delta","partial_json":"\"x\"}"}"#),
        BLOCK_STOP,
    ]);
    let expected = [
        "block 0 Native",
        "alive",
        "block 0 Native",
        "block 0 Native",
        r#"native {"type":"server_tool_use","id":"s","name":"web_search","input":{"q":"x"},"caller":{"type":"direct"}}"#,
        "end of 0",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_server_tools_call_that_was_cut_off_is_left_out_and_counted() {
    let told = of_blocks(&[
        &start(r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#),
        &delta(r#"{"type":"input_json_delta","partial_json":"{\"q\":"}"#),
        BLOCK_STOP,
    ]);
    assert_eq!(
        told,
        ["block 0 Native", "block 0 Native", "unknown", "end of 0"]
    );
}

#[test]
fn results_of_server_tools_mcp_and_fallbacks_are_given_as_they_came() {
    for block in [
        r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"a":  1}]}"#,
        r#"{"type":"mcp_tool_use","id":"m","name":"echo","input":{},"server_name":"e"}"#,
        r#"{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[]}"#,
        r#"{"type":"fallback","from":"a","to":"b"}"#,
    ] {
        let told = of_blocks(&[&start(block), BLOCK_STOP]);
        assert_eq!(
            told,
            ["block 0 Native", &format!("native {block}"), "end of 0"]
        );
    }
}

#[test]
fn a_block_of_an_unknown_type_is_kept_and_counted() {
    let block = r#"{"type":"hologram","x":1}"#;
    let told = of_blocks(&[
        &start(block),
        &delta(r#"{"type":"hologram_delta","y":2}"#),
        BLOCK_STOP,
    ]);
    let native = format!("native {block}");
    assert_eq!(
        told,
        ["unknown", "block 0 Native", "unknown", &native, "end of 0"]
    );
}

#[test]
fn a_compaction_is_one_value_with_its_content_put_in() {
    let told = of_blocks(&[
        &start(r#"{"type":"compaction","content":null}"#),
        &delta(r#"{"type":"compaction_delta","content":"a \"b\"","encrypted_content":"e"}"#),
        BLOCK_STOP,
    ]);
    let expected = [
        "block 0 Native",
        "block 0 Native",
        r#"native {"encrypted_content":"e","type":"compaction","content":"a \"b\""}"#,
        "end of 0",
    ];
    assert_eq!(told, expected);
}

#[test]
fn citations_and_unknown_deltas_keep_the_stream_alive() {
    let told = of_blocks(&[
        &start(r#"{"type":"text","text":"","citations":[]}"#),
        &delta(
            r#"{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}"#,
        ),
        &delta(r#"{"type":"future_delta","x":1}"#),
        BLOCK_STOP,
        r#"{"type":"future_event"}"#,
    ]);
    assert_eq!(
        told,
        ["block 0 Text", "alive", "unknown", "end of 0", "unknown"]
    );
}

#[test]
fn output_that_goes_back_to_an_earlier_block_says_so() {
    let told = of_blocks(&[
        &start(r#"{"type":"text","text":""}"#),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        &delta(r#"{"type":"text_delta","text":"a"}"#),
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"s"}}"#,
        &delta(r#"{"type":"text_delta","text":"b"}"#),
    ]);
    let expected = [
        "block 0 Text",
        "block 1 Reasoning",
        "block 0 Text",
        "text a",
        "block 1 Reasoning",
        "alive",
        "block 0 Text",
        "text b",
        "end of 0",
        "block 1 Reasoning",
        "signature s",
        "end of 1",
    ];
    // Blocks without an end are ended with the message.
    assert_eq!(told, expected);
}

#[test]
fn a_block_whose_start_was_lost_opens_with_its_first_text_or_thinking() {
    let told = of_blocks(&[
        &delta(r#"{"type":"text_delta","text":"a"}"#),
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"t"}}"#,
        BLOCK_STOP,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_stop","index":7}"#,
    ]);
    let expected = [
        "block 0 Text",
        "text a",
        "block 1 Reasoning",
        "reasoning t",
        "end of 0",
        "end of 1",
        "alive",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_message_may_begin_with_its_whole_content_and_stop_reason() {
    let told = told(&[
        r#"{"type":"message_start","message":{"id":"msg_1","model":"claude","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":0,"output_tokens":0}}}"#,
        STOP,
    ]);
    let expected = [
        "started msg_1 claude",
        "usage 0 0 0 0 0",
        "block 0 ToolCall",
        "call 0 t f",
        "args 0 {\"a\":1}",
        "end of 0",
        "finishing",
        "finish ToolCalls tool_use",
        "end false",
    ];
    assert_eq!(told, expected);
}
