//! What the core costs per delta: from decoded body bytes through the state machine to the frame that
//! the transport asks for, without sockets, tasks or locks.
//!
//! `cargo bench --bench core`; the throughput column is deltas per second. With `--count N` it carries
//! N generations through once and does nothing else, for tools that count instructions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{cell::RefCell, env, fmt::Write as _, hint::black_box, time::Duration};

use criterion::{Criterion, Throughput};
use redrive::{
    proto::{Delivery, generate_response::Frame},
    protocol::{Decoder as _, Terminal, openai_chat::Decoder},
    recovery::{
        Command, Commons, Event, Generation, Next, Params, Target, Time, Upstream,
        settings::{Backoff, CircuitSettings, Policy, Replay, RetryBudgetSettings, Timers},
    },
};

/// Deltas of one generation.
const DELTAS: usize = 1_000;

/// From one delta to the next.
const PACE: Duration = Duration::from_millis(5);

/// Deltas of the size and shape that OpenAI sends, one chunk each.
fn chunks() -> Vec<Vec<u8>> {
    let chunk = |number: usize| {
        let mut chunk = String::new();
        write!(
            chunk,
            "data: {{\"id\":\"chatcmpl-C7hUfTzhYvCKBVWvbSiKiuKu\",\
             \"object\":\"chat.completion.chunk\",\"created\":1755878837,\
             \"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_560af6e559\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" word{number}\"}},\"logprobs\":null,\
             \"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"Zk3hVbqX\"}}\n\n"
        )
        .unwrap();
        chunk.into_bytes()
    };
    (0..DELTAS).map(chunk).collect()
}

fn params() -> Params {
    let target = Target {
        name: "a/m".into(),
        provider: "a".into(),
        domains: vec!["a".into()],
        model: "m".into(),
        context_window: None,
        timers: Timers::HOSTED,
        credentials: 0,
        continues: false,
        resumes: false,
        fallback: false,
    };
    Params {
        id: "g1".into(),
        targets: [target].into(),
        skipped: Box::default(),
        policy: Policy {
            max_attempts: 11,
            deadline: Duration::from_secs(600),
            patience: Duration::from_secs(5),
            replay: Replay::Restart,
            replay_first_token: false,
            backoff: Backoff {
                base: Duration::from_secs(1),
                max: Duration::from_secs(60),
                jitter: 0.25,
            },
            circuit: CircuitSettings {
                failures: 5,
                open: Duration::from_secs(30),
            },
        },
        gate: None,
        fallback: true,
        delivery: Delivery::Preview,
        detach_grace: Duration::ZERO,
        max_message_bytes: 8 << 20,
        client_idle: Duration::from_secs(120),
        scope: None,
        caller_deadline: None,
        wall_origin: Duration::ZERO,
        seed: 7,
    }
}

/// One generation up to the last of `chunks`, each taken by the client before the next comes. Returns
/// the deltas that the client was given.
fn generation(chunks: &[Vec<u8>], commons: &RefCell<Commons>) -> usize {
    let mut now = Time::from_origin(Duration::from_secs(1));
    let mut core = Generation::new(now, params(), commons).unwrap();
    let mut decoder = Decoder::new(Terminal::FinishReason);
    core.handle(now, Event::Start, commons);
    core.handle(now, Event::Reserved { credential: 0 }, commons);
    let attempt = 1;
    for signal in [
        Upstream::Sent,
        Upstream::Head {
            status: 200,
            request_id: None,
        },
    ] {
        core.handle(now, Event::Upstream { attempt, signal }, commons);
    }
    let mut deltas = 0;
    for chunk in chunks {
        now = now + PACE;
        decoder.feed(chunk, &mut |event| {
            let signal = Upstream::Decoded(event);
            core.handle(now, Event::Upstream { attempt, signal }, commons);
        });
        while let Some(command) = core.poll_command() {
            black_box::<Command>(command);
        }
        black_box(core.poll_timeout());
        while let Next::Frame(frame) = core.next_frame(now, 1) {
            deltas += usize::from(matches!(black_box(frame).frame, Some(Frame::Delta(_))));
        }
    }
    deltas
}

fn main() {
    let chunks = chunks();
    let commons = RefCell::new(Commons::new(RetryBudgetSettings {
        ratio: 0.2,
        floor: 20,
        per: Duration::from_secs(10),
    }));
    assert_eq!(generation(&chunks, &commons), DELTAS);
    if let Some(count) = env::args().skip_while(|word| word != "--count").nth(1) {
        for _ in 0..count.parse().unwrap() {
            generation(&chunks, &commons);
        }
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("core");
    group.throughput(Throughput::Elements(DELTAS as u64));
    group.bench_function("one delta a read, taken at once", |bencher| {
        bencher.iter(|| generation(black_box(&chunks), &commons));
    });
    group.finish();
    criterion.final_summary();
}
