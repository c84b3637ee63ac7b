//! The verdict on a response that is an error.

use std::time::SystemTime;

use http::{HeaderMap, Uri, header};

use super::{
    Class, ErrorObject, Failure, Origin, Stage,
    decide::{self, Evidence},
    inband, message, wait,
};

/// What is known of a response that is not a stream.
///
/// An error with a response is judged by the response, also where the connection broke while its
/// body was read: then the body is what came until then.
#[derive(Clone, Copy)]
pub struct HttpEvidence<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The headers of the response.
    pub headers: &'a HeaderMap,
    /// The body, decompressed, at most [`super::MAX_BODY_BYTES`] of it.
    pub body: &'a [u8],
    /// `false` if the body was cut: by its bound, by its time or by a broken connection.
    pub body_complete: bool,
    /// The time by the wall, for a `retry-after` date in a response without `date`.
    pub now_wall: Option<SystemTime>,
}

/// The verdict on an error response.
///
/// A status of success is accepted too, for an error object that came as a plain JSON body: it is
/// judged as [`inband`] does, and its headers are no wait.
pub fn classify(evidence: &HttpEvidence<'_>) -> Failure {
    match evidence.status {
        200..=299 => in_success(evidence),
        300..=399 => redirect(evidence),
        _ => error(evidence),
    }
}

fn in_success(evidence: &HttpEvidence<'_>) -> Failure {
    let mut failure = inband::classify(evidence.body);
    failure.stage = Stage::Response;
    failure.http_status = Some(evidence.status);
    failure
}

/// Never followed: that would be a send of its own, perhaps with the credential, to somewhere else.
fn redirect(evidence: &HttpEvidence<'_>) -> Failure {
    let location = evidence
        .headers
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok());
    // Only the host is shown: path and query of a login page can carry secrets.
    let host = location
        .and_then(|location| location.parse::<Uri>().ok())
        .and_then(|uri| uri.host().map(|host| format!(" to {host}")))
        .unwrap_or_default();
    let text = format!("HTTP {} redirect{host} was not followed", evidence.status);
    failure(Class::RedirectRefused, evidence, message::clean(&text))
}

fn error(evidence: &HttpEvidence<'_>) -> Failure {
    let object = ErrorObject::parse(evidence.body);
    let object = object.as_ref();
    let text = plain_text(evidence);
    let decision = decide::decide(&Evidence {
        header_name: aws_error_name(evidence.headers),
        object,
        text,
        status: Some(evidence.status),
    });
    let said = object.map_or_else(|| text.map(str::to_owned), ErrorObject::text);
    let said = message::shown(said).unwrap_or_else(|| diagnostic(evidence, object.is_some()));
    let mut failure = failure(decision.class, evidence, said);
    failure.retryable &= !vetoed(evidence.headers, object);
    failure.wait = wait::supplied(evidence.status, evidence.headers, object, evidence.now_wall);
    failure.code = message::shown_code(decision.code);
    failure
}

fn failure(class: Class, evidence: &HttpEvidence<'_>, message: String) -> Failure {
    let mut failure = Failure::new(class, Origin::Provider, Stage::Response, message);
    failure.http_status = Some(evidence.status);
    failure
}

/// `true` if the provider says not to try again. Its word to try again widens nothing.
fn vetoed(headers: &HeaderMap, object: Option<&ErrorObject>) -> bool {
    let header = headers
        .get("x-should-retry")
        .and_then(|value| value.to_str().ok());
    header.is_some_and(|value| value.trim().eq_ignore_ascii_case("false"))
        || object.is_some_and(|object| object.retryable == Some(false))
}

/// AWS names the error in a header: `ValidationException:http://…`, sometimes `namespace#Name`.
fn aws_error_name(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("x-amzn-errortype")?.to_str().ok()?;
    let name = value.split(':').next()?;
    name.rsplit('#')
        .next()
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// The body, where it is text for a person and neither markup nor (broken) JSON.
fn plain_text<'a>(evidence: &HttpEvidence<'a>) -> Option<&'a str> {
    let text = std::str::from_utf8(evidence.body).ok()?.trim();
    let structured = text.starts_with(['{', '[']) || is_html(evidence);
    (!text.is_empty() && !structured).then_some(text)
}

/// What stands for a body that is not shown.
fn diagnostic(evidence: &HttpEvidence<'_>, readable: bool) -> String {
    let body = evidence.body.trim_ascii();
    let kind = match body.first() {
        _ if readable => "an error body without text",
        None if evidence.body_complete => "an empty body",
        None => "a body that did not arrive",
        Some(_) if is_html(evidence) => "an HTML body",
        Some(b'{' | b'[') if !evidence.body_complete => "a truncated JSON body",
        Some(b'{' | b'[') => "an unreadable JSON body",
        Some(_) => "an unreadable body",
    };
    format!("HTTP {} with {kind}", evidence.status)
}

fn is_html(evidence: &HttpEvidence<'_>) -> bool {
    let content_type = evidence.headers.get(header::CONTENT_TYPE);
    let declared = content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value
                .trim_start()
                .to_ascii_lowercase()
                .starts_with("text/html")
        });
    declared || evidence.body.trim_ascii_start().starts_with(b"<")
}
