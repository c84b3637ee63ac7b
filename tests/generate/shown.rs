//! Generations that are committed: what goes where.

use std::time::Duration;

use redrive::simulator::{Script, chat};
use serde_json::{Value, json};

use crate::support::{World, broken};

const QUICK: Duration = Duration::from_millis(1);

/// Several lines, no line end at the end, and what no terminal should obey.
const TEXT: &str = "One line,\nanother \x1b[2J one,\n  and ünï 語 without an end";

#[tokio::test(flavor = "multi_thread")]
async fn the_committed_text_goes_to_standard_output_byte_for_byte_and_nothing_else_does() {
    let world = World::new(|_| chat::answer("m", TEXT, QUICK)).await;
    let ended = world.generate(&["Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), TEXT));
    ended.told(&[
        "· accepted: generation ",
        "· attempt 1 on local/default\n",
        "preview: One line,\nanother \\u{1b}[2J one,",
        "· committed: stop, tokens in 12, out 11\n",
    ]);
    assert!(!ended.stderr.contains('\x1b'), "{ended:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn void_text_is_told_and_never_reaches_standard_output() {
    let world = World::new(|asked| match asked.nth {
        1 => broken("A wrong start"),
        _ => chat::answer("m", "A right one.", QUICK),
    });
    let ended = world.await.generate(&["--ledger", "Say it."]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "A right one.")
    );
    ended.told(&[
        "preview: A wrong start\n",
        "void: ~~A wrong start~~\n",
        "· reset: attempt 1 is void: transport (",
        "· waiting ",
        "· attempt 2 on local/default, from the start\n",
        "preview: A right one.\n",
        "· committed: stop",
        "#  target         executed  verdict    wait",
        "1  local/default  yes       transport  -",
        "2  local/default  yes       accepted   ",
        " ms backoff  ",
        "attempts 2, sends 2, void tokens ",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_only_shows_neither_preview_nor_reset() {
    let world = World::new(|asked| match asked.nth {
        1 => broken("A wrong start"),
        _ => chat::answer("m", "A right one.", QUICK),
    });
    let ended = world
        .await
        .generate(&["--delivery=committed-only", "Say it."]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "A right one.")
    );
    assert!(!ended.stderr.contains("preview"), "{ended:#?}");
    assert!(!ended.stderr.contains("void"), "{ended:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_and_tool_calls_are_legible_and_beside_the_text() {
    let world = World::new(|_| {
        let call = |call: Value| json!({"tool_calls": [call]});
        let open = json!({
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "weather", "arguments": ""},
        });
        let arguments = json!({"index": 0, "function": {"arguments": "{\"city\":\"Oslo\"}"}});
        Script::event_stream()
            .then(chat::chunk(
                "m",
                json!({"reasoning_content": "Where is it?"}),
                None,
            ))
            .then(chat::chunk("m", json!({"content": "Let me look."}), None))
            .then(chat::chunk("m", call(open), None))
            .then(chat::chunk("m", call(arguments), None))
            .then(chat::chunk("m", json!({}), Some("tool_calls")))
    });
    let ended = world.await.generate(&["Weather?"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Let me look.")
    );
    ended.told(&[
        "preview (reasoning): Where is it?\n",
        "preview: Let me look.\n",
        "preview: tool call weather: {\"city\":\"Oslo\"}\n",
        "· reasoning: Where is it?\n",
        "· tool call weather (call_1): {\"city\":\"Oslo\"}\n",
        "· committed: tool_calls",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_may_be_standard_input_and_the_route_another() {
    let world = World::new(|asked| chat::answer("m", &asked.model, QUICK)).await;
    let arguments = [
        "--route=other",
        "--system=Be brief.",
        "--max-output-tokens=7",
    ];
    let ended = world.generate_from(&arguments, "Why?\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "other"));
    let body: Value = serde_json::from_str(&world.bodies()[0]).unwrap();
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why?\n"},
    ]);
    assert_eq!(body["messages"], messages);
    assert_eq!(body["max_completion_tokens"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_file_reaches_the_provider_as_it_is_written() {
    let world = World::new(|_| chat::answer("m", "Yes.", QUICK)).await;
    let written = "\"messages\" : [ {\"role\":\"user\",  \"content\":\"Hi\"} ],\n \"own\":1.50 ";
    let ended = world.generate_from(&["--file=-"], &format!("{{ {written}}}"));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Yes."));
    let body = &world.bodies()[0];
    assert!(body.contains(written), "{body}");
    assert!(
        body.contains("\"default\""),
        "the route's model is set: {body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_a_request_file_can_be_sent() {
    let world = World::new(|_| chat::answer("m", "Yes.", QUICK)).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/request.json");
    let ended = world.generate(&["--file", file]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Yes."));
    let body = &world.bodies()[0];
    assert!(body.contains("\"temperature\": 0.2"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_gives_every_frame_as_a_line() {
    let world = World::new(|_| chat::answer("m", "Yes.", QUICK)).await;
    let ended = world.generate(&["--json", "Say it."]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines = ended.stdout.lines();
    let frames: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (number, frame) in (1..).zip(&frames) {
        assert_eq!(frame["sequence"], number);
    }
    let deltas: Vec<&str> = frames
        .iter()
        .filter_map(|f| f["delta"]["text"].as_str())
        .collect();
    assert_eq!(deltas.concat(), "Yes.");
    let last = &frames.last().unwrap()["committed"];
    assert_eq!(last["final"], true);
    assert_eq!(last["message"], json!([{"text": "Yes."}]));
    assert_eq!(last["finish_reason"], "FINISH_REASON_STOP");
    assert_eq!(last["ledger"]["sends"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_id_shows_the_same_generation_and_sends_nothing() {
    let world = World::new(|asked| chat::answer("m", &format!("No. {}", asked.nth), QUICK)).await;
    for _ in 0..2 {
        let ended = world.generate(&["--request-id=once", "Say it."]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "No. 1"));
    }
    assert_eq!(world.bodies().len(), 1);
}
