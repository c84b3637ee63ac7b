//! Proxies: only where configured, only by CONNECT, never from the environment.

use std::{net::SocketAddr, process::Command, sync::Arc};

use redrive::{
    upstream::{Endpoint, Proxy, http::Door},
    verdict::{Stage, transport::TransportKind},
};
use tokio::{io::copy_bidirectional, net::TcpStream};

use crate::support::{Peer, Server, call, call_once, endpoint};

async fn provider() -> Server {
    Server::start(|mut peer, _| async move {
        while peer.request().await {
            peer.answer("data: hello\n\n").await;
        }
    })
    .await
}

/// A proxy that tunnels everything to `to`, whatever it is asked for.
async fn proxy(to: SocketAddr) -> Server {
    Server::start(move |mut peer: Peer, _| async move {
        peer.head().await.unwrap();
        let mut onward = TcpStream::connect(to).await.unwrap();
        peer.write("HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")
            .await;
        let _ = copy_bidirectional(&mut peer.stream, &mut onward).await;
    })
    .await
}

fn through(proxy: &Server, base_url: &str, no_proxy: &[&str]) -> Endpoint {
    let url = format!("http://user:p%40ss@{}", proxy.address)
        .parse()
        .unwrap();
    let no_proxy = no_proxy.iter().map(|entry| (*entry).to_owned()).collect();
    Endpoint {
        proxy: Some(Proxy { url, no_proxy }),
        ..endpoint(base_url)
    }
}

#[tokio::test]
async fn a_configured_proxy_is_asked_for_a_tunnel() {
    let provider = provider().await;
    let proxy = proxy(provider.address).await;
    let endpoint = Arc::new(through(
        &proxy,
        "http://llm.invalid:8080/v1",
        &["other.invalid"],
    ));
    let door = Door::new();
    for _ in 0..2 {
        assert_eq!(call(&door, &endpoint).await.end, Ok(()));
    }
    let tunnel = proxy.log.heads();
    assert_eq!(tunnel.len(), 1, "one tunnel serves both");
    assert!(
        tunnel[0].starts_with("CONNECT llm.invalid:8080 HTTP/1.1\r\nHost: llm.invalid:8080\r\n")
    );
    assert!(tunnel[0].contains("Proxy-Authorization: Basic dXNlcjpwQHNz\r\n"));
    assert!(!tunnel[0].contains("sk-secret"));
    assert_eq!(provider.log.requests(), 2);
    assert!(
        !provider.log.heads()[0]
            .to_lowercase()
            .contains("proxy-authorization")
    );
}

#[tokio::test]
async fn an_exception_is_reached_directly() {
    let provider = provider().await;
    let proxy = proxy(provider.address).await;
    let url = format!("http://{}", provider.address);
    let told = call_once(through(&proxy, &url, &["127.0.0.0/8"])).await;
    assert_eq!(told.end, Ok(()));
    assert_eq!((proxy.log.connections(), provider.log.requests()), (0, 1));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_a_proxy_failure_and_nothing_is_sent() {
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200",
    ] {
        let proxy = Server::start(move |mut peer: Peer, _| async move {
            peer.head().await.unwrap();
            peer.write(answer).await;
        })
        .await;
        let told = call_once(through(&proxy, "http://llm.invalid", &[])).await;
        assert_eq!(told.failure(), (TransportKind::Proxy, Stage::Connect));
        assert_eq!((proxy.log.connections(), proxy.log.requests()), (1, 1));
        assert!(!told.end.unwrap_err().detail.contains("p%40ss"));
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_a_proxy_failure() {
    let gone = provider().await;
    let endpoint = through(&gone, "http://llm.invalid", &[]);
    let address = gone.address;
    drop(gone);
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let told = call_once(endpoint).await;
    assert_eq!(told.failure(), (TransportKind::Proxy, Stage::Connect));
}

const CHILD: &str = "REDRIVE_TEST_PROVIDER";

/// This binary again, with every proxy variable pointing at a server that must see nothing.
#[tokio::test]
async fn proxy_variables_in_the_environment_have_no_effect() {
    if let Ok(address) = std::env::var(CHILD) {
        let told = call_once(endpoint(&format!("http://{address}"))).await;
        assert_eq!(told.end, Ok(()));
        return;
    }
    let (provider, proxy) = (provider().await, provider().await);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "proxy::proxy_variables_in_the_environment_have_no_effect",
    ]);
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        child.env(name, format!("http://{}", proxy.address));
    }
    child.env(CHILD, provider.address.to_string());
    let run = tokio::task::spawn_blocking(move || child.output().unwrap())
        .await
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stdout)
    );
    assert_eq!((proxy.log.connections(), provider.log.requests()), (0, 1));
}
