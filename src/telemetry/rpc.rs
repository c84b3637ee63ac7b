//! The server span of one RPC.

use http::HeaderMap;
use opentelemetry::{
    KeyValue,
    trace::{Span as _, SpanBuilder, SpanContext, SpanKind, Status},
};
use opentelemetry_sdk::trace::Span;
use tonic::Code;

use super::{Telemetry, context, semconv};

/// The span of an RPC, from its headers to its status. Dropped without a status (the client went
/// away, the task was cancelled) it ends as CANCELLED.
#[derive(Debug)]
pub struct RpcSpan {
    span: Span,
    ended: bool,
}

impl RpcSpan {
    /// The RPC `method` (`redrive.v1.GenerationService/Generate`) arrived with `metadata`; its caller's
    /// trace context becomes the parent. From tonic: `request.metadata().as_ref()`.
    pub fn start(telemetry: &Telemetry, metadata: &HeaderMap, method: &'static str) -> Self {
        let builder = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new(semconv::RPC_SYSTEM_NAME, "grpc"),
                KeyValue::new(semconv::RPC_METHOD, method),
            ]);
        Self {
            span: telemetry
                .traces()
                .start(builder, &context::extract(metadata)),
            ended: false,
        }
    }

    /// This span, as the parent of a generation.
    pub fn context(&self) -> SpanContext {
        self.span.span_context().clone()
    }

    /// The RPC attached to a generation that another RPC started: a link, since a span has one parent.
    pub fn attached(&mut self, generation: &SpanContext) {
        self.span.add_link(generation.clone(), Vec::new());
    }

    /// The RPC ended with `code`.
    pub fn end(mut self, code: Code) {
        self.finish(code);
    }

    fn finish(&mut self, code: Code) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let name = code_name(code);
        self.span
            .set_attribute(KeyValue::new(semconv::RPC_STATUS_CODE, name));
        if is_server_error(code) {
            self.span
                .set_attribute(KeyValue::new(semconv::ERROR_TYPE, name));
            self.span.set_status(Status::error(name));
        }
        self.span.end();
    }
}

impl Drop for RpcSpan {
    fn drop(&mut self) {
        self.finish(Code::Cancelled);
    }
}

/// The codes that are the server's failure rather than the client's, as the RPC conventions list them.
fn is_server_error(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// The code as gRPC spells it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
