//! The span of one attempt.
//!
//! It is built when the attempt ends, from its start on: only then is it known whether the request
//! may have left. A send is a CLIENT span; an attempt that was provably never sent is an INTERNAL
//! one, so that the client spans of a trace are exactly its sends.

use std::time::SystemTime;

use http::Uri;
use opentelemetry::{
    KeyValue,
    trace::{Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status},
};

use super::{Telemetry, labels, semconv};
use crate::{
    proto::{Executed, Mode},
    verdict::class::Class,
};

/// What is known of an attempt when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Its number in the generation, from 1.
    pub attempt: u32,
    /// The target, `provider/model`.
    pub target: &'a str,
    /// The provider's name in the configuration.
    pub provider: &'a str,
    /// The model asked for, as the provider names it.
    pub model: &'a str,
    /// How it relates to the attempts before it.
    pub mode: Mode,
    /// The provider's base URL; only host and port are recorded.
    pub base_url: &'a Uri,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Its class; nothing: accepted.
    pub(super) class: Option<Class>,
    pub(super) executed: Executed,
    /// The status of the verdict, for a response whose head was not reported.
    pub(super) http_status: Option<u16>,
}

/// An attempt under way.
#[derive(Debug)]
pub(super) struct OpenAttempt {
    started: SystemTime,
    target: String,
    mode: &'static str,
    attributes: Vec<KeyValue>,
    http_status: Option<u16>,
    sent: bool,
}

impl OpenAttempt {
    /// Starts now. `sends_before` counts the sends of the generation before this attempt.
    pub(super) fn start(about: &Attempt<'_>, sends_before: u32) -> Self {
        let mode = labels::mode(about.mode);
        let mut attributes = vec![
            KeyValue::new(semconv::HTTP_REQUEST_METHOD, "POST"),
            KeyValue::new(semconv::ATTEMPT, i64::from(about.attempt)),
            KeyValue::new(semconv::TARGET, labels::clip(about.target)),
            KeyValue::new(semconv::MODE, mode),
        ];
        if let Some(host) = about.base_url.host() {
            attributes.push(KeyValue::new(semconv::SERVER_ADDRESS, host.to_owned()));
            attributes.push(KeyValue::new(
                semconv::SERVER_PORT,
                i64::from(port(about.base_url)),
            ));
        }
        if sends_before > 0 {
            attributes.push(KeyValue::new(
                semconv::HTTP_REQUEST_RESEND_COUNT,
                i64::from(sends_before),
            ));
        }
        Self {
            started: wall_clock(),
            target: about.target.to_owned(),
            mode,
            attributes,
            http_status: None,
            sent: false,
        }
    }

    /// The target's name.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The mode's label.
    pub(super) fn mode(&self) -> &'static str {
        self.mode
    }

    /// The request was handed over.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// The response head came.
    pub(super) fn response_head(&mut self, status: u16) {
        self.sent = true;
        self.http_status = Some(status);
    }

    /// What is known of an attempt that nobody ended.
    pub(super) fn abandoned(&self) -> End {
        End {
            class: Some(Class::Unspecified),
            executed: match (self.sent, self.http_status) {
                (_, Some(_)) => Executed::Yes,
                (true, None) => Executed::Maybe,
                (false, None) => Executed::No,
            },
            http_status: None,
        }
    }

    /// Records the span under `generation`, linked to the attempt before, and returns its context.
    pub(super) fn end(
        mut self,
        telemetry: &Telemetry,
        generation: &SpanContext,
        previous: Option<&SpanContext>,
        end: End,
    ) -> SpanContext {
        self.attributes
            .push(KeyValue::new(semconv::VERDICT, labels::verdict(end.class)));
        self.attributes.push(KeyValue::new(
            semconv::EXECUTED,
            labels::executed(end.executed),
        ));
        if let Some(status) = self.http_status.or(end.http_status) {
            self.attributes.push(KeyValue::new(
                semconv::HTTP_RESPONSE_STATUS_CODE,
                i64::from(status),
            ));
        }
        if let Some(class) = end.class {
            self.attributes.push(KeyValue::new(
                semconv::ERROR_TYPE,
                labels::verdict(Some(class)),
            ));
        }
        let kind = match end.executed {
            Executed::No => SpanKind::Internal,
            Executed::Unspecified | Executed::Maybe | Executed::Yes => SpanKind::Client,
        };
        let mut builder = SpanBuilder::from_name("POST")
            .with_kind(kind)
            .with_start_time(self.started)
            .with_attributes(self.attributes);
        if let Some(previous) = previous {
            builder = builder.with_links(vec![Link::new(previous.clone(), Vec::new(), 0)]);
        }
        let mut span = telemetry.traces().start(builder, generation);
        if let Some(class) = end.class
            && class != Class::Cancelled
        {
            span.set_status(Status::error(labels::verdict(Some(class))));
        }
        span.end();
        span.span_context().clone()
    }
}

/// The port that is connected to.
fn port(base_url: &Uri) -> u16 {
    let default = match base_url.scheme_str() {
        Some("http") => 80,
        _ => 443,
    };
    base_url.port_u16().unwrap_or(default)
}

/// Wall time, for the start of a span that is recorded at its end.
#[allow(
    clippy::disallowed_methods,
    reason = "spans carry wall time, like the ends that the SDK stamps itself; nothing is decided by it"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
