//! Provider text made fit to be shown: one line, short, without credentials.

use super::failure::{MAX_MESSAGE_BYTES, clip};

/// The longest provider text that is looked at, in bytes.
const MAX_INPUT_BYTES: usize = 8 * MAX_MESSAGE_BYTES;

/// The longest code or type that a verdict carries, in bytes.
const MAX_CODE_BYTES: usize = 128;

/// What stands in the place of a credential.
const REDACTED: &str = "[redacted]";

/// The starts of well-known credentials, and the length from which a word is one.
static KEY_PREFIXES: &[(&str, usize)] = &[
    ("sk-", 6),  // OpenAI, Anthropic, DeepSeek, OpenRouter; also as they mask it themselves
    ("sk_", 12), // Stripe-like issuers
    ("gsk_", 12),
    ("xai-", 12),
    ("hf_", 12),
    ("pplx-", 12),
    ("csk-", 12),
    ("nvapi-", 12),
    ("tgp_", 12),
    ("fw_", 12),
    ("r8_", 12),
    ("AIza", 12), // Google
    ("ya29.", 12),
    ("AKIA", 12), // AWS
    ("ASIA", 12),
    ("ABSK", 12),
    ("eyJ", 12), // JWT
    ("ghp_", 12),
    ("github_pat_", 12),
];

/// What a word is called just before a credential.
static KEY_LABELS: &[&str] = &[
    "api key",
    "api-key",
    "api_key",
    "apikey",
    "key provided",
    "token provided",
    "access token",
    "access_token",
    "authorization",
    "password",
    "secret",
];

/// The longest run of letters and digits that is not taken for an opaque token.
const MAX_PLAIN_RUN: usize = 19;

/// `text` as one line of at most [`MAX_MESSAGE_BYTES`] bytes, without credentials and controls.
pub(super) fn clean(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = bounded(text);
    let mut after_scheme = false;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_token_char(c)).unwrap_or(rest.len());
        if length == 0 {
            push_between(first, &mut clean);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (word, tail) = rest.split_at(length);
        let is_scheme = ["bearer", "basic"]
            .iter()
            .any(|scheme| word.eq_ignore_ascii_case(scheme));
        if !is_scheme && (after_scheme && !is_prose(word) || is_labelled(&clean) && word.len() > 3)
        {
            push_redacted(word, &mut clean);
        } else {
            push_word(word, &mut clean);
        }
        after_scheme = is_scheme;
        rest = tail;
    }
    clean.truncate(clean.trim_end().len());
    clip(&mut clean);
    clean
}

/// A code or type, cleaned and cut to what a code may need.
pub(super) fn clean_code(code: &str) -> String {
    let mut clean = clean(code);
    clean.truncate(clean.floor_char_boundary(MAX_CODE_BYTES));
    clean
}

/// The part of the text that is looked at. A word that the cut halves is left out whole, because
/// half a credential would not be recognised.
fn bounded(text: &str) -> &str {
    let head = text
        .get(..text.floor_char_boundary(MAX_INPUT_BYTES))
        .unwrap_or_default();
    if head.len() == text.len() {
        head
    } else {
        head.trim_end_matches(is_token_char)
    }
}

/// Control characters become a space, and spaces do not pile up.
fn push_between(c: char, clean: &mut String) {
    if !c.is_whitespace() && !c.is_control() {
        clean.push(c);
    } else if !clean.is_empty() && !clean.ends_with(' ') {
        clean.push(' ');
    }
}

fn push_word(word: &str, clean: &mut String) {
    let value = word.find('=').map(|at| word.split_at(at + 1));
    match value {
        Some((label, value))
            if ends_with_label(label.trim_end_matches('=')) && !value.is_empty() =>
        {
            clean.push_str(label);
            clean.push_str(REDACTED);
        }
        _ if is_credential(word.trim_matches(['.', '/', '='])) => {
            push_redacted(word, clean);
        }
        _ => clean.push_str(word),
    }
}

/// The full stop after a credential is the sentence's.
fn push_redacted(word: &str, clean: &mut String) {
    clean.push_str(REDACTED);
    if word.ends_with('.') {
        clean.push('.');
    }
}

/// A plain word, as in "bearer authentication".
fn is_prose(word: &str) -> bool {
    word.len() <= 16
        && word
            .trim_end_matches('.')
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic())
}

fn is_credential(word: &str) -> bool {
    let known =
        |(prefix, length): &(&str, usize)| word.starts_with(prefix) && word.len() >= *length;
    KEY_PREFIXES.iter().any(known) || word.split(|c: char| !c.is_alphanumeric()).any(is_opaque)
}

/// A long run that mixes letters and digits: no word, no number and no part of a UUID is like that.
fn is_opaque(run: &str) -> bool {
    run.len() > MAX_PLAIN_RUN
        && run.bytes().any(|byte| byte.is_ascii_digit())
        && run.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// `true` if what was written so far announces a credential: `api key: `, `"api_key":"`.
fn is_labelled(clean: &str) -> bool {
    let quotes = [' ', '"', '\'', '`', '<'];
    let announced = clean.trim_end_matches(quotes).strip_suffix(':');
    announced.is_some_and(|label| ends_with_label(label.trim_end_matches(quotes)))
}

fn ends_with_label(text: &str) -> bool {
    let longest = KEY_LABELS
        .iter()
        .map(|label| label.len())
        .max()
        .unwrap_or(0);
    let from = text.floor_char_boundary(text.len().saturating_sub(longest));
    let end = text.get(from..).unwrap_or_default().to_ascii_lowercase();
    KEY_LABELS.iter().any(|label| end.ends_with(label))
}

fn is_token_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '.' | '~' | '*')
}
