//! What an attempt is taken to cost before it runs, and what a provider's rate-limit headers brake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod headers;
mod media;
mod output;
mod prompts;
mod recorded_headers;
