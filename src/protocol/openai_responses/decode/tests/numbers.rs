//! Sequence numbers: gaps, resumption, cursors.

use serde_json::json;

use super::*;
use crate::protocol::DecoderOptions;

fn numbered(number: i64, mut event: Value) -> String {
    event["sequence_number"] = number.into();
    sse(&event)
}

fn resumed(after: u64) -> DecoderOptions {
    DecoderOptions {
        cursor: true,
        after: Some(after),
        ..DecoderOptions::default()
    }
}

#[test]
fn a_gap_is_lost_data() {
    let body = numbered(0, created()) + &numbered(2, text(0, 0, "a"));
    assert_eq!(told(&body), ["started r m", "alive", "undecodable Gap"]);
    assert_eq!(told(&numbered(1, text(0, 0, "a"))), ["undecodable Gap"]);
}

#[test]
fn an_unknown_event_has_a_number_like_any_other() {
    let body = numbered(0, json!({"type": "x"}))
        + &numbered(1, json!({"type": "keepalive"}))
        + &numbered(2, text(0, 0, "a"));
    assert_eq!(
        told(&body),
        ["unknown", "alive", "block 0.0 text", "text a"]
    );
}

#[test]
fn streams_without_numbers_and_with_numbers_that_say_nothing_are_taken() {
    let expected = ["block 0.0 text", "text a", "text b"];
    let without = sse(&text(0, 0, "a")) + &sse(&text(0, 0, "b"));
    assert_eq!(told(&without), expected);
    for number in [0, -1] {
        let same = numbered(number, text(0, 0, "a")) + &numbered(number, text(0, 0, "b"));
        assert_eq!(told(&same), expected);
    }
}

#[test]
fn an_error_is_told_whatever_its_number() {
    let body =
        numbered(0, created()) + &numbered(7, json!({"type": "error", "code": "server_error"}));
    let told = told(&body);
    assert!(told[2].starts_with("error "), "{told:?}");
}

#[test]
fn a_resumed_stream_goes_on_with_the_same_blocks_and_passes_over_what_is_known() {
    let body = numbered(4, text(1, 0, "x"))
        + &numbered(5, text(1, 0, "a"))
        + &numbered(6, text(1, 0, "b"));
    assert_eq!(
        told_with(resumed(4), &body),
        [
            "alive",
            "block 1.0 text",
            "text a",
            "cursor 5",
            "text b",
            "cursor 6"
        ]
    );
    assert_eq!(
        told_with(resumed(4), &numbered(6, text(0, 0, "a"))),
        ["undecodable Gap"]
    );
}

#[test]
fn a_cursor_is_told_where_it_was_asked_for_and_the_response_can_be_resumed() {
    let options = DecoderOptions {
        cursor: true,
        ..DecoderOptions::default()
    };
    let background = |background: bool| json!({"type": "response.created", "response": {"id": "r", "background": background}});
    let body = |yes| numbered(0, background(yes)) + &numbered(1, text(0, 0, "a"));
    let told = told_with(options, &body(true));
    assert_eq!(
        told,
        [
            "started r -",
            "alive",
            "cursor 0",
            "block 0.0 text",
            "text a",
            "cursor 1"
        ]
    );
    let without = told_with(options, &body(false));
    assert!(!without.iter().any(|event| event.starts_with("cursor")));
    let by_no_id = body(true).replace(r#""id":"r""#, r#""id":"r/../x""#);
    let by_no_id = told_with(options, &by_no_id);
    assert!(!by_no_id.iter().any(|event| event.starts_with("cursor")));
    let not_asked_for = super::told(&body(true));
    assert!(
        !not_asked_for
            .iter()
            .any(|event| event.starts_with("cursor"))
    );
}

#[test]
fn another_response_in_the_same_stream_is_told() {
    let other = json!({"type": "response.created", "response": {"id": "s"}});
    let body = numbered(0, created()) + &numbered(1, other);
    assert_eq!(
        told(&body),
        ["started r m", "alive", "undecodable Restarted"]
    );
    // Copilot gives each event another id.
    let progress = json!({"type": "response.in_progress", "response": {"id": "s"}});
    let body = numbered(0, created()) + &numbered(1, progress);
    assert_eq!(told(&body), ["started r m", "alive", "alive"]);
}
