//! The gRPC status that follows a terminal `Failed`.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, QuotaViolation, StatusExt};

use crate::{
    proto::{Failed, StoppedBy, Verdict},
    verdict::{Class, class},
};

/// So much of a limit's description that all details stay under 4 KiB. Fixed.
const MAX_LIMIT_CHARS: usize = 256;

/// The domain of every `google.rpc.ErrorInfo`.
const DOMAIN: &str = "redrive";

/// The status of a generation that failed: it follows the last verdict.
pub fn of_failed(failed: &Failed) -> Status {
    let verdict = failed.verdict.clone().unwrap_or_default();
    with_code(code(verdict.class()), failed, &verdict)
}

/// The status of an RPC that was refused before `accepted`, where its code is not that of its class.
pub fn of_refused(code: Code, failed: &Failed) -> Status {
    let verdict = failed.verdict.clone().unwrap_or_default();
    with_code(code, failed, &verdict)
}

/// The code of a class.
pub fn code(class: Class) -> Code {
    use Class::*;
    match class {
        RateLimited | QuotaExhausted | ClientTooSlow | TooLarge => Code::ResourceExhausted,
        Overloaded | ProviderInternal | Transport | PrematureEof | Corrupt | Stall
        | TimeoutConnect | TimeoutFirstToken | TimeoutProvider | NoTarget | LimiterUnavailable
        | Draining => Code::Unavailable,
        Deadline => Code::DeadlineExceeded,
        InvalidRequest | ContextOverflow | ExceedsLimit | ContentFiltered => Code::InvalidArgument,
        NotFound => Code::NotFound,
        Auth | Permission | RedirectRefused => Code::FailedPrecondition,
        GateRejected | MalformedOutput => Code::Aborted,
        Cancelled => Code::Cancelled,
        Unclassified | Unspecified => Code::Unknown,
    }
}

fn with_code(code: Code, failed: &Failed, verdict: &Verdict) -> Status {
    let ledger = failed.ledger.clone().unwrap_or_default();
    let stopped_by = failed.stopped_by().as_str_name();
    let stopped_by = stopped_by.strip_prefix("STOPPED_BY_").unwrap_or(stopped_by);
    let mut metadata = HashMap::from([
        ("stopped_by".to_owned(), stopped_by.to_owned()),
        ("attempts".to_owned(), ledger.attempts.to_string()),
        ("sends".to_owned(), ledger.sends.to_string()),
    ]);
    if !verdict.target.is_empty() {
        metadata.insert(
            "target".to_owned(),
            verdict.target.chars().take(256).collect(),
        );
    }
    if failed.stopped_by() == StoppedBy::Unspecified {
        metadata.remove("stopped_by");
    }
    let reason = class::reason(verdict.class());
    let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
    if let Some(wait) = verdict
        .retry_after
        .and_then(|wait| Duration::try_from(wait).ok())
    {
        details.set_retry_info(Some(wait));
    }
    if !verdict.budget.is_empty() {
        let subject = format!("budget:{}", verdict.budget);
        let description = verdict
            .limit
            .chars()
            .take(MAX_LIMIT_CHARS)
            .collect::<String>();
        details.set_quota_failure(vec![QuotaViolation::new(subject, description)]);
    }
    Status::with_error_details(code, verdict.message.clone(), details)
}
