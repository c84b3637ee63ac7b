//! The verdict on an error inside a successful response.
//!
//! The status and the headers of that response are from before the failure and say nothing about it:
//! the error object is all there is. A code that is not listed is not retryable.

use super::{
    Class, ErrorObject, Failure, Origin, Stage, codes,
    decide::{self, Evidence},
    message,
};

/// The verdict on an error object in a stream: the event's JSON, or the error object alone.
///
/// A code in the range of HTTP errors is judged as that status would be. Only waits that the object
/// itself states in a structured field count.
pub fn classify(json: &[u8]) -> Failure {
    let object = ErrorObject::parse_event(json);
    let object = object.as_ref();
    let evidence = Evidence {
        header_name: None,
        object,
        text: None,
        status: None,
    };
    let decision = decide::decide(&evidence);
    let said = message::shown(object.and_then(ErrorObject::text))
        .unwrap_or_else(|| "an error without text in a successful response".to_owned());
    let mut failure = Failure::new(decision.class, Origin::Provider, Stage::Stream, said);
    failure.retryable &= object.and_then(|object| object.retryable) != Some(false);
    failure.wait = object.and_then(|object| object.wait);
    failure.code = message::shown_code(decision.code);
    failure
}

/// The verdict on a finish reason that is a failure rather than a finish.
pub fn bad_finish(native: &str) -> Failure {
    let class = codes::of_finish(native).unwrap_or(Class::Unclassified);
    let code = message::shown_code(Some(native.to_owned()));
    let reason = code.as_deref().unwrap_or("that is empty");
    let text = format!("the provider ended the response with the finish reason {reason}");
    let mut failure = Failure::new(class, Origin::Provider, Stage::Stream, text);
    failure.code = code;
    failure
}
