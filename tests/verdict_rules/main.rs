//! What decides a verdict, one rule a test. Bodies are our own or minimal forms of public reports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic;
mod bodies;
mod codes;
mod connections;
mod phrases;
mod statuses;
mod streams;
mod table;

use http::{HeaderMap, HeaderName, HeaderValue};
use redrive::verdict::{
    Class, Failure,
    http::{HttpEvidence, classify},
    inband,
};

fn response(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Failure {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect();
    classify(&HttpEvidence {
        status,
        headers: &headers,
        body: body.as_bytes(),
        body_complete: true,
        now_wall: None,
    })
}

/// The class of a response without telling headers.
fn class(status: u16, body: &str) -> Class {
    response(status, &[], body).class
}

fn in_band(json: &str) -> Failure {
    inband::classify(json.as_bytes())
}
