//! Decoding a plain text delta takes nothing from the heap.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use allocation_counter::measure;
use redrive::protocol::{
    Decoder, DecoderOptions, Delta, Event, Terminal, anthropic_messages, openai_chat,
    openai_responses,
};

/// Chunks as OpenAI and OpenRouter send them; the first has no escape in its text, the second some.
const PLAIN: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\
    \"created\":1755878837,\"model\":\"gpt\",\"service_tier\":\"default\",\
    \"system_fingerprint\":null,\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\
    \"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"abcdef\"}\n\n";
const ESCAPED: &str = "data: {\"id\":\"gen-1\",\"provider\":\"x\",\"model\":\"m\",\
    \"object\":\"chat.completion.chunk\",\"created\":1755878837,\"choices\":[{\"index\":0,\
    \"delta\":{\"role\":\"assistant\",\"content\":\"a\\n\\\"b\\\" \\ud83d\\ude00\"},\
    \"finish_reason\":null,\"native_finish_reason\":null,\"logprobs\":null}]}\n\n";

/// Deltas as Anthropic sends them, padding included, and with an escape.
const PLAIN_BLOCK: &str = "event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\
    \"text\":\" word\"}             }\n\n";
const ESCAPED_BLOCK: &str = "data: {\"delta\":{\"text\":\"a\\n\\\"b\\\" \\ud83d\\ude00\",\
    \"type\":\"text_delta\"},\"index\":0,\"type\":\"content_block_delta\"}\n\n";

/// Deltas as OpenAI Responses sends them, without and with escapes.
const RESPONSES: &str = "event: response.output_text.delta\ndata: {\"type\":\
    \"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\
    \"delta\":\" word\",\"logprobs\":[],\"obfuscation\":\"liJu2gE\"}\n\n";
const RESPONSES_ESCAPED: &str = "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\
    \"content_index\":0,\"delta\":\"a\\n\\\"b\\\" \\ud83d\\ude00\"}\n\n";

/// Feeds a body in reads of so many bytes; counts what is taken once every buffer has its size.
fn allocations(decoder: &mut impl Decoder, body: &str, read: usize) -> u64 {
    let mut texts = 0;
    let mut decode = || {
        for bytes in body.as_bytes().chunks(read) {
            decoder.feed(bytes, &mut |event| {
                texts += usize::from(matches!(event, Event::Delta(Delta::Text(_))));
            });
        }
    };
    (0..10).for_each(|_| decode());
    let taken = measure(|| (0..100).for_each(|_| decode())).count_total;
    assert_eq!(texts, 110);
    taken
}

#[test]
fn a_plain_text_delta_takes_nothing_from_the_heap() {
    for body in [PLAIN, ESCAPED] {
        for read in [usize::MAX, 7] {
            let mut decoder = openai_chat::Decoder::new(Terminal::FinishReason);
            let taken = allocations(&mut decoder, body, read);
            assert_eq!(taken, 0, "in reads of {read}: {body}");
        }
    }
}

#[test]
fn a_text_delta_of_a_numbered_block_takes_nothing_from_the_heap() {
    for body in [PLAIN_BLOCK, ESCAPED_BLOCK] {
        for read in [usize::MAX, 7] {
            let mut decoder = anthropic_messages::Decoder::new(DecoderOptions::default());
            let taken = allocations(&mut decoder, body, read);
            assert_eq!(taken, 0, "in reads of {read}: {body}");
        }
    }
}

#[test]
fn a_plain_text_delta_of_responses_takes_nothing_from_the_heap() {
    for body in [RESPONSES, RESPONSES_ESCAPED] {
        for read in [usize::MAX, 7] {
            let options = DecoderOptions {
                cursor: true,
                ..DecoderOptions::default()
            };
            let mut decoder = openai_responses::Decoder::new(options);
            let taken = allocations(&mut decoder, body, read);
            assert_eq!(taken, 0, "in reads of {read}: {body}");
        }
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(
        measure(|| drop(std::hint::black_box(String::from("x")))).count_total,
        1
    );
}
