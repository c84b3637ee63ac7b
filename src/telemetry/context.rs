//! W3C trace context from gRPC metadata. Malformed or oversized context is ignored, as the
//! [recommendation](https://www.w3.org/TR/trace-context/#a-traceparent-is-received) says: it starts
//! a new trace and fails nothing.

use std::collections::HashMap;

use http::HeaderMap;
use opentelemetry::{
    Context,
    propagation::TextMapPropagator,
    trace::{SpanContext, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// The longest `tracestate` that is taken over, in bytes: what the recommendation asks everyone to
/// propagate at least.
const MAX_TRACESTATE: usize = 512;

/// The caller's span, or an invalid context.
pub(super) fn extract(headers: &HeaderMap) -> SpanContext {
    let mut carrier = HashMap::new();
    let mut parents = headers.get_all(TRACEPARENT).iter();
    // Two of them say nothing: which would be the parent?
    if let (Some(parent), None) = (parents.next(), parents.next())
        && let Ok(parent) = parent.to_str()
    {
        carrier.insert(TRACEPARENT.to_owned(), parent.to_owned());
    }
    if let Some(state) = joined_state(headers) {
        carrier.insert(TRACESTATE.to_owned(), state);
    }
    TraceContextPropagator::new()
        .extract_with_context(&Context::new(), &carrier)
        .span()
        .span_context()
        .clone()
}

/// All `tracestate` headers as one list.
fn joined_state(headers: &HeaderMap) -> Option<String> {
    let mut joined = String::new();
    for value in headers.get_all(TRACESTATE) {
        let value = value.to_str().ok()?;
        if joined.len() + value.len() >= MAX_TRACESTATE {
            return None;
        }
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(value);
    }
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn the_callers_span_is_read() {
        let span = extract(&headers(&[(TRACEPARENT, PARENT), (TRACESTATE, "a=1")]));
        assert_eq!(
            span.trace_id().to_string(),
            "4bf92f3577b34da6a3ce929d0e0e4736"
        );
        assert_eq!(span.span_id().to_string(), "00f067aa0ba902b7");
        assert!(span.is_sampled() && span.is_remote());
        assert_eq!(span.trace_state().header(), "a=1");
    }

    #[test]
    fn several_tracestate_headers_are_one_list() {
        let span = extract(&headers(&[
            (TRACEPARENT, PARENT),
            (TRACESTATE, "a=1"),
            (TRACESTATE, "b=2"),
        ]));
        assert_eq!(span.trace_state().header(), "a=1,b=2");
    }

    #[test]
    fn an_oversized_tracestate_is_dropped_and_the_parent_kept() {
        let entries = |count: usize| vec!["vendor=0123456789"; count].join(",");
        let with_state =
            |state: &str| extract(&headers(&[(TRACEPARENT, PARENT), (TRACESTATE, state)]));
        assert_eq!(with_state(&entries(28)).trace_state().header(), entries(28));
        let span = with_state(&entries(29));
        assert!(span.is_valid());
        assert_eq!(span.trace_state().header(), "");
    }

    #[test]
    fn malformed_context_is_no_context() {
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert!(
                !extract(&headers(&[(TRACEPARENT, bad)])).is_valid(),
                "{bad}"
            );
        }
        assert!(!extract(&HeaderMap::new()).is_valid());
    }

    #[test]
    fn two_parents_are_no_parent() {
        let both = headers(&[(TRACEPARENT, PARENT), (TRACEPARENT, PARENT)]);
        assert!(!extract(&both).is_valid());
    }
}
