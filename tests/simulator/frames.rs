//! HTTP/2 and TLS.

use std::{error::Error, sync::Arc};

use bytes::{Bytes, BytesMut};
use h2::{Reason, client::SendRequest};
use http::{Request, Response, Version};
use redrive::simulator::{End, Simulator};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{task::JoinHandle, time::timeout};
use tokio_rustls::TlsConnector;

use crate::support::*;

type Connection = JoinHandle<Result<(), h2::Error>>;

async fn dial(simulator: &Simulator) -> (SendRequest<Bytes>, Connection) {
    let (requests, connection) = h2::client::handshake(connect(simulator).await)
        .await
        .unwrap();
    (requests, tokio::spawn(connection))
}

async fn ask(requests: &mut SendRequest<Bytes>) -> Result<Response<h2::RecvStream>, h2::Error> {
    let request = Request::post("http://a.test/v1/x")
        .version(Version::HTTP_2)
        .header("authorization", "Bearer s3cret")
        .body(());
    let (response, mut body) = requests.send_request(request.unwrap(), false).unwrap();
    body.send_data(Bytes::from_static(b"{\"model\": \"m\"}"), true)
        .unwrap();
    timeout(LIMIT, response).await.expect("an answer")
}

/// The body and how it ended.
async fn read(response: Response<h2::RecvStream>) -> (String, Result<(), h2::Error>) {
    let mut body = response.into_body();
    let mut all = BytesMut::new();
    while let Some(bytes) = timeout(LIMIT, body.data()).await.expect("data") {
        match bytes {
            Ok(bytes) => {
                body.flow_control().release_capacity(bytes.len()).unwrap();
                all.extend_from_slice(&bytes);
            }
            Err(error) => return (text(&all), Err(error)),
        }
    }
    (text(&all), Ok(()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn a_plain_script_is_played_over_http2_too() {
    let long = r#"{"fill": {"byte": "x", "count": 3000000}}"#;
    let simulator = body(&format!(r#"[{{"chunk": "ab"}}, {long}]"#)).await;
    let (mut requests, _connection) = dial(&simulator).await;
    let (body, end) = read(ask(&mut requests).await.unwrap()).await;
    assert_eq!(body.len(), 3_000_002);
    end.unwrap();
    let received = ended(&simulator, 1).await;
    assert_eq!(received.stream, Some(1));
    assert_eq!(received.end, Some(End::Clean));
    assert_eq!(&received.body.bytes[..], b"{\"model\": \"m\"}");
    assert!(
        received
            .headers
            .contains(&("authorization".to_owned(), "[redacted]".to_owned()))
    );
}

#[tokio::test]
async fn a_goaway_below_the_request_comes_with_its_code() {
    let goaway = r#"{"goaway": {"code": "ENHANCE_YOUR_CALM", "last_stream_id": "below ours"}}"#;
    let simulator = playing(&format!(r#"{{"h2": [{goaway}, {{"close": "clean"}}]}}"#)).await;
    let (mut requests, connection) = dial(&simulator).await;
    let error = ask(&mut requests).await.unwrap_err();
    assert!(error.is_go_away() && error.is_remote(), "{error:?}");
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));
    let _ = timeout(LIMIT, connection)
        .await
        .expect("the connection ends");
    assert_eq!(ended(&simulator, 1).await.end, Some(End::Goaway));
}

#[tokio::test]
async fn a_stream_is_reset_before_or_after_its_head() {
    let simulator = playing(r#"{"h2": [{"rst_stream": "REFUSED_STREAM"}]}"#).await;
    let (mut requests, _connection) = dial(&simulator).await;
    let error = ask(&mut requests).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::REFUSED_STREAM));

    let head = r#"{"headers": {":status": 207, "a": "b"}}"#;
    let frames =
        format!(r#"{{"h2": [{head}, {{"data": "xy"}}, {{"rst_stream": "INTERNAL_ERROR"}}]}}"#);
    let simulator = playing(&frames).await;
    let (mut requests, _connection) = dial(&simulator).await;
    let response = ask(&mut requests).await.unwrap();
    assert_eq!(response.status(), 207);
    assert_eq!(response.headers()["a"], "b");
    let (body, end) = read(response).await;
    assert_eq!(body, "xy");
    assert_eq!(end.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));
    assert_eq!(ended(&simulator, 1).await.end, Some(End::RstStream));
}

#[tokio::test]
async fn a_connection_is_cut_between_its_frames() {
    for close in ["fin", "reset"] {
        let simulator = body(&format!(r#"[{{"chunk": "ab"}}, {{"close": "{close}"}}]"#)).await;
        let (mut requests, _connection) = dial(&simulator).await;
        let (body, end) = read(ask(&mut requests).await.unwrap()).await;
        assert_eq!(body, "ab", "{close}");
        assert!(end.unwrap_err().is_io(), "{close}");
    }
}

#[tokio::test]
async fn a_client_s_reset_ends_the_answer() {
    let simulator = body(r#"[{"chunk": "ab"}, {"close": "never"}]"#).await;
    let (mut requests, _connection) = dial(&simulator).await;
    let response = ask(&mut requests).await.unwrap();
    drop(response);
    assert_eq!(ended(&simulator, 1).await.end, Some(End::ClientLeft));
}

#[tokio::test]
async fn the_certificate_is_signed_by_nobody() {
    let simulator = body(r#"[{"chunk": "ab"}]"#).await;
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::from_iter(
            webpki_roots::TLS_SERVER_ROOTS.iter().cloned(),
        ))
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let error = connector
        .connect(name, connect(&simulator).await)
        .await
        .unwrap_err();
    let source = error
        .get_ref()
        .and_then(|error| (error as &dyn Error).downcast_ref());
    let Some(rustls::Error::InvalidCertificate(_)) = source else {
        panic!("{error:?}")
    };
    assert!(simulator.received().is_empty());
}
