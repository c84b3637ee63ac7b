//! Clients of the gRPC listener that abuse HTTP/2, beside a good one.
//!
//! What each holds up against, and who: `src/server/mod.rs` (the settings of the server),
//! `src/server/connections.rs` (the connection), or h2 itself, whose behaviour is pinned here.
//!
//! | test | guard |
//! |---|---|
//! | rapid resets | `MAX_PENDING_RESETS` |
//! | resets that the sidecar is made to send | `MAX_ERROR_RESETS` |
//! | streams beyond the limit | `listen.max_streams_per_connection`, `MAX_ERROR_RESETS` |
//! | header lists, HPACK bombs, CONTINUATION | `MAX_HEADER_LIST` |
//! | a client that never reads | `Bounds::stuck` of the connection |
//! | half a frame | `listen.keepalive` |
//! | zero windows | `client_idle` |
//! | PING acknowledgements | the log's filter |
//! | empty DATA, DATA for a stream that is over, PING, SETTINGS, breaches of protocol | h2 |

use std::time::{Duration, Instant};

use tokio::time;

use crate::{
    attacker::{Attacker, Seen},
    frames::*,
    sidecar::{PATIENCE, Sidecar},
    siege::{besieged, good_provider},
    support::{raw, start},
};

/// Streams of a client at once.
const STREAMS: u32 = 100;

/// More than anybody stands without a limit, and less than 2 s of work.
const MANY: u32 = 30_000;

/// What the transcript of the good client's one generation takes at most.
const GOOD_TRANSCRIPT: i64 = 4 << 10;

/// When a dead client is noticed.
const DEAD: Duration = Duration::from_secs(2);

async fn sidecar() -> Sidecar {
    sidecar_with("").await
}

/// One that notices dead clients within [`DEAD`].
async fn watchful_sidecar() -> Sidecar {
    sidecar_with("keepalive: {interval: 1s, timeout: 1s}").await
}

async fn sidecar_with(listen: &str) -> Sidecar {
    let rest = format!(
        "providers: {{a: {{base_url: 'http://{}/v1', connections: {{max: 200}}}}}}\n\
         routes: {{default: {{targets: [{{provider: a, model: m}}], client_idle: 1s, \
         recovery: {{max_attempts: 1}}, timers: {{first_token: 20s}}}}}}\n\
         limits: {{retention: 0}}\n",
        good_provider().await
    );
    let listen = format!("max_streams_per_connection: {STREAMS}, {listen}");
    Sidecar::configured(&listen, &rest, 1024).await
}

/// The identifiers of a client's streams.
fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

/// What comes back for `frames`, after everything that a client says first.
async fn answer_to(frames: impl Iterator<Item = Vec<u8>>) -> Seen {
    answers_to(frames, 0).await
}

/// The same, and until there are as many response heads.
async fn answers_to(frames: impl Iterator<Item = Vec<u8>>, heads: usize) -> Seen {
    let sidecar = sidecar().await;
    besieged(&sidecar, "default", async {
        let mut attacker = Attacker::connect(sidecar.grpc, &[]).await;
        let mut seen = attacker.flood(frames).await;
        attacker.until_heads(&mut seen, heads).await;
        seen
    })
    .await
}

/// The connection was ended for `code`. The GOAWAY that says so can be lost: a socket that is closed
/// while the flood still comes in throws away what it has not sent.
fn assert_ended(seen: &Seen, code: u32) {
    assert!(seen.closed, "{seen:?}");
    assert!(seen.go_away.is_none_or(|told| told == code), "{seen:?}");
}

/// The connection serves on.
fn assert_serves(seen: &Seen) {
    assert_eq!((seen.go_away, seen.closed), (None, false), "{seen:?}");
}

fn repeated(frame: Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    std::iter::repeat_n(frame, MANY as usize)
}

/// The first frame of a good client, as DATA.
fn first(stream: u32, flags: u8) -> Vec<u8> {
    frame(DATA, flags, stream, &raw::start(&start()))
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let frames = streams()
        .map(|stream| [call(stream), reset(stream, CANCEL)].concat())
        .take(MANY as usize);
    assert_ended(&answer_to(frames).await, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn rapid_resets_of_started_generations_end_the_connection() {
    let frames = streams()
        .map(|stream| {
            [
                call(stream),
                first(stream, END_STREAM),
                reset(stream, CANCEL),
            ]
            .concat()
        })
        .take(MANY as usize);
    assert_ended(&answer_to(frames).await, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn resets_that_the_sidecar_is_made_to_send_end_the_connection() {
    // A window that overflows is an error of its stream, which the sidecar resets.
    let frames = streams()
        .map(|stream| [call(stream), window_update(stream, MAX_WINDOW)].concat())
        .take(MANY as usize);
    let seen = answer_to(frames).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused_and_then_end_the_connection() {
    let within = streams().map(call).take(STREAMS as usize + 50);
    let seen = answer_to(within).await;
    assert_serves(&seen);
    assert_eq!(seen.resets, [(REFUSED_STREAM, 50)].into());

    let seen = answer_to(streams().map(call).take(MANY as usize)).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn data_for_streams_that_are_over_ends_the_connection() {
    let over = [call(1), reset(1, CANCEL)].concat();
    let after = repeated(frame(DATA, 0, 1, b"more"));
    let seen = answer_to(std::iter::once(over).chain(after)).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn empty_data_ends_the_connection() {
    let frames = std::iter::once(call(1)).chain(repeated(frame(DATA, 0, 1, &[])));
    assert_ended(&answer_to(frames).await, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn headers_without_an_end_end_the_connection() {
    let open = || std::iter::once(frame(HEADERS, 0, 1, &request()));
    let empty = frame(CONTINUATION, 0, 1, &[]);
    let seen = answer_to(open().chain(repeated(empty))).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);

    let field = literal("x-filler", &"x".repeat(MAX_PAYLOAD - 32));
    let full = frame(CONTINUATION, 0, 1, &field);
    let seen = answer_to(open().chain(repeated(full))).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn a_header_list_over_the_limit_is_refused_and_one_far_over_it_ends_the_connection() {
    let block = |bytes| [request(), literal("x-filler", &"x".repeat(bytes))].concat();
    let over = [spread(1, END_STREAM, &block(17 << 10)), call(3)].concat();
    // The one is refused by a status, the other is open.
    assert_serves(&answers_to(std::iter::once(over), 2).await);

    let far_over = spread(1, END_STREAM, &block(100 << 10));
    let seen = answer_to(std::iter::once(far_over)).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn a_bomb_of_headers_ends_the_connection() {
    let block = [request(), bomb(12_000)].concat();
    let seen = answer_to(std::iter::once(spread(1, END_STREAM, &block))).await;
    assert_ended(&seen, ENHANCE_YOUR_CALM);
}

#[tokio::test]
async fn bombs_within_the_limit_cost_no_more_than_they_say() {
    // Four times 4 KiB on each of as many streams as there may be.
    let first = spread(1, 0, &[request(), bomb(3)].concat());
    let block = [request(), vec![NEWEST_ENTRY; 3]].concat();
    let others = streams()
        .skip(1)
        .map(move |stream| spread(stream, 0, &block));
    let frames = std::iter::once(first).chain(others.take(STREAMS as usize - 1));
    assert_serves(&answers_to(frames, STREAMS as usize).await);
}

#[tokio::test]
async fn pings_are_answered_as_long_as_the_answers_are_read() {
    let seen = answer_to(repeated(frame(PING, 0, 0, b"answer!!"))).await;
    assert_serves(&seen);
}

#[tokio::test]
async fn acknowledgements_that_nobody_asked_for_fill_no_log() {
    let seen = answer_to(repeated(frame(PING, ACK, 0, b"not-sent"))).await;
    assert_serves(&seen);
}

#[tokio::test]
async fn settings_are_answered_as_long_as_the_answers_are_read() {
    // Each one moves the window of each stream.
    let windows = (0..MANY).map(|n| settings(&[(INITIAL_WINDOW_SIZE, n % 2)]));
    let open = streams().map(call).take(STREAMS as usize);
    assert_serves(&answers_to(open.chain(windows), STREAMS as usize).await);
}

#[tokio::test]
async fn frames_that_mean_nothing_are_passed_over() {
    let unknown = frame(0xbb, 0xff, 0, &[0; 64]);
    let priority = frame(PRIORITY, 0, 7, &[0, 0, 0, 5, 16]);
    let seen = answer_to(repeated([unknown, priority].concat())).await;
    assert_serves(&seen);
}

#[tokio::test]
async fn a_client_that_never_reads_is_let_go() {
    let sidecar = watchful_sidecar().await;
    let took = besieged(&sidecar, "default", async {
        let mut attacker = Attacker::deaf(sidecar.grpc).await;
        let flood = [frame(PING, 0, 0, b"answer!!"), settings(&[])].concat();
        attacker.flood_unread(std::iter::repeat(flood)).await;
        // The process lets go of it, whether or not its peer ever looks.
        let from = Instant::now();
        while sidecar.gauges().await["redrive_grpc_connections_active"] > 1 {
            assert!(from.elapsed() < PATIENCE, "its connection is kept");
            time::sleep(Duration::from_millis(50)).await;
        }
        from.elapsed()
    })
    .await;
    assert!(took < DEAD + Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn half_a_frame_and_silence_ends_the_connection() {
    let sidecar = watchful_sidecar().await;
    besieged(&sidecar, "default", async {
        let mut attackers = Vec::new();
        for half in [&call(1)[..40], &call(1)[..5], &first(1, 0)[..12]] {
            let attacker = Attacker::connect(sidecar.grpc, &[]).await;
            attackers.push(attacker.say(half).await);
        }
        for mut attacker in attackers {
            attacker.until_closed().await;
        }
    })
    .await;
}

#[tokio::test]
async fn clients_that_give_no_window_are_given_up() {
    let sidecar = sidecar().await;
    besieged(&sidecar, "default", async {
        let mut attacker = Attacker::connect(sidecar.grpc, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        let generations = streams()
            .map(|stream| [call(stream), first(stream, 0)].concat())
            .take(STREAMS as usize);
        let seen = attacker.flood(generations).await;
        assert_serves(&seen);
        assert_eq!(seen.data, 0, "nothing fits a window of 0");
        // Its streams are its own; what was said for it is let go.
        let kept = async || sidecar.gauges().await["redrive_transcript_bytes"] > GOOD_TRANSCRIPT;
        let until = Instant::now() + PATIENCE;
        for expected in [true, false] {
            while kept().await != expected {
                assert!(
                    Instant::now() < until,
                    "its messages are kept: {}",
                    !expected
                );
                time::sleep(Duration::from_millis(20)).await;
            }
        }
        assert_serves(&attacker.flood(std::iter::empty()).await);
    })
    .await;
}

#[tokio::test]
async fn breaches_of_protocol_end_the_connection() {
    let sidecar = sidecar().await;
    let breaches = [
        (window_update(0, MAX_WINDOW), FLOW_CONTROL_ERROR),
        (settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)]), PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, &[0; 5]), PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), PROTOCOL_ERROR),
        (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        (frame(DATA, 0, 1, b"x"), PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 99, &[0; 4]), PROTOCOL_ERROR),
        (
            frame(CONTINUATION, END_HEADERS, 1, &request()),
            PROTOCOL_ERROR,
        ),
        (frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 4]), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 1, &[0xff; 9]), PROTOCOL_ERROR),
        (call(2), PROTOCOL_ERROR),
        (frame(DATA, 0, 1, &[0; MAX_PAYLOAD + 1]), FRAME_SIZE_ERROR),
    ];
    besieged(&sidecar, "default", async {
        for (breach, code) in breaches {
            let attacker = Attacker::connect(sidecar.grpc, &[]).await;
            let seen = attacker.say(&breach).await.until_closed().await;
            assert_eq!(seen.go_away, Some(code), "for {:?}", &breach[..9]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_greeting_of_another_protocol_ends_the_connection() {
    let sidecar = sidecar().await;
    let greetings: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nhost: sidecar.test\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and what else a TLS client says",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx and the rest",
        &[0; 4096],
    ];
    besieged(&sidecar, "default", async {
        for greeting in greetings {
            let attacker = Attacker::silent(sidecar.grpc).await;
            attacker.say(greeting).await.until_closed().await;
        }
    })
    .await;
}
