//! The classes of the contract, and what follows from a class alone.

/// Why an attempt failed, or why a generation ended without a message.
pub use crate::proto::VerdictClass as Class;

/// `true` where the failure is transient: the same request may succeed later.
///
/// A verdict may narrow this (`x-should-retry: false`, an untrusted certificate), never widen it.
pub fn transient(class: Class) -> bool {
    use Class::*;
    match class {
        RateLimited | Overloaded | ProviderInternal | TimeoutConnect | TimeoutFirstToken
        | TimeoutProvider | Stall | Transport | PrematureEof | Corrupt | NoTarget
        | LimiterUnavailable | Draining => true,
        Unspecified | QuotaExhausted | RedirectRefused | Auth | Permission | InvalidRequest
        | NotFound | ContextOverflow | ContentFiltered | MalformedOutput | GateRejected
        | TooLarge | ExceedsLimit | ClientTooSlow | Deadline | Cancelled | Unclassified => false,
    }
}

/// The class in the contract's UPPER_SNAKE without its prefix, as `google.rpc.ErrorInfo.reason` has it.
pub fn reason(class: Class) -> &'static str {
    let name = class.as_str_name();
    name.strip_prefix("VERDICT_CLASS_").unwrap_or(name)
}

/// The class in snake_case, as metrics and logs have it.
pub fn label(class: Class) -> &'static str {
    use Class::*;
    match class {
        Unspecified => "unspecified",
        RateLimited => "rate_limited",
        QuotaExhausted => "quota_exhausted",
        Overloaded => "overloaded",
        ProviderInternal => "provider_internal",
        TimeoutConnect => "timeout_connect",
        TimeoutFirstToken => "timeout_first_token",
        TimeoutProvider => "timeout_provider",
        Stall => "stall",
        Transport => "transport",
        PrematureEof => "premature_eof",
        Corrupt => "corrupt",
        RedirectRefused => "redirect_refused",
        Auth => "auth",
        Permission => "permission",
        InvalidRequest => "invalid_request",
        NotFound => "not_found",
        ContextOverflow => "context_overflow",
        ContentFiltered => "content_filtered",
        MalformedOutput => "malformed_output",
        GateRejected => "gate_rejected",
        TooLarge => "too_large",
        ExceedsLimit => "exceeds_limit",
        NoTarget => "no_target",
        LimiterUnavailable => "limiter_unavailable",
        ClientTooSlow => "client_too_slow",
        Deadline => "deadline",
        Cancelled => "cancelled",
        Draining => "draining",
        Unclassified => "unclassified",
    }
}
