//! Properties of framing and decoding over bytes of any kind: no panic, the same events however the
//! bytes are split, nothing after the end, memory in proportion to the input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use allocation_counter::measure;
use proptest::{collection::vec, prelude::*, sample::select, test_runner::Config};
use redrive::protocol::{
    DecodeError, Decoder, DecoderOptions, Event, Terminal, anthropic_messages, openai_chat,
    openai_responses,
    sse::{Item, Splitter},
};

/// What streams and their accidents are made of.
const PIECES: &[&str] = &[
    "data: ",
    "data:",
    "data",
    "event: ",
    "event: error\n",
    "error: ",
    "id: 1\n",
    ":",
    ": ping\n\n",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    "\r\n\r\n",
    " ",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "d83d",
    ",",
    "null",
    "1e999",
    "-0",
    "[DONE]",
    "é😀",
    "\"error\":",
    "\"choices\":[{\"delta\":{\"content\":\"",
    "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\n\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"b\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"g\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}\n\n",
    "data: {\"choices\":[],\"error\":{\"code\":1}}\n\n",
    "{\"error\":{\n\"message\":\"m\"\n}\n}\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"mcp_tool_use\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\\n\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"a\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
];

/// What streams of OpenAI Responses and their accidents are made of, beside the [`PIECES`] of framing.
const RESPONSES: &[&str] = &[
    "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"m\",\"background\":true}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"call_id\":\"\\u0041\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"mcp_call\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\\n\",\"output_index\":0}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"b\",\"content_index\":3}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"h\",\"summary_index\":1}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{}\",\"output_index\":1}\n\n",
    "data: {\"type\":\"response.output_text.done\",\"text\":\"a\",\"sequence_number\":3}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"é\"}]}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{}]}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]},{\"type\":\"function_call\"}]}}\n\n",
    "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n",
    "{\"type\":\"",
    "\"sequence_number\":0,",
    "\"output_index\":4294967296,",
];

/// A body: mostly pieces of streams, with other bytes between them.
fn body() -> impl Strategy<Value = Vec<u8>> {
    body_of(&[PIECES])
}

fn body_of(pieces: &[&[&'static str]]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let pieces = pieces.concat();
    let piece = prop_oneof![
        9 => select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..8),
    ];
    let begun = prop_oneof![4 => Just("data: {}\n\n"), 1 => Just("")];
    (begun, vec(piece, 0..40)).prop_map(|(begun, pieces)| {
        [begun.as_bytes().to_vec()]
            .into_iter()
            .chain(pieces)
            .flatten()
            .collect()
    })
}

/// Lengths of reads; used again and again until the body ends.
fn reads() -> impl Strategy<Value = Vec<usize>> {
    vec(1_usize..40, 1..8)
}

fn split<'b>(body: &'b [u8], reads: &[usize]) -> Vec<&'b [u8]> {
    let (mut rest, mut parts) = (body, Vec::new());
    for read in reads.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (part, tail) = rest.split_at((*read).min(rest.len()));
        parts.push(part);
        rest = tail;
    }
    parts
}

/// A decoder of each protocol.
fn decoders() -> [Box<dyn Decoder>; 2] {
    [
        Box::new(openai_chat::Decoder::new(Terminal::DoneSentinel)),
        Box::new(anthropic_messages::Decoder::new(DecoderOptions::default())),
    ]
}

fn decode(mut decoder: Box<dyn Decoder>, parts: &[&[u8]], clean: bool) -> Vec<String> {
    let mut told = Vec::new();
    let mut over = false;
    let mut keep = |event: Event<'_>| {
        assert!(!over, "{event:?} after the end");
        over = matches!(
            event,
            Event::End { .. } | Event::Error { .. } | Event::Undecodable(_)
        );
        told.push(format!("{event:?}"));
    };
    for part in parts {
        decoder.feed(part, &mut keep);
    }
    decoder.end(clean, &mut keep);
    told
}

/// The events of a stream by the letter of the grammar, for bodies without JSON outside of `data`.
fn by_the_grammar(body: &str) -> Vec<(String, String)> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    // Behind the last line end there is no line, only the beginning of one.
    let (lines, _) = body.rsplit_once('\n').unwrap_or(("", ""));
    for line in lines.split('\n') {
        if line.is_empty() {
            let (name, mut data) = (std::mem::take(&mut name), std::mem::take(&mut data));
            if data.pop().is_some() {
                events.push((name, data));
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => {
                data += value;
                data += "\n";
            }
            _ => {}
        }
    }
    events
}

fn events(parts: &[&[u8]]) -> Vec<(String, String)> {
    let mut splitter = Splitter::default();
    let mut events = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for mut part in parts.iter().copied() {
        while let Some(item) = splitter.next(&mut part) {
            match item.unwrap() {
                // A browser drops an event without a data field, and one with a single empty one.
                Item::Event { data: [], .. } | Item::Comment | Item::Field { .. } => {}
                Item::Event { name, data } => events.push((text(name), text(data))),
                Item::Json(json) => panic!("JSON outside the fields: {:?}", text(json)),
            }
        }
    }
    events
}

proptest! {
    #![proptest_config(Config { cases: 512, failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_events_do_not_depend_on_how_the_bytes_were_split(
        body in body(),
        reads in reads(),
        clean in any::<bool>(),
    ) {
        for (whole, pieces) in decoders().into_iter().zip(decoders()) {
            let whole = decode(whole, &[&body], clean);
            prop_assert_eq!(decode(pieces, &split(&body, &reads), clean), whole);
        }
    }

    #[test]
    fn memory_grows_no_faster_than_the_input(body in body(), reads in reads()) {
        let parts = split(&body, &reads);
        for mut decoder in decoders() {
            let taken = measure(|| {
                for part in &parts {
                    decoder.feed(part, &mut |_| {});
                }
                decoder.end(true, &mut |_| {});
            });
            let allowed = 8 * body.len() as u64 + 4096;
            prop_assert!(taken.bytes_max <= allowed, "{} of {}", taken.bytes_max, allowed);
        }
    }

    #[test]
    fn responses_do_not_depend_on_how_the_bytes_were_split_and_memory_is_bounded(
        body in body_of(&[RESPONSES, RESPONSES, PIECES]),
        reads in reads(),
        clean in any::<bool>(),
        after in prop::option::of(0_u64..4),
    ) {
        let options = DecoderOptions { after, cursor: true, ..DecoderOptions::default() };
        let decoder = || openai_responses::Decoder::new(options);
        let parts = split(&body, &reads);
        prop_assert_eq!(
            decode(Box::new(decoder()), &parts, clean),
            decode(Box::new(decoder()), &[&body], clean)
        );
        let taken = measure(|| {
            let mut decoder = decoder();
            for part in &parts {
                decoder.feed(part, &mut |_| {});
            }
            decoder.end(clean, &mut |_| {});
        });
        let allowed = 8 * body.len() as u64 + 4096;
        prop_assert!(taken.bytes_max <= allowed, "{} of {}", taken.bytes_max, allowed);
    }

    #[test]
    fn text_of_responses_comes_out_as_it_went_in(text in any::<String>(), reads in reads()) {
        let json = serde_json::json!({"type": "response.output_text.delta", "delta": &text});
        let body = format!("data: {json}\n\n");
        let mut got = String::new();
        let mut decoder = openai_responses::Decoder::new(DecoderOptions::default());
        for part in split(body.as_bytes(), &reads) {
            decoder.feed(part, &mut |event| match event {
                Event::Delta(redrive::protocol::Delta::Text(part)) => got.push_str(part),
                Event::Keepalive { content: true } | Event::Block { .. } => {}
                other => panic!("{other:?}"),
            });
        }
        prop_assert_eq!(got, text);
    }

    #[test]
    fn framing_follows_the_grammar(
        lines in vec(
            select(&[
                "data: a", "data:a", "data:  a", "data", "data:", "data: é\u{2028}\u{85}x",
                "event: x", "event:", "event", ": c", ":", "id: 1", "retry: 2", "other: a", "other",
                " data: a", "", "", "",
            ][..]),
            0..30,
        ),
        ends in vec(select(&["\n", "\r\n", "\r"][..]), 30),
        mark in any::<bool>(),
        reads in reads(),
    ) {
        let mut body = String::from(if mark { "\u{feff}:\n" } else { ":\n" });
        for (line, end) in lines.iter().zip(ends) {
            body += line;
            body += end;
        }
        let expected: Vec<_> =
            by_the_grammar(&body).into_iter().filter(|(_, data)| !data.is_empty()).collect();
        prop_assert_eq!(events(&[body.as_bytes()]), expected.clone());
        prop_assert_eq!(events(&split(body.as_bytes(), &reads)), expected);
    }

    #[test]
    fn text_comes_out_as_it_went_in(text in any::<String>(), reads in reads()) {
        let chunk = serde_json::json!({"choices": [{"index": 0, "delta": {"content": &text}}]});
        let delta = serde_json::json!({
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": &text},
        });
        for (mut decoder, json) in decoders().into_iter().zip([chunk, delta]) {
            let body = format!("data: {json}\n\n");
            let mut got = String::new();
            for part in split(body.as_bytes(), &reads) {
                decoder.feed(part, &mut |event| match event {
                    Event::Delta(redrive::protocol::Delta::Text(part)) => got.push_str(part),
                    Event::Keepalive { content: true } | Event::Block { .. } => {}
                    other => panic!("{other:?}"),
                });
            }
            prop_assert_eq!(got, text.as_str());
        }
    }
}

#[test]
fn an_endless_line_is_refused_at_the_bound_and_its_memory_given_back() {
    let block = [b'a'; 1 << 16];
    let mut told = Vec::new();
    let taken = measure(|| {
        let mut decoder = openai_chat::Decoder::new(Terminal::FinishReason);
        decoder.feed(b"data: {\"x\":\"", &mut |_| panic!("too early"));
        for _ in 0..2048 {
            decoder.feed(&block, &mut |event| {
                assert_eq!(event, Event::Undecodable(DecodeError::TooLarge));
                told.push(());
            });
        }
        // What is left once the line was refused.
        std::mem::forget(decoder);
    });
    assert_eq!(told.len(), 1);
    assert!(taken.bytes_max <= 33 << 20, "{}", taken.bytes_max);
    assert!(taken.bytes_current <= 4096, "{}", taken.bytes_current);
}
