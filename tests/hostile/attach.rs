//! RPCs that attach at the worst moment.

use tokio::time::{Duration, sleep};

use crate::support::{
    Bench, answer, attach_by_request,
    raw::{self, Connection},
    settle, start_as,
};

/// More than a client's window takes: the delta fills it, and the transport asks for nothing beyond
/// the terminal frame.
const LONG: usize = 200_000;

#[tokio::test(start_paused = true)]
async fn an_rpc_that_has_its_terminal_frame_keeps_its_status_when_another_attaches() {
    let bench = Bench::start().await;
    bench.provider.then(answer(&"x".repeat(LONG)));
    let mut connection = Connection::open(&bench).await;
    let mut stream = connection.generate();
    let start = raw::start(&start_as("once"));
    stream.send.send_data(start, true).unwrap();
    let mut body = stream.response.await.unwrap().into_body();
    sleep(Duration::from_secs(1)).await;

    let other = bench.first(attach_by_request("once")).await;
    assert_eq!(other.end().await.message().len(), LONG);
    settle().await;

    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        length += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    assert!(length > 2 * LONG, "{length}");
    let trailers = body.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
    drop((body, connection));
    bench.finish().await;
}
