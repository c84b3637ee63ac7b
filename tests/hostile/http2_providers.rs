//! Providers that abuse HTTP/2 towards the sidecar: what they are asked ends in its right verdict,
//! and generations on another target are whole meanwhile.
//!
//! | test | guard |
//! |---|---|
//! | floods that stay within the protocol | the timers of the target |
//! | heads and bombs | `HARD_HEAD_BYTES` and `MAX_HEAD_BYTES` of `src/upstream/http` |
//! | whom a connection that fails is blamed on | `http2_head` of `src/upstream/http/errors.rs` |
//! | PUSH_PROMISE | `enable_push(false)` |
//! | resets that the sidecar is made to send, empty DATA, other breaches | h2 |
//! | a limit of no streams | the hand-over of `src/upstream/http/exchange.rs` |
//! | PING acknowledgements | the log's filter |

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use redrive::proto::VerdictClass as Class;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time,
};

use crate::{
    frames::*,
    sidecar::Sidecar,
    siege::{besieged, good_provider},
    support::text,
};

/// How often each attack is asked for.
const TIMES: usize = 2;

/// How long a provider keeps flooding at most.
const FLOOD: Duration = Duration::from_secs(3);

/// Frames that go out together.
const BATCH_BYTES: usize = 64 << 10;

/// Between what is sent once and the flood: h2 tells all of a connection's streams why it fails, also
/// those whose head has come and was not looked at.
const HEARD: Duration = Duration::from_millis(200);

/// What a provider sends after a request on the given stream: once, and then for ever.
type Script = fn(stream: u32) -> (Vec<u8>, Vec<u8>);

/// A provider with these settings that attacks the sender of each request.
struct Hostile {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Hostile {
    async fn start(values: &'static [(u16, u32)], script: Script) -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(attack(stream, values, script));
            }
        });
        Hostile {
            address,
            connections,
        }
    }
}

/// One connection; ends with `None` when the sidecar has closed it.
async fn attack(mut stream: TcpStream, values: &[(u16, u32)], script: Script) -> Option<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await.ok()?;
    let greeting = [settings(values), frame(SETTINGS, ACK, 0, &[])].concat();
    stream.write_all(&greeting).await.ok()?;
    let (mut read, mut write) = stream.into_split();
    let (asked, mut asks) = mpsc::unbounded_channel();
    let send = async move {
        let until = Instant::now() + FLOOD;
        let mut batch = Vec::new();
        loop {
            let stream = if batch.is_empty() || Instant::now() > until {
                asks.recv().await
            } else {
                asks.try_recv().ok()
            };
            if let Some(stream) = stream {
                let (once, forever) = script(stream);
                write.write_all(&once).await.ok()?;
                time::sleep(HEARD).await;
                batch = forever.repeat(BATCH_BYTES / forever.len().max(1));
            } else if asks.is_closed() {
                return Some(());
            }
            write.write_all(&batch).await.ok()?;
        }
    };
    let receive = async move {
        while let Some(frame) = next(&mut read).await {
            if frame.kind == HEADERS {
                asked.send(frame.stream).ok()?;
            }
        }
        Some(())
    };
    tokio::join!(send, receive);
    Some(())
}

async fn sidecar(hostile: &Hostile, first_token: &str) -> Sidecar {
    let rest = format!(
        "providers:\n  hostile: {{base_url: 'http://{}/v1', connections: {{http2: prior_knowledge, max: 1}}}}\n  \
         good: {{base_url: 'http://{}/v1'}}\n\
         routes:\n  hostile: {{targets: [{{provider: hostile, model: m}}], \
         recovery: {{max_attempts: 1}}, timers: {{first_token: {first_token}}}}}\n  \
         good: {{targets: [{{provider: good, model: m}}], \
         recovery: {{max_attempts: 1}}, timers: {{first_token: 20s}}}}\n\
         limits: {{retention: 0}}\n",
        hostile.address,
        good_provider().await
    );
    Sidecar::configured("", &rest, 1024).await
}

/// Asserts the verdict on what is asked of such a provider, [`TIMES`] at once on one connection; how
/// often it was dialled.
async fn assert_settled(class: Class, values: &'static [(u16, u32)], script: Script) -> usize {
    let (classes, dialled) = settled(class, values, script).await;
    assert_eq!(classes, [class; TIMES]);
    dialled
}

/// The verdicts where `class` is expected, and how often the provider was dialled.
async fn settled(
    class: Class,
    values: &'static [(u16, u32)],
    script: Script,
) -> ([Class; TIMES], usize) {
    let hostile = Hostile::start(values, script).await;
    let first_token = match class {
        Class::TimeoutFirstToken => "500ms",
        _ => "20s",
    };
    let sidecar = sidecar(&hostile, first_token).await;
    let classes = besieged(&sidecar, "good", async {
        let channel = sidecar.channel().await;
        let verdict = async || sidecar.generate_on(&channel, "hostile").await.class();
        match class {
            // A size is blamed on a stream that is alone.
            Class::TooLarge => [verdict().await, verdict().await],
            _ => tokio::join!(verdict(), verdict()).into(),
        }
    })
    .await;
    (classes, hostile.connections.load(Ordering::Relaxed))
}

async fn assert_verdicts(class: Class, script: Script) {
    assert_settled(class, &[], script).await;
}

/// A response head and the first word of a body.
fn begun(stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, STATUS_200);
    [head, frame(DATA, 0, stream, text("Hel").as_bytes())].concat()
}

/// A response head of about so many bytes.
fn head(stream: u32, bytes: usize) -> Vec<u8> {
    let block = [STATUS_200, &literal("x-filler", &"x".repeat(bytes))].concat();
    spread(stream, 0, &block)
}

#[tokio::test]
async fn a_flood_of_pings_stops_no_clock() {
    assert_verdicts(Class::TimeoutFirstToken, |_| {
        (vec![], frame(PING, 0, 0, b"answer!!"))
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_settings_stops_no_clock() {
    assert_verdicts(Class::TimeoutFirstToken, |_| {
        let both = [
            settings(&[(INITIAL_WINDOW_SIZE, 0)]),
            settings(&[(INITIAL_WINDOW_SIZE, 9)]),
        ];
        (vec![], both.concat())
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_acknowledgements_fills_no_log() {
    assert_verdicts(Class::TimeoutFirstToken, |_| {
        (vec![], frame(PING, ACK, 0, b"not-sent"))
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_interim_responses_stops_no_clock() {
    assert_verdicts(Class::TimeoutFirstToken, |stream| {
        let block = [
            literal(":status", "103"),
            literal("link", &"x".repeat(4000)),
        ]
        .concat();
        (vec![], frame(HEADERS, END_HEADERS, stream, &block))
    })
    .await;
}

#[tokio::test]
async fn half_a_frame_stops_no_clock() {
    assert_verdicts(Class::TimeoutFirstToken, |stream| {
        (
            frame(HEADERS, END_HEADERS, stream, &[0; MAX_PAYLOAD])[..100].to_vec(),
            vec![],
        )
    })
    .await;
}

#[tokio::test]
async fn a_window_that_overflows_stops_no_clock() {
    // h2 resets the stream without telling who waits for its head.
    assert_verdicts(Class::TimeoutFirstToken, |stream| {
        (window_update(stream, MAX_WINDOW), vec![])
    })
    .await;
}

#[tokio::test]
async fn no_window_for_the_request_stops_no_clock() {
    let closed = &[(INITIAL_WINDOW_SIZE, 0)];
    assert_settled(Class::TimeoutFirstToken, closed, |_| (vec![], vec![])).await;
}

#[tokio::test]
async fn a_provider_that_allows_no_stream_is_not_dialled_over_and_over() {
    let none = &[(MAX_CONCURRENT_STREAMS, 0)];
    let dialled = assert_settled(Class::TimeoutFirstToken, none, |_| (vec![], vec![])).await;
    assert!(dialled <= 2 * TIMES, "{dialled} connections");
}

#[tokio::test]
async fn a_head_without_an_end_is_too_large() {
    assert_verdicts(Class::TooLarge, |stream| {
        let open = frame(HEADERS, 0, stream, STATUS_200);
        (open, frame(CONTINUATION, 0, stream, &[]))
    })
    .await;
    assert_verdicts(Class::TooLarge, |stream| {
        let open = frame(HEADERS, 0, stream, STATUS_200);
        let field = literal("x-filler", &"x".repeat(MAX_PAYLOAD - 32));
        (open, frame(CONTINUATION, 0, stream, &field))
    })
    .await;
}

#[tokio::test]
async fn a_head_without_an_end_is_not_blamed_on_its_neighbour() {
    assert_verdicts(Class::Transport, |stream| match stream {
        1 => (vec![], vec![]),
        _ => {
            let open = frame(HEADERS, 0, stream, STATUS_200);
            (open, frame(CONTINUATION, 0, stream, &[]))
        }
    })
    .await;
}

#[tokio::test]
async fn heads_over_the_limit_and_far_over_it_are_too_large() {
    assert_verdicts(Class::TooLarge, |stream| (head(stream, 65 << 10), vec![])).await;
    assert_verdicts(Class::TooLarge, |stream| (head(stream, 2 << 20), vec![])).await;
}

#[tokio::test]
async fn a_bomb_of_headers_is_too_large() {
    assert_verdicts(Class::TooLarge, |stream| {
        (
            spread(stream, 0, &[STATUS_200, &bomb(12_000)].concat()),
            vec![],
        )
    })
    .await;
}

#[tokio::test]
async fn trailers_without_an_end_are_a_failure_of_the_transport() {
    assert_verdicts(Class::Transport, |stream| {
        let trailers = frame(HEADERS, END_STREAM, stream, &literal("x", "y"));
        let more = frame(CONTINUATION, 0, stream, &[]).repeat(1000);
        (begun(stream), [trailers, more].concat())
    })
    .await;
}

#[tokio::test]
async fn empty_data_within_the_body_is_a_failure_of_the_transport() {
    assert_verdicts(Class::Transport, |stream| {
        (begun(stream), frame(DATA, 0, stream, &[]))
    })
    .await;
}

#[tokio::test]
async fn breaches_of_protocol_are_failures_of_the_transport() {
    let breaches: [Script; 7] = [
        |stream| {
            let request = [
                literal(":method", "GET"),
                literal(":scheme", "http"),
                literal(":authority", "provider.test"),
                literal(":path", "/"),
            ];
            let promise = [&(stream + 1).to_be_bytes()[..], &request.concat()].concat();
            (frame(PUSH_PROMISE, END_HEADERS, stream, &promise), vec![])
        },
        |_| (reset(99, CANCEL), vec![]),
        |_| (window_update(0, MAX_WINDOW), vec![]),
        |_| (frame(DATA, 0, 99, b"x"), vec![]),
        |stream| (frame(DATA, 0, stream, b"before the head"), vec![]),
        |stream| {
            (
                [begun(stream), frame(DATA, 0, stream, &[0; MAX_PAYLOAD + 1])].concat(),
                vec![],
            )
        },
        |_| {
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(),
                vec![],
            )
        },
    ];
    for breach in breaches {
        assert_verdicts(Class::Transport, breach).await;
    }
}

#[tokio::test]
async fn a_provider_that_goes_away_over_and_over_is_a_failure_of_the_transport() {
    assert_verdicts(Class::Transport, |_| {
        let goodbye = [&[0; 8][..], &[b'x'; 8000]].concat();
        (vec![], frame(GOAWAY, 0, 0, &goodbye))
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_keepalives_within_the_body_is_no_token() {
    let script: Script = |stream| {
        let head = frame(HEADERS, END_HEADERS, stream, STATUS_200);
        (head, frame(DATA, 0, stream, b": keepalive\n\n"))
    };
    let (classes, _) = settled(Class::TimeoutFirstToken, &[], script).await;
    // Whoever floods minds no window: on a busy machine that is noticed before the clock runs out.
    let expected = [Class::TimeoutFirstToken, Class::Transport];
    assert!(
        classes.iter().all(|class| expected.contains(class)),
        "{classes:?}"
    );
}
