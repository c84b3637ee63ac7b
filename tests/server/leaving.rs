//! A client that cancels or goes away, in every phase: the exchange ends at once and nothing more is
//! sent.

use redrive::proto::{StoppedBy, VerdictClass as Class, generate_response::Frame};
use tonic::Code;

use crate::support::*;

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Cancel,
    Vanish,
}

/// Leaves an RPC that has come as far as `wanted`, and looks at what became of the sends.
async fn leaves(bench: Bench, leave: Leave, wanted: fn(&Frame) -> bool, fates: &[Fate]) {
    let mut rpc = bench.generate(start()).await;
    rpc.until(wanted).await;
    settle().await;
    let from = tokio::time::Instant::now();
    match leave {
        Leave::Cancel => {
            rpc.send(cancel("enough"));
            let ended = rpc.end().await;
            assert_eq!(ended.code(), Code::Cancelled);
            assert_eq!(ended.class(), Class::Cancelled);
            assert_eq!(ended.failed().stopped_by(), StoppedBy::Cancel);
        }
        Leave::Vanish => {
            rpc.vanish();
            settle().await;
        }
    }
    assert_eq!(bench.provider.fates(), fates, "{leave:?}");
    assert_eq!(bench.metric("redrive_generations_active"), 0.0);
    assert_eq!(from.elapsed(), secs(0), "at once");
    // Long enough for whatever would still be sent.
    tokio::time::sleep(secs(1000)).await;
    assert_eq!(bench.provider.sends(), fates.len());
    bench.finish().await;
}

const BOTH: [Leave; 2] = [Leave::Cancel, Leave::Vanish];

#[tokio::test(start_paused = true)]
async fn while_it_waits_for_a_connection() {
    for leave in BOTH {
        let bench = Bench::with_slots(CONFIG, 1).await;
        bench.provider.then(stream().text("busy"));
        let mut busy = bench.generate(start()).await;
        busy.text().await;
        let mut waiting = bench.generate(start()).await;
        waiting
            .until(|frame| matches!(frame, Frame::Waiting(_)))
            .await;
        match leave {
            Leave::Cancel => {
                waiting.send(cancel(""));
                assert_eq!(waiting.end().await.sends(), (0, 0));
            }
            Leave::Vanish => waiting.vanish(),
        }
        settle().await;
        assert_eq!(bench.metric("redrive_generations_active"), 1.0);
        busy.send(cancel(""));
        busy.end().await;
        tokio::time::sleep(secs(100)).await;
        assert_eq!(bench.provider.sends(), 1);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_it_connects() {
    for leave in BOTH {
        let bench = Bench::start().await;
        bench.provider.then(connecting());
        leaves(
            bench,
            leave,
            |f| matches!(f, Frame::AttemptStarted(_)),
            &[Fate::Aborted],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn before_the_head() {
    for leave in BOTH {
        let bench = Bench::start().await;
        bench.provider.then(sent());
        leaves(
            bench,
            leave,
            |f| matches!(f, Frame::AttemptStarted(_)),
            &[Fate::Aborted],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_it_streams() {
    for leave in BOTH {
        let bench = Bench::start().await;
        bench.provider.then(stream().text("Hel"));
        leaves(
            bench,
            leave,
            |f| matches!(f, Frame::Delta(_)),
            &[Fate::Aborted],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn in_an_error_body() {
    for leave in BOTH {
        let bench = Bench::start().await;
        bench.provider.then(status(500).data("{\"error\":"));
        leaves(
            bench,
            leave,
            |f| matches!(f, Frame::AttemptStarted(_)),
            &[Fate::Aborted],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn in_backoff() {
    for leave in BOTH {
        let bench = Bench::start().await;
        bench.provider.then(status(500).end());
        leaves(
            bench,
            leave,
            |f| matches!(f, Frame::Waiting(_)),
            &[Fate::Ended],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn in_the_tail() {
    for leave in BOTH {
        let bench = Bench::start().await;
        bench
            .provider
            .then(stream().text("all").data(finish("stop")));
        leaves(
            bench,
            leave,
            |f| matches!(f, Frame::Delta(_)),
            &[Fate::Aborted],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_connection_that_breaks_takes_all_its_generations_along() {
    let bench = Bench::start().await;
    for _ in 0..3 {
        bench.provider.then(stream().text("Hel"));
    }
    let mut connection = raw::Connection::open(&bench).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = connection.generate();
        stream.send.send_data(raw::start(&start()), false).unwrap();
        streams.push(stream);
    }
    settle().await;
    assert_eq!(bench.metric("redrive_generations_active"), 3.0);
    connection.task.abort();
    drop(streams);
    drop(connection);
    settle().await;
    assert_eq!(bench.metric("redrive_generations_active"), 0.0);
    assert_eq!(bench.provider.fates(), [Fate::Aborted; 3]);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_end_does_nothing() {
    let bench = Bench::start().await;
    bench.provider.then(answer("ok"));
    let mut rpc = bench.generate(start()).await;
    rpc.until(|frame| matches!(frame, Frame::Committed(_)))
        .await;
    rpc.send_late(cancel("late"));
    assert_eq!(rpc.end().await.message(), "ok");
    bench.finish().await;
}
