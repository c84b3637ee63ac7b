//! Names, counts and what completes a response.

use super::*;

#[test]
fn every_stop_reason_has_the_contracts_word_and_is_told_with_the_stop() {
    for (native, reason) in [
        ("end_turn", "Stop"),
        ("stop_sequence", "Stop"),
        ("max_tokens", "Length"),
        ("model_context_window_exceeded", "Length"),
        ("tool_use", "ToolCalls"),
        ("pause_turn", "Pause"),
        ("compaction", "Pause"),
        ("refusal", "Refusal"),
        ("whatever", "Other"),
    ] {
        let told = told(&[START, &stopped(native), STOP]);
        let finish = format!("finish {reason} {native}");
        let expected = [
            "started msg_1 claude",
            "usage 10 1 0 0 0",
            "finishing",
            "usage 10 5 0 0 0",
            &finish,
            "end false",
        ];
        assert_eq!(told, expected);
    }
}

#[test]
fn a_stop_reason_without_the_stop_is_no_finish() {
    let told = told(&[START, &stopped("end_turn")]);
    assert!(
        !told.iter().any(|words| words.starts_with("finish ")),
        "{told:?}"
    );
}

#[test]
fn the_stop_without_a_stop_reason_is_no_finish() {
    let told = told(&[START, STOP]);
    assert_eq!(told.last().unwrap(), "end false");
    assert!(
        !told.iter().any(|words| words.starts_with("finish ")),
        "{told:?}"
    );
}

#[test]
fn done_proves_nothing_and_is_nothing_after_the_stop() {
    let body = format!(
        "data: {START}\n\ndata: {}\n\ndata: [DONE]\n\n",
        stopped("end_turn")
    );
    let told = told_body(body.as_bytes());
    assert_eq!(told.last().unwrap(), "end false");
    assert!(
        !told.iter().any(|words| words.starts_with("finish ")),
        "{told:?}"
    );

    let body = format!(
        "data: {}\n\ndata: {STOP}\n\nevent: data\ndata: [DONE]\n\n",
        stopped("end_turn")
    );
    let told = told_body(body.as_bytes());
    assert_eq!(
        told,
        [
            "finishing",
            "usage 0 5 0 0 0",
            "finish Stop end_turn",
            "end false"
        ]
    );
}

#[test]
fn the_last_stop_reason_counts_and_null_is_none() {
    let told = told(&[
        &stopped("end_turn"),
        r#"{"type":"message_delta","delta":{"stop_reason":null}}"#,
        &stopped("tool_use"),
        STOP,
    ]);
    assert_eq!(
        told,
        [
            "finishing",
            "usage 0 5 0 0 0",
            "alive",
            "usage 0 5 0 0 0",
            "finish ToolCalls tool_use",
            "end false"
        ]
    );
}

#[test]
fn counts_are_cumulative_cached_input_is_input_and_thinking_is_reasoning() {
    let told = told(&[
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"cache_creation_input_tokens":318,"cache_read_input_tokens":2750,"output_tokens":8}}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":97,"cache_creation_input_tokens":null,"output_tokens_details":{"thinking_tokens":53}}}"#,
    ]);
    assert_eq!(
        told,
        [
            "started m -",
            "usage 3069 8 2750 318 0",
            "usage 3069 97 2750 318 53"
        ]
    );
}

#[test]
fn a_repeated_start_is_ignored_and_another_one_is_a_restart() {
    let told = super::told(&[START, START, &stopped("end_turn"), STOP]);
    assert_eq!(told[2], "alive");
    assert_eq!(told.last().unwrap(), "end false");
    let other = START.replace("msg_1", "msg_2");
    let told = super::told(&[START, &other]);
    assert_eq!(told.last().unwrap(), "undecodable Restarted");
}

#[test]
fn native_events_come_before_what_is_made_of_them_if_they_are_asked_for() {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(DecoderOptions {
        native_events: true,
        ..DecoderOptions::default()
    });
    let body = format!("event: ping\ndata: {{\"type\": \"ping\"}}\n\n: c\n\ndata: {STOP}\n\n");
    decoder.feed(body.as_bytes(), &mut |event| events.push(words(&event)));
    let expected = [
        r#"event {"type": "ping"}"#,
        "alive",
        "comment",
        &format!("event {STOP}"),
        "end false",
    ];
    assert_eq!(events, expected);
}
