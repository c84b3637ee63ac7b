//! Token counts.

use serde_json::value::RawValue;

use super::{super::super::json::count::tokens, chunk::UsageFields};
use crate::proto::Usage;

/// Takes the counts of a `usage` object into `usage`; a count that is absent or `null` leaves the
/// one before (Databricks sends `completion_tokens: null` on all chunks but the last). Returns
/// whether there was any.
///
/// Spellings: OpenAI's, DeepSeek's `prompt_cache_hit_tokens`, Anthropic's cache counts as gateways
/// pass them on, OpenRouter's `cache_write_tokens`, xAI's and Z.ai's `reasoning_tokens`.
pub(super) fn merge(usage: &mut Usage, object: &RawValue) -> bool {
    let Ok(fields) = serde_json::from_str::<UsageFields<'_>>(object.get()) else {
        return false;
    };
    let input = &fields.prompt_tokens_details;
    let output = &fields.completion_tokens_details;
    let counts = [
        (&mut usage.input_tokens, [fields.prompt_tokens, None, None]),
        (
            &mut usage.output_tokens,
            [fields.completion_tokens, None, None],
        ),
        (
            &mut usage.cache_read_input_tokens,
            [
                input.cached_tokens,
                fields.prompt_cache_hit_tokens,
                fields.cache_read_input_tokens,
            ],
        ),
        (
            &mut usage.cache_write_input_tokens,
            [
                input.cache_write_tokens,
                fields.cache_creation_input_tokens,
                None,
            ],
        ),
        (
            &mut usage.reasoning_output_tokens,
            [output.reasoning_tokens, fields.reasoning_tokens, None],
        ),
    ];
    let mut any = false;
    for (slot, spellings) in counts {
        if let Some(tokens) = spellings.into_iter().find_map(tokens) {
            *slot = tokens;
            any = true;
        }
    }
    any
}
