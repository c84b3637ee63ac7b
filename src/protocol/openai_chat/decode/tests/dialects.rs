//! A stream of each server that deviates, as it is known to end.

use super::*;

#[test]
fn azure_names_itself_late_and_filters_beside_the_text() {
    let body = stream(&[
        r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}"#,
        r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null,"index":0,"content_filter_results":{"error":{"code":"content_filter_error","message":"down"}}}],"id":"c1","model":"gpt"}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"content_filter","index":0}],"id":"c1","model":"gpt"}"#,
        "[DONE]",
    ]);
    assert_eq!(
        told(&body),
        [
            "alive",
            "started c1 gpt",
            "text Hi",
            "finish ContentFilter content_filter",
            "end false"
        ]
    );
}

#[test]
fn openrouter_may_finish_and_fail_in_the_same_breath() {
    let error = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"}],"error":{"code":502,"message":"m"}}"#;
    let body = format!(": OPENROUTER PROCESSING\n\n{}", stream(&[error]));
    assert_eq!(
        told(&body),
        ["comment".to_owned(), format!("error {error}")]
    );

    let late = r#"{"choices":[{"index":0,"delta":{},"finish_reason":null}],"error":{"code":400,"message":"Token limit reached"}}"#;
    let finish = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"length"}]}"#;
    assert_eq!(
        told(&stream(&[finish, finish, late, "[DONE]"])),
        [
            "finish Length length".to_owned(),
            "alive".to_owned(),
            format!("error {late}")
        ]
    );
}

#[test]
fn groq_fails_in_an_event_of_its_own() {
    let error = r#"{"error":{"message":"m","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<f>","status_code":400}}"#;
    let body = format!("event: error\ndata: {error}\n\n");
    assert_eq!(told(&body), [format!("error {error}")]);
}

#[test]
fn groq_counts_in_its_own_field_and_says_why_it_ends_early() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"reasoning":"hm","channel":"analysis"}}],"x_groq":{"id":"r"}}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#,
    ]);
    assert_eq!(
        told(&body),
        ["reasoning hm", "usage 1 2 0 0 0", "finish Stop stop"]
    );
    let early = r#"{"choices":[],"x_groq":{"id":"r","error":"why"}}"#;
    assert_eq!(told(&stream(&[early])), [format!("error {early}")]);
}

#[test]
fn deepseek_gives_up_by_a_finish_reason() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"insufficient_system_resource"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_cache_hit_tokens":1}}"#,
        "[DONE]",
    ]);
    assert_eq!(
        told(&format!(": keep-alive\n\n{body}")),
        [
            "comment",
            "reasoning hm",
            "usage 1 2 1 0 0",
            "bad finish insufficient_system_resource",
            "end false"
        ]
    );
}

#[test]
fn mistral_lists_its_parts_and_finishes_with_the_last() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"closed":true},{"type":"text","text":"Hi"},{"type":"reference","reference_ids":[0]}]},"finish_reason":"model_length"}],"p":"abcdef"}"#,
        "[DONE]",
    ]);
    assert_eq!(
        told(&body),
        [
            "reasoning hm",
            "text Hi",
            "finish Length model_length",
            "end false"
        ]
    );
    let error = r#"{"object":"error","message":"m","type":"t","param":null,"code":"3051"}"#;
    assert_eq!(told(&stream(&[error])), [format!("error {error}")]);
}

#[test]
fn perplexity_repeats_itself_and_never_says_done() {
    let body = stream(&[
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
        r#"{"object":"chat.completion.done","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"},"delta":{"content":""}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    ]);
    assert_eq!(
        told(&body.replace('\n', "\r\n")),
        [
            "text Hi",
            "usage 1 1 0 0 0",
            "usage 1 2 0 0 0",
            "finish Stop stop"
        ]
    );
}

#[test]
fn the_last_object_of_perplexity_may_hold_no_delta() {
    let body = stream(&[
        r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi"}}]}"#,
        r#"{"object":"chat.completion.done","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}]}"#,
    ]);
    assert_eq!(told(&body), ["text Hi", "finish Stop stop"]);
}

#[test]
fn snowflake_has_no_finish_reason_and_its_done_completes() {
    let body = stream(&[
        r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        "[DONE]",
    ]);
    let terminal =
        crate::protocol::openai_chat::default_terminal(crate::protocol::Dialect::Snowflake);
    assert_eq!(
        told_with(terminal, body.as_bytes(), true),
        ["text Hi", "usage 1 2 0 0 0", "end true"]
    );
}

#[test]
fn an_error_of_vllm_and_sglang_beats_the_done_that_follows() {
    let error = r#"{"error":{"object":"error","message":"m","type":"InternalServerError","param":null,"code":500}}"#;
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#,
        error,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    for terminal in [Terminal::FinishReason, Terminal::DoneSentinel] {
        assert_eq!(
            told_with(terminal, body.as_bytes(), true),
            ["text Hi".to_owned(), format!("error {error}")]
        );
    }
}

#[test]
fn an_abort_of_sglang_is_a_failure_although_the_stream_ends_well() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"abort","matched_stop":null}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        "[DONE]",
    ]);
    assert_eq!(
        told(&body),
        [
            "text Hi",
            "bad finish abort",
            "usage 1 2 0 0 0",
            "end false"
        ]
    );
}

#[test]
fn a_failure_that_ollama_swallows_leaves_no_terminal() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi","reasoning":"hm"},"finish_reason":null}]}"#,
        r#"{"id":"","object":"chat.completion.chunk","model":"","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    ]);
    assert_eq!(told(&body), ["reasoning hm", "text Hi", "alive"]);
    let bare = r#"{"error":"llama runner process has terminated"}"#;
    let body = stream(&[r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#]);
    assert_eq!(
        told(&format!("{body}{bare}\n")),
        ["text Hi".to_owned(), format!("error {bare}")]
    );
}

#[test]
fn llamacpp_fails_in_the_data_or_in_a_field_of_its_own() {
    let error = r#"{"code":500,"message":"m","type":"server_error"}"#;
    assert_eq!(
        told(&format!("error: {error}\n\n")),
        [format!("error {error}")]
    );
    let wrapped = format!(r#"{{"error":{error}}}"#);
    assert_eq!(told(&stream(&[&wrapped])), [format!("error {wrapped}")]);
}

#[test]
fn together_may_finish_with_an_empty_word_first() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"content":"Hi","token_id":5},"finish_reason":""}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"eos"}]}"#,
    ]);
    assert_eq!(told(&body), ["text Hi", "finish Stop eos"]);
}

#[test]
fn moonshot_counts_in_the_choice() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}]}"#,
    ]);
    assert_eq!(told(&body), ["usage 1 2 0 0 0", "finish Stop stop"]);
}

#[test]
fn xai_keeps_alive_by_comments_and_thinks_aloud() {
    let body = stream(&[
        r#"{"id":"c1","model":"grok","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}"#,
        r#"{"id":"c1","model":"grok","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(
        told(&format!(": keepalive\n\n{body}")),
        [
            "comment",
            "started c1 grok",
            "reasoning hm",
            "call 0 1 f",
            "args 0 {}",
            "finish ToolCalls tool_calls"
        ]
    );
}
