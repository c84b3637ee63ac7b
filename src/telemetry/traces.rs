//! Where spans go: nowhere, or in batches to an OTLP collector that can never hold us up.

use std::time::Duration;

use opentelemetry::{
    Context, InstrumentationScope, KeyValue,
    trace::{SpanBuilder, SpanContext, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithExportConfig, WithTonicConfig,
    tonic_types::transport::ClientTlsConfig,
};
use opentelemetry_sdk::{
    Resource,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, Span},
};

use super::semconv;

/// Spans that wait for export at most; further ones are dropped and their number is logged.
const QUEUE: usize = 2_048;

/// Spans in one export at most.
const BATCH: usize = 512;

/// How long a span waits for company. Below the 5 s of the conventions: a trace is looked for right
/// after the failure that made somebody curious.
const EXPORT_DELAY: Duration = Duration::from_secs(1);

/// How long one export may take; what it carried is lost afterwards.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the last export may hold up the end of the process.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The source of all spans.
#[derive(Debug)]
pub(super) struct Traces {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
}

impl Traces {
    /// Spans that are never recorded: they carry a context (for links and log lines) and no data.
    pub(super) fn off() -> Self {
        Self::from_provider(
            SdkTracerProvider::builder()
                .with_sampler(Sampler::AlwaysOff)
                .build(),
        )
    }

    /// Spans exported to the OTLP/gRPC collector at `endpoint`. It is connected to when the first
    /// batch is due; that it is absent, slow or silent costs spans, nothing else. Called inside a
    /// Tokio runtime, which carries the connection.
    pub(super) fn otlp(endpoint: &str) -> Result<Self, ExporterBuildError> {
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_timeout(EXPORT_TIMEOUT);
        if endpoint.starts_with("https:") {
            // The default trusts nobody.
            exporter = exporter.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
        }
        let exporter = exporter.build()?;
        let batches = BatchSpanProcessor::builder(exporter)
            .with_batch_config(
                BatchConfigBuilder::default()
                    .with_max_queue_size(QUEUE)
                    .with_max_export_batch_size(BATCH)
                    .with_scheduled_delay(EXPORT_DELAY)
                    .build(),
            )
            .build();
        Ok(Self::from_provider(
            SdkTracerProvider::builder()
                .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
                .with_resource(resource())
                .with_span_processor(batches)
                .build(),
        ))
    }

    /// Spans that go where `provider` says.
    pub(super) fn from_provider(provider: SdkTracerProvider) -> Self {
        let scope = InstrumentationScope::builder(semconv::SCOPE)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Self {
            tracer: provider.tracer_with_scope(scope),
            provider,
        }
    }

    /// Starts a span under `parent`, or a new trace where `parent` is invalid.
    pub(super) fn start(&self, builder: SpanBuilder, parent: &SpanContext) -> Span {
        // The sampler takes an invalid parent for one that is not sampled.
        let parent = match parent.is_valid() {
            true => Context::new().with_remote_span_context(parent.clone()),
            false => Context::new(),
        };
        self.tracer.build_with_context(builder, &parent)
    }

    /// A handle that can flush.
    pub(super) fn provider(&self) -> SdkTracerProvider {
        self.provider.clone()
    }
}

/// Who we are. `OTEL_RESOURCE_ATTRIBUTES` adds to it and wins.
fn resource() -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", "redrive"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ])
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .build()
}
