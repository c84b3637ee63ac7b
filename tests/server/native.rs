//! The provider's own events, for clients that ask for them.

use redrive::proto::{Start, VerdictClass as Class, delta::Content, generate_response::Frame};
use tonic::Code;

use crate::support::*;

fn start_native() -> Start {
    Start {
        include_native_events: true,
        ..start()
    }
}

/// The native events of all attempts.
fn native(ended: &Ended) -> Vec<String> {
    let events = ended.told().filter_map(|frame| match frame {
        Frame::Delta(delta) => match &delta.content {
            Some(Content::NativeEvent(data)) => Some(String::from_utf8(data.to_vec()).unwrap()),
            _ => None,
        },
        _ => None,
    });
    events.collect()
}

#[tokio::test(start_paused = true)]
async fn they_come_as_they_came_and_add_nothing_to_the_message() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(1)).text("lo").complete());
    let ended = bench.generate(start_native()).await.end().await;
    assert_eq!(ended.message(), "Hello");
    let events = native(&ended);
    assert_eq!(format!("data: {}\n\n", events[0]), text("Hel"));
    assert_eq!(format!("data: {}\n\n", events[1]), text("lo"));
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_them_unasked() {
    let bench = Bench::start().await;
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(start()).await.end().await;
    assert!(native(&ended).is_empty());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn they_are_void_with_their_attempt_even_without_text() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().data(role()).wait(secs(1)).reset());
    bench.provider.then(answer("Hello"));
    let ended = bench.generate(start_native()).await.end().await;
    assert!(
        ended.shape().contains(&"preview_reset"),
        "{:?}",
        ended.shape()
    );
    assert_eq!(ended.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_above_three_mebibytes_is_too_large() {
    let config = CONFIG.replace("models:", "max_message_bytes: 64MiB\n    models:");
    let bench = Bench::configured(&config).await;
    bench
        .provider
        .then(stream().text(&"x".repeat(4 << 20)).complete());
    let ended = bench.generate(start_native()).await.end().await;
    assert_eq!(ended.class(), Class::TooLarge);
    assert_eq!(ended.code(), Code::ResourceExhausted);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_of_two_mebibytes_has_a_frame_of_its_own() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text(&"x".repeat(2 << 20)).complete());
    let ended = bench.generate(start_native()).await.end().await;
    assert_eq!(ended.message().len(), 2 << 20);
    assert!(native(&ended)[0].len() > 2 << 20);
    bench.finish().await;
}
