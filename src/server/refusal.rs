//! Why an RPC is refused before `accepted`: no generation starts, one `Failed` and a status go out.

use tonic::{Code, Status};

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
        let status = status::of_refused(self.code, &failed);
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
        status::of_refused(self.code, &self.failed())
    }

    fn failed(&self) -> Failed {
        let origin = match self.class {
            Class::InvalidRequest | Class::Deadline => Origin::Client,
            _ => Origin::Us,
        };
        let failure = Failure::new(self.class, origin, Stage::Admission, self.message.as_str());
        let stopped_by = match self.class {
            Class::Draining => StoppedBy::Drain,
            Class::InvalidRequest => StoppedBy::Client,
            Class::Deadline => StoppedBy::Deadline,
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
