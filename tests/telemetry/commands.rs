//! `redrive health` and `redrive drain` against the listeners.

use std::time::Duration;

use clap::Parser;
use redrive::{
    cli::{
        drain::{DrainArgs, drain},
        health::{HealthArgs, probe},
    },
    server::State,
    telemetry::Guard,
};
use tokio::{io::AsyncWriteExt, net::TcpListener, time};

use crate::{
    listeners::{start_admin, start_public},
    support::telemetry,
};

#[derive(Parser)]
struct Health {
    #[command(flatten)]
    args: HealthArgs,
}

#[derive(Parser)]
struct Drain {
    #[command(flatten)]
    args: DrainArgs,
}

/// The arguments of a command line, as clap reads it.
fn health_args(line: &str) -> HealthArgs {
    Health::try_parse_from(line.split(' ')).unwrap().args
}

fn drain_args(line: &str) -> DrainArgs {
    Drain::try_parse_from(line.split(' ')).unwrap().args
}

#[test]
fn the_defaults_are_the_default_listeners() {
    let health = health_args("health");
    assert_eq!(health.address, "127.0.0.1:15090");
    assert_eq!(health.timeout, Duration::from_secs(2));
    let drain = drain_args("drain");
    assert_eq!(drain.address, "127.0.0.1:15091");
    assert_eq!(drain.wait, None);
}

#[tokio::test]
async fn health_follows_readiness_and_liveness_does_not() {
    let public = start_public(telemetry().0).await;
    let ready = health_args(&format!("health --address {}", public.address));
    let live = health_args(&format!("health --address {} --liveness", public.address));
    assert_eq!(probe(&ready).await, Err("not ready: starting".to_owned()));
    assert_eq!(probe(&live).await, Ok("ok".to_owned()));
    public.readiness.advance(State::Ready);
    assert_eq!(probe(&ready).await, Ok("ready".to_owned()));
}

#[tokio::test]
async fn health_says_that_nothing_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let line = probe(&health_args(&format!("health --address {address}"))).await;
    let line = line.unwrap_err();
    assert!(
        line.starts_with(&format!("nothing answers at {address}")),
        "{line}"
    );
}

#[tokio::test]
async fn health_does_not_wait_for_a_process_that_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let args = health_args(&format!("health --address {address} --timeout 50ms"));
    let line = time::timeout(Duration::from_secs(5), probe(&args))
        .await
        .unwrap();
    assert_eq!(line, Err(format!("no answer from {address} within 50ms")));
}

#[tokio::test]
async fn health_names_a_listener_that_is_not_ours() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail ready\r\n").await.unwrap();
    });
    let line = probe(&health_args(&format!("health --address {address}"))).await;
    let line = line.unwrap_err();
    let expected = format!("what listens at {address} is not the sidecar");
    assert!(line.starts_with(&expected), "{line}");
}

#[tokio::test]
async fn health_of_the_wrong_listener_says_so() {
    let admin = start_admin().await;
    let line = probe(&health_args(&format!(
        "health --liveness --address {}",
        admin.address
    )))
    .await;
    let line = line.unwrap_err();
    assert!(line.contains("404 Not Found to /healthz"), "{line}");
}

#[tokio::test]
async fn drain_starts_and_returns() {
    let admin = start_admin().await;
    let _running = Guard::new(&admin.generations);
    let line = drain(&drain_args(&format!("drain --address {}", admin.address))).await;
    assert_eq!(line, Ok("draining, generations under way: 1".to_owned()));
    assert!(admin.drain.is_cancelled());
}

#[tokio::test]
async fn drain_waits_for_the_last_generation() {
    let admin = start_admin().await;
    let running = Guard::new(&admin.generations);
    let args = drain_args(&format!("drain --address {} --wait 30s", admin.address));
    let draining = tokio::spawn(async move { drain(&args).await });
    admin.drain.cancelled().await;
    time::sleep(Duration::from_millis(50)).await;
    assert!(!draining.is_finished());
    drop(running);
    assert_eq!(draining.await.unwrap(), Ok("drained".to_owned()));
}

#[tokio::test]
async fn drain_gives_up_when_the_time_is_up() {
    let admin = start_admin().await;
    let _running = Guard::new(&admin.generations);
    let args = drain_args(&format!("drain --address {} --wait 50ms", admin.address));
    assert_eq!(
        drain(&args).await,
        Err("after 50ms there are still generations under way: 1".to_owned())
    );
}

#[tokio::test]
async fn a_process_that_ends_while_draining_is_drained() {
    let admin = start_admin().await;
    let _running = Guard::new(&admin.generations);
    let args = drain_args(&format!("drain --address {} --wait 30s", admin.address));
    let draining = tokio::spawn(async move { drain(&args).await });
    admin.drain.cancelled().await;
    time::sleep(Duration::from_millis(50)).await;
    drop(admin.shutdown);
    assert_eq!(
        draining.await.unwrap(),
        Ok("the sidecar has ended".to_owned())
    );
}
