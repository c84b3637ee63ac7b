//! Generations that outlive their RPC, and the RPCs that find them again.

use redrive::proto::{
    AttemptStarted, Delivery, RecoveryOptions, VerdictClass as Class, generate_response::Frame,
    start::Input,
};
use tonic::Code;

use crate::support::*;

const GRACE: std::time::Duration = secs(30);

#[tokio::test(start_paused = true)]
async fn it_lives_on_and_is_attached_to_by_generation_id() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let mut rpc = bench.generate(start_detached(GRACE)).await;
    let id = rpc.id().await;
    rpc.text().await;
    rpc.vanish();
    tokio::time::sleep(secs(10)).await;
    assert_eq!(bench.metric("redrive_generations_active"), 1.0);
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(
        ended.shape(),
        ["accepted", "attempt_started", "delta", "committed"]
    );
    assert_eq!(ended.deltas(), ["Hel", "lo"]);
    let Some(Frame::Accepted(accepted)) = ended.told().next() else {
        panic!("not accepted");
    };
    assert!(accepted.attached);
    assert_eq!(accepted.generation_id, id);
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn who_attaches_gets_what_the_start_asked_to_see() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let start = start_delivered(Delivery::CommittedOnly).with_grace(GRACE);
    let mut rpc = bench.generate(start).await;
    let id = rpc.id().await;
    rpc.vanish();
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(ended.deltas(), [""; 0]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_detaches_too_however_it_is_lost() {
    for reason in [
        None,
        Some(h2::Reason::CANCEL),
        Some(h2::Reason::NO_ERROR),
        Some(h2::Reason::INTERNAL_ERROR),
        Some(h2::Reason::PROTOCOL_ERROR),
    ] {
        let bench = Bench::start().await;
        bench
            .provider
            .then(stream().text("Hel").wait(secs(5)).text("lo").complete());
        let mut connection = raw::Connection::open(&bench).await;
        let mut stream = connection.generate();
        let first = start_as("r").with_grace(GRACE);
        stream.send.send_data(raw::start(&first), false).unwrap();
        settle().await;
        match reason {
            Some(reason) => stream.send.send_reset(reason),
            None => connection.task.abort(),
        }
        settle().await;
        let attached = bench.first(attach_by_request("r")).await.end().await;
        assert_eq!(attached.message(), "Hello", "after {reason:?}");
        drop(stream);
        drop(connection);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_cancelled_when_its_grace_is_over() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").keepalives(secs(100), secs(5)));
    let mut rpc = bench.generate(start_detached(GRACE)).await;
    let id = rpc.id().await;
    rpc.text().await;
    rpc.vanish();
    tokio::time::sleep(secs(29)).await;
    assert_eq!(bench.provider.fates(), [Fate::Running]);
    tokio::time::sleep(secs(2)).await;
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(ended.class(), Class::Cancelled);
    assert!(
        ended.reason().contains("detach_grace"),
        "{}",
        ended.reason()
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_frame_ends_it_at_once_whatever_its_grace() {
    let bench = Bench::start().await;
    bench.provider.then(stream().text("Hel"));
    let mut rpc = bench.generate(start_detached(GRACE)).await;
    rpc.text().await;
    rpc.send(cancel(""));
    assert_eq!(rpc.end().await.code(), Code::Cancelled);
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_to_attach_wins_and_the_displaced_one_cancels_nothing() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let mut first = bench.generate(start()).await;
    let id = first.id().await;
    first.text().await;
    let mut second = bench.first(attach_to(&id)).await;
    assert_eq!(second.text().await, "Hel");
    let displaced = first.end().await;
    assert_eq!(displaced.code(), Code::Aborted);
    assert!(!displaced.shape().contains(&"failed"));
    let ended = second.end().await;
    assert_eq!(ended.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_displaced_one_still_sends_is_not_heard() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let mut first = bench.generate(start()).await;
    let id = first.id().await;
    first.text().await;
    let mut second = bench.first(attach_to(&id)).await;
    second.text().await;
    first.send_late(cancel("not mine any more"));
    settle().await;
    assert_eq!(first.end().await.code(), Code::Aborted);
    assert_eq!(second.end().await.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_displaced_one_that_reads_nothing_is_not_heard_either() {
    let bench = Bench::start().await;
    let script = stream().pieces(20, &"x".repeat(100_000));
    bench.provider.then(script.wait(secs(20)).complete());
    let mut first = bench.generate(start()).await;
    let id = first.id().await;
    // Its window fills, so that the server cannot tell it that it was displaced.
    tokio::time::sleep(secs(1)).await;
    let channel = bench.connect().await;
    let mut second = rpc::open(&channel, None).await;
    second.send(attach_to(&id));
    second.text().await;
    for frame in [
        effects(9999),
        cancel("not mine any more"),
        generate(start()),
    ] {
        first.send(frame);
    }
    settle().await;
    assert_eq!(second.end().await.message().len(), 2_000_000);
    assert_eq!(first.end().await.code(), Code::Aborted);
    drop(channel);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_attach_drops_what_was_void_and_names_the_current_attempt() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("void").wait(secs(1)).reset());
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let mut first = bench.generate(start()).await;
    let id = first.id().await;
    first.until(|f| matches!(f, Frame::PreviewReset(_))).await;
    first.text().await;
    let ended = bench.first(attach_to(&id)).await.end().await;
    assert_eq!(ended.deltas(), ["Hel", "lo"]);
    let Some(Frame::AttemptStarted(AttemptStarted { attempt, .. })) = ended.told().nth(1) else {
        panic!("{:?}", ended.shape());
    };
    assert_eq!(*attempt, 2);
    first.end().await;
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_one_is_kept_for_its_retention_and_then_unknown() {
    let bench = Bench::start().await;
    bench.provider.then(answer("Hello"));
    bench.generate(start_as("r")).await.end().await;
    tokio::time::sleep(secs(59)).await;
    let again = bench.first(attach_by_request("r")).await.end().await;
    assert_eq!(again.message(), "Hello");
    assert_eq!(
        again.shape(),
        ["accepted", "attempt_started", "delta", "committed"]
    );
    tokio::time::sleep(secs(2)).await;
    let gone = bench.first(attach_by_request("r")).await.end().await;
    refused(gone, Code::NotFound, "attach.request_id");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_with_a_known_request_id_attaches() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let mut first = bench.generate(start_as("r")).await;
    first.text().await;
    // Recovery, delivery and labels do not count.
    let mut same = start_as("r");
    same.recovery = Some(RecoveryOptions {
        max_attempts: Some(3),
        ..RecoveryOptions::default()
    });
    same.delivery = Delivery::CommittedOnly.into();
    same.labels = [("team".into(), "x".into())].into();
    let ended = bench.generate(same).await.end().await;
    assert_eq!(ended.shape(), ["accepted", "attempt_started", "committed"]);
    assert_eq!(first.end().await.code(), Code::Aborted);
    let after = bench.generate(start_as("r")).await.end().await;
    assert_eq!(after.message(), "Hello");
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_known_request_id_with_another_body_already_exists() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().text("Hel").wait(secs(20)).text("lo").complete());
    let mut first = bench.generate(start_as("r")).await;
    first.text().await;
    let mut other = start_as("r");
    other.input = Some(Input::Conversation(conversation("Something else.")));
    let conflict = bench.generate(other).await.end().await;
    refused(conflict, Code::AlreadyExists, "start.request_id");
    assert_eq!(first.end().await.message(), "Hello");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn two_starts_with_one_request_id_at_once_send_once() {
    let bench = Bench::start().await;
    bench
        .provider
        .then(stream().wait(secs(1)).text("Hello").complete());
    let (one, two) = tokio::join!(
        async { bench.generate(start_as("r")).await.end().await },
        async { bench.generate(start_as("r")).await.end().await },
    );
    let codes = [one.code(), two.code()];
    assert!(
        codes.contains(&Code::Ok) && codes.contains(&Code::Aborted),
        "{codes:?}"
    );
    assert_eq!(bench.provider.sends(), 1);
    bench.finish().await;
}

const IMPATIENT: &str = "client_idle: 20s\n    models:";

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_too_slow() {
    let bench = Bench::configured(&CONFIG.replace("models:", IMPATIENT)).await;
    let endless = stream().pieces(20, &"x".repeat(100_000));
    bench.provider.then(endless.keepalives(secs(60), secs(1)));
    let mut rpc = bench.generate(start()).await;
    rpc.text().await;
    tokio::time::sleep(secs(25)).await;
    assert_eq!(bench.provider.fates(), [Fate::Aborted]);
    let ended = rpc.end().await;
    assert_eq!(ended.class(), Class::ClientTooSlow);
    assert_eq!(ended.code(), Code::ResourceExhausted);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_for_which_nothing_waits_is_never_too_slow() {
    let bench = Bench::configured(&CONFIG.replace("models:", IMPATIENT)).await;
    bench
        .provider
        .then(stream().wait(secs(100)).text("ok").complete());
    let mut rpc = bench.generate(start()).await;
    rpc.until(|f| matches!(f, Frame::AttemptStarted(_))).await;
    tokio::time::sleep(secs(90)).await;
    assert_eq!(rpc.end().await.message(), "ok");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_too_slow_leaves_a_detached_generation_alive() {
    let bench = Bench::configured(&CONFIG.replace("models:", IMPATIENT)).await;
    let script = stream().pieces(20, &"x".repeat(100_000));
    bench
        .provider
        .then(script.keepalives(secs(40), secs(1)).complete());
    let mut rpc = bench.generate(start_as("r").with_grace(GRACE)).await;
    rpc.text().await;
    tokio::time::sleep(secs(25)).await;
    let slow = rpc.end().await;
    assert_eq!(slow.code(), Code::ResourceExhausted);
    let attached = bench.first(attach_by_request("r")).await.end().await;
    assert_eq!(attached.message().len(), 2_000_000);
    bench.finish().await;
}
