//! The spans of a generation: parents, links, kinds, ends.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use opentelemetry::{
    Value,
    trace::{SpanId, SpanKind, Status},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use redrive::{
    gate,
    proto::{Executed, StoppedBy, VerdictClass as Class, waiting::Reason},
    telemetry::{RpcSpan, Telemetry},
};
use tonic::Code;

use crate::support::*;

const GENERATION: &str = "chat gpt-5-mini";
const SEND: &str = "POST";

fn event_names(span: &SpanData) -> Vec<&str> {
    span.events
        .iter()
        .map(|event| event.name.as_ref())
        .collect()
}

fn text(value: &str) -> Option<Value> {
    Some(Value::from(value.to_owned()))
}

/// Plays one RPC whose generation fails with `class` after one send.
fn play_failure(telemetry: &Telemetry, class: Class, stopped_by: StoppedBy, code: Code) {
    let rpc = rpc(telemetry);
    let mut observer = generation(telemetry, &rpc.context());
    play_attempt(&mut observer, 1, Some(class));
    observer.failed(&failed(class, stopped_by, ledger(1, 1, 1)), Duration::ZERO);
    rpc.end(code);
}

fn all(exporter: &InMemorySpanExporter) -> Vec<SpanData> {
    exporter.get_finished_spans().unwrap()
}

#[test]
fn the_rpc_is_the_parent_of_the_generation_and_that_of_its_sends() {
    let (telemetry, exporter) = telemetry();
    let rpc_span = rpc(&telemetry);
    play_recovery(generation(&telemetry, &rpc_span.context()));
    rpc_span.end(Code::Ok);

    let (rpc, generation) = (span(&exporter, METHOD), span(&exporter, GENERATION));
    let sends = spans(&exporter, SEND);
    assert_eq!(all(&exporter).len(), 4);
    assert_eq!(rpc.parent_span_id, SpanId::INVALID);
    assert_eq!(generation.parent_span_id, rpc.span_context.span_id());
    for send in &sends {
        assert_eq!(send.parent_span_id, generation.span_context.span_id());
    }
    assert_eq!(rpc.span_kind, SpanKind::Server);
    assert_eq!(generation.span_kind, SpanKind::Client);
    assert!(sends.iter().all(|send| send.span_kind == SpanKind::Client));
    assert!(
        all(&exporter)
            .iter()
            .all(|span| span.span_context.trace_id() == rpc.span_context.trace_id())
    );
}

#[test]
fn each_attempt_is_linked_to_the_one_before() {
    let (telemetry, exporter) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    for number in 1..=3 {
        play_attempt(&mut observer, number, Some(Class::Overloaded));
    }
    drop(observer);
    let sends = spans(&exporter, SEND);
    let links = |span: &SpanData| -> Vec<SpanId> {
        span.links
            .iter()
            .map(|link| link.span_context.span_id())
            .collect()
    };
    assert_eq!(links(&sends[0]), []);
    assert_eq!(links(&sends[1]), [sends[0].span_context.span_id()]);
    assert_eq!(links(&sends[2]), [sends[1].span_context.span_id()]);
}

#[test]
fn the_generation_span_tells_usage_outcome_and_what_happened() {
    let (telemetry, exporter) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    observer.waiting(Reason::Backoff, "", Some(Duration::from_secs(1)));
    observer.waiting(Reason::Budget, "main", None);
    observer.waiting(Reason::LimiterUnavailable, "main", None);
    observer.stall("inter_delta", Duration::from_secs(45));
    observer.gate_rejected(gate::Reason::MissingTool, gate::Then::Retried);
    play_recovery(observer);

    let generation = span(&exporter, GENERATION);
    for (key, value) in [
        ("gen_ai.operation.name", text("chat")),
        ("gen_ai.provider.name", text("openai")),
        ("gen_ai.request.model", text("gpt-5-mini")),
        ("gen_ai.response.model", text("gpt-5-mini-2026")),
        ("gen_ai.usage.input_tokens", Some(Value::I64(10))),
        ("gen_ai.usage.output_tokens", Some(Value::I64(5))),
        ("gen_ai.response.time_to_first_chunk", Some(Value::F64(0.3))),
        ("redrive.route", text("default")),
        ("redrive.outcome", text("committed")),
        ("redrive.sends", Some(Value::I64(2))),
        ("redrive.void.output_tokens", Some(Value::I64(1))),
        ("error.type", None),
    ] {
        assert_eq!(attribute(&generation, key), value, "{key}");
    }
    assert_eq!(generation.status, Status::Unset);
    assert_eq!(
        event_names(&generation),
        [
            "redrive.wait",
            "redrive.wait",
            "redrive.wait",
            "redrive.stall",
            "redrive.gate_rejected",
            "redrive.preview_reset",
            "redrive.committed"
        ]
    );
    let about: Vec<_> = generation.events[4].attributes.iter().collect();
    let about: Vec<_> = about
        .iter()
        .map(|pair| format!("{}={}", pair.key, pair.value))
        .collect();
    assert_eq!(
        about,
        [
            "redrive.gate.reason=missing_tool",
            "redrive.gate.then=retried"
        ]
    );
    let waits = generation.events.iter().take(3);
    let waits: Vec<Vec<String>> = waits
        .map(|event| {
            let pairs = event.attributes.iter();
            pairs
                .map(|pair| format!("{}={}", pair.key, pair.value))
                .collect()
        })
        .collect();
    assert_eq!(
        waits,
        [
            [
                "redrive.wait.reason=backoff",
                "redrive.wait.expected_seconds=1"
            ],
            ["redrive.wait.reason=budget", "redrive.wait.budget=main"],
            [
                "redrive.wait.reason=limiter_unavailable",
                "redrive.wait.budget=main"
            ],
        ]
    );
}

#[test]
fn a_send_span_tells_where_it_went_and_how_it_ended() {
    let (telemetry, exporter) = telemetry();
    play_recovery(generation(&telemetry, &rpc(&telemetry).context()));
    let sends = spans(&exporter, SEND);
    let told = |span: &SpanData| {
        [
            "http.request.method",
            "http.response.status_code",
            "server.address",
            "server.port",
            "http.request.resend_count",
            "redrive.attempt",
            "redrive.target",
            "redrive.mode",
            "redrive.verdict",
            "redrive.executed",
            "error.type",
        ]
        .map(|key| attribute(span, key).map_or("-".to_owned(), |value| value.to_string()))
        .join(" ")
    };
    assert_eq!(
        told(&sends[0]),
        "POST 200 api.example.com 443 - 1 openai/gpt-5-mini first transport yes transport"
    );
    assert_eq!(
        told(&sends[1]),
        "POST 200 api.example.com 443 1 2 openai/gpt-5-mini restart accepted yes -"
    );
    assert_eq!(sends[0].status, Status::error("transport"));
    assert_eq!(sends[1].status, Status::Unset);
}

#[test]
fn the_status_of_a_response_whose_head_was_not_reported_comes_from_the_verdict() {
    let (telemetry, exporter) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    start_attempt(&mut observer, 1);
    let mut refused = entry(1, Executed::Yes, Some(Class::RateLimited));
    refused.verdict.as_mut().unwrap().http_status = 429;
    observer.attempt_ended(&refused);
    let status = attribute(&span(&exporter, SEND), "http.response.status_code");
    assert_eq!(status, Some(Value::I64(429)));
}

#[test]
fn an_attempt_that_was_never_sent_is_no_client_span() {
    let (telemetry, exporter) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    start_attempt(&mut observer, 1);
    observer.attempt_ended(&entry(1, Executed::No, Some(Class::TimeoutConnect)));
    play_attempt(&mut observer, 2, None);
    drop(observer);
    let attempts = spans(&exporter, SEND);
    assert_eq!(attempts[0].span_kind, SpanKind::Internal);
    assert_eq!(attempts[1].span_kind, SpanKind::Client);
    assert_eq!(attribute(&attempts[1], "http.request.resend_count"), None);
}

#[test]
fn a_failed_generation_is_an_error_of_its_class() {
    let (telemetry, exporter) = telemetry();
    play_failure(
        &telemetry,
        Class::Auth,
        StoppedBy::NotRetryable,
        Code::FailedPrecondition,
    );
    let generation = span(&exporter, GENERATION);
    assert_eq!(generation.status, Status::error("auth"));
    assert_eq!(attribute(&generation, "redrive.outcome"), text("failed"));
    assert_eq!(
        attribute(&generation, "redrive.stopped_by"),
        text("not_retryable")
    );
    assert_eq!(attribute(&generation, "error.type"), text("auth"));
}

#[test]
fn a_cancelled_generation_is_marked_and_no_error() {
    let (telemetry, exporter) = telemetry();
    play_failure(
        &telemetry,
        Class::Cancelled,
        StoppedBy::Cancel,
        Code::Cancelled,
    );
    for name in [METHOD, GENERATION, SEND] {
        assert_eq!(span(&exporter, name).status, Status::Unset, "{name}");
    }
    let outcome = attribute(&span(&exporter, GENERATION), "redrive.outcome");
    assert_eq!(outcome, text("cancelled"));
    let code = attribute(&span(&exporter, METHOD), "rpc.status_code");
    assert_eq!(code, text("CANCELLED"));
}

#[test]
fn an_rpc_is_an_error_only_where_the_server_is_to_blame() {
    for (code, name, status) in [
        (
            Code::Unavailable,
            "UNAVAILABLE",
            Status::error("UNAVAILABLE"),
        ),
        (Code::InvalidArgument, "INVALID_ARGUMENT", Status::Unset),
    ] {
        let (telemetry, exporter) = telemetry();
        rpc(&telemetry).end(code);
        let rpc = span(&exporter, METHOD);
        assert_eq!(rpc.status, status);
        assert_eq!(attribute(&rpc, "rpc.status_code"), text(name));
    }
}

#[test]
fn everything_dropped_in_mid_stream_ends_exactly_once() {
    let (telemetry, exporter) = telemetry();
    let rpc = rpc(&telemetry);
    let mut observer = generation(&telemetry, &rpc.context());
    start_attempt(&mut observer, 1);
    observer.response_head(200);
    drop(rpc);
    drop(observer);
    assert_eq!(all(&exporter).len(), 3);
    let code = attribute(&span(&exporter, METHOD), "rpc.status_code");
    assert_eq!(code, text("CANCELLED"));
    assert_eq!(
        span(&exporter, GENERATION).status,
        Status::error("unspecified")
    );
    assert_eq!(span(&exporter, SEND).span_kind, SpanKind::Client);
}

#[test]
fn an_attempt_that_was_superseded_unended_is_closed_before_the_next() {
    let (telemetry, exporter) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    start_attempt(&mut observer, 1);
    start_attempt(&mut observer, 2);
    drop(observer);
    let attempts = spans(&exporter, SEND);
    assert_eq!(attempts.len(), 2);
    assert_eq!(attribute(&attempts[0], "redrive.executed"), text("no"));
}

#[test]
fn the_callers_trace_goes_on() {
    let (telemetry, exporter) = telemetry();
    let mut metadata = HeaderMap::new();
    metadata.insert(
        "traceparent",
        HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    );
    RpcSpan::start(&telemetry, &metadata, METHOD).end(Code::Ok);
    let rpc = span(&exporter, METHOD);
    assert_eq!(
        rpc.span_context.trace_id().to_string(),
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    assert_eq!(rpc.parent_span_id.to_string(), "00f067aa0ba902b7");
}

#[test]
fn a_trace_the_caller_does_not_sample_is_not_recorded() {
    let (telemetry, exporter) = telemetry();
    let mut metadata = HeaderMap::new();
    metadata.insert(
        "traceparent",
        HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"),
    );
    let rpc = RpcSpan::start(&telemetry, &metadata, METHOD);
    play_recovery(generation(&telemetry, &rpc.context()));
    rpc.end(Code::Ok);
    assert_eq!(all(&exporter).len(), 0);
}

#[test]
fn an_rpc_that_attaches_is_linked_to_the_generation_of_another() {
    let (telemetry, exporter) = telemetry();
    let first = rpc(&telemetry);
    let observer = generation(&telemetry, &first.context());
    drop(first);
    let mut second = rpc(&telemetry);
    second.attached(&observer.context());
    second.end(Code::Ok);
    let attached = &spans(&exporter, METHOD)[1];
    assert_eq!(attached.links.len(), 1);
    assert_eq!(attached.links[0].span_context, observer.context());
    assert_ne!(
        attached.span_context.trace_id(),
        observer.context().trace_id()
    );
}

#[test]
fn no_span_carries_secrets_or_the_providers_words() {
    let (telemetry, exporter) = telemetry();
    play_failure(
        &telemetry,
        Class::Auth,
        StoppedBy::NotRetryable,
        Code::FailedPrecondition,
    );
    let told = format!("{:?}", all(&exporter));
    assert!(told.contains("api.example.com"));
    assert!(!told.contains("secret"), "{told}");
    assert!(!told.contains("0197-generation"), "{told}");
}

#[test]
fn without_a_collector_there_is_a_trace_id_and_no_record() {
    let telemetry = Telemetry::new(&settings(), [TARGET.to_owned()]).unwrap();
    let rpc = rpc(&telemetry);
    let observer = generation(&telemetry, &rpc.context());
    assert!(observer.context().is_valid());
    assert!(!observer.context().is_sampled());
    assert_eq!(observer.context().trace_id(), rpc.context().trace_id());
}
