//! What a stream means, event by event. Bodies are written as the servers write them.

mod blocks;
mod endings;
mod errors;

use super::Decoder;
use crate::protocol::{Decoder as _, DecoderOptions, Delta, Event};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

/// What the decoder tells of these events up to a clean end, in words. Decodes them whole and byte by
/// byte, with `event:` lines and without.
fn told(events: &[&str]) -> Vec<String> {
    let bare: String = events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    let named: String = events
        .iter()
        .map(|data| format!("event: {}\ndata: {data}\n\n", name(data)))
        .collect();
    let told = told_body(bare.as_bytes());
    assert_eq!(told_body(named.as_bytes()), told, "with names");
    told
}

fn name(data: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(data).unwrap_or_default();
    value["type"].as_str().unwrap_or("message").to_owned()
}

fn told_body(body: &[u8]) -> Vec<String> {
    let decode = |reads: &mut dyn Iterator<Item = &[u8]>| {
        let mut events = Vec::new();
        let mut decoder = Decoder::new(DecoderOptions::default());
        for read in reads {
            decoder.feed(read, &mut |event| events.push(words(&event)));
        }
        decoder.end(true, &mut |event| events.push(words(&event)));
        decoder.feed(b"data: late\n\n", &mut |event| {
            panic!("{event:?} after the end")
        });
        events
    };
    let whole = decode(&mut [body].into_iter());
    assert_eq!(decode(&mut body.chunks(1)), whole, "byte by byte");
    whole
}

/// A delta of block 0.
fn delta(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

/// The start of block 0.
fn start(block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#)
}

const BLOCK_STOP: &str = r#"{"type":"content_block_stop","index":0}"#;

fn stopped(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":5}}}}"#
    )
}

fn words(event: &Event<'_>) -> String {
    match event {
        Event::Started { response_id, model } => format!(
            "started {} {}",
            response_id.unwrap_or("-"),
            model.unwrap_or("-")
        ),
        Event::Delta(Delta::Text(text)) => format!("text {text}"),
        Event::Delta(Delta::Reasoning(text)) => format!("reasoning {text}"),
        Event::Delta(Delta::ToolCallStart { call, id, name }) => format!("call {call} {id} {name}"),
        Event::Delta(Delta::ToolArguments { call, fragment }) => format!("args {call} {fragment}"),
        Event::Delta(Delta::ReasoningSignature(text)) => format!("signature {text}"),
        Event::Delta(Delta::RedactedReasoning(data)) => format!("redacted {data}"),
        Event::Delta(Delta::NativeBlock(json)) => format!("native {json}"),
        Event::Block { block, kind } => format!("block {block} {kind:?}"),
        Event::BlockEnd { block } => format!("end of {block}"),
        Event::Unknown => "unknown".to_owned(),
        Event::Keepalive { content: true } => "alive".to_owned(),
        Event::Keepalive { content: false } => "comment".to_owned(),
        Event::Native { data } => format!("event {}", String::from_utf8_lossy(data)),
        Event::Usage(usage) => format!(
            "usage {} {} {} {} {}",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_write_input_tokens,
            usage.reasoning_output_tokens
        ),
        Event::Finishing => "finishing".to_owned(),
        Event::Finish { reason, native } => format!("finish {reason:?} {native}"),
        Event::End { completes } => format!("end {completes}"),
        Event::Error { json } => format!("error {}", String::from_utf8_lossy(json)),
        Event::Undecodable(error) => format!("undecodable {error:?}"),
        // The protocol has nothing of the kind.
        other => panic!("{other:?}"),
    }
}
