//! What a stream means, event by event. Bodies are written as the servers write them.

mod ends;
mod items;
mod numbers;
mod whole;

use serde_json::{Value, json};

use super::{
    Decoder,
    blocks::{Place, number},
};
use crate::protocol::{BlockKind, Decoder as _, DecoderOptions, Delta, Event};

/// What the decoder tells of `body` up to a clean end, in words. Decodes it whole and byte by byte.
fn told(body: &str) -> Vec<String> {
    told_with(DecoderOptions::default(), body)
}

fn told_with(options: DecoderOptions, body: &str) -> Vec<String> {
    let decode = |reads: &mut dyn Iterator<Item = &[u8]>| {
        let mut events = Vec::new();
        let mut decoder = Decoder::new(options);
        for read in reads {
            decoder.feed(read, &mut |event| events.push(words(&event)));
        }
        decoder.end(true, &mut |event| events.push(words(&event)));
        decoder.feed(b"data: late\n\n", &mut |event| {
            panic!("{event:?} after the end")
        });
        events
    };
    let whole = decode(&mut [body.as_bytes()].into_iter());
    assert_eq!(
        decode(&mut body.as_bytes().chunks(1)),
        whole,
        "byte by byte"
    );
    whole
}

/// Like [`told`], without what only proves life and what the ends of a response always have.
fn output(events: &[Value]) -> Vec<String> {
    let mut told = told(&stream(events));
    told.retain(|event| event != "alive");
    told
}

/// Events in the order of their sequence numbers.
fn stream(events: &[Value]) -> String {
    let numbered = events.iter().zip(0..).map(|(event, number)| {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        sse(&event)
    });
    numbered.collect()
}

fn sse(event: &Value) -> String {
    format!(
        "event: {}\ndata: {event}\n\n",
        event["type"].as_str().unwrap_or_default()
    )
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}})
}

fn completed(output: &Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

fn text(item: u32, part: u32, delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": item, "content_index": part, "delta": delta})
}

fn added(index: u32, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u32, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn message(texts: &[&str]) -> Value {
    let content: Vec<Value> = texts
        .iter()
        .map(|text| json!({"type": "output_text", "text": text, "annotations": []}))
        .collect();
    json!({"type": "message", "id": "msg", "role": "assistant", "content": content})
}

fn words(event: &Event<'_>) -> String {
    match event {
        Event::Started { response_id, model } => {
            let word = |name: &Option<&str>| name.unwrap_or("-").to_owned();
            format!("started {} {}", word(response_id), word(model))
        }
        Event::Block { block, kind } => {
            let kind = match kind {
                BlockKind::Text => "text",
                BlockKind::Reasoning => "reasoning",
                BlockKind::ToolCall => "call",
                BlockKind::Native => "native",
            };
            format!("block {} {kind}", place(*block))
        }
        Event::BlockEnd { block } => format!("end {}", place(*block)),
        Event::Snapshot { block, whole } => format!("whole {}: {}", place(*block), piece(whole)),
        Event::Delta(delta) => piece(delta),
        Event::Cursor { sequence } => format!("cursor {sequence}"),
        Event::Unknown => "unknown".to_owned(),
        Event::Keepalive { content: true } => "alive".to_owned(),
        Event::Keepalive { content: false } => "comment".to_owned(),
        Event::Native { data } => format!("raw {}", data.len()),
        Event::Usage(usage) => format!(
            "usage {} {} cached {} {} reasoning {}",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_write_input_tokens,
            usage.reasoning_output_tokens
        ),
        Event::Finishing => panic!("the protocol has nothing of the kind"),
        Event::Finish { reason, native } => format!("finish {reason:?} {native}"),
        Event::BadFinish { native } => format!("bad finish {native}"),
        Event::End { completes } => format!("over {completes}"),
        Event::Error { json } => format!("error {}", String::from_utf8_lossy(json)),
        Event::Undecodable(reason) => format!("undecodable {reason:?}"),
    }
}

fn piece(delta: &Delta<'_>) -> String {
    match delta {
        Delta::Text(text) => format!("text {text}"),
        Delta::Reasoning(text) => format!("reasoning {text}"),
        Delta::Refusal(text) => format!("refusal {text}"),
        Delta::ToolCallStart { call, id, name } => format!("call {} {id} {name}", place(*call)),
        Delta::ToolArguments { call, fragment } => format!("args {} {fragment}", place(*call)),
        Delta::ReasoningSignature(signature) => format!("signature {signature}"),
        Delta::RedactedReasoning(data) => format!("redacted {data}"),
        Delta::NativeBlock(json) => format!("native {json}"),
    }
}

/// A block's number as item and part: `0` is a message's part, `r0` a reasoning's, `s0` a summary's.
fn place(block: u32) -> String {
    for (place, letter) in [
        (Place::Content, ""),
        (Place::Reasoning, "r"),
        (Place::Summary, "s"),
    ] {
        for part in 0..4 {
            for item in 0..8 {
                if number(item, place, part) == Ok(block) {
                    return format!("{item}.{letter}{part}");
                }
            }
        }
    }
    block.to_string()
}
