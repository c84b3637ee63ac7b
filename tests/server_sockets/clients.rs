//! Clients that vanish, flood, send nonsense or read nothing: they leak nothing.

use std::time::{Duration, Instant};

use redrive::{proto::VerdictClass as Class, telemetry::Gauge};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_stream::StreamExt;

use crate::{
    bench::{Bench, alone, alone_and_paused, eventually, generate_on},
    provider::{STREAM, begun, script, whole},
    support::{cancel, start, text},
};

/// The bound on closing the provider's connection after a client left.
const AT_ONCE: Duration = Duration::from_millis(100);

#[test]
fn a_whole_answer_leaves_nothing_behind_but_its_counts() {
    alone(async {
        let bench = Bench::start().await;
        for _ in 0..3 {
            bench.provider.then(whole());
        }
        for _ in 0..3 {
            let ended = bench.generate(start()).await.end().await;
            assert_eq!(ended.message(), "Hello");
        }
        assert_eq!(bench.provider.requests(), 3);
        // Connections are kept, and counted.
        let kept = bench.provider.open();
        assert!((1..=3).contains(&kept), "{kept}");
        bench
            .until("redrive_provider_connections_active", kept as f64)
            .await;
        assert_eq!(bench.metric("redrive_sends_total").await, 3.0);
        assert_eq!(bench.metric("redrive_grpc_connections_active").await, 1.0);
        bench.finish().await;
    });
}

#[test]
fn a_cancel_closes_the_providers_connection_within_100_ms() {
    alone(async {
        let bench = Bench::start().await;
        bench.provider.then(begun());
        let mut rpc = bench.generate(start()).await;
        rpc.text().await;
        let from = Instant::now();
        rpc.send(cancel(""));
        assert_eq!(rpc.end().await.class(), Class::Cancelled);
        closed_at_once(&bench, from).await;
        bench.finish().await;
    });
}

#[test]
fn a_client_that_vanishes_closes_it_too_before_and_in_the_stream() {
    alone(async {
        for provider in [script(), begun()] {
            let bench = Bench::start().await;
            bench.provider.then(provider);
            let rpc = bench.generate(start()).await;
            eventually("sent", async || bench.provider.requests() == 1).await;
            let from = Instant::now();
            rpc.vanish();
            closed_at_once(&bench, from).await;
            bench.finish().await;
        }
    });
}

async fn closed_at_once(bench: &Bench, from: Instant) {
    eventually("closed", async || bench.provider.open() == 0).await;
    let took = bench.provider.closed_at().unwrap() - from;
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn a_connection_that_dies_takes_its_fifty_generations_along() {
    alone(async {
        let bench = Bench::start().await;
        bench.provider.always(begun());
        let channel = bench.connect().await;
        let mut rpcs = Vec::new();
        for _ in 0..50 {
            let mut rpc = generate_on(&channel, start()).await;
            rpc.text().await;
            rpcs.push(rpc);
        }
        bench.until("redrive_generations_active", 50.0).await;
        assert_eq!(
            bench.metric("redrive_provider_connections_active").await,
            50.0
        );
        drop(rpcs);
        drop(channel);
        bench.until("redrive_generations_active", 0.0).await;
        bench
            .until("redrive_provider_connections_active", 0.0)
            .await;
        eventually("closed", async || bench.provider.open() == 0).await;
        bench.finish().await;
    });
}

#[test]
fn a_flood_of_clients_that_leave_at_any_time_leaves_nothing() {
    alone(async {
        let bench = Bench::start().await;
        bench.provider.always(
            script()
                .wait(2)
                .bytes(STREAM)
                .chunk(&text("a"))
                .wait(2)
                .chunk(&text("b"))
                .wait(2)
                .close(),
        );
        let mut clients = tokio::task::JoinSet::new();
        for client in 0..200_u64 {
            let channel = bench.connect().await;
            clients.spawn(async move {
                let rpc = generate_on(&channel, start()).await;
                tokio::time::sleep(Duration::from_micros(client * 60)).await;
                rpc.vanish();
            });
        }
        clients.join_all().await;
        bench.until("redrive_generations_active", 0.0).await;
        bench.finish().await;
    });
}

#[test]
fn nonsense_on_the_port_is_closed_and_disturbs_nobody() {
    alone(async {
        let bench = Bench::start().await;
        bench.provider.then(begun().wait(300).chunk(&text("lo")));
        let mut neighbour = bench.generate(start()).await;
        assert_eq!(neighbour.text().await, "Hel");
        for nonsense in [
            &b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..],
            &[0xff; 64],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            let mut stream = TcpStream::connect(bench.grpc).await.unwrap();
            stream.write_all(nonsense).await.unwrap();
            let mut answer = Vec::new();
            // Closed, by FIN or RST.
            let _ = stream.read_to_end(&mut answer).await;
        }
        assert_eq!(neighbour.text().await, "lo");
        neighbour.vanish();
        bench.finish().await;
    });
}

#[test]
fn a_connection_that_says_nothing_is_closed_after_ten_seconds() {
    alone_and_paused(async {
        let (mut client, mut server) = accepted().await;
        let from = tokio::time::Instant::now();
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(from.elapsed(), Duration::from_secs(10));
        drop(server);
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn a_connection_that_has_said_hello_may_be_silent() {
    alone_and_paused(async {
        let (mut client, mut server) = accepted().await;
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        let mut hello = [0; 24];
        server.read_exact(&mut hello).await.unwrap();
        let more = tokio::time::timeout(Duration::from_secs(60), server.read_u8());
        assert!(more.await.is_err(), "it was cut");
    });
}

/// Both ends of a connection to a listener of the server.
async fn accepted() -> (TcpStream, redrive::server::Connection) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bounds = redrive::server::Bounds {
        connections: 1,
        stuck: None,
    };
    let incoming = redrive::server::incoming(listener, bounds, Gauge::default());
    let mut incoming = std::pin::pin!(incoming);
    let client = TcpStream::connect(address).await.unwrap();
    let server = incoming.next().await.unwrap().unwrap();
    (client, server)
}

#[test]
fn connections_above_the_bound_are_closed_at_once() {
    alone(async {
        let bench = Bench::start_and("listen: {max_connections: 2}\n").await;
        let second = TcpStream::connect(bench.grpc).await.unwrap();
        bench.until("redrive_grpc_connections_active", 2.0).await;
        let mut third = TcpStream::connect(bench.grpc).await.unwrap();
        let mut answer = Vec::new();
        assert_eq!(third.read_to_end(&mut answer).await.unwrap_or(0), 0);
        drop(third);
        drop(second);
        bench.until("redrive_grpc_connections_active", 1.0).await;
        let channel = bench.connect().await;
        bench.provider.then(whole());
        let ended = generate_on(&channel, start()).await.end().await;
        assert_eq!(ended.message(), "Hello");
        drop(channel);
        bench.finish().await;
    });
}

#[test]
fn a_client_that_reads_nothing_is_too_slow_and_its_generation_ends() {
    alone(async {
        let bench = Bench::start().await;
        let mut large = script().bytes(STREAM);
        for _ in 0..200 {
            large = large.chunk(&text(&"x".repeat(20_000)));
        }
        bench.provider.then(large);
        let rpc = bench.generate(start()).await;
        bench.until("redrive_generations_active", 1.0).await;
        // client_idle is 1 s; nobody reads.
        bench.until("redrive_generations_active", 0.0).await;
        eventually("closed", async || bench.provider.open() == 0).await;
        let ended = rpc.end().await;
        assert_eq!(ended.class(), Class::ClientTooSlow);
        bench.finish().await;
    });
}
