//! Clients that misbehave cost no more than their connection.

use tokio::io::AsyncWriteExt;

use crate::support::*;

/// The answer to these bytes, whether or not they were all taken.
async fn answer_to(bytes: &[u8]) -> String {
    let simulator = body(r#"[{"chunk": "ab"}]"#).await;
    let mut stream = connect(&simulator).await;
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let text = to_end(&mut stream).await.text;
    // It still serves others.
    let mut other = connect(&simulator).await;
    post(&mut other, "{}").await;
    assert!(
        until(&mut other, "0\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 200")
    );
    text
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_the_reason() {
    let endless = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(70 << 10));
    for (bytes, why) in [
        ("nonsense\r\n\r\n", "this is no HTTP request"),
        ("GET / FTP/1.1\r\n\r\n", "this is no HTTP/1.1 request"),
        (
            "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
            "the body is too large",
        ),
        (
            "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            "the body is too large",
        ),
        (endless.as_str(), "the head is too long"),
    ] {
        let text = answer_to(bytes.as_bytes()).await;
        assert!(text.starts_with("HTTP/1.1 400"), "{text}");
        assert!(text.ends_with(why), "{text}");
    }
}

#[tokio::test]
async fn a_request_that_breaks_off_is_let_go() {
    let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    for bytes in [
        "P",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nno frame at all",
        "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nabc",
        &format!("{chunked}5\r\nabc"),
        &format!("{chunked}zz\r\n"),
        &format!("{chunked}fffffffff\r\n"),
        &format!("{chunked}{}", "0".repeat(300)),
        "\x16\x03\x01no hello",
    ] {
        let text = answer_to(bytes.as_bytes()).await;
        assert!(!text.contains("HTTP/1.1 200"), "{bytes:?}: {text:?}");
    }
}
