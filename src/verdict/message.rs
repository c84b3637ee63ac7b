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
    // After the name of an authentication scheme: whether a label stood before that.
    let mut after_scheme = None;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_token_char(c)).unwrap_or(rest.len());
        if length == 0 {
            push_between(first, &mut clean);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (word, tail) = rest.split_at(length);
        let labelled = is_labelled(&clean);
        let scheme = is_scheme(word);
        let secret = match after_scheme {
            Some(certain) => certain || !is_prose(word),
            None => labelled && !scheme && word.len() > 3,
        };
        if secret {
            push_redacted(word, &mut clean)
        } else {
            push_word(word, &mut clean)
        }
        after_scheme = scheme.then_some(labelled);
        rest = tail;
    }
    clean.truncate(clean.trim_end().len());
    clip(&mut clean);
    clean
}

/// `text` cleaned, where something of it is left to show.
pub(super) fn shown(text: Option<String>) -> Option<String> {
    text.map(|text| clean(&text))
        .filter(|text| !text.is_empty())
}

/// A code or type, cleaned and cut to what a code may need.
pub(super) fn shown_code(code: Option<String>) -> Option<String> {
    let mut code = shown(code)?;
    code.truncate(code.floor_char_boundary(MAX_CODE_BYTES));
    Some(code)
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

/// The name of an authentication scheme: what follows is a credential, or a word about one.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// A plain word, as in "bearer authentication".
fn is_prose(word: &str) -> bool {
    word.len() <= 16
        && word
            .trim_end_matches('.')
            .bytes()
            .all(|byte| byte.is_ascii_lowercase())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in [
            "Rate limit reached for gpt-4o-mini on tokens per min (TPM): Limit 100000, Used 96749.",
            "The model `meta-llama/llama-3.2-3b-instruct:free` does not exist (ref: \
             e8440b11-29fb-4887-a222-eff9ba33dfbf).",
            "Missing bearer authentication in header",
            "You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid x-api-key",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn keys_of_known_shape_are_removed() {
        for key in [
            "sk-proj-abcDEF1234567890",
            "sk-ant-api03-x_y-z",
            "sk-wrong****-key",
            "gsk_abcdefghijklmnop",
            "AIzaSyA-bcdefghijklmnopqrstuvwxyz",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOi.eyJzdWIi.c2ln",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(
                clean(&format!("bad key <{key}>, sorry")),
                "bad key <[redacted]>, sorry"
            );
            assert_eq!(clean(&format!("bad {key}.")), "bad [redacted].");
        }
    }

    #[test]
    fn what_follows_a_label_is_removed_whatever_its_shape() {
        assert_eq!(
            clean("API key provided: invalid-key. Try"),
            "API key provided: [redacted]. Try"
        );
        assert_eq!(
            clean("Authorization: Basic hunter"),
            "Authorization: Basic [redacted]"
        );
        assert_eq!(
            clean("Authorization: Bearer abc.def"),
            "Authorization: Bearer [redacted]"
        );
        assert_eq!(
            clean("used bearer tok3n-x here"),
            "used bearer [redacted] here"
        );
        assert_eq!(
            clean(r#"{"api_key":"hunter2"}"#),
            r#"{"api_key":"[redacted]"}"#
        );
        assert_eq!(
            clean("GET /v1?api_key=hunter2&n=1"),
            "GET /v1?api_key=[redacted]&n=1"
        );
    }

    #[test]
    fn controls_and_line_breaks_become_one_space() {
        assert_eq!(clean("a\r\n\t b\u{1b}[31m\0c\n"), "a b [31m c");
    }

    #[test]
    fn the_text_is_cut_at_a_character() {
        let cut = clean(&"é".repeat(600));
        assert_eq!(cut, "é".repeat(MAX_MESSAGE_BYTES / 2));
    }

    #[test]
    fn a_key_on_the_cut_leaves_nothing() {
        let filler = "a ".repeat(20);
        // Enough redactions that the end of what is looked at is inside what is shown.
        let keys = "sk-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789 ";
        for shift in 0..80 {
            let text = format!("{}{}{}", &filler[..shift / 2], keys.repeat(80), "tail");
            let clean = clean(&text);
            assert!(!clean.contains("abc") && !clean.contains("sk-"), "{clean}");
        }
    }
}
