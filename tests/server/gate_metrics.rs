//! What the turn gate rejected, as whoever runs the sidecar sees it.

use redrive::proto::{Effects, generate_request, generate_response::Frame};

use crate::{
    gating::{GATED, ask, calls, good_call, silent},
    support::*,
};

/// The series of `redrive_gate_rejections_total` that are not at zero, without the name.
fn rejections(bench: &Bench) -> Vec<String> {
    let text = bench.telemetry.render_metrics().unwrap();
    let series = text
        .lines()
        .filter_map(|line| line.strip_prefix("redrive_gate_rejections_total"));
    let counted = series.filter(|line| !line.ends_with(" 0"));
    counted.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn each_rejection_counts_once_with_what_became_of_it() {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(good_call());
    bench.generate(ask()).await.end().await;
    assert!(rejections(&bench).is_empty(), "{:?}", rejections(&bench));
    for script in [silent(), answer("Let me read a.txt."), good_call()] {
        bench.provider.then(script);
    }
    bench.generate(ask()).await.end().await.committed();
    for _ in 0..3 {
        bench.provider.then(answer("Let me read a.txt."));
    }
    bench.generate(ask()).await.end().await.committed();
    for _ in 0..3 {
        bench.provider.then(calls(&[("raed", "{}")]));
    }
    bench.generate(ask()).await.end().await.failed();
    assert_eq!(
        rejections(&bench),
        [
            r#"{reason="empty",then="retried"} 1"#,
            r#"{reason="missing_tool",then="delivered"} 1"#,
            r#"{reason="missing_tool",then="retried"} 3"#,
            r#"{reason="tool_error",then="failed"} 1"#,
            r#"{reason="tool_error",then="retried"} 2"#,
        ]
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_must_stay_is_counted_as_delivered() {
    let bench = Bench::configured(GATED).await;
    bench
        .provider
        .then(stream().text("Let me read a.txt.").wait(secs(1)).complete());
    let mut rpc = bench.generate(ask()).await;
    rpc.until(|frame| matches!(frame, Frame::Delta(_))).await;
    rpc.send(generate_request::Frame::Effects(Effects {
        through_sequence: rpc.sequence(),
    }));
    rpc.end().await.committed();
    assert_eq!(
        rejections(&bench),
        [r#"{reason="missing_tool",then="delivered"} 1"#]
    );
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_time_until_a_rejected_answer_is_made_good_is_measured() {
    let bench = Bench::configured(GATED).await;
    bench.provider.then(silent());
    bench
        .provider
        .then(stream().wait(secs(2)).text("It holds text.").complete());
    bench.generate(ask()).await.end().await.committed();
    let text = bench.telemetry.render_metrics().unwrap();
    let measured = |line: &&str| line.starts_with("redrive_recovery_time_seconds_");
    let measured: Vec<_> = text
        .lines()
        .filter(measured)
        .filter(|line| !line.contains("bucket"))
        .collect();
    assert_eq!(
        measured,
        [
            "redrive_recovery_time_seconds_sum 2",
            "redrive_recovery_time_seconds_count 1",
        ]
    );
    bench.finish().await;
}
