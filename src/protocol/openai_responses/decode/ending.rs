//! What a response object says of the response: its name, its token counts, how it ended.

use serde_json::value::RawValue;

use super::{
    kind::Over,
    wire::{self, Incomplete, Response, TokenDetails},
};
use crate::{
    proto::{FinishReason, Usage},
    protocol::json::text::{non_empty, string, truthy},
};

/// The largest count that is believed. Above it, a number is not a count.
const MAX_TOKENS: f64 = (1_u64 << 53) as f64;

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending<'a> {
    /// It finished.
    Finish(FinishReason, &'a str),
    /// It failed, and says why.
    Error,
    /// It was ended by someone else.
    Cancelled,
}

/// How `response` ended. Its own status counts; where it has none, the type of the event does. An error
/// object beats both.
pub(super) fn ending<'a>(
    over: Over,
    response: &Response<'a>,
    scratch: &'a mut String,
) -> Ending<'a> {
    if truthy(response.error) {
        return Ending::Error;
    }
    let over = match response.status.and_then(|status| string(status, scratch)) {
        Some("completed") => Over::Completed,
        Some("incomplete") => Over::Incomplete,
        Some("failed") => Over::Failed,
        Some("cancelled") => Over::Cancelled,
        _ => over,
    };
    match over {
        Over::Completed => Ending::Finish(FinishReason::Stop, "completed"),
        Over::Failed => Ending::Error,
        Over::Cancelled => Ending::Cancelled,
        Over::Incomplete => {
            let details: Incomplete<'_> = wire::object(response.incomplete_details);
            let reason = non_empty(details.reason, scratch).unwrap_or("incomplete");
            Ending::Finish(incomplete(reason), reason)
        }
    }
}

/// `incomplete_details.reason`: OpenAI's are `max_output_tokens` and `content_filter`.
fn incomplete(reason: &str) -> FinishReason {
    match reason {
        "content_filter" => FinishReason::ContentFilter,
        "max_output_tokens" | "max_tokens" | "length" | "incomplete" => FinishReason::Length,
        _ => FinishReason::Other,
    }
}

/// The token counts of a `usage` object; `None` where it has none.
pub(super) fn usage(raw: Option<&RawValue>) -> Option<Usage> {
    let counts: wire::Usage<'_> = wire::object(raw);
    let input: TokenDetails<'_> = wire::object(counts.input_tokens_details);
    let output: TokenDetails<'_> = wire::object(counts.output_tokens_details);
    let all = [
        counts.input_tokens,
        counts.output_tokens,
        input.cached_tokens,
        input.cache_write_tokens,
        output.reasoning_tokens,
    ]
    .map(tokens);
    let [input, output, cache_read, cache_write, reasoning] = all;
    all.iter().any(Option::is_some).then(|| Usage {
        input_tokens: input.unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        cache_read_input_tokens: cache_read.unwrap_or_default(),
        cache_write_input_tokens: cache_write.unwrap_or_default(),
        reasoning_output_tokens: reasoning.unwrap_or_default(),
    })
}

fn tokens(raw: Option<&RawValue>) -> Option<u64> {
    let number: f64 = raw?.get().parse().ok()?;
    (0.0..=MAX_TOKENS)
        .contains(&number)
        .then_some(number as u64)
}
