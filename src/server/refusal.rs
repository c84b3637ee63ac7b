//! Why an RPC is refused before `accepted`: no generation starts, one `Failed` and a status go out.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{QuotaViolation, StatusExt};

use super::status;
use crate::{
    proto::{Failed, GenerateResponse, Ledger, StoppedBy, generate_response::Frame},
    protocol::adapter::{RequestError, RequestErrorKind},
    recovery,
    verdict::{Class, Failure, Origin, Stage},
};

/// A refused RPC.
#[derive(Debug)]
pub struct Refusal {
    code: Code,
    class: Class,
    message: String,
    ledger: Box<Ledger>,
    pace: Option<Box<Pace>>,
}

/// What a client that is too fast is told.
#[derive(Debug)]
struct Pace {
    subject: String,
    /// When to come back.
    wait: Duration,
}

impl Refusal {
    /// A field of the client's frame is wrong.
    pub fn invalid(field: &str, reason: impl std::fmt::Display) -> Self {
        Self::new(
            Code::InvalidArgument,
            Class::InvalidRequest,
            format!("{field}: {reason}"),
        )
    }

    /// A field's behaviour comes with a later version.
    pub fn unimplemented(field: &str, reason: impl std::fmt::Display) -> Self {
        Self::new(
            Code::Unimplemented,
            Class::InvalidRequest,
            format!("{field}: {reason}"),
        )
    }

    /// The request id belongs to another start.
    pub fn already_exists() -> Self {
        let message = "start.request_id: is in use by a generation with another body";
        Self::new(Code::AlreadyExists, Class::InvalidRequest, message)
    }

    /// There is nothing to attach to.
    pub fn not_found(field: &str) -> Self {
        let message = format!("{field}: no such generation is running or kept");
        Self::new(Code::NotFound, Class::InvalidRequest, message)
    }

    /// The process is going down.
    pub fn draining() -> Self {
        Self::of_class(
            Class::Draining,
            "the sidecar is shutting down and takes no new generations",
        )
    }

    /// `subject` opens streams faster than the listener admits; in `wait` it can again.
    pub fn too_fast(
        subject: impl Into<String>,
        message: impl Into<String>,
        wait: Duration,
    ) -> Self {
        let subject = subject.into();
        Self {
            pace: Some(Box::new(Pace { subject, wait })),
            ..Self::of_class(Class::RateLimited, message)
        }
    }

    /// A refusal with the code of its class.
    pub fn of_class(class: Class, message: impl Into<String>) -> Self {
        Self::new(status::code(class), class, message)
    }

    fn new(code: Code, class: Class, message: impl Into<String>) -> Self {
        Self {
            code,
            class,
            message: message.into(),
            ledger: Box::default(),
            pace: None,
        }
    }

    /// A refusal of what a generation had already been made for.
    pub fn after(mut self, ledger: Ledger) -> Self {
        self.ledger = Box::new(ledger);
        self
    }

    /// What is wrong: the field, then the reason.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The one frame and the status.
    pub fn into_frame_and_status(self) -> (GenerateResponse, Status) {
        let failed = self.failed();
        let status = self.status(&failed);
        (
            GenerateResponse {
                sequence: 1,
                frame: Some(Frame::Failed(failed)),
            },
            status,
        )
    }

    /// The status alone, for a unary call.
    pub fn into_status(self) -> Status {
        self.status(&self.failed())
    }

    fn status(&self, failed: &Failed) -> Status {
        let status = status::of_refused(self.code, failed);
        let Some(pace) = &self.pace else {
            return status;
        };
        let mut details = status.get_error_details();
        details.set_quota_failure(vec![QuotaViolation::new(&pace.subject, status.message())]);
        Status::with_error_details(status.code(), status.message(), details)
    }

    fn failed(&self) -> Failed {
        let origin = match self.class {
            Class::InvalidRequest | Class::Deadline => Origin::Client,
            _ => Origin::Us,
        };
        let failure = Failure {
            wait: self.pace.as_ref().map(|pace| pace.wait),
            ..Failure::new(self.class, origin, Stage::Admission, self.message.as_str())
        };
        let stopped_by = match self.class {
            Class::Draining => StoppedBy::Drain,
            Class::InvalidRequest => StoppedBy::Client,
            Class::Deadline => StoppedBy::Deadline,
            Class::RateLimited => StoppedBy::Limiter,
            _ => StoppedBy::NotRetryable,
        };
        Failed {
            verdict: Some(recovery::verdict(&failure, 0, "")),
            stopped_by: stopped_by.into(),
            safe_to_send_again: true,
            ledger: Some(Ledger::clone(&self.ledger)),
        }
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        let error = error.within("start");
        match error.kind {
            RequestErrorKind::Invalid => Self::invalid(&error.field, error.reason),
            RequestErrorKind::NotBuiltYet => Self::unimplemented(&error.field, error.reason),
        }
    }
}
