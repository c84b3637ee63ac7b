//! What it costs to decode one event of a plain stream. Target: well under a microsecond.
//!
//! `cargo bench --bench decode`; the throughput column is events per second.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fmt::Write as _, hint::black_box};

use criterion::{Criterion, Throughput, criterion_main};
use redrive::protocol::{
    Decoder, DecoderOptions, Delta, Event, Terminal, anthropic_messages, openai_chat, sse::Splitter,
};

const EVENTS: usize = 1000;

/// As many deltas as `EVENTS`, of the size and shape that OpenAI sends.
fn chat(text: &str) -> Vec<u8> {
    let mut body = String::new();
    for number in 0..EVENTS {
        write!(
            body,
            "data: {{\"id\":\"chatcmpl-C7hUfTzhYvCKBVWvbSiKiuKu\",\
             \"object\":\"chat.completion.chunk\",\"created\":1755878837,\
             \"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_560af6e559\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" {text}{number}\"}},\"logprobs\":null,\
             \"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"Zk3hVbqX\"}}\n\n"
        )
        .unwrap();
    }
    body.into_bytes()
}

/// The same of a Messages stream.
fn messages(text: &str) -> Vec<u8> {
    let mut body = String::new();
    for number in 0..EVENTS {
        write!(
            body,
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":\" {text}{number}\"}}           }}\n\n"
        )
        .unwrap();
    }
    body.into_bytes()
}

fn decode_chat(body: &[u8], read: usize) -> usize {
    decode(
        openai_chat::Decoder::new(Terminal::FinishReason),
        body,
        read,
    )
}

fn decode_messages(body: &[u8], read: usize) -> usize {
    let decoder = anthropic_messages::Decoder::new(DecoderOptions::default());
    decode(decoder, body, read)
}

fn decode(mut decoder: impl Decoder, body: &[u8], read: usize) -> usize {
    let mut deltas = 0;
    for bytes in body.chunks(read) {
        decoder.feed(bytes, &mut |event| {
            deltas += usize::from(matches!(black_box(event), Event::Delta(Delta::Text(_))));
        });
    }
    deltas
}

fn split(body: &[u8]) -> usize {
    let mut splitter = Splitter::default();
    let mut input = body;
    let mut items = 0;
    while black_box(splitter.next(&mut input)).is_some() {
        items += 1;
    }
    items
}

fn benchmark(criterion: &mut Criterion) {
    let plain = chat("word");
    let escaped = chat("line\\n\\\"word\\\"");
    let mut group = criterion.benchmark_group("openai_chat");
    group.throughput(Throughput::Elements(EVENTS as u64));
    for (name, body, read) in [
        ("plain, 16 KiB reads", &plain, 16 << 10),
        ("plain, one event a read", &plain, plain.len() / EVENTS),
        ("plain, 64-byte reads", &plain, 64),
        ("escaped, 16 KiB reads", &escaped, 16 << 10),
    ] {
        assert_eq!(decode_chat(body, read), EVENTS);
        group.bench_function(name, |bencher| {
            bencher.iter(|| decode_chat(black_box(body), read))
        });
    }
    assert_eq!(split(&plain), EVENTS);
    group.bench_function("framing alone", |bencher| {
        bencher.iter(|| split(black_box(&plain)))
    });
    group.finish();

    let plain = messages("word");
    let mut group = criterion.benchmark_group("anthropic_messages");
    group.throughput(Throughput::Elements(EVENTS as u64));
    for (name, read) in [
        ("plain, 16 KiB reads", 16 << 10),
        ("plain, 64-byte reads", 64),
    ] {
        assert_eq!(decode_messages(&plain, read), EVENTS);
        group.bench_function(name, |bencher| {
            bencher.iter(|| decode_messages(black_box(&plain), read))
        });
    }
    group.finish();
}

#[allow(missing_docs, reason = "the macro makes a public function")]
mod group {
    use super::benchmark;
    criterion::criterion_group!(benches, benchmark);
}
use group::benches;
criterion_main!(benches);
