//! The public and the admin listener, over real sockets.

use std::{net::SocketAddr, time::Duration};

use redrive::{
    budgets::Budgets,
    clock::Clock,
    server::{
        Readiness, State,
        admin::{self, Admin},
        public,
    },
    telemetry::{Gauge, Guard, Telemetry},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::*;

/// A public listener, until dropped.
pub struct Public {
    pub address: SocketAddr,
    pub readiness: Readiness,
    _shutdown: DropGuard,
}

pub async fn start_public(telemetry: Telemetry) -> Public {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let readiness = Readiness::new();
    let shutdown = CancellationToken::new();
    tokio::spawn(public::serve(
        listener,
        readiness.clone(),
        telemetry,
        shutdown.clone(),
    ));
    Public {
        address,
        readiness,
        _shutdown: shutdown.drop_guard(),
    }
}

/// An admin listener, until dropped.
pub struct AdminListener {
    pub address: SocketAddr,
    pub readiness: Readiness,
    pub drain: CancellationToken,
    pub generations: Gauge,
    pub shutdown: DropGuard,
}

pub async fn start_admin() -> AdminListener {
    start_admin_of(Budgets::new(Clock::start(), Vec::new())).await
}

pub async fn start_admin_of(budgets: Budgets) -> AdminListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (readiness, drain) = (Readiness::new(), CancellationToken::new());
    let (generations, shutdown) = (Gauge::default(), CancellationToken::new());
    readiness.advance(State::Ready);
    let admin = Admin {
        readiness: readiness.clone(),
        drain: drain.clone(),
        generations: generations.clone(),
        budgets,
    };
    tokio::spawn(admin::serve(listener, admin, shutdown.clone()));
    AdminListener {
        address,
        readiness,
        drain,
        generations,
        shutdown: shutdown.drop_guard(),
    }
}

/// Sends `head` (request line and headers) and returns status line and body.
async fn ask(address: SocketAddr, head: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head}\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap();
    (
        status.strip_prefix("HTTP/1.1 ").unwrap().to_owned(),
        body.to_owned(),
    )
}

fn answer(status: &str, body: &str) -> (String, String) {
    (status.to_owned(), body.to_owned())
}

#[tokio::test]
async fn readiness_names_what_stands_in_the_way() {
    let public = start_public(telemetry().0).await;
    let ready = || ask(public.address, "GET /readyz HTTP/1.1");
    assert_eq!(
        ready().await,
        answer("503 Service Unavailable", "starting\n")
    );
    public.readiness.advance(State::Ready);
    assert_eq!(ready().await, answer("200 OK", "ready\n"));
    public.readiness.advance(State::Draining);
    assert_eq!(
        ready().await,
        answer("503 Service Unavailable", "draining\n")
    );
}

#[tokio::test]
async fn liveness_holds_while_starting_and_draining() {
    let public = start_public(telemetry().0).await;
    for state in [State::Starting, State::Draining] {
        public.readiness.advance(state);
        let health = ask(public.address, "GET /healthz HTTP/1.1").await;
        assert_eq!(health, answer("200 OK", "ok\n"), "{state:?}");
    }
}

#[tokio::test]
async fn metrics_are_served_as_prometheus_text() {
    let (telemetry, _) = telemetry();
    let public = start_public(telemetry.clone()).await;
    let (status, body) = ask(public.address, "GET /metrics HTTP/1.1").await;
    assert_eq!(status, "200 OK");
    assert_eq!(Some(body), telemetry.render_metrics());
}

#[tokio::test]
async fn switched_off_metrics_are_not_found() {
    let off = redrive::config::Telemetry {
        prometheus: false,
        ..settings()
    };
    let public = start_public(Telemetry::new(&off, []).unwrap()).await;
    let metrics = ask(public.address, "GET /metrics HTTP/1.1").await;
    assert_eq!(
        metrics,
        answer("404 Not Found", "metrics are switched off\n")
    );
}

#[tokio::test]
async fn the_public_listener_changes_nothing_and_shows_nothing_else() {
    let public = start_public(telemetry().0).await;
    for (head, status) in [
        ("POST /readyz HTTP/1.1", "405 Method Not Allowed"),
        ("POST /drain HTTP/1.1", "404 Not Found"),
        ("GET / HTTP/1.1", "404 Not Found"),
    ] {
        assert_eq!(ask(public.address, head).await.0, status, "{head}");
    }
}

#[tokio::test]
async fn the_status_is_json_also_where_there_are_no_budgets() {
    let admin = start_admin().await;
    let _generation = Guard::new(&admin.generations);
    let (status, body) = ask(admin.address, "GET /status HTTP/1.1").await;
    assert_eq!(status, "200 OK");
    assert_eq!(
        body,
        r#"{"draining":false,"generations":1,"leases":{"granted":0,"sent":0,"returned":0,"expired":0,"unsent":0,"held":0},"budgets":[]}"#
    );
}

#[tokio::test]
async fn a_drain_starts_once_and_may_be_asked_for_again() {
    let admin = start_admin().await;
    let _running = Guard::with_amount(&admin.generations, 2);
    let status = ask(admin.address, "GET /drain HTTP/1.1").await;
    assert_eq!(
        status,
        answer("200 OK", r#"{"draining":false,"generations":2}"#)
    );
    assert!(!admin.drain.is_cancelled());
    for _ in 0..2 {
        let drained = ask(admin.address, "POST /drain HTTP/1.1").await;
        let expected = answer("202 Accepted", r#"{"draining":true,"generations":2}"#);
        assert_eq!(drained, expected);
        assert!(admin.drain.is_cancelled());
        assert_eq!(admin.readiness.state(), State::Draining);
    }
    let ready = ask(admin.address, "GET /readyz HTTP/1.1").await;
    assert_eq!(ready, answer("503 Service Unavailable", "draining\n"));
}

#[tokio::test]
async fn a_web_page_cannot_drain() {
    let admin = start_admin().await;
    let head = "POST /drain HTTP/1.1\r\norigin: https://example.com";
    assert_eq!(ask(admin.address, head).await.0, "403 Forbidden");
    assert!(!admin.drain.is_cancelled());
}

#[tokio::test]
async fn too_many_or_too_long_headers_are_refused() {
    let public = start_public(telemetry().0).await;
    let many = "x: y\r\n".repeat(40);
    let long = format!("x: {}\r\n", "y".repeat(20_000));
    for headers in [many, long] {
        let head = format!("GET /healthz HTTP/1.1\r\n{}", headers.trim_end());
        let (status, _) = ask(public.address, &head).await;
        assert_eq!(status, "431 Request Header Fields Too Large");
    }
}

#[tokio::test]
async fn a_connection_beyond_the_cap_takes_the_oldest_ones_place_and_silent_ones_are_closed() {
    let public = start_public(telemetry().0).await;
    let mut silent = Vec::new();
    for _ in 0..32 {
        silent.push(TcpStream::connect(public.address).await.unwrap());
    }
    let health = ask(public.address, "GET /healthz HTTP/1.1");
    let health = time::timeout(Duration::from_secs(5), health).await;
    assert_eq!(health.unwrap(), answer("200 OK", "ok\n"));
    let (mut byte, mut other) = ([0; 1], [0; 1]);
    let newest = silent.pop().unwrap();
    let oldest = silent.swap_remove(0);
    let closed = async |mut stream: TcpStream, byte: &mut [u8]| stream.read(byte).await;
    let first = time::timeout(Duration::from_secs(5), closed(oldest, &mut byte)).await;
    assert!(matches!(first.unwrap(), Ok(0) | Err(_)));
    // The others are closed after 10 s; anything from there on is right.
    let mut newest = Box::pin(closed(newest, &mut other));
    let early = time::timeout(Duration::from_millis(300), &mut newest).await;
    assert!(early.is_err(), "closed without need");
    let late = time::timeout(Duration::from_secs(15), newest).await;
    assert!(matches!(late.unwrap(), Ok(0) | Err(_)));
}

#[tokio::test]
async fn a_shutdown_closes_the_listener_and_what_is_connected() {
    let admin = start_admin().await;
    let mut silent = TcpStream::connect(admin.address).await.unwrap();
    ask(admin.address, "GET /readyz HTTP/1.1").await;
    drop(admin.shutdown);
    let end = time::timeout(Duration::from_secs(5), silent.read(&mut [0; 1])).await;
    assert!(matches!(end.unwrap(), Ok(0) | Err(_)));
    assert!(TcpStream::connect(admin.address).await.is_err());
}
