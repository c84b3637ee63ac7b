//! A telemetry whose spans can be looked at, and generations that play a script on it.

use std::time::Duration;

use http::{HeaderMap, Uri};
use opentelemetry::Value;
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SpanData};
use redrive::{
    config::{self, LogFormat},
    proto::{
        Committed, Executed, Failed, FinishReason, Ledger, LedgerEntry, Mode, StoppedBy, Usage,
        Verdict, VerdictClass as Class,
    },
    telemetry::{Attempt, Generation, GenerationObserver, RpcSpan, SpanContext, Telemetry},
};

pub const METHOD: &str = "redrive.v1.GenerationService/Generate";
pub const TARGET: &str = "openai/gpt-5-mini";

/// Telemetry that knows one target, and the spans it has exported.
pub fn telemetry() -> (Telemetry, InMemorySpanExporter) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_simple_exporter(exporter.clone())
        .build();
    let telemetry = Telemetry::with_tracer_provider([TARGET.to_owned()], provider).unwrap();
    (telemetry, exporter)
}

pub fn settings() -> config::Telemetry {
    config::Telemetry {
        traces_otlp: None,
        prometheus: true,
        log_format: LogFormat::Json,
        log_level: "info".to_owned(),
    }
}

pub fn rpc(telemetry: &Telemetry) -> RpcSpan {
    RpcSpan::start(telemetry, &HeaderMap::new(), METHOD)
}

pub fn generation(telemetry: &Telemetry, parent: &SpanContext) -> GenerationObserver {
    let about = Generation {
        id: "0197-generation",
        route: "default",
        model: "gpt-5-mini",
    };
    GenerationObserver::start(telemetry, parent, &about)
}

/// Starts attempt `number` at [`TARGET`].
pub fn start_attempt(observer: &mut GenerationObserver, number: u32) {
    let base_url = Uri::from_static("https://user:secret@api.example.com/v1?key=secret");
    observer.attempt_started(&Attempt {
        attempt: number,
        target: TARGET,
        provider: "openai",
        model: "gpt-5-mini",
        mode: match number {
            1 => Mode::First,
            _ => Mode::Restart,
        },
        base_url: &base_url,
    });
}

/// Starts attempt `number` and ends it as `class` says.
pub fn play_attempt(observer: &mut GenerationObserver, number: u32, class: Option<Class>) {
    start_attempt(observer, number);
    observer.sent();
    observer.response_head(200);
    observer.attempt_ended(&entry(number, Executed::Yes, class));
}

pub fn entry(attempt: u32, executed: Executed, class: Option<Class>) -> LedgerEntry {
    LedgerEntry {
        attempt,
        target: TARGET.to_owned(),
        executed: executed.into(),
        verdict: class.map(verdict),
        ..LedgerEntry::default()
    }
}

/// A verdict whose message and code are the provider's words: they belong in no metric, span or log.
pub fn verdict(class: Class) -> Verdict {
    Verdict {
        class: class.into(),
        message: "the provider's secret words".to_owned(),
        provider_code: "secret_code".to_owned(),
        ..Verdict::default()
    }
}

/// The account of a generation of `sends` sends with `total` output tokens, `void` of them void.
pub fn ledger(sends: u32, total: u64, void: u64) -> Ledger {
    Ledger {
        attempts: sends,
        sends,
        total_usage: Some(Usage {
            input_tokens: 10,
            output_tokens: total,
            ..Usage::default()
        }),
        void_output_tokens: void,
        ..Ledger::default()
    }
}

pub fn committed(output_tokens: u64) -> Committed {
    Committed {
        r#final: true,
        finish_reason: FinishReason::Stop.into(),
        model: "gpt-5-mini-2026".to_owned(),
        usage: Some(Usage {
            input_tokens: 10,
            output_tokens,
            ..Usage::default()
        }),
        ..Committed::default()
    }
}

pub fn failed(class: Class, stopped_by: StoppedBy, ledger: Ledger) -> Failed {
    Failed {
        verdict: Some(verdict(class)),
        stopped_by: stopped_by.into(),
        ledger: Some(ledger),
        ..Failed::default()
    }
}

/// A stream that broke after one token, its replay, and the commit of five.
pub fn play_recovery(observer: GenerationObserver) {
    let mut observer = observer;
    start_attempt(&mut observer, 1);
    observer.sent();
    observer.response_head(200);
    observer.first_token(Duration::from_millis(300));
    observer.attempt_ended(&entry(1, Executed::Yes, Some(Class::Transport)));
    observer.preview_reset(1, Class::Transport);
    start_attempt(&mut observer, 2);
    observer.sent();
    observer.response_head(200);
    observer.recovered(Duration::from_millis(700));
    observer.first_token(Duration::from_secs(1));
    observer.attempt_ended(&entry(2, Executed::Yes, None));
    observer.committed(&committed(5), &ledger(2, 6, 1), Duration::from_secs(2));
}

/// The one finished span called `name`.
pub fn span(exporter: &InMemorySpanExporter, name: &str) -> SpanData {
    let mut found = spans(exporter, name);
    assert_eq!(found.len(), 1, "spans called {name}");
    found.remove(0)
}

/// The finished spans called `name`, in the order of their ends.
pub fn spans(exporter: &InMemorySpanExporter, name: &str) -> Vec<SpanData> {
    let mut spans = exporter.get_finished_spans().unwrap();
    spans.retain(|span| span.name == name);
    spans
}

/// The one value of attribute `key`.
pub fn attribute(span: &SpanData, key: &str) -> Option<Value> {
    let mut values = span.attributes.iter().filter(|kv| kv.key.as_str() == key);
    let value = values.next().map(|kv| kv.value.clone());
    assert!(values.next().is_none(), "{key} is set twice");
    value
}
