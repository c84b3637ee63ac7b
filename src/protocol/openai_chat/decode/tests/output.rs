//! Text, reasoning, refusal, usage, finish, and what is no output.

use super::{delta, stream, told, told_with};
use crate::protocol::Terminal;

#[test]
fn an_openai_stream_is_told_in_order() {
    let body = stream(&[
        r#"{"id":"c1","object":"chat.completion.chunk","model":"gpt","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}"#,
        r#"{"id":"c1","object":"chat.completion.chunk","model":"gpt","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"usage":null}"#,
        r#"{"id":"c1","object":"chat.completion.chunk","model":"gpt","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
        "[DONE]",
    ]);
    assert_eq!(
        told(&body),
        [
            "started c1 gpt",
            "alive",
            "text Hi",
            "finish Stop stop",
            "usage 7 3 2 0 1",
            "end false"
        ]
    );
}

#[test]
fn what_carries_no_output_is_a_keepalive() {
    assert_eq!(told(": OPENROUTER PROCESSING\n\n"), ["comment"]);
    assert_eq!(told("event: ping\ndata: now\n\n"), ["alive"]);
    for empty in [
        "{}",
        "null",
        r#"{"role":"assistant"}"#,
        r#"{"content":"","reasoning":null,"reasoning_details":[]}"#,
        r#"{"content":null,"tool_calls":null,"refusal":""}"#,
        r#"{"content":[],"tool_calls":[]}"#,
    ] {
        assert_eq!(told(&delta(empty)), ["alive"], "{empty}");
    }
}

#[test]
fn azure_filter_chunks_are_keepalives_and_the_name_comes_later() {
    let body = stream(&[
        r#"{"id":"","object":"","model":"","prompt_filter_results":[{"prompt_index":0}],"choices":[]}"#,
        r#"{"id":"c1","model":"gpt","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop","content_filter_results":{"hate":{"filtered":false}}}]}"#,
        r#"{"id":"","object":"","choices":[{"index":0,"finish_reason":null,"content_filter_results":{"error":{"code":"x"}},"content_filter_offsets":{"check_offset":44}}],"usage":null}"#,
    ]);
    assert_eq!(
        told(&body),
        [
            "alive",
            "started c1 gpt",
            "text Hi",
            "finish Stop stop",
            "alive"
        ]
    );
}

#[test]
fn a_model_that_is_named_late_is_told() {
    let body = stream(&[
        r#"{"id":"c1","model":"","choices":[]}"#,
        r#"{"id":"c2","model":"gpt","choices":[]}"#,
        r#"{"id":"c3","model":"other","choices":[]}"#,
    ]);
    assert_eq!(
        told(&body),
        ["started c1 -", "alive", "started - gpt", "alive", "alive"]
    );
}

#[test]
fn reasoning_is_read_wherever_it_stands_and_told_once() {
    for chunk in [
        r#"{"reasoning_content":"hm","content":""}"#,
        r#"{"reasoning":"hm","reasoning_content":null}"#,
        r#"{"reasoning":"hm","reasoning_content":"hm","reasoning_details":[{"text":"hm"}]}"#,
        r#"{"reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"hm"},{"type":"reasoning.encrypted","data":"x"}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"}]}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#,
        r#"{"content":[{"type":"thinking","thinking":"hm"}]}"#,
    ] {
        assert_eq!(told(&delta(chunk)), ["reasoning hm"], "{chunk}");
    }
}

#[test]
fn a_content_list_is_told_in_its_order() {
    let chunk = r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"},{"type":"reference","reference_ids":[1]}]}"#;
    assert_eq!(told(&delta(chunk)), ["reasoning a", "text b"]);
}

#[test]
fn a_refusal_is_its_own_kind_of_output() {
    assert_eq!(told(&delta(r#"{"refusal":"No."}"#)), ["refusal No."]);
}

#[test]
fn output_precedes_usage_and_usage_the_finish_of_the_same_chunk() {
    let body = stream(&[
        r#"{"usage":{"prompt_tokens":1,"completion_tokens":2},"choices":[{"finish_reason":"stop","delta":{"content":"Hi"},"index":0}]}"#,
    ]);
    assert_eq!(
        told(&body),
        ["text Hi", "usage 1 2 0 0 0", "finish Stop stop"]
    );
}

#[test]
fn of_several_choices_the_first_is_decoded() {
    let body = stream(&[
        r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"delta":{"content":"no"},"index":1},{"delta":{"content":"yes"},"index":0}]}"#,
    ]);
    assert_eq!(told(&body), ["alive", "text yes"]);
}

#[test]
fn a_finish_reason_is_told_once_and_null_does_not_undo_it() {
    let finish = |reason| format!(r#"{{"choices":[{{"index":0,"finish_reason":{reason}}}]}}"#);
    let body = ["\"stop\"", "\"stop\"", "null", "\"\"", "\"length\""]
        .map(finish)
        .map(|chunk| stream(&[&chunk]));
    assert_eq!(
        told(&body.concat()),
        [
            "finish Stop stop",
            "alive",
            "alive",
            "alive",
            "finish Length length"
        ]
    );
}

#[test]
fn every_finish_reason_has_its_word() {
    for (native, words) in [
        ("stop", "finish Stop"),
        ("eos", "finish Stop"),
        ("end_turn", "finish Stop"),
        ("STOP", "finish Stop"),
        ("length", "finish Length"),
        ("max_tokens", "finish Length"),
        ("model_length", "finish Length"),
        ("tool_calls", "finish ToolCalls"),
        ("function_call", "finish ToolCalls"),
        ("content_filter", "finish ContentFilter"),
        ("error", "bad finish"),
        ("abort", "bad finish"),
        ("insufficient_system_resource", "bad finish"),
        ("MALFORMED_FUNCTION_CALL", "bad finish"),
        ("eos_token", "finish Stop"),
        ("COMPLETE", "finish Stop"),
        ("model_context_window_exceeded", "finish Length"),
        ("REASON_MAX_CONTEXT", "finish Length"),
        ("TOOL_CALL", "finish ToolCalls"),
        ("sensitive", "finish ContentFilter"),
        ("PROHIBITED_CONTENT", "finish ContentFilter"),
        ("guardrail_intervened", "finish ContentFilter"),
        ("refusal", "finish Refusal"),
        ("network_error", "bad finish"),
        ("TIMEOUT", "bad finish"),
        ("REASON_TIME_LIMIT", "bad finish"),
        ("brand_new", "finish Other"),
    ] {
        let body = stream(&[&format!(
            r#"{{"choices":[{{"finish_reason":"{native}"}}]}}"#
        )]);
        assert_eq!(told(&body), [format!("{words} {native}")]);
    }
}

#[test]
fn done_completes_only_where_the_dialect_says_so() {
    assert_eq!(told("data: [DONE]\n\n"), ["end false"]);
    assert_eq!(told("data:[DONE] \r\n\r\ndata: 1\n\n"), ["end false"]);
    assert_eq!(
        told_with(Terminal::DoneSentinel, b"data: [DONE]", true),
        ["end true"]
    );
    assert_eq!(
        told_with(Terminal::DoneSentinel, b"data: [DONE]", false),
        [""; 0]
    );
}

#[test]
fn token_counts_are_read_in_every_place_and_spelling() {
    for (chunk, words) in [
        (
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
            "usage 5 2 0 0 0",
        ),
        (
            r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":2}}}"#,
            "usage 5 2 0 0 0",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":5,"completion_tokens":2}}]}"#,
            "usage 5 2 0 0 0",
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":5,"prompt_cache_hit_tokens":4,"reasoning_tokens":1}}"#,
            "usage 5 0 4 0 1",
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":2}}"#,
            "usage 5 0 3 2 0",
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cache_write_tokens":2},"completion_tokens_details":null}}"#,
            "usage 5 0 0 2 0",
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":5.0,"completion_tokens":1e300}}"#,
            "usage 5 0 0 0 0",
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":"2"}}"#,
            "alive",
        ),
        (r#"{"choices":[],"usage":{}}"#, "alive"),
        (r#"{"choices":[],"usage":"many"}"#, "alive"),
    ] {
        assert_eq!(told(&stream(&[chunk])), [words], "{chunk}");
    }
}

#[test]
fn the_last_count_wins_and_null_leaves_it() {
    let body = stream(&[
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":6,"completion_tokens":null}}"#,
        r#"{"choices":[],"usage":null}"#,
    ]);
    assert_eq!(
        told(&body),
        [
            "usage 5 1 0 0 0",
            "usage 5 9 0 0 0",
            "usage 6 9 0 0 0",
            "alive"
        ]
    );
}

#[test]
fn escapes_mean_what_json_says() {
    let chunk = r#"{"content":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 é😀"}"#;
    assert_eq!(told(&delta(chunk)), ["text \"\\/\u{8}\u{c}\n\r\té😀 é😀"]);
    assert_eq!(told(&delta(r#"{"content":"a\u0000b"}"#)), ["text a\0b"]);
}

#[test]
fn half_a_surrogate_pair_becomes_a_replacement_character() {
    for half in [
        r"\ud83d",
        r"\ude00",
        r"\ud83d\u0041",
        r"\ud83dx",
        r"\ud83d\n",
    ] {
        let told = told(&delta(&format!(r#"{{"content":"a{half}"}}"#)));
        assert!(told[0].starts_with("text a\u{fffd}"), "{half}: {told:?}");
    }
}

#[test]
fn the_last_of_repeated_keys_counts() {
    assert_eq!(told(&delta(r#"{"content":"a","content":"b"}"#)), ["text b"]);
}

#[test]
fn deep_nesting_beside_the_output_costs_nothing() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let body = stream(&[&format!(
        r#"{{"extra":{deep},"choices":[{{"delta":{{"content":"a","x":{objects}}}}}]}}"#
    )]);
    let mut words = Vec::new();
    crate::protocol::Decoder::feed(
        &mut super::Decoder::new(Terminal::FinishReason),
        body.as_bytes(),
        &mut |event| words.push(super::words(&event)),
    );
    assert_eq!(words, ["text a"]);
}

#[test]
fn numbers_of_any_size_beside_the_output_are_skipped() {
    let body = stream(&[
        r#"{"created":1e999999,"x":123456789012345678901234567890,"choices":[{"delta":{"content":"a"}}]}"#,
    ]);
    assert_eq!(told(&body), ["text a"]);
}
