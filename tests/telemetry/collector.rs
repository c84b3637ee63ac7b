//! OTLP export: to a collector that listens, to one that hangs, to none.

use std::{
    io::Read,
    net::TcpListener as StdListener,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value::Value,
};
use redrive::{config, telemetry::Telemetry};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status, transport::Server};

use crate::support::*;

/// What delays the end of the process at most, with room for a busy machine.
const BOUND: Duration = Duration::from_millis(4_500);

fn exporting_to(endpoint: String) -> Telemetry {
    let settings = config::Telemetry {
        traces_otlp: Some(endpoint),
        ..settings()
    };
    Telemetry::new(&settings, [TARGET.to_owned()]).unwrap()
}

fn play(telemetry: &Telemetry) {
    let rpc = rpc(telemetry);
    play_recovery(generation(telemetry, &rpc.context()));
    rpc.end(Code::Ok);
}

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_delivers_the_last_spans_with_our_name() {
    let collector = Collector::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(
        Server::builder()
            .add_service(TraceServiceServer::new(collector.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    let telemetry = exporting_to(endpoint);
    play(&telemetry);
    telemetry.shutdown().await;

    let requests = collector.0.lock().unwrap().clone();
    let resources: Vec<_> = requests.iter().flat_map(|r| &r.resource_spans).collect();
    let service = resources[0]
        .resource
        .iter()
        .flat_map(|resource| &resource.attributes)
        .find(|attribute| attribute.key == "service.name")
        .and_then(|attribute| attribute.value.clone()?.value);
    assert_eq!(service, Some(Value::StringValue("redrive".to_owned())));
    let mut names: Vec<_> = resources
        .iter()
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans)
        .map(|span| span.name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["POST", "POST", "chat gpt-5-mini", METHOD]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_collector_delays_neither_generations_nor_the_end() {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            kept.push(stream);
        }
    });
    let telemetry = exporting_to(endpoint);
    let started = Instant::now();
    // 8,000 spans: more than the queue holds.
    for _ in 0..2_000 {
        play(&telemetry);
    }
    let played = started.elapsed();
    assert!(played < BOUND, "generations took {played:?}");

    let started = Instant::now();
    telemetry.shutdown().await;
    telemetry.shutdown().await;
    let ended = started.elapsed();
    assert!(ended < BOUND, "the end took {ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_collector_costs_its_spans_only() {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let telemetry = exporting_to(endpoint);
    play(&telemetry);
    let started = Instant::now();
    telemetry.shutdown().await;
    let ended = started.elapsed();
    assert!(ended < BOUND, "the end took {ended:?}");
}

#[tokio::test]
async fn an_unusable_endpoint_is_refused_by_its_key() {
    let settings = config::Telemetry {
        traces_otlp: Some("not a url".to_owned()),
        ..settings()
    };
    let error = Telemetry::new(&settings, []).unwrap_err();
    assert!(
        error.to_string().starts_with("telemetry.traces.otlp: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_collector_may_be_behind_tls() {
    let telemetry = exporting_to("https://collector.example.com:4317".to_owned());
    let rpc = rpc(&telemetry);
    assert!(rpc.context().is_sampled());
}
