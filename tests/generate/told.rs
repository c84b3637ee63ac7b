//! Generations that fail, and calls that make no sense: what is told, and the exit status.

use std::time::Duration;

use redrive::simulator::chat;

use crate::support::{World, broken};

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_tells_its_class_what_stopped_it_and_its_words() {
    let world = World::new(|_| chat::error(401, "No such key.")).await;
    let ended = world.generate(&["--ledger", "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&[
        "· failed: auth (",
        "No such key.",
        "· stopped by: not_retryable\n",
        "· sending it again is safe\n",
        "1  local/default  yes       auth",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_too_long_is_told_with_its_length() {
    let world = World::new(|_| {
        let limited = chat::error(429, "Later.");
        limited.with_header("retry-after", "90")
    });
    let ended = world.await.generate(&["--deadline=30s", "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&[
        "· failed: rate_limited (",
        "· stopped by: wait_too_long\n",
        "· retry after: 1m 30s\n",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_preview_of_a_failed_generation_is_void() {
    let world = World::new(|_| broken("Half of"));
    let ended = world.await.generate(&["--max-attempts=1", "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&[
        "preview: Half of\n",
        "void: ~~Half of~~\n",
        "· failed: transport (",
        "· stopped by: allowance\n",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_sidecar_refuses_is_told_by_field() {
    let world = World::new(|_| chat::answer("m", "Never.", Duration::ZERO)).await;
    let ended = world.generate(&["--route=nowhere", "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&["· failed: invalid_request (start.route: \"nowhere\" is not a route"]);
    let ended = world.generate(&["--attach=nobody"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&["(attach.generation_id: no such generation"]);
    assert_eq!(world.bodies(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_usage_is_told_and_nothing_is_sent() {
    let world = World::new(|_| chat::answer("m", "Never.", Duration::ZERO)).await;
    for (arguments, told) in [
        (&[][..], "the prompt is empty"),
        (&["--file=no/such/file"], "no/such/file: "),
        (&["--file=-", "prompt"], "cannot be used with"),
        (&["--delivery=all", "prompt"], "possible values"),
    ] {
        let ended = world.generate(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        ended.told(&[told]);
    }
    assert_eq!(world.bodies(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_where_nobody_listens_is_told() {
    let world = World::new(|_| chat::answer("m", "Never.", Duration::ZERO)).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", port.local_addr().unwrap());
    drop(port);
    let ended = world.generate(&["--address", &address, "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&[&format!(
        "redrive generate: nothing answers at {address} (Connection refused"
    )]);
    let ended = world.generate(&["--address=not an address", "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&["not an address such as http://127.0.0.1:50051"]);
}
