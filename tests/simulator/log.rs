//! What was received is counted, served and forgotten on request.

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::support::*;

async fn ask(simulator: &redrive::simulator::Simulator, request: &str) -> String {
    let mut stream = connect(simulator).await;
    let request = format!("{request} HTTP/1.1\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    to_end(&mut stream).await.text
}

#[tokio::test]
async fn the_log_is_served_without_credentials_and_is_no_request_itself() {
    let simulator = body(r#"[{"chunk": "ab"}, {"close": "fin"}]"#).await;
    let mut stream = connect(&simulator).await;
    let request = "POST /v1/x?key=s3cret HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n\
                   transfer-encoding: chunked\r\n\r\n9\r\n{\"a\": 1.0\r\n1;x=y\r\n}\r\n0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    to_end(&mut stream).await;
    ended(&simulator, 1).await;
    let answer = ask(&simulator, "GET /requests").await;
    assert!(!answer.contains("s3cret"), "{answer}");
    let (_, json) = answer.split_once("\r\n\r\n").unwrap();
    let account: Value = serde_json::from_str(json).unwrap();
    assert_eq!(account["count"], 1);
    let request = &account["requests"][0];
    assert_eq!(request["method"], "POST");
    assert_eq!(request["path"], "/v1/x?key=[redacted]");
    assert_eq!(request["body"]["a"], 1.0);
    assert_eq!(request["complete"], true);
    assert_eq!(request["status"], 200);
    assert_eq!(request["bytes_sent"], 2);
    assert_eq!(request["end"], "fin");
    let arrived = simulator.received()[0].arrived;
    assert_eq!(request["arrived_ms"], arrived.as_micros() as f64 / 1e3);
}

#[tokio::test]
async fn forgetting_starts_all_turns_again() {
    let simulator =
        playing(r#"[{"status": 201, "body": [{"close": "fin"}]}, {"status": 202}]"#).await;
    let first = answer(&simulator).await.text;
    assert!(first.starts_with("HTTP/1.1 201"), "{first}");
    let gone = ask(&simulator, "DELETE /requests").await;
    assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");
    assert!(simulator.received().is_empty());
    let first = answer(&simulator).await.text;
    assert!(first.starts_with("HTTP/1.1 201"), "{first}");
    assert_eq!(simulator.received()[0].number, 2);
}

#[tokio::test]
async fn a_request_without_a_script_is_told_so_and_counted() {
    let simulator = playing(r#"{"upstream": [{"body": [{"close": "fin"}]}]}"#).await;
    answer(&simulator).await;
    let mut stream = connect(&simulator).await;
    post(&mut stream, "{}").await;
    let told = until(&mut stream, "0\r\n\r\n").await;
    assert!(told.starts_with("HTTP/1.1 400"), "{told}");
    assert!(told.contains("no script for this request"), "{told}");
    assert_eq!(ended(&simulator, 2).await.script, None);
}
