//! What a stream means, event by event. Bodies are written as the servers write them.

mod dialects;
mod errors;
mod output;
mod tool_calls;

use super::Decoder;
use crate::protocol::{Decoder as _, Delta, Event, Terminal};

/// What the decoder tells of `body` up to a clean end, in words. Decodes it whole and byte by byte.
fn told(body: &str) -> Vec<String> {
    told_with(Terminal::FinishReason, body.as_bytes(), true)
}

fn told_with(terminal: Terminal, body: &[u8], clean: bool) -> Vec<String> {
    let decode = |reads: &mut dyn Iterator<Item = &[u8]>| {
        let mut events = Vec::new();
        let mut decoder = Decoder::new(terminal);
        for read in reads {
            decoder.feed(read, &mut |event| events.push(words(&event)));
        }
        decoder.end(clean, &mut |event| events.push(words(&event)));
        decoder.feed(b"data: late\n\n", &mut |event| {
            panic!("{event:?} after the end")
        });
        events
    };
    let whole = decode(&mut [body].into_iter());
    assert_eq!(decode(&mut body.chunks(1)), whole, "byte by byte");
    whole
}

/// Chunks as events, without the fields that do not matter here.
fn stream(chunks: &[&str]) -> String {
    chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect()
}

/// A chunk with this `delta`.
fn delta(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
}

fn words(event: &Event<'_>) -> String {
    match event {
        Event::Started { response_id, model } => {
            format!(
                "started {} {}",
                response_id.unwrap_or("-"),
                model.unwrap_or("-")
            )
        }
        Event::Delta(Delta::Text(text)) => format!("text {text}"),
        Event::Delta(Delta::Reasoning(text)) => format!("reasoning {text}"),
        Event::Delta(Delta::Refusal(text)) => format!("refusal {text}"),
        Event::Delta(Delta::ToolCallStart { call, id, name }) => format!("call {call} {id} {name}"),
        Event::Delta(Delta::ToolArguments { call, fragment }) => format!("args {call} {fragment}"),
        Event::Keepalive { content: true } => "alive".to_owned(),
        Event::Keepalive { content: false } => "comment".to_owned(),
        Event::Native { data } => format!("native {}", String::from_utf8_lossy(data)),
        Event::Usage(usage) => format!(
            "usage {} {} {} {} {}",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_write_input_tokens,
            usage.reasoning_output_tokens
        ),
        Event::Finish { reason, native } => format!("finish {reason:?} {native}"),
        Event::BadFinish { native } => format!("bad finish {native}"),
        Event::End { completes } => format!("end {completes}"),
        Event::Error { json } => format!("error {}", String::from_utf8_lossy(json)),
        Event::Undecodable(error) => format!("undecodable {error:?}"),
        // Chat Completions has nothing of the kind.
        other => panic!("{other:?}"),
    }
}

#[test]
fn native_events_come_as_they_are_and_before_what_is_made_of_them_if_they_are_asked_for() {
    let body = stream(&[
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}],"own":1}"#,
        "[DONE]",
    ]);
    let mut events = Vec::new();
    let mut decoder = Decoder::new(Terminal::DoneSentinel).with_native_events(true);
    decoder.feed(body.as_bytes(), &mut |event| events.push(words(&event)));
    assert_eq!(
        events,
        [
            r#"native {"choices":[{"index":0,"delta":{"content":"Hi"}}],"own":1}"#,
            "text Hi",
            "native [DONE]",
            "end true",
        ]
    );
}
