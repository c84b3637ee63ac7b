//! What scripts come to on the wire.

use std::{io::ErrorKind, time::Duration};

use redrive::simulator::{After, Library, Options, Playlist, Simulator, chat};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::support::*;

const HEAD: &str =
    "HTTP/1.1 200 Scripted\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_clean_end_has_its_last_chunk_and_the_connection_goes_on() {
    let simulator = body(r#"[{"chunk": "ab"}, {"chunk_b64": "/w=="}, {"chunk": ""}]"#).await;
    let mut stream = connect(&simulator).await;
    for _ in 0..2 {
        post(&mut stream, "{}").await;
        assert_eq!(until(&mut stream, "\r\n\r\n").await, HEAD);
        let expected = b"2\r\nab\r\n1\r\n\xff\r\n0\r\n\r\n";
        let mut body = [0; 18];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body)
            .await
            .unwrap();
        assert_eq!(&body, expected);
    }
    let received = simulator.received();
    assert_eq!(received[1].connection, received[0].connection);
    assert_eq!(received[1].nth_on_connection, 2);
}

#[tokio::test]
async fn every_unclean_end_is_unclean_in_its_own_way() {
    let cut = |close: &str| format!(r#"[{{"chunk": "ab"}}, {{"close": "{close}"}}]"#);
    for (close, body_bytes) in [
        ("fin", "2\r\nab\r\n"),
        ("truncated_chunked_at_boundary", "2\r\nab\r\n"),
        ("truncated_chunked", "2\r\nab\r\n40\r\n: cu"),
    ] {
        let seen = answer(&body(&cut(close)).await).await;
        assert_eq!(seen.text, format!("{HEAD}{body_bytes}"), "{close}");
        seen.end.unwrap();
    }
    let seen = answer(&body(&cut("reset")).await).await;
    assert_eq!(seen.text, format!("{HEAD}2\r\nab\r\n"));
    assert_eq!(seen.end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn never_is_silence_until_the_client_leaves() {
    let simulator = body(r#"[{"chunk": "ab"}, {"close": "never"}]"#).await;
    let mut stream = connect(&simulator).await;
    post(&mut stream, "{}").await;
    until(&mut stream, "ab\r\n").await;
    assert!(simulator.received()[0].end.is_none());
    drop(stream);
    let end = ended(&simulator, 1).await.end;
    assert_eq!(end, Some(redrive::simulator::End::ClientLeft));
}

#[tokio::test]
async fn a_content_length_of_the_script_s_own_is_believed() {
    let script =
        r#"{"headers": {"Content-Length": "10"}, "body": [{"chunk": "ab"}, {"close": "fin"}]}"#;
    let seen = answer(&playing(script).await).await;
    assert_eq!(
        seen.text,
        "HTTP/1.1 200 Scripted\r\ncontent-length: 10\r\n\r\nab"
    );
}

#[tokio::test]
async fn a_fill_is_one_chunk_and_a_repeat_is_many() {
    let fill = r#"{"fill": {"before": "<", "byte": "ab", "count": 200000, "after": ">"}}"#;
    let repeat = r#"{"repeat": {"chunk": "x", "every_ms": 1, "times": 3}}"#;
    let filled = r#"{"repeat": {"fill": {"before": "(", "byte": "y", "count": 3, "after": ")"}, "times": 2}}"#;
    let simulator = body(&format!(
        r#"[{fill}, {repeat}, {filled}, {{"close": "fin"}}]"#
    ))
    .await;
    let seen = answer(&simulator).await;
    let expected = format!("{HEAD}61a82\r\n<{}>\r\n", "ab".repeat(200_000));
    let rest = seen.text.strip_prefix(&expected).expect("the fill");
    assert_eq!(rest, "1\r\nx\r\n".repeat(3) + &"5\r\n(yyy)\r\n".repeat(2));
}

#[tokio::test]
async fn a_pause_is_not_shorter_than_it_says() {
    let simulator = body(r#"[{"sleep_ms": 60}, {"close": "fin"}]"#).await;
    answer(&simulator).await;
    let received = ended(&simulator, 1).await;
    let took = received.ended.unwrap() - received.head.unwrap();
    assert!(took.as_millis() >= 60, "{took:?}");
}

#[tokio::test]
async fn a_date_is_filled_in_when_it_is_served() {
    let script =
        r#"{"status": 429, "headers": {"retry-after": "{{http_date:now+2s}}"}, "body": []}"#;
    let simulator = playing(script).await;
    let mut stream = connect(&simulator).await;
    post(&mut stream, "{}").await;
    let head = until(&mut stream, "\r\n\r\n").await;
    let date = head
        .split("retry-after: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap();
    let date = httpdate::parse_http_date(date).unwrap();
    let ahead = date.duration_since(std::time::SystemTime::now()).unwrap();
    assert!(ahead.as_secs() <= 2, "{ahead:?}");
    let served = &simulator.received()[0].served;
    assert_eq!(served[0].0, "retry-after");
    assert!(!served[0].1.contains('{'), "{served:?}");
}

#[tokio::test]
async fn connections_fail_as_they_are_told_to() {
    let connect = |fault: &str| format!(r#"{{"connect": "{fault}"}}"#);
    let seen = answer(&playing(&connect("accept_then_reset_before_headers")).await).await;
    assert_eq!(seen.text, "");
    assert_eq!(seen.end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let seen = answer(&playing(&connect("on_reuse_close_after_reading_request")).await).await;
    assert_eq!(seen.text, "");
    seen.end.unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_answer() {
    let script = r#"[{"body": [{"chunk": "ab"}]}, {"connect": "fin_while_idle_in_pool"}]"#;
    let simulator = playing(script).await;
    let seen = answer(&simulator).await;
    assert!(seen.text.ends_with("2\r\nab\r\n0\r\n\r\n"), "{seen:?}");
    seen.end.unwrap();
}

#[tokio::test]
async fn half_a_body_is_enough_to_reset_in_the_middle_of_it() {
    let mut library = Library::ready_made();
    library.answer_others_with("ok").unwrap();
    let simulator = Simulator::start(Options::default(), library).await.unwrap();
    let mut stream = connect(&simulator).await;
    let head =
        "POST / HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{\"model\": \"reset-while-reading\", ";
    let half = format!("{head}{}", " ".repeat(500));
    stream.write_all(half.as_bytes()).await.unwrap();
    let seen = to_end(&mut stream).await;
    assert_eq!(seen.end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(!ended(&simulator, 1).await.complete);
}

#[tokio::test]
async fn nobody_listens_where_connections_are_refused() {
    let options = Options {
        refuse: true,
        ..Options::default()
    };
    let simulator = Simulator::start(options, Library::default()).await.unwrap();
    let error = TcpStream::connect(simulator.address()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn it_ends_with_all_its_connections() {
    let simulator = body(r#"[{"chunk": "ab"}, {"close": "never"}]"#).await;
    let mut stream = connect(&simulator).await;
    post(&mut stream, "{}").await;
    until(&mut stream, "ab\r\n").await;
    let address = simulator.address();
    drop(simulator);
    let seen = to_end(&mut stream).await;
    assert_eq!(seen.text, "");
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, refused)
        .await
        .expect("it listens no more");
}

#[tokio::test]
async fn an_answer_is_made_of_words_and_counts_them() {
    let answer = chat::answer("m", "whole word", Duration::ZERO);
    let mut library = Library::default();
    library.insert("it", Playlist::new([answer], After::RepeatLast));
    library.answer_others_with("it").unwrap();
    let simulator = Simulator::start(Options::default(), library).await.unwrap();
    let mut stream = connect(&simulator).await;
    post(&mut stream, "{}").await;
    let text = until(&mut stream, "0\r\n\r\n").await;
    for piece in [
        "\"whole \"",
        "\"word\"",
        "\"finish_reason\":\"stop\"",
        "\"completion_tokens\":2",
    ] {
        assert!(text.contains(piece), "{piece} in {text}");
    }
    assert!(text.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{text}");
}
