//! What is repeated whole: what was not streamed, what differs, and where it belongs.

use serde_json::json;

use super::*;
use crate::protocol::Terminal;

#[test]
fn what_was_never_streamed_is_told_whole_by_its_item() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let events = [done(0, &message(&["a", "b"])), done(1, &call)];
    let item = ["whole 0.0: text a", "whole 0.1: text b"];
    assert_eq!(output(&events), item);
}

/// Half a response's calls are worth nothing, and one that never began could not be watched either.
#[test]
fn a_call_that_never_began_is_told_when_the_response_is_complete() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    for listed in [json!([]), json!([call])] {
        let told = output(&[done(0, &call), completed(&listed)]);
        let expected = [
            "call 0.0 c f",
            "whole 0.0: args 0.0 {}",
            "finish Stop completed",
            "over false",
        ];
        assert_eq!(told, expected);
    }
    let options = DecoderOptions {
        terminal: Terminal::DoneSentinel,
        ..DecoderOptions::default()
    };
    let body = stream(&[done(0, &call)]) + "data: [DONE]\n\n";
    let told = told_with(options, &body);
    assert_eq!(
        told[1..],
        ["call 0.0 c f", "whole 0.0: args 0.0 {}", "over true"]
    );
}

#[test]
fn what_is_only_in_the_whole_response_is_told_too() {
    let call = json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"});
    let search = json!({"type": "web_search_call", "id": "ws"});
    let listed = json!([message(&["a"]), call, search]);
    let native = format!("whole 2.0: native {search}");
    let expected = [
        "whole 0.0: text a",
        "call 1.0 c f",
        "whole 1.0: args 1.0 {}",
        &native,
        "finish Stop completed",
        "over false",
    ];
    assert_eq!(output(&[completed(&listed)]), expected);
}

#[test]
fn a_whole_that_differs_from_the_one_before_is_told_and_an_empty_one_is_not() {
    let events = [
        json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "a"}),
        done(0, &message(&["b"])),
        completed(&json!([message(&[""])])),
    ];
    let told = output(&events);
    assert_eq!(told[..2], ["whole 0.0: text a", "whole 0.0: text b"]);
    assert!(told[2].starts_with("finish"), "{told:?}");
}

/// Bedrock and vLLM count a message's parts on from the reasoning before it.
#[test]
fn listed_parts_are_those_that_were_streamed_even_if_they_count_from_elsewhere() {
    let events = [
        added(0, &message(&[])),
        text(0, 1, "a"),
        done(0, &message(&["a"])),
        completed(&json!([message(&["a"])])),
    ];
    let told = output(&events);
    let whole: Vec<_> = told
        .iter()
        .filter(|event| event.starts_with("whole"))
        .collect();
    assert_eq!(whole, ["whole 0.1: text a"]);
}

#[test]
fn listed_items_are_found_by_id_wherever_they_stand() {
    let events = [
        added(0, &json!({"type": "reasoning", "id": "rs"})),
        added(1, &message(&[])),
        text(1, 0, "a"),
        completed(&json!([message(&["b"])])),
    ];
    let told = output(&events);
    assert_eq!(told[3], "whole 1.0: text b", "{told:?}");
}

#[test]
fn listed_items_under_new_ids_are_found_by_their_order_or_not_at_all() {
    let renamed = json!({"type": "message", "id": "other", "content": [{"type": "output_text", "text": "b"}]});
    let streamed = [added(0, &message(&[])), text(0, 0, "a")];
    let in_order = [streamed.as_slice(), &[completed(&json!([renamed]))]].concat();
    assert!(output(&in_order).contains(&"whole 0.0: text b".to_owned()));

    let fewer = [
        added(0, &json!({"type": "reasoning", "id": "rs"})),
        added(1, &message(&[])),
        text(1, 0, "a"),
        completed(&json!([renamed])),
    ];
    assert!(
        !output(&fewer)
            .iter()
            .any(|event| event.starts_with("whole"))
    );

    let of_another_kind = [
        added(0, &json!({"type": "reasoning", "id": "rs"})),
        completed(&json!([renamed])),
    ];
    assert!(
        !output(&of_another_kind)
            .iter()
            .any(|event| event.starts_with("whole"))
    );
}

#[test]
fn the_first_signature_of_an_item_stands() {
    let reasoning = |secret: &str| json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": secret});
    let events = [
        done(0, &reasoning("one")),
        completed(&json!([reasoning("two")])),
    ];
    let told = output(&events);
    let signed = told.iter().filter(|event| event.contains("signature"));
    assert_eq!(signed.count(), 1, "{told:?}");
}
