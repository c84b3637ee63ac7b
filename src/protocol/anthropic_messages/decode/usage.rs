//! Token counts. Those of `message_start` are a beginning (`output_tokens` from 1 to 8), those of each
//! `message_delta` cumulative; what one leaves out stays.

use serde_json::value::RawValue;

use super::wire::UsageFields;
use crate::{proto, protocol::json::count::tokens};

/// The counts as the provider tells them: its input leaves out what the cache was read or written for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    thinking: u64,
}

impl Usage {
    /// Takes the counts of a `usage` object. Returns whether there was any.
    pub(super) fn merge(&mut self, object: &RawValue) -> bool {
        let Ok(fields) = serde_json::from_str::<UsageFields<'_>>(object.get()) else {
            return false;
        };
        let mut any = false;
        for (slot, field) in [
            (&mut self.input, fields.input_tokens),
            (&mut self.output, fields.output_tokens),
            (&mut self.cache_read, fields.cache_read_input_tokens),
            (&mut self.cache_write, fields.cache_creation_input_tokens),
            (
                &mut self.thinking,
                fields.output_tokens_details.thinking_tokens,
            ),
        ] {
            if let Some(count) = tokens(field) {
                *slot = count;
                any = true;
            }
        }
        any
    }

    /// In the contract's terms: cached input is input.
    pub(super) fn to_proto(self) -> proto::Usage {
        proto::Usage {
            input_tokens: self.input + self.cache_read + self.cache_write,
            output_tokens: self.output,
            cache_read_input_tokens: self.cache_read,
            cache_write_input_tokens: self.cache_write,
            reasoning_output_tokens: self.thinking,
        }
    }
}
