//! Bodies and heads: clean ends, unclean ends, encodings, bounds.

use std::{io::Write, mem, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use redrive::{
    upstream::{Signal, http::Door},
    verdict::{Stage, transport::TransportKind},
};

use crate::support::{
    OK_CHUNKED, Peer, Server, Told, call_once, chunk, next, open, request, settle,
};

/// A server that writes `response` to one request and closes.
async fn writes_and_closes(response: impl Into<Vec<u8>>) -> Server {
    let response = response.into();
    Server::start(move |mut peer, _| {
        let response = response.clone();
        async move {
            peer.request().await;
            peer.write(response).await;
        }
    })
    .await
}

async fn call_one(response: impl Into<Vec<u8>>) -> Told {
    let server = writes_and_closes(response).await;
    let told = call_once(server.endpoint()).await;
    settle().await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 1));
    told
}

#[tokio::test]
async fn a_chunked_body_without_its_terminator_is_truncated() {
    let told = call_one(format!("{OK_CHUNKED}{}", chunk("data: one\n\n"))).await;
    assert_eq!(told.body, "data: one\n\n");
    assert_eq!(told.failure(), (TransportKind::Truncated, Stage::Stream));
}

#[tokio::test]
async fn a_body_cut_inside_a_chunk_is_truncated() {
    let told = call_one(format!("{OK_CHUNKED}40\r\n: cu")).await;
    assert_eq!(told.body, ": cu");
    assert_eq!(told.failure(), (TransportKind::Truncated, Stage::Stream));
}

#[tokio::test]
async fn a_body_short_of_its_content_length_is_truncated() {
    let told = call_one("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort").await;
    assert_eq!(told.body, "short");
    assert_eq!(told.failure(), (TransportKind::Truncated, Stage::Stream));
}

#[tokio::test]
async fn an_error_body_that_is_cut_keeps_its_stage() {
    let told = call_one("HTTP/1.1 503 No\r\ncontent-length: 10\r\n\r\nshort").await;
    assert_eq!(told.status.unwrap().as_u16(), 503);
    assert_eq!(told.failure(), (TransportKind::Truncated, Stage::Response));
}

#[tokio::test]
async fn a_body_cut_by_reset_is_reset() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        peer.write(format!("{OK_CHUNKED}{}", chunk("data: one\n\n")))
            .await;
        settle().await;
        peer.reset();
    })
    .await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(told.body, "data: one\n\n");
    assert_eq!(told.failure(), (TransportKind::Reset, Stage::Stream));
    assert_eq!(server.log.requests(), 1);
}

#[tokio::test]
async fn broken_chunk_sizes_are_a_breach_of_protocol() {
    let told = call_one(format!("{OK_CHUNKED}zz\r\n")).await;
    assert_eq!(told.failure(), (TransportKind::Protocol, Stage::Stream));
}

#[tokio::test]
async fn what_is_not_http_is_a_breach_of_protocol() {
    let told = call_one("SSH-2.0-OpenSSH_9.6\r\n\r\n").await;
    assert_eq!(told.failure(), (TransportKind::Protocol, Stage::Request));
}

#[tokio::test]
async fn trailers_are_passed_over() {
    let told = call_one(format!(
        "{OK_CHUNKED}{}0\r\nx-sum: 1\r\n\r\n",
        chunk("data: one\n\n")
    ))
    .await;
    assert_eq!((told.body.as_str(), told.end), ("data: one\n\n", Ok(())));
}

#[tokio::test]
async fn an_empty_body_ends_without_data() {
    let told =
        call_one("HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-encoding: br\r\n\r\n").await;
    assert_eq!((told.body.as_str(), told.end), ("", Ok(())));
}

#[tokio::test]
async fn a_head_of_more_than_64_kib_is_too_large() {
    let filler = "x".repeat(1 << 10);
    let lines: String = (0..70).map(|i| format!("x-{i}: {filler}\r\n")).collect();
    let told = call_one(format!(
        "HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n"
    ))
    .await;
    assert_eq!(
        told.failure(),
        (TransportKind::HeadTooLarge, Stage::Request)
    );
}

#[tokio::test]
async fn a_head_that_never_ends_is_too_large() {
    let server = Server::start(|mut peer, _| async move {
        peer.request().await;
        let head = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1 << 20));
        // The other side closes in the middle of it.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, head.as_bytes()).await;
        peer.gone().await;
    })
    .await;
    let told = call_once(server.endpoint()).await;
    assert_eq!(
        told.failure(),
        (TransportKind::HeadTooLarge, Stage::Request)
    );
}

#[tokio::test]
async fn a_head_of_more_than_128_lines_is_too_large() {
    let lines: String = (0..129).map(|i| format!("x-{i}: 1\r\n")).collect();
    let told = call_one(format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).await;
    assert_eq!(
        told.failure(),
        (TransportKind::HeadTooLarge, Stage::Request)
    );
}

const OK_GZIP: &str =
    "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";

async fn write_chunk(peer: &mut Peer, data: &[u8]) {
    peer.write(format!("{:x}\r\n", data.len())).await;
    peer.write(data).await;
    peer.write("\r\n").await;
}

/// The server sends its second event only when the first has been told.
#[tokio::test]
async fn gzip_is_decoded_as_it_arrives() {
    let told = Arc::new(tokio::sync::Notify::new());
    let go_on = told.clone();
    let server = Server::start(move |mut peer, _| {
        let go_on = go_on.clone();
        async move {
            peer.request().await;
            peer.write(OK_GZIP).await;
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            for event in ["data: one\n\n", "data: two\n\n"] {
                gzip.write_all(event.as_bytes()).unwrap();
                gzip.flush().unwrap();
                write_chunk(&mut peer, &mem::take(gzip.get_mut())).await;
                go_on.notified().await;
            }
            write_chunk(&mut peer, &gzip.finish().unwrap()).await;
            peer.write("0\r\n\r\n").await;
        }
    })
    .await;
    let mut exchange = open(&Door::new(), &Arc::new(server.endpoint()), request()).await;
    let mut body = Vec::new();
    for wanted in ["data: one\n\n", "data: one\n\ndata: two\n\n"] {
        while body != wanted.as_bytes() {
            match next(&mut exchange).await {
                Signal::Data(data) => body.extend_from_slice(&data),
                Signal::Sent | Signal::Head { .. } => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        told.notify_one();
    }
    assert!(matches!(next(&mut exchange).await, Signal::End));
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(plain).unwrap();
    gzip.finish().unwrap()
}

fn encoded(encoding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn a_gzip_stream_that_ends_early_in_a_whole_body_is_truncated() {
    let whole = gzip(b"data: one\n\n");
    let told = call_one(encoded("x-gzip", &whole[..whole.len() - 8])).await;
    assert_eq!(told.body, "data: one\n\n");
    assert_eq!(told.failure(), (TransportKind::Truncated, Stage::Stream));
}

#[tokio::test]
async fn a_gzip_bomb_comes_in_bounded_pieces() {
    let server = writes_and_closes(encoded("gzip", &gzip(&vec![0; 64 << 20]))).await;
    let mut exchange = open(&Door::new(), &Arc::new(server.endpoint()), request()).await;
    let mut total = 0;
    loop {
        match next(&mut exchange).await {
            Signal::Data(data) => {
                assert!(data.len() <= 128 << 10, "{} bytes at once", data.len());
                total += data.len();
            }
            Signal::End => break,
            Signal::Sent | Signal::Head { .. } => {}
            Signal::Failed(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(total, 64 << 20);
}

#[tokio::test]
async fn other_encodings_are_refused_by_name() {
    for encoding in ["br", "zstd", "gzip, br"] {
        let told = call_one(encoded(encoding, b"\x1f\x8bwhatever")).await;
        assert_eq!(
            (told.status.unwrap().as_u16(), told.body.as_str()),
            (200, "")
        );
        assert_eq!(told.failure(), (TransportKind::Encoding, Stage::Stream));
        assert!(told.end.unwrap_err().detail.contains(encoding));
    }
}
