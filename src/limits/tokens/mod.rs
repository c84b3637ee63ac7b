//! What an attempt takes of budgets of tokens at most, before anybody knows what it really takes.
//!
//! [`input`] is counted from the body as it is sent, in one pass over its JSON. Text is counted with OpenAI's
//! own tokenizers where the model's name says that they apply, and by bytes otherwise. Images, documents and
//! audio are no text and have bounds of their own (`media`). [`output`] is what the body states.
//!
//! What a bound cannot know is settled when the provider tells its usage, and an overrun is counted then:
//! what the provider keeps itself (an earlier response, a stored prompt, a file by its id) or adds while it
//! answers (results of its own tools).

mod media;
mod model;
mod output;
mod prompt;

pub use output::output;

use std::borrow::Cow;

use serde::Deserialize;

use model::Model;
use prompt::Prompt;

/// How much text of one body is counted with a tokenizer; what comes after it is counted by bytes. A mebibyte
/// of text takes 35 ms on a 2026 server, and 190 ms if it is chosen to take long.
const MAX_TOKENIZED: usize = 1 << 20;

/// Added to every prompt: what providers put around messages, and the short system text of some open models.
const FRAMING: u64 = 32;

/// Added for each tool that the provider defines, since the body holds its name only. Anthropic publishes up
/// to 735 tokens (computer use).
const BUILT_IN_TOOL: u64 = 800;

/// An upper bound of the prompt's tokens, from the request's body as it is sent.
///
/// - OpenAI's models (by name, also behind a vendor: `openai/gpt-4o`): what its tokenizer counts for every
///   name and value of the JSON, times 1.1. The first call for such a model loads a table, which takes about
///   50 ms and 70 MB for `o200k_base`, and half of that for `cl100k_base`.
/// - All others: one token for each `bytes_per_token` bytes. With 1 this is strict for every tokenizer that
///   works on bytes or falls back to them, since none of their tokens stands for less than a byte, and JSON
///   writes no text in fewer bytes than it has. 0 counts as 1.
///
/// On top come media, and an allowance for what providers add themselves. A body that is not JSON, or nested
/// deeper than any request is, counts by its bytes.
pub fn input(model: &str, body: &[u8], bytes_per_token: u32) -> u64 {
    let model = Model::named(model);
    let bytes = |bytes: usize| (bytes as u64).div_ceil(u64::from(bytes_per_token.max(1)));
    let Some(prompt) = Prompt::read(body, model.tokenizer()) else {
        return bytes(body.len()).saturating_add(FRAMING + model.tools());
    };
    let text = match model.tokenizer() {
        Some(_) => prompt
            .tokens
            .saturating_add(bytes(prompt.untokenized))
            .saturating_mul(11)
            .div_ceil(10),
        None => bytes(body.len().saturating_sub(prompt.media.encoded)),
    };
    let tools = if prompt.tools == 0 { 0 } else { model.tools() };
    [
        text,
        prompt.media.tokens(model.tokens_per_image(), bytes),
        model.preamble(),
        FRAMING,
        tools,
        prompt.built_in_tools.saturating_mul(BUILT_IN_TOOL),
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

/// Loads the table that [`input`] needs for `model`, if it needs one that is not there yet.
pub fn load(model: &str) {
    Model::named(model).tokenizer();
}

/// The name of a member, borrowed where JSON writes it plainly.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
