//! The codes, types and statuses that providers are known to use, and the class each stands for.
//!
//! Data, not code: a provider is taught by adding a row. Names are compared without case and
//! punctuation, because `insufficient_quota`, `InsufficientQuota` and `insufficientquota` are all on
//! the wire. What is not listed decides nothing.

use super::Class;

/// How much a piece of evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// One word for many failures (`invalid_request_error`, a bare 500): anything else outranks it,
    /// and the anchored phrases refine it.
    Generic,
    /// Names the kind of failure; only the phrases of that kind refine it.
    Telling,
    /// Names the failure.
    Exact,
}

/// A name and what it stands for. The comment beside it says who is known to send it.
type Row = (&'static str, Class, Weight);

/// Codes and types of HTTP error bodies and of in-band errors.
static CODES: &[Row] = {
    use Class::*;
    use Weight::*;
    &[
        // Rate limits; the phrases for a size and for a daily quota refine them.
        ("rate_limit_exceeded", RateLimited, Telling), // OpenAI, Groq, OpenRouter
        ("rate_limit_error", RateLimited, Telling),    // Anthropic, OpenAI
        ("slow_down", RateLimited, Telling),           // OpenAI: requests ramp up too fast
        ("RateLimitReached", RateLimited, Telling),    // Azure
        ("RESOURCE_EXHAUSTED", RateLimited, Telling),  // Google
        ("ThrottlingException", RateLimited, Telling), // Bedrock
        ("rate_limit_reached_error", RateLimited, Telling), // Moonshot
        ("Throttling", RateLimited, Telling),          // Alibaba Model Studio
        ("Throttling.RateQuota", RateLimited, Telling), // Alibaba Model Studio
        ("Throttling.AllocationQuota", RateLimited, Telling), // Alibaba Model Studio
        ("limit_requests", RateLimited, Telling),      // Alibaba Model Studio
        ("rate_limited", RateLimited, Telling),        // gateways
        ("Too Many Requests", RateLimited, Telling),   // gateways, in the words of HTTP
        // A 402 that passes by itself: spend that is still in flight.
        ("openrouter_in_flight_budget", RateLimited, Exact), // OpenRouter, metadata.limit_source
        // Quota: gone until someone pays, or until a reset far away.
        ("insufficient_quota", QuotaExhausted, Exact), // OpenAI
        ("credit_balance_exhausted", QuotaExhausted, Exact), // OpenAI
        ("organization_spend_limit_exceeded", QuotaExhausted, Exact), // OpenAI
        ("project_spend_limit_exceeded", QuotaExhausted, Exact), // OpenAI
        ("organization_usage_limit_exceeded", QuotaExhausted, Exact), // OpenAI
        ("billing_hard_limit_reached", QuotaExhausted, Exact), // OpenAI
        ("billing_not_active", QuotaExhausted, Exact), // OpenAI
        ("usage_limit_reached", QuotaExhausted, Exact), // OpenAI, subscription endpoint
        ("usage_not_included", QuotaExhausted, Exact), // OpenAI, subscription endpoint
        ("billing_error", QuotaExhausted, Exact),      // Anthropic
        ("enforced_spend_limit_reached", QuotaExhausted, Exact), // Anthropic, details.error_code under a 429
        ("QUOTA_EXHAUSTED", QuotaExhausted, Exact),              // Google, ErrorInfo.reason
        ("BILLING_DISABLED", QuotaExhausted, Exact),             // Google, ErrorInfo.reason
        ("ServiceQuotaExceededException", QuotaExhausted, Exact), // Bedrock
        ("exceeded_current_quota_error", QuotaExhausted, Exact), // Moonshot, with a 429
        ("Arrearage", QuotaExhausted, Exact),                    // Alibaba Model Studio
        ("payment_required", QuotaExhausted, Telling),           // OpenRouter
        // Overload.
        ("server_is_overloaded", Overloaded, Exact), // OpenAI Responses
        ("service_unavailable_error", Overloaded, Exact), // OpenAI Responses
        ("overloaded_error", Overloaded, Exact),     // Anthropic
        ("overloaded", Overloaded, Exact),           // TGI
        ("provider_overloaded", Overloaded, Exact),  // OpenRouter
        ("UNAVAILABLE", Overloaded, Exact),          // Google
        ("MODEL_CAPACITY_EXHAUSTED", Overloaded, Exact), // Google, ErrorInfo.reason
        ("ServiceUnavailableException", Overloaded, Exact), // Bedrock
        ("ModelNotReadyException", Overloaded, Exact), // Bedrock
        ("unavailable_error", Overloaded, Exact),    // llama.cpp, while it loads the model
        ("engine_overloaded_error", Overloaded, Exact), // Moonshot
        // Faults of the provider; servers hide overflows under them.
        ("server_error", ProviderInternal, Generic), // OpenAI, llama.cpp
        ("internal_error", ProviderInternal, Generic), // OpenAI dialects
        ("internal_server_error", ProviderInternal, Generic), // vLLM, SGLang, gateways
        ("api_error", ProviderInternal, Generic),    // Anthropic, Ollama
        ("INTERNAL", ProviderInternal, Generic),     // Google
        ("server", ProviderInternal, Generic),       // OpenRouter
        ("provider_unavailable", ProviderInternal, Generic), // OpenRouter
        ("generation", ProviderInternal, Generic),   // TGI
        ("incomplete_generation", ProviderInternal, Generic), // TGI
        ("InternalServerException", ProviderInternal, Generic), // Bedrock
        ("ModelStreamErrorException", ProviderInternal, Generic), // Bedrock
        ("ModelErrorException", ProviderInternal, Generic), // Bedrock
        ("timeout_error", TimeoutProvider, Exact),   // Anthropic
        ("vector_store_timeout", TimeoutProvider, Exact), // OpenAI Responses
        ("timeout", TimeoutProvider, Exact),         // OpenRouter
        ("request_timeout", TimeoutProvider, Exact), // gateways, in the words of HTTP
        ("GatewayTimeout", TimeoutProvider, Exact),  // gateways, in the words of HTTP
        ("DEADLINE_EXCEEDED", TimeoutProvider, Exact), // Google
        ("ModelTimeoutException", TimeoutProvider, Exact), // Bedrock
        // Credentials.
        ("invalid_api_key", Auth, Exact),      // OpenAI, Perplexity
        ("account_deactivated", Auth, Exact),  // OpenAI
        ("authentication_error", Auth, Exact), // Anthropic, DeepSeek, llama.cpp
        ("authentication", Auth, Exact),       // OpenRouter
        ("unauthorized", Auth, Exact),         // gateways, in the words of HTTP
        ("invalid_authentication_error", Auth, Exact), // Moonshot
        ("incorrect_api_key_error", Auth, Exact), // Moonshot
        ("UNAUTHENTICATED", Auth, Exact),      // Google
        ("API_KEY_INVALID", Auth, Exact),      // Google, ErrorInfo.reason under a 400
        ("ACCESS_TOKEN_EXPIRED", Auth, Exact), // Google, ErrorInfo.reason
        ("CREDENTIALS_MISSING", Auth, Exact),  // Google, ErrorInfo.reason
        ("UnrecognizedClientException", Auth, Exact), // Bedrock, with a 403
        ("ExpiredTokenException", Auth, Exact), // Bedrock, with a 403
        ("InvalidSignatureException", Auth, Exact), // Bedrock, with a 403
        ("IncompleteSignatureException", Auth, Exact), // Bedrock
        ("MissingAuthenticationTokenException", Auth, Exact), // Bedrock, with a 403
        // Permission; the phrases for a filter and for a signature refine it.
        ("permission_error", Permission, Telling), // Anthropic, llama.cpp
        ("permission_denied", Permission, Telling), // Google, OpenRouter
        ("permission_denied_error", Permission, Telling), // Moonshot
        ("forbidden", Permission, Telling),        // doubleword
        ("AccessDeniedException", Permission, Telling), // Bedrock
        ("unsupported_country_region_territory", Permission, Exact), // OpenAI
        ("data_residency_mismatch", Permission, Exact), // OpenAI Responses: another region serves it
        ("FAILED_PRECONDITION", Permission, Telling), // Google, a 400: region or billing of the project
        ("SERVICE_DISABLED", Permission, Exact),      // Google, ErrorInfo.reason
        ("API_KEY_SERVICE_BLOCKED", Permission, Exact), // Google, ErrorInfo.reason
        ("CONSUMER_SUSPENDED", Permission, Exact),    // Google, ErrorInfo.reason
        // The model, or its deployment, is not there.
        ("model_not_found", NotFound, Exact), // OpenAI, Groq, doubleword
        ("not_found_error", NotFound, Exact), // Anthropic, Ollama, vLLM, llama.cpp
        ("not_found", NotFound, Exact),       // Google, OpenRouter
        ("DeploymentNotFound", NotFound, Exact), // Azure
        ("invalid_model", NotFound, Exact),   // Mistral
        ("ResourceNotFoundException", NotFound, Exact), // Bedrock
        ("resource_not_found_error", NotFound, Exact), // Moonshot
        // The conversation does not fit.
        ("context_length_exceeded", ContextOverflow, Exact), // OpenAI, OpenRouter
        ("context_window_exceeded", ContextOverflow, Exact), // gateways
        ("ContextWindowExceededError", ContextOverflow, Exact), // LiteLLM
        ("token_limit_exceeded", ContextOverflow, Exact),    // OpenRouter
        ("exceed_context_size_error", ContextOverflow, Exact), // llama.cpp
        ("TOO_MANY_TOKENS", ContextOverflow, Exact),         // Cohere
        ("too_many_prompt_tokens", ContextOverflow, Exact),  // Perplexity
        // Filters.
        ("content_filter", ContentFiltered, Exact), // OpenAI, Azure
        ("ResponsibleAIPolicyViolation", ContentFiltered, Exact), // Azure, innererror.code
        ("content_policy_violation", ContentFiltered, Exact), // OpenAI, OpenRouter
        ("image_content_policy_violation", ContentFiltered, Exact), // OpenAI Responses
        ("bio_policy", ContentFiltered, Exact),     // OpenAI Responses
        ("cyber_policy", ContentFiltered, Exact),   // OpenAI Responses
        ("refusal", ContentFiltered, Exact),        // OpenRouter
        ("guardrail_intervened", ContentFiltered, Exact), // Bedrock
        ("INTERVENED", ContentFiltered, Exact),     // Bedrock
        ("content_filtered", ContentFiltered, Exact), // Bedrock
        ("SAFETY", ContentFiltered, Exact),         // Google, blockReason
        ("PROHIBITED_CONTENT", ContentFiltered, Exact), // Google, blockReason
        ("BLOCKLIST", ContentFiltered, Exact),      // Google, blockReason
        ("MODEL_ARMOR", ContentFiltered, Exact),    // Google, blockReason
        ("JAILBREAK", ContentFiltered, Exact),      // Google, blockReason
        ("IMAGE_SAFETY", ContentFiltered, Exact),   // Google, blockReason
        ("data_inspection_failed", ContentFiltered, Exact), // Alibaba Model Studio
        // The model's output broke the rules of its own protocol.
        ("tool_use_failed", MalformedOutput, Exact), // Groq
        ("MALFORMED_FUNCTION_CALL", MalformedOutput, Exact), // Google
        ("UNEXPECTED_TOOL_CALL", MalformedOutput, Exact), // Google
        ("malformed_tool_use", MalformedOutput, Exact), // Bedrock
        ("malformed_model_output", MalformedOutput, Exact), // Bedrock
        // The request: names for anything that is wrong with it, then names for one thing.
        ("invalid_request_error", InvalidRequest, Generic), // OpenAI and its dialects, Anthropic
        ("invalid_request", InvalidRequest, Generic),       // OpenRouter
        ("BadRequestError", InvalidRequest, Generic),       // vLLM, SGLang
        ("Bad Request", InvalidRequest, Generic),           // doubleword
        ("INVALID_ARGUMENT", InvalidRequest, Generic),      // Google, xAI
        ("OUT_OF_RANGE", InvalidRequest, Generic),          // Google
        ("ValidationException", InvalidRequest, Generic),   // Bedrock
        ("validation", InvalidRequest, Generic),            // TGI
        ("request_too_large", InvalidRequest, Generic),     // Anthropic, with a 413
        ("payload_too_large", InvalidRequest, Generic),     // OpenRouter, with a 413
        ("conflict_error", InvalidRequest, Generic),        // Anthropic, with a 409
        ("invalid_prompt", InvalidRequest, Exact),          // OpenAI Responses, OpenRouter
        ("not_supported_error", InvalidRequest, Exact),     // llama.cpp, with a 501
        ("UNIMPLEMENTED", InvalidRequest, Exact),           // Google
        ("unprocessable", InvalidRequest, Exact),           // OpenRouter
        ("precondition_failed", InvalidRequest, Exact),     // OpenRouter
        ("string_too_long", InvalidRequest, Exact),         // OpenRouter
        ("max_tokens_exceeded", InvalidRequest, Exact),     // OpenRouter
        ("invalid_image", InvalidRequest, Exact),           // OpenRouter
        ("image_too_large", InvalidRequest, Exact),         // OpenRouter
        ("image_too_small", InvalidRequest, Exact),         // OpenRouter
        ("unsupported_image_format", InvalidRequest, Exact), // OpenRouter
        ("image_not_found", InvalidRequest, Exact),         // OpenRouter, with a 404
        ("image_download_failed", InvalidRequest, Exact),   // OpenRouter
        ("invalid_image_format", InvalidRequest, Exact),    // OpenAI Responses
        ("invalid_base64_image", InvalidRequest, Exact),    // OpenAI Responses
        ("invalid_image_url", InvalidRequest, Exact),       // OpenAI Responses
        ("invalid_image_mode", InvalidRequest, Exact),      // OpenAI Responses
        ("image_parse_error", InvalidRequest, Exact),       // OpenAI Responses
        ("image_file_too_large", InvalidRequest, Exact),    // OpenAI Responses
        ("image_file_not_found", InvalidRequest, Exact),    // OpenAI Responses
        ("unsupported_image_media_type", InvalidRequest, Exact), // OpenAI Responses
        ("empty_image_file", InvalidRequest, Exact),        // OpenAI Responses
        ("failed_to_download_image", InvalidRequest, Exact), // OpenAI Responses
    ]
};

/// Finish reasons that are failures rather than finishes.
static FINISHES: &[Row] = {
    use Class::*;
    use Weight::*;
    &[
        ("error", MalformedOutput, Exact), // Mistral, Together, OpenRouter
        ("MALFORMED_FUNCTION_CALL", MalformedOutput, Exact), // Google
        ("UNEXPECTED_TOOL_CALL", MalformedOutput, Exact), // Google
        ("TOO_MANY_TOOL_CALLS", MalformedOutput, Exact), // Google
        ("malformed_tool_use", MalformedOutput, Exact), // Bedrock
        ("malformed_model_output", MalformedOutput, Exact), // Bedrock
        ("abort", ProviderInternal, Exact), // vLLM, SGLang
        ("network_error", ProviderInternal, Exact), // Z.ai
        ("insufficient_system_resource", Overloaded, Exact), // DeepSeek
        ("timeout", TimeoutProvider, Exact), // Cohere
        ("REASON_TIME_LIMIT", TimeoutProvider, Exact), // xAI
    ]
};

/// What a code or type stands for, if it is listed.
pub(super) fn of_name(name: &str) -> Option<(Class, Weight)> {
    find(CODES, name)
}

/// What a finish reason that is a failure stands for, if it is listed.
pub(super) fn of_finish(native: &str) -> Option<Class> {
    find(FINISHES, native).map(|(class, _)| class)
}

/// What an HTTP status stands for; also for a status that a body repeats as its code.
pub(super) fn of_status(status: u16) -> (Class, Weight) {
    use Weight::{Generic, Telling};
    match status {
        300..=399 => (Class::RedirectRefused, Telling),
        401 => (Class::Auth, Telling),
        402 => (Class::QuotaExhausted, Telling),
        403 => (Class::Permission, Telling),
        404 | 410 => (Class::NotFound, Telling),
        408 | 504 => (Class::TimeoutProvider, Telling),
        429 => (Class::RateLimited, Telling),
        // "Client closed request", of a request that we did not close: no one's documented class.
        499 => (Class::Unclassified, Telling),
        501 => (Class::InvalidRequest, Telling),
        529 => (Class::Overloaded, Telling),
        424 => (Class::ProviderInternal, Generic),
        400..=499 => (Class::InvalidRequest, Generic),
        500..=599 => (Class::ProviderInternal, Generic),
        _ => (Class::Unclassified, Generic),
    }
}

fn find(rows: &[Row], name: &str) -> Option<(Class, Weight)> {
    rows.iter()
        .find(|(known, _, _)| same_name(known, name))
        .map(|(_, class, weight)| (*class, *weight))
}

/// Equal but for case and punctuation.
fn same_name(known: &str, name: &str) -> bool {
    letters(known).eq(letters(name))
}

fn letters(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.bytes()
        .filter(u8::is_ascii_alphanumeric)
        .map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_but_for_case_and_punctuation() {
        let exhausted = Some((Class::QuotaExhausted, Weight::Exact));
        for name in [
            "insufficient_quota",
            "InsufficientQuota",
            "insufficientquota",
        ] {
            assert_eq!(of_name(name), exhausted, "{name}");
        }
        assert_eq!(of_name("insufficient_quotas"), None);
    }

    #[test]
    fn a_name_without_letters_is_no_name() {
        for name in ["", "___", "…", "  "] {
            assert_eq!(of_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn no_name_stands_for_two_things() {
        for rows in [CODES, FINISHES] {
            let names: Vec<_> = rows.iter().map(|(name, _, _)| name).collect();
            for (n, name) in names.iter().enumerate() {
                let same = names.iter().position(|other| same_name(other, name));
                assert_eq!(same, Some(n), "{name} is listed twice");
            }
        }
    }

    #[test]
    fn a_plain_503_is_a_fault_and_529_an_overload() {
        assert_eq!(of_status(503).0, Class::ProviderInternal);
        assert_eq!(of_status(529).0, Class::Overloaded);
        assert_eq!(of_status(408).0, Class::TimeoutProvider);
        assert_eq!(of_status(504).0, Class::TimeoutProvider);
    }
}
