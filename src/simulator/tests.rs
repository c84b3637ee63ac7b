//! What a client of the provider gets, byte by byte. In real time, because sockets have no other.
#![allow(
    clippy::disallowed_methods,
    reason = "a client by hand, to see every byte; it asks our own listener"
)]

use std::time::Duration;

use http::header;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::*;

async fn provider() -> Simulator {
    let provider = Simulator::start(|asked| match (asked.model.as_str(), asked.nth) {
        ("limited", 1) => chat::error(StatusCode::TOO_MANY_REQUESTS, "Slow down.")
            .with_header(header::RETRY_AFTER, "1"),
        ("cut", _) => chat::beginning("m", "whole word", Duration::ZERO).then(Step::Cut),
        ("hang", _) => chat::beginning("m", "whole word", Duration::ZERO).then(Step::Hang),
        _ => chat::answer("m", "whole word", Duration::ZERO),
    });
    provider.await.unwrap()
}

async fn ask(provider: &Simulator, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(provider.address()).await.unwrap();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: provider\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// All that comes until the connection ends.
async fn answer(provider: &Simulator, head: &str, body: &str) -> String {
    let mut answer = String::new();
    let mut stream = ask(provider, head, body).await;
    let read = stream.read_to_string(&mut answer);
    timeout(Duration::from_secs(5), read)
        .await
        .unwrap()
        .unwrap();
    answer
}

const CHAT: &str = "POST /v1/chat/completions";

#[tokio::test]
async fn a_script_is_chosen_by_model_and_count() {
    let provider = provider().await;
    let first = answer(&provider, CHAT, "{\"model\":\"limited\"}").await;
    assert!(first.starts_with("HTTP/1.1 429 "), "{first}");
    assert!(first.contains("\r\nretry-after: 1\r\n"), "{first}");
    let second = answer(&provider, CHAT, "{\"model\":\"limited\"}").await;
    assert!(second.starts_with("HTTP/1.1 200 "), "{second}");
    assert!(second.contains("\"content\":\"whole \""), "{second}");
    assert!(second.contains("\"finish_reason\":\"stop\""), "{second}");
    assert!(second.contains("\"completion_tokens\":2"), "{second}");
    assert!(
        second.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"),
        "{second}"
    );
    assert_eq!(provider.requests("limited"), 2);
    assert_eq!(provider.requests("other"), 0);
}

#[tokio::test]
async fn a_cut_stream_gives_all_that_came_before_and_no_end() {
    let provider = provider().await;
    let cut = answer(&provider, CHAT, "{\"model\":\"cut\"}").await;
    assert!(cut.contains("\"content\":\"word\""), "{cut}");
    assert!(!cut.ends_with("0\r\n\r\n"), "{cut}");
}

#[tokio::test]
async fn a_hanging_stream_stays_open_until_the_provider_ends() {
    let provider = provider().await;
    let mut stream = ask(&provider, CHAT, "{\"model\":\"hang\"}").await;
    let mut seen = String::new();
    while !seen.contains("\"content\":\"word\"") {
        let mut bytes = [0; 256];
        let count = stream.read(&mut bytes).await.unwrap();
        assert_ne!(count, 0, "{seen}");
        seen.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    let mut rest = String::new();
    let silence = timeout(Duration::from_millis(50), stream.read_to_string(&mut rest)).await;
    assert!(silence.is_err(), "it ended");
    drop(provider);
    let end = timeout(Duration::from_secs(5), stream.read_to_string(&mut rest)).await;
    assert!(end.is_ok(), "it outlived its provider");
}

#[tokio::test]
async fn what_is_no_chat_request_is_refused_and_not_counted() {
    let provider = provider().await;
    for (head, body, status) in [
        ("POST /v1/embeddings", "{\"model\":\"m\"}", "404"),
        ("GET /v1/chat/completions", "", "405"),
        (CHAT, "{}", "400"),
        (CHAT, "not JSON", "400"),
    ] {
        let answer = answer(&provider, head, body).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(
            answer.contains("\"type\":\"invalid_request_error\""),
            "{answer}"
        );
    }
    assert_eq!(provider.requests("m"), 0);
}
