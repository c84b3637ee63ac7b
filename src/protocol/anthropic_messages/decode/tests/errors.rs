//! Errors, and what is no Messages stream.

use super::*;

#[test]
fn an_error_event_ends_the_response_whatever_came_before() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let told = told(&[START, &stopped("end_turn"), error, STOP]);
    assert_eq!(told.last().unwrap(), &format!("error {error}"));
    assert!(
        !told.iter().any(|words| words.starts_with("finish ")),
        "{told:?}"
    );
}

#[test]
fn an_error_is_known_by_its_type_its_member_or_the_events_name() {
    for (body, error) in [
        (
            "data: {\"type\":\"error\",\"message\":\"m\"}\n\n",
            "{\"type\":\"error\",\"message\":\"m\"}",
        ),
        (
            "data: {\"type\":\"ping\",\"error\":{\"a\":1}}\n\n",
            "{\"type\":\"ping\",\"error\":{\"a\":1}}",
        ),
        ("event: error\ndata: no JSON\n\n", "no JSON"),
        (
            "data: {\"message\":\"Too many requests\"}\n\n",
            "{\"message\":\"Too many requests\"}",
        ),
        (":\nerror: {\"a\":1}\n\n", "{\"a\":1}"),
    ] {
        let told = told_body(body.as_bytes());
        assert_eq!(told.last().unwrap(), &format!("error {error}"), "{body}");
    }
}

#[test]
fn an_error_body_under_a_good_status_is_an_error() {
    let body = "{\"type\":\"error\",\n\"error\":{\"type\":\"api_error\"}}";
    assert_eq!(told_body(body.as_bytes()), [format!("error {body}\n")]);
}

#[test]
fn a_message_that_was_not_streamed_is_told_as_such() {
    let message = r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#;
    assert_eq!(
        told_body(message.as_bytes()),
        ["undecodable WholeCompletion"]
    );
    assert_eq!(told(&[message]), ["undecodable WholeCompletion"]);
}

#[test]
fn what_is_no_stream_is_told_as_such() {
    assert_eq!(
        told_body(b"<!DOCTYPE html>\n<html></html>"),
        ["undecodable NotAStream"]
    );
    assert_eq!(
        told_body(b"{\"type\":\"ping\"}\n"),
        ["undecodable NotAStream"]
    );
}

#[test]
fn what_breaks_the_grammar_is_undecodable() {
    let call = start(r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#);
    let text = start(r#"{"type":"text","text":""}"#);
    for events in [
        &["{\"type\":"][..],
        &["[]"],
        &["1"],
        &[r#"{"type":"message_start"}"#],
        &[r#"{"type":"message_start","message":[]}"#],
        &[r#"{"type":"content_block_start","index":0}"#],
        &[r#"{"type":"content_block_start","content_block":{"type":"text"}}"#],
        &[r#"{"type":"content_block_start","index":-1,"content_block":{"type":"text"}}"#],
        &[r#"{"type":"content_block_start","index":0,"content_block":{}}"#],
        &[r#"{"type":"content_block_delta","index":0,"delta":7}"#],
        &[r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#],
        // Argument text of an unknown call, or text inside a call, would be lost.
        &[&delta(r#"{"type":"input_json_delta","partial_json":"{}"}"#)],
        &[&call, &delta(r#"{"type":"text_delta","text":"x"}"#)],
        &[
            &text,
            &delta(r#"{"type":"input_json_delta","partial_json":"{}"}"#),
        ],
        // The same block twice.
        &[&call, &call],
    ] {
        assert_eq!(
            told(events).last().unwrap(),
            "undecodable Json",
            "{events:?}"
        );
    }
}

#[test]
fn held_pieces_and_open_blocks_are_bounded() {
    let block = start(r#"{"type":"server_tool_use","id":"s","name":"n","input":{}}"#);
    let fragment = "x".repeat(1 << 20);
    let fragment = delta(&format!(
        r#"{{"type":"input_json_delta","partial_json":"{fragment}"}}"#
    ));
    let mut decoder = Decoder::new(DecoderOptions::default());
    let mut last = String::new();
    decoder.feed(format!("data: {block}\n\n").as_bytes(), &mut |_| {});
    for _ in 0..20 {
        let event = format!("data: {fragment}\n\n");
        decoder.feed(event.as_bytes(), &mut |event| last = words(&event));
    }
    assert_eq!(last, "undecodable TooLarge");

    let mut decoder = Decoder::new(DecoderOptions::default());
    for index in 0..1000 {
        let event = format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"text\"}}}}\n\n"
        );
        decoder.feed(event.as_bytes(), &mut |event| last = words(&event));
    }
    assert_eq!(last, "undecodable TooLarge");
}
