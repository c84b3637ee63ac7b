//! TLS: whom we trust, and what reaches a server we do not.

use std::sync::Arc;

use bytes::Bytes;
use redrive::{
    upstream::{Endpoint, Http2, http::Door},
    verdict::{Stage, transport::TransportKind},
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    frames::Frames,
    support::{Peer, Server, call, call_once, endpoint, settle},
};

/// A throw-away authority's PEM, and an acceptor with a certificate for `localhost` from it.
struct Authority {
    pem: Bytes,
    acceptor: TlsAcceptor,
}

fn authority(alpn: &[&str]) -> Authority {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let leaf_key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let leaf = rcgen::CertificateParams::new(names)
        .unwrap()
        .signed_by(&leaf_key, &issuer)
        .unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(leaf)],
            PrivateKeyDer::try_from(leaf_key.serialize_der()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Authority {
        pem: root.pem().into(),
        acceptor: TlsAcceptor::from(Arc::new(config)),
    }
}

/// A server that answers every request in the protocol that was agreed on.
async fn serve(acceptor: TlsAcceptor) -> Server {
    Server::start(move |peer: Peer, _| {
        let acceptor = acceptor.clone();
        async move {
            // Fails where the client does not trust us.
            let Ok(stream) = acceptor.accept(peer.stream).await else {
                return;
            };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                let mut frames = Frames::over(stream, peer.log, &[]).await;
                while let Some(stream) = frames.request().await {
                    frames.answer(stream, "by h2").await;
                }
            } else {
                let mut peer = Peer::new(stream, peer.log);
                while peer.request().await {
                    peer.answer("by http/1.1").await;
                }
            }
        }
    })
    .await
}

fn https(server: &Server, extra_ca: Option<Bytes>) -> Endpoint {
    Endpoint {
        extra_ca,
        ..endpoint(&format!("https://localhost:{}", server.address.port()))
    }
}

#[tokio::test]
async fn an_untrusted_certificate_fails_before_anything_is_sent() {
    let server = serve(authority(&["h2", "http/1.1"]).acceptor).await;
    let told = call_once(https(&server, None)).await;
    assert_eq!(
        told.failure(),
        (TransportKind::UntrustedCertificate, Stage::Connect)
    );
    settle().await;
    assert_eq!((server.log.connections(), server.log.requests()), (1, 0));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_untrusted() {
    let ca = authority(&["http/1.1"]);
    let acceptor = ca.acceptor;
    let server = Server::start_on("127.0.0.2:0".parse().unwrap(), move |peer, _| {
        let acceptor = acceptor.clone();
        async move {
            assert!(acceptor.accept(peer.stream).await.is_err());
        }
    })
    .await;
    let endpoint = endpoint(&format!("https://{}", server.address));
    let told = call_once(Endpoint {
        extra_ca: Some(ca.pem),
        ..endpoint
    })
    .await;
    assert_eq!(
        told.failure(),
        (TransportKind::UntrustedCertificate, Stage::Connect)
    );
}

#[tokio::test]
async fn alpn_decides_between_the_versions() {
    for (offered, http2, wanted) in [
        (&["h2", "http/1.1"][..], Http2::Auto, "by h2"),
        (&["http/1.1"], Http2::Auto, "by http/1.1"),
        (&[], Http2::Auto, "by http/1.1"),
        (&["h2", "http/1.1"], Http2::Off, "by http/1.1"),
        (&["h2", "http/1.1"], Http2::PriorKnowledge, "by h2"),
    ] {
        let ca = authority(offered);
        let server = serve(ca.acceptor).await;
        let endpoint = Arc::new(Endpoint {
            http2,
            ..https(&server, Some(ca.pem))
        });
        let door = Door::new();
        for _ in 0..2 {
            let told = call(&door, &endpoint).await;
            assert_eq!((told.body.as_str(), told.end), (wanted, Ok(())));
        }
        assert_eq!((server.log.connections(), server.log.requests()), (1, 2));
    }
}

#[tokio::test]
async fn http2_that_is_required_and_not_offered_is_not_sent() {
    let ca = authority(&[]);
    let server = serve(ca.acceptor).await;
    let endpoint = Endpoint {
        http2: Http2::PriorKnowledge,
        ..https(&server, Some(ca.pem))
    };
    let told = call_once(endpoint).await;
    assert_eq!(told.failure(), (TransportKind::Tls, Stage::Connect));
    assert_eq!(server.log.requests(), 0);
}

#[tokio::test]
async fn a_handshake_that_is_cut_off_is_a_failed_connection() {
    let server = Server::start(|mut peer: Peer, _| async move {
        let mut hello = [0; 16];
        tokio::io::AsyncReadExt::read_exact(&mut peer.stream, &mut hello)
            .await
            .unwrap();
        peer.reset();
    })
    .await;
    let told = call_once(https(&server, None)).await;
    assert_eq!(told.failure(), (TransportKind::Connect, Stage::Connect));
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_a_tls_failure() {
    let server = Server::start(|mut peer: Peer, _| async move {
        peer.write("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        peer.gone().await;
    })
    .await;
    let told = call_once(https(&server, None)).await;
    assert_eq!(told.failure(), (TransportKind::Tls, Stage::Connect));
}

/// FIN without close_notify, where only the end of the connection ends the body.
#[tokio::test]
async fn a_body_that_tls_did_not_end_is_truncated() {
    let ca = authority(&[]);
    let acceptor = ca.acceptor;
    let server = Server::start(move |peer: Peer, _| {
        let acceptor = acceptor.clone();
        async move {
            let stream = acceptor.accept(peer.stream).await.unwrap();
            let mut peer = Peer::new(stream, peer.log);
            peer.request().await;
            peer.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nnot the whole")
                .await;
            settle().await;
        }
    })
    .await;
    let told = call_once(https(&server, Some(ca.pem))).await;
    assert_eq!(told.body, "not the whole");
    assert_eq!(told.failure(), (TransportKind::Truncated, Stage::Stream));
}

#[tokio::test]
async fn authorities_that_cannot_be_read_fail_before_anything_is_sent() {
    let server = serve(authority(&[]).acceptor).await;
    let told = call_once(https(&server, Some(Bytes::from_static(b"no PEM")))).await;
    assert_eq!(told.failure(), (TransportKind::Tls, Stage::Connect));
    assert!(told.end.unwrap_err().detail.contains("extra_ca"));
    assert_eq!(server.log.connections(), 0);
}
