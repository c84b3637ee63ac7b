//! Any bytes as the stream of each protocol: the same events however they arrive, and nothing after the
//! end.

use redrive::protocol::{Decoder, DecoderOptions, Event, Terminal, adapter::ADAPTERS};

/// The first byte says how long reads are, the rest is the body: as it is, and as the data of events,
/// one a line.
pub fn run(data: &[u8]) {
    let Some((&length, body)) = data.split_first() else {
        return;
    };
    let events: Vec<u8> = body
        .split(|byte| *byte == b'\n')
        .flat_map(|line| [b"data: ".as_slice(), line, b"\n\n"].concat())
        .collect();
    for body in [body, &events] {
        for (.., adapter) in ADAPTERS {
            for terminal in [Terminal::FinishReason, Terminal::DoneSentinel] {
                let decoder = || {
                    let options = DecoderOptions {
                        terminal,
                        ..DecoderOptions::default()
                    };
                    adapter.decoder(options)
                };
                let whole = told(decoder(), std::iter::once(body));
                let pieces = told(decoder(), body.chunks(1 + usize::from(length)));
                assert_eq!(whole, pieces, "events depend on how the bytes arrived");
            }
        }
    }
}

fn told<'b>(mut decoder: Box<dyn Decoder>, reads: impl Iterator<Item = &'b [u8]>) -> Vec<String> {
    let mut told = Vec::new();
    let mut is_over = false;
    let mut keep = |event: Event<'_>| {
        assert!(!is_over, "{event:?} after the end");
        is_over = matches!(
            event,
            Event::End { .. } | Event::Error { .. } | Event::Undecodable(_)
        );
        told.push(format!("{event:?}"));
    };
    for read in reads {
        decoder.feed(read, &mut keep);
    }
    decoder.end(true, &mut keep);
    told
}
