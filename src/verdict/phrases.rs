//! The anchored phrases: the only provider prose that decides anything.
//!
//! A phrase refines one class at one weight and nothing else; a class that a provider named exactly
//! is never overruled by text. In a phrase `#` stands for a number and `*` for any text. A phrase
//! matches whole words, without case.

use super::{Class, codes::Weight};

/// The class and weight of a verdict, what its phrases refine it to, and the phrases.
type Refinement = (Class, Weight, Class, &'static [&'static str]);

/// A conversation that does not fit.
const OVERFLOW: &[&str] = &[
    "prompt is too long",                                // Anthropic
    "input is too long for requested model",             // Bedrock
    "exceeds the context window",                        // OpenAI
    "input token count*exceeds the maximum",             // Google
    "maximum prompt length is #",                        // xAI
    "reduce the length of the messages",                 // DeepSeek, Groq
    "maximum context length is # tokens",                // OpenAI, OpenRouter, DeepSeek, vLLM
    "exceeds the limit of #",                            // GitHub Copilot
    "exceeds the available context size",                // llama.cpp
    "greater than the context length",                   // LM Studio
    "longer than the model's context length",            // SGLang, Together
    "context window exceeds limit",                      // MiniMax
    "exceeded model token limit",                        // Moonshot
    "too large for model with # maximum context length", // Mistral
    "context length exceeded",                           // gateways
    "context_length_exceeded",                           // gateways
    "too many tokens",                                   // Cohere
    "input tokens exceeded",                             // Bedrock
    "is too large to process",                           // llama.cpp, as a 500
    "prompt too long; exceeded max context length",      // Ollama
    "request too large for*limit #, requested #",        // Groq, a 413 without its code
];

static REFINEMENTS: &[Refinement] = {
    use Class::*;
    use Weight::{Generic, Telling};
    &[
        // Several servers hide an overflow under a generic fault of their own.
        (InvalidRequest, Generic, ContextOverflow, OVERFLOW),
        (ProviderInternal, Generic, ContextOverflow, OVERFLOW),
        // The model is unknown, said with a 400.
        (
            InvalidRequest,
            Generic,
            NotFound,
            &[
                "is not a valid model id",                      // OpenRouter
                "model identifier is invalid",                  // Bedrock
                "supported api model names are*but you passed", // DeepSeek
                "model not found:",                             // xAI
            ],
        ),
        // A bad key, said with a 400.
        (
            InvalidRequest,
            Generic,
            Auth,
            &[
                "incorrect api key provided", // xAI
                "api key not valid",          // Google
            ],
        ),
        // Money, said with a 400.
        (
            InvalidRequest,
            Generic,
            QuotaExhausted,
            &[
                "credit balance",                          // Anthropic
                "spend limit",                             // Anthropic
                "reached your specified*api usage limits", // Anthropic
            ],
        ),
        // A 500 for a request that the server's own flags do not allow.
        (
            ProviderInternal,
            Generic,
            InvalidRequest,
            &[
                "requires --jinja", // llama.cpp
            ],
        ),
        // One request that is larger than the whole window: no wait helps.
        (
            RateLimited,
            Telling,
            ContextOverflow,
            &[
                "request too large*limit #, requested #", // OpenAI, Groq
            ],
        ),
        // A limit per day, or none at all for this model.
        (
            RateLimited,
            Telling,
            QuotaExhausted,
            &[
                "per day (tpd): limit #",              // OpenAI, Groq
                "per day (rpd): limit #",              // OpenAI, Groq
                "quota exceeded for metric:*limit: 0", // Google
            ],
        ),
        // A 402 about the size of the request.
        (
            QuotaExhausted,
            Telling,
            ContextOverflow,
            &[
                "prompt tokens limit exceeded: #", // OpenRouter
            ],
        ),
        // A 403 about the content.
        (
            Permission,
            Telling,
            ContentFiltered,
            &[
                "content violates usage guidelines", // xAI
                "request blocked:",                  // OpenRouter's guardrails
            ],
        ),
        // A 403 about the clock.
        (
            Permission,
            Telling,
            Auth,
            &[
                "signature expired:", // Bedrock
            ],
        ),
    ]
};

/// What `text` refines the verdict to, if a phrase of that verdict is in it.
///
/// `text` is in lower case.
pub(super) fn refine(class: Class, weight: Weight, text: &str) -> Option<Class> {
    REFINEMENTS
        .iter()
        .filter(|(from, at, ..)| (*from, *at) == (class, weight))
        .find(|(.., phrases)| phrases.iter().any(|phrase| found(phrase, text)))
        .map(|(_, _, to, _)| *to)
}

/// `true` if the phrase is in the text, its ends at the ends of words.
fn found(phrase: &str, text: &str) -> bool {
    let mut rest = text.as_bytes();
    let mut before = None;
    for part in phrase.split('*') {
        let Some((last, after)) = find_part(part.as_bytes(), rest, before) else {
            return false;
        };
        (before, rest) = (Some(last), after);
    }
    true
}

/// The last byte of the first occurrence of `part` and the text after it. `before` is the byte that
/// precedes `text`.
fn find_part<'t>(part: &[u8], text: &'t [u8], before: Option<u8>) -> Option<(u8, &'t [u8])> {
    let mut before = before;
    let mut rest = text;
    loop {
        if !joins(before, part.first())
            && let Some(after) = strip(part, rest)
        {
            let last = rest.get(..rest.len() - after.len())?.last().copied()?;
            return Some((last, after));
        }
        let (first, tail) = rest.split_first()?;
        (before, rest) = (Some(*first), tail);
    }
}

/// What follows `part` at the start of `text`, if `part` stands there and ends with a word.
fn strip<'t>(part: &[u8], text: &'t [u8]) -> Option<&'t [u8]> {
    let mut rest = text;
    for &wanted in part {
        if wanted == b'#' {
            let digits = rest
                .iter()
                .take_while(|b| b.is_ascii_digit() || **b == b',')
                .count();
            let (number, after) = rest.split_at_checked(digits)?;
            if !number.first()?.is_ascii_digit() {
                return None;
            }
            // "Limit 6000, Requested": the comma is the sentence's, not the number's.
            let trailing = number
                .iter()
                .rev()
                .take_while(|byte| **byte == b',')
                .count();
            rest = text.get(text.len() - after.len() - trailing..)?;
        } else {
            rest = rest.strip_prefix(&[wanted])?;
        }
    }
    (!joins(part.last().copied(), rest.first())).then_some(rest)
}

/// `true` if the two bytes are inside one word.
fn joins(left: Option<u8>, right: Option<&u8>) -> bool {
    left.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && right.is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_matches_whole_words_only() {
        assert!(found("too many tokens", "error: too many tokens."));
        assert!(!found("too many tokens", "too many tokensets"));
        assert!(!found("too many tokens", "stoo many tokens"));
    }

    #[test]
    fn a_number_is_required_where_the_phrase_has_one() {
        let phrase = "maximum context length is # tokens";
        assert!(found(
            phrase,
            "model's maximum context length is 8192 tokens. however"
        ));
        assert!(found(phrase, "maximum context length is 8,192 tokens"));
        assert!(!found(phrase, "maximum context length is many tokens"));
        assert!(!found(phrase, "maximum context length is , tokens"));
    }

    #[test]
    fn a_comma_after_a_number_belongs_to_the_sentence() {
        let text = "request too large for x on tpm: limit 6000, requested 10338, please";
        assert!(found("request too large*limit #, requested #", text));
    }

    #[test]
    fn a_gap_takes_any_text_but_keeps_the_order() {
        let phrase = "input token count*exceeds the maximum";
        assert!(found(
            phrase,
            "the input token count (12) exceeds the maximum number"
        ));
        assert!(!found(phrase, "exceeds the maximum input token count"));
    }

    #[test]
    fn a_limit_of_zero_is_not_a_limit_that_starts_with_zero() {
        let phrase = "quota exceeded for metric:*limit: 0";
        assert!(found(
            phrase,
            "quota exceeded for metric: a/b, limit: 0, model: m"
        ));
        assert!(found(phrase, "quota exceeded for metric: a/b, limit: 0"));
        assert!(!found(
            phrase,
            "quota exceeded for metric: a/b, limit: 07, model: m"
        ));
        assert!(!found(
            phrase,
            "quota exceeded for metric: a/b, limit: 1000000, model: m"
        ));
    }

    #[test]
    fn an_exact_class_is_never_refined() {
        let text = "prompt is too long; request too large: limit 1, requested 2";
        assert_eq!(refine(Class::Auth, Weight::Exact, text), None);
        assert_eq!(refine(Class::Overloaded, Weight::Exact, text), None);
        assert_eq!(refine(Class::InvalidRequest, Weight::Exact, text), None);
    }
}
